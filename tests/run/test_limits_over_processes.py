"""Limits on feedback with two web processes, as gunicorn runs them, and with headers that lie."""

from __future__ import annotations

import http.client
import json
import os
import sqlite3
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from tests.stack import ROOT, Process, Redis, free_port, wait_until

SESSION = "25071299-09d1-54b1-b0ed-01aae036a4b8"  # the first of the samples
MOST, SENT, THREADS = 40, 200, 16

Say = Callable[[int], str]
"""The X-Forwarded-For of the n-th request."""


class Web:
    """Two processes of the product, their database and what they said of each request."""

    def __init__(self, folder: Path, cache_url: str, proxies: int) -> None:
        self.port = free_port()
        self.database = folder / "db.sqlite3"
        self.log = folder / f"access-{self.port}.log"
        self.environment = environment(folder) | {
            "CACHE_URL": cache_url,
            "TRUSTED_PROXIES": str(proxies),
            "FEEDBACK_RATE_PER_ADDRESS": f"{MOST}/hour",
            "FEEDBACK_RATE_PER_SESSION": "1000000/min",
        }
        command = [sys.executable, "-m", "gunicorn", "config.wsgi", "--bind", f"127.0.0.1:{self.port}"]
        command += ["--workers", "2", "--worker-class", "gthread", "--threads", "4", "--no-control-socket"]
        command += ["--access-logfile", str(self.log), "--access-logformat", "%(p)s %(U)s"]
        self.process = Process(f"limits-{self.port}", command, self.environment)

    def start(self) -> None:
        """Start both and wait until each has answered: else the first may be done before the second is there."""
        self.log.unlink(missing_ok=True)
        self.process.start()
        wait_until(self._both_answer, 60, lambda: f"web does not answer\n{self.process.tail()}")

    def _both_answer(self) -> bool:
        with ThreadPoolExecutor(THREADS) as pool:
            answers = list(pool.map(lambda _: self._answers(), range(THREADS)))
        return all(answers) and len(self.workers("/healthz")) == 2

    def _answers(self) -> bool:
        try:
            with closing(http.client.HTTPConnection("127.0.0.1", self.port, timeout=5)) as connection:
                connection.request("GET", "/healthz")
                return connection.getresponse().status == 200
        except OSError:
            return False

    def post(self, forwarded: str, events: int = 1) -> tuple[int, str | None]:
        """Status and Retry-After of one request."""
        body = json.dumps([{"sessionId": SESSION, "type": "star", "value": 4}] * events)
        with closing(http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)) as connection:
            headers = {"Content-Type": "application/json"} | ({"X-Forwarded-For": forwarded} if forwarded else {})
            connection.request("POST", "/api/feedback/events", body, headers)
            answer = connection.getresponse()
            answer.read()
            return answer.status, answer.getheader("Retry-After")

    def post_many(self, say: Say, count: int = SENT) -> Counter[int]:
        """Many requests from many threads: how often each status came."""
        with ThreadPoolExecutor(THREADS) as pool:
            return Counter(status for status, _ in pool.map(self.post, map(say, range(count))))

    def stored(self) -> int:
        """Events in the database."""
        with closing(sqlite3.connect(self.database)) as connection:
            return int(connection.execute("SELECT COUNT(*) FROM agent_feedback").fetchone()[0])

    def workers(self, path: str = "/api/feedback/events") -> set[str]:
        """The processes that answered a request for this path."""
        answered = (line.split() for line in self.log.read_text().splitlines())
        return {process for process, asked in answered if asked == path}


def environment(folder: Path) -> dict[str, str]:
    """A production-like one; nothing of the test run's own."""
    kept = {name: os.environ[name] for name in ("PATH", "HOME", "LANG", "LD_LIBRARY_PATH") if name in os.environ}
    return kept | {
        "DJANGO_SETTINGS_MODULE": "config.settings",
        "SECRET_KEY": "for-tests-only-" + "x" * 40,
        "DATA_DIR": str(folder),
        "CELERY_BROKER_URL": "filesystem://",
    }


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A data directory with the samples."""
    folder = tmp_path_factory.mktemp("limits")
    for command in (["migrate", "--verbosity", "0"], ["load_samples"]):
        subprocess.run(
            [sys.executable, "manage.py", *command], cwd=ROOT, env=environment(folder), check=True, capture_output=True
        )
    return folder


@pytest.fixture(params=["file", "redis"])
def cache_url(request: pytest.FixtureRequest, tmp_path: Path, folder: Path) -> Iterator[str]:
    """Where the processes count."""
    for left in folder.glob("limits.sqlite3*"):
        left.unlink()
    if request.param == "file":
        yield ""
        return
    server = Redis(tmp_path / "redis")
    server.start()
    yield server.url
    server.stop()


@contextmanager
def running(folder: Path, cache_url: str, proxies: int = 0) -> Iterator[Web]:
    web = Web(folder, cache_url, proxies)
    try:
        web.start()
        yield web
    finally:
        web.process.stop()


def test_two_processes_let_through_what_one_would_whatever_is_forged(folder, cache_url):
    with running(folder, cache_url) as web:
        before = web.stored()
        assert web.post_many(lambda n: f"198.51.{n % 250}.{n // 250}") == {200: MOST, 429: SENT - MOST}
        assert web.stored() - before == MOST
        assert len(web.workers()) == 2
        status, wait = web.post("", events=500)
        assert (status, 3500 < int(wait or 0) <= 3601) == (429, True)
        web.process.stop()
        web.start()  # a restart empties no bucket
        assert web.post("")[0] == 429
        assert web.stored() - before == MOST


def test_behind_a_proxy_each_client_has_its_own_limit_and_no_other(folder, cache_url):
    with running(folder, cache_url, proxies=1) as web:
        clients = ("203.0.113.1", "203.0.113.2")
        # The proxy appends whom it saw to whatever the client wrote.
        counts = web.post_many(lambda n: f"198.51.100.{n % 250}, 203.0.113.{3 - n % 2}, {clients[n % 2]}")
        assert counts == {200: 2 * MOST, 429: SENT - 2 * MOST}
        assert len(web.workers()) == 2
        assert [web.post(client)[0] for client in (*clients, "203.0.113.3")] == [429, 429, 200]


def test_a_list_counts_as_its_events_over_both_processes(folder, cache_url):
    with running(folder, cache_url) as web:
        before = web.stored()
        with ThreadPoolExecutor(THREADS) as pool:
            statuses = Counter(status for status, _ in pool.map(lambda _: web.post("", events=10), range(20)))
        assert statuses == {200: MOST // 10, 429: 20 - MOST // 10}
        assert web.stored() - before == MOST
