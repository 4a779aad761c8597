"""Counting what is done at a rate, together with the other processes: in Redis, else in a file of the machine.

A bucket is a count and the moment at which it is emptied, one period after its first act. An act is let in while there
is room for one; so is a list, which is charged whole, and what it took too much lengthens the period: the rate holds
whatever the size of lists, and no list is refused for ever.
"""

from __future__ import annotations

import sqlite3
import threading
import time
from collections.abc import Iterable, Sequence
from contextlib import closing
from hashlib import blake2b
from pathlib import Path
from typing import NamedTuple

from django.conf import settings
from redis import Redis
from redis.backoff import NoBackoff
from redis.commands.core import Script
from redis.retry import Retry

MOST_AT_ONCE = 500
"""Acts of one list. A bucket that ends later than these explain was filled before somebody set the clock back."""

_TIMEOUT_SECONDS = 0.2
_LOCK_SECONDS = 1.0
_ROWS_BETWEEN_SWEEPS = 1000


class Rate(NamedTuple):
    """So many acts in so many seconds."""

    most: int
    seconds: int


class Draw(NamedTuple):
    """What an act takes from one bucket; an amount of 0 only asks whether there is room."""

    bucket: str
    rate: Rate
    amount: int


def name_of(kind: str, *parts: str) -> str:
    """A bucket's name, from which nobody reads whose it is: addresses must not stay in files that outlive them."""
    digest = blake2b("\0".join(parts).encode(), digest_size=12, key=settings.SECRET_KEY.encode()[:64])
    return f"{kind}:{digest.hexdigest()}"


class RedisBuckets:
    """One round trip, one script, by the clock of the server: all processes and machines count together."""

    PREFIX = "limits:{all}:"  # braces: a cluster keeps them in one slot

    SCRIPT = """
        local wait = 0
        for i, key in ipairs(KEYS) do
            if tonumber(redis.call('GET', key) or 0) >= tonumber(ARGV[3 * i - 2]) then
                wait = math.max(wait, redis.call('PTTL', key))
            end
        end
        if wait > 0 then return wait end
        for i, key in ipairs(KEYS) do
            local most, period, amount = tonumber(ARGV[3 * i - 2]), tonumber(ARGV[3 * i - 1]), tonumber(ARGV[3 * i])
            if amount > 0 then
                redis.call('SET', key, 0, 'PX', period, 'NX')
                local over = redis.call('INCRBY', key, amount) - most
                if over > 0 then
                    redis.call('PEXPIRE', key, redis.call('PTTL', key) + math.ceil(over * period / most))
                end
            end
        end
        return 0
    """

    def __init__(self, url: str) -> None:
        self._url = url
        self._of_thread = threading.local()

    def draw(self, draws: Sequence[Draw]) -> float:
        """Take from all, or from none."""
        keys = [self.PREFIX + draw.bucket for draw in draws]
        arguments = [part for _, rate, amount in draws for part in (rate.most, rate.seconds * 1000, amount)]
        return int(self._script()(keys=keys, args=arguments)) / 1000

    def _script(self) -> Script:
        """Of this thread, over a connection of its own: to share them takes as long as to ask."""
        script: Script | None = getattr(self._of_thread, "script", None)
        if script is None:
            client = Redis.from_url(
                self._url,
                single_connection_client=True,
                socket_connect_timeout=_TIMEOUT_SECONDS,
                socket_timeout=_TIMEOUT_SECONDS,
                retry=Retry(NoBackoff(), 1),  # a connection that the server closed meanwhile
            )
            script = self._of_thread.script = client.register_script(self.SCRIPT)
        return script

    def forget(self) -> None:
        """Empty all buckets."""
        client = self._script().registered_client
        if keys := list(client.scan_iter(f"{self.PREFIX}*")):
            client.delete(*keys)


class FileBuckets:
    """A small SQLite file: all processes of one machine count together. A few dozen microseconds a draw."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._lock = threading.Lock()
        self._connection: sqlite3.Connection | None = None
        self._until_sweep = 0

    def draw(self, draws: Sequence[Draw]) -> float:
        """Take from all, or from none."""
        with self._lock:
            connection = self._connection or self._open()
            try:
                # At BEGIN already, so that nobody takes the same room between our look and our taking.
                connection.execute("BEGIN IMMEDIATE")
                wait = self._draw(connection, draws)
                connection.execute("COMMIT")
            except BaseException:
                self._connection = None
                connection.close()
                raise
            return wait

    def _draw(self, connection: sqlite3.Connection, draws: Sequence[Draw]) -> float:
        now, wait = time.time(), 0.0
        rows: list[tuple[str, int, float]] = []
        for bucket, (most, seconds), amount in draws:
            row = connection.execute("SELECT count, ends_at FROM bucket WHERE name = ?", (bucket,)).fetchone()
            latest = now + seconds * (1 + MOST_AT_ONCE / most)
            count, ends_at = row if row and now < row[1] <= latest else (0, now + seconds)
            if count >= most:
                wait = max(wait, ends_at - now)
            count += amount
            rows.append((bucket, count, ends_at + seconds * max(0, count - most) / most))
        if not wait:
            taken = [row for row, draw in zip(rows, draws, strict=True) if draw.amount]
            connection.executemany("REPLACE INTO bucket (name, count, ends_at) VALUES (?, ?, ?)", taken)
            self._sweep(connection, now, len(taken))
        return wait

    def _sweep(self, connection: sqlite3.Connection, now: float, written: int) -> None:
        """Take away what would be emptied, now and then."""
        self._until_sweep -= written
        if self._until_sweep < 0:
            self._until_sweep = _ROWS_BETWEEN_SWEEPS
            connection.execute("DELETE FROM bucket WHERE ends_at < ?", (now,))

    def _open(self) -> sqlite3.Connection:
        connection = sqlite3.connect(self._path, timeout=_LOCK_SECONDS, isolation_level=None, check_same_thread=False)
        _use_wal(connection)
        connection.execute("PRAGMA synchronous=NORMAL")  # no fsync but at checkpoints, and whole after any crash
        connection.execute(
            "CREATE TABLE IF NOT EXISTS bucket"
            " (name TEXT PRIMARY KEY, count INTEGER NOT NULL, ends_at REAL NOT NULL) WITHOUT ROWID"
        )
        self._connection = connection
        return connection

    def forget(self) -> None:
        """Empty all buckets."""
        with self._lock, closing(self._connection or self._open()) as connection:
            connection.execute("DELETE FROM bucket")
            self._connection = None


def _use_wal(connection: sqlite3.Connection) -> None:
    """The first of several processes changes the mode; to the others SQLite says "locked" at once, without waiting."""
    deadline = time.monotonic() + _LOCK_SECONDS
    while True:
        try:
            connection.execute("PRAGMA journal_mode=WAL")
        except sqlite3.OperationalError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.005)
        else:
            return


def merged(draws: Iterable[Draw]) -> list[Draw]:
    """At most one draw for each bucket."""
    found: dict[str, Draw] = {}
    for draw in draws:
        known = found.get(draw.bucket)
        found[draw.bucket] = draw._replace(amount=draw.amount + (known.amount if known else 0))
    return list(found.values())
