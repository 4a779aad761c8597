"""What spans and feedback events wait in: a bounded buffer that a daemon thread empties, batch by batch.

OpenTelemetry's own batch processor gives a batch up when its exporter does, and its `force_flush` knows no time limit.
Here what could not be sent goes back to the front of the buffer, so an outage costs only what no longer fits.
"""

from __future__ import annotations

import atexit
import logging
import os
import random
import threading
import time
import weakref
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

T = TypeVar("T")

logger = logging.getLogger("diagnosis_client")

FIRST_WAIT_SECONDS = 0.5
LONGEST_WAIT_SECONDS = 30.0
LONGEST_ASKED_WAIT_SECONDS = 600.0
MAX_WEIGHT = 64_000_000
"""Characters that may wait; a bound on memory beside the bound on items."""
MAX_BATCH_WEIGHT = 4_000_000
"""Characters in one request: far below what servers refuse, and quick to build beside a working agent."""


@dataclass(frozen=True)
class Outcome(Generic[T]):
    """What became of one batch. What is in neither field was delivered."""

    again: Sequence[T] = ()  # to be sent again, in this order
    lost: int = 0  # so many were refused for good; whoever sent has said why
    wait_seconds: float | None = None  # the server's own wish, where it had one


@dataclass(frozen=True)
class Limits:
    """How much waits, and for how long."""

    capacity: int
    batch_size: int
    interval_seconds: float  # longest wait of an item while all goes well
    send_seconds: float  # for one request
    exit_seconds: float  # for all that is left when the process ends


class Outbox(Generic[T]):
    """Takes items at any time from any thread, without waiting; when full, the oldest make room.

    `send` gets a batch and the seconds it may take; it is never called twice at once. `weigh` gives an item's
    characters.
    """

    def __init__(
        self,
        send: Callable[[list[T], float], Outcome[T]],
        *,
        what: str,
        limits: Limits,
        weigh: Callable[[T], int],
        closes_last: bool = False,
    ) -> None:
        self._send = send
        self._what = what
        self._limits = limits
        self._weigh = weigh
        self.closes_last = closes_last
        self._forget()
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=_weakly(self._forget))
        _open.add(self)

    def _forget(self) -> None:
        """Start empty: at first, and in a forked child, whose parent still holds the items, the thread and the lock."""
        # Re-entrant, because a garbage collection inside `put` may end a stream, which puts again.
        self._changed = threading.Condition(threading.RLock())
        self._items: deque[tuple[T, int]] = deque()  # with its weight
        self._weight = 0
        self._oldest_at = 0.0
        self._sending = 0
        self._flushers = 0
        self._failures = 0
        self._not_before = 0.0
        self._is_told_to_wait = False
        self._closing_at: float | None = None
        self._thread: threading.Thread | None = None
        self.dropped = 0
        self._warn_at = 1

    def put(self, item: T) -> None:
        """Add one item."""
        with self._changed:
            if self._closing_at is not None:
                self._count_lost(1)
                return
            if not self._items:
                self._oldest_at = time.monotonic()
            weight = self._weigh(item)
            self._items.append((item, weight))
            self._weight += weight
            self._make_room()
            if self._thread is None:
                self._start()
            elif len(self._items) == 1 or len(self._items) == self._limits.batch_size:
                self._changed.notify_all()

    def flush(self, timeout_seconds: float) -> bool:
        """Send everything now. True when nothing is left to send, False when the time was not enough."""
        deadline = time.monotonic() + timeout_seconds
        with self._changed:
            self._flushers += 1
            self._try_now()
            try:
                while self._items or self._sending:
                    left = deadline - time.monotonic()
                    if left <= 0 or self._closing_at is not None:
                        return False
                    self._changed.wait(left)
            finally:
                self._flushers -= 1
        return True

    def close(self, timeout_seconds: float | None = None) -> bool:
        """Send what is left, then stop for good. True when nothing was left behind."""
        seconds = self._limits.exit_seconds if timeout_seconds is None else timeout_seconds
        with self._changed:
            if self._closing_at is not None:
                return not self._items and not self._sending
            self._closing_at = time.monotonic() + seconds
            self._try_now()
            thread = self._thread
        if thread is not None and thread.is_alive():
            thread.join(seconds)
        else:  # none was needed yet, or none may be started while the interpreter goes down
            self._run()
        with self._changed:
            left = len(self._items) + self._sending
            self._items.clear()
            self.dropped += left
        if left:
            logger.warning("Closed before %d %s could be sent.", left, self._what)
        _open.discard(self)
        return not left

    def _run(self) -> None:
        while True:
            with self._changed:
                while (wait := self._seconds_until_due()) != 0:
                    self._changed.wait(wait)
                if self._is_over():
                    return
                batch = self._take()
                seconds = self._limits.send_seconds
                if self._closing_at is not None:
                    seconds = min(seconds, max(0.1, self._closing_at - time.monotonic()))
            outcome = self._attempt(batch, seconds)
            with self._changed:
                self._settle(outcome)
                self._changed.notify_all()

    def _attempt(self, batch: list[T], seconds: float) -> Outcome[T]:
        try:
            return self._send(batch, seconds)
        except Exception:  # the thread must outlive any one batch
            logger.exception("Sending failed; %d %s are lost.", len(batch), self._what)
            return Outcome(lost=len(batch))

    # -- below here the caller holds the lock --------------------------------------------------------------------------

    def _start(self) -> None:
        thread = threading.Thread(target=self._run, name=f"diagnosis-{self._what}", daemon=True)
        try:
            thread.start()
        except RuntimeError:  # the interpreter goes down; `close` sends what waits
            return
        self._thread = thread

    def _try_now(self) -> None:
        """End the wait after a failure, unless the server asked for it."""
        if not self._is_told_to_wait:
            self._not_before = 0.0
        self._changed.notify_all()

    def _make_room(self) -> None:
        while len(self._items) > 1 and (
            len(self._items) + self._sending > self._limits.capacity or self._weight > MAX_WEIGHT
        ):
            self._weight -= self._items.popleft()[1]
            self._count_lost(1)

    def _count_lost(self, count: int) -> None:
        self.dropped += count
        if self.dropped >= self._warn_at:
            logger.warning("No room: %d %s dropped so far, the oldest first.", self.dropped, self._what)
            while self._warn_at <= self.dropped:
                self._warn_at *= 10

    def _take(self) -> list[T]:
        batch: list[T] = []
        weight = 0
        while self._items and len(batch) < self._limits.batch_size:
            if batch and weight + self._items[0][1] > MAX_BATCH_WEIGHT:
                break
            item, item_weight = self._items.popleft()
            batch.append(item)
            weight += item_weight
        self._weight -= weight
        self._sending = len(batch)
        self._oldest_at = time.monotonic()
        return batch

    def _settle(self, outcome: Outcome[T]) -> None:
        self._sending = 0
        self.dropped += outcome.lost
        self._is_told_to_wait = False
        if not outcome.again:
            self._failures = 0
            return
        for item in reversed(outcome.again):
            weight = self._weigh(item)
            self._items.appendleft((item, weight))
            self._weight += weight
        self._make_room()
        self._failures += 1
        wait = min(LONGEST_WAIT_SECONDS, FIRST_WAIT_SECONDS * 2 ** min(self._failures - 1, 10))
        wait *= random.uniform(0.5, 1)  # noqa: S311 - spreads clients, guards nothing
        if outcome.wait_seconds is not None:
            self._is_told_to_wait = True
            wait = max(wait, min(outcome.wait_seconds, LONGEST_ASKED_WAIT_SECONDS))
        self._not_before = time.monotonic() + wait

    def _seconds_until_due(self) -> float | None:
        """How long to wait: 0 when a batch should go or the thread end, None for as long as nothing changes."""
        if self._is_over():
            return 0
        if not self._items:
            return None
        if self._failures:
            due = self._not_before
        elif self._closing_at is not None or self._flushers or len(self._items) >= self._limits.batch_size:
            return 0
        else:
            due = self._oldest_at + self._limits.interval_seconds
        if self._closing_at is not None:
            due = min(due, self._closing_at)
        return max(0.0, due - time.monotonic())

    def _is_over(self) -> bool:
        if self._closing_at is None:
            return False
        return not self._items or max(time.monotonic(), self._not_before) >= self._closing_at


_open: weakref.WeakSet[Outbox[Any]] = weakref.WeakSet()


@atexit.register
def _close_all() -> None:
    """Sessions go before what people thought of them, which the server would not know what to do with."""
    for outbox in sorted(_open, key=lambda outbox: outbox.closes_last):
        outbox.close()


def _weakly(method: Callable[[], Any]) -> Callable[[], None]:
    """Call a method for as long as its object lives: hooks of the interpreter keep nothing alive."""
    reference = weakref.WeakMethod(method)

    def call() -> None:
        if alive := reference():
            alive()

    return call
