"""How fast sessions are recorded, beside the same rows written by raw multi-row INSERTs in the same run.

For each database: a web server of our own (gunicorn, the number of processes named), a client of a few threads that
keeps its connections open, bodies made beforehand. Printed per case: sessions a second, its ratio to raw INSERTs, the
web processes' CPU a session, their peak memory, and bytes stored a session.
"""

from __future__ import annotations

import argparse
import http.client
import os
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from benchmarks.workload import batch_body, otlp_body

ROOT = Path(__file__).resolve().parent.parent
TABLES = ("diagnosis_session", "agent_step", "tool_invocation", "otlp_trace")
TICKS = os.sysconf("SC_CLK_TCK")
DEFAULT_MYSQL = "mysql://root@127.0.0.1:3306/bench_recording"


class Case(NamedTuple):
    """One line of the table."""

    name: str
    path: str
    content_type: str
    per_request: int
    connections: int
    processes: int = 1


CASES = (
    *(Case("REST batch, 20 a request", "/api/sessions/batch", "application/json", 20, n) for n in (1, 4, 16)),
    *(Case("OTLP, 1 a request", "/v1/traces", "application/x-protobuf", 1, n) for n in (1, 4, 16)),
    *(Case("OTLP, 20 a request", "/v1/traces", "application/x-protobuf", 20, n) for n in (1, 4, 16)),
    Case("OTLP, 20 a request", "/v1/traces", "application/x-protobuf", 20, 16, processes=4),
)


def main() -> None:
    """Run the cases on each database and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sessions", type=int, default=1000, help="sessions a case (default 1000)")
    parser.add_argument("--database", choices=("mysql", "sqlite", "both"), default="both")
    parser.add_argument("--mysql-url", default=os.environ.get("BENCH_DATABASE_URL", DEFAULT_MYSQL))
    parser.add_argument("--case", default="", help="only cases whose name holds this, such as 'OTLP, 20'")
    parser.add_argument("--connections", type=int, choices=(1, 4, 16), help="only cases with so many connections")
    arguments = parser.parse_args()
    cases = [
        case for case in CASES if arguments.case in case.name and arguments.connections in (None, case.connections)
    ]
    with tempfile.TemporaryDirectory(prefix="bench-") as folder:
        urls = {"sqlite": f"sqlite:///{folder}/bench.sqlite3", "mysql": arguments.mysql_url}
        wanted = urls if arguments.database == "both" else {arguments.database: urls[arguments.database]}
        for kind, url in wanted.items():
            _run(kind, url, Path(folder) / kind, arguments.sessions, cases)


def _run(kind: str, url: str, folder: Path, sessions: int, cases: list[Case]) -> None:
    folder.mkdir()
    environment = {
        **os.environ,
        "DATABASE_URL": url,
        "DATA_DIR": str(folder),
        "SECRET_KEY": secrets.token_urlsafe(40),
        "LOG_LEVEL": "WARNING",
        "CELERY_BROKER_URL": "filesystem://",
        "PYTHONPATH": str(ROOT),
    }
    key = _manage(environment, "prepare").strip().splitlines()[-1]
    print(f"\n{kind}: {sessions} sessions a case of {len(otlp_body(range(1))) / 1000:.0f} kB each\n")
    print("| case | connections | processes | sessions/s | of raw INSERTs | CPU ms/session | peak MB | kB stored |")
    print("|---|---:|---:|---:|---:|---:|---:|---:|")
    for case in cases:
        _manage(environment, "empty")
        figures = _measure(case, environment, key, sessions)
        stored = float(_manage(environment, "bytes").strip().splitlines()[-1]) / sessions / 1000
        raw = float(_manage(environment, "raw", str(case.per_request)).strip().splitlines()[-1])
        print(
            f"| {case.name} | {case.connections} | {case.processes} | {figures.rate:,.0f} | {figures.rate / raw:.2f} |"
            f" {figures.cpu_ms:.2f} | {figures.peak_mb:.0f} | {stored:.1f} |",
            flush=True,
        )
    shutil.rmtree(folder)


# -- the server and its load -----------------------------------------------------------------------------------------


class Figures(NamedTuple):
    """What one case measured."""

    rate: float  # sessions a second
    cpu_ms: float  # of all web processes, a session
    peak_mb: float  # of the largest web process


def _measure(case: Case, environment: dict[str, str], key: str, sessions: int) -> Figures:
    requests = max(sessions // case.per_request, case.connections)
    make = batch_body if case.path.startswith("/api") else otlp_body
    warm = [make(range(10**6 + n * 20, 10**6 + n * 20 + case.per_request)) for n in range(4 * case.processes)]
    bodies = [make(range(n * case.per_request, (n + 1) * case.per_request)) for n in range(requests)]
    with _server(environment, case.processes) as (port, master):
        _send(port, case, key, warm)
        workers = _children(master)
        before = sum(map(_cpu_seconds, workers))
        start = time.perf_counter()
        _send(port, case, key, bodies)
        seconds = time.perf_counter() - start
        cpu = sum(map(_cpu_seconds, workers)) - before
        peak = max(map(_peak_mb, workers))
    count = requests * case.per_request
    return Figures(count / seconds, cpu / count * 1000, peak)


@contextmanager
def _server(environment: dict[str, str], processes: int) -> Iterator[tuple[int, int]]:
    """Gunicorn on a free port; yields the port and the master's process id."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
    command = [sys.executable, "-m", "gunicorn", "config.wsgi", "--bind", f"127.0.0.1:{port}", "--log-level", "warning"]
    command += ["--workers", str(processes), "--worker-class", "gthread", "--threads", "4"]
    process = subprocess.Popen(command, env=environment, cwd=ROOT)
    try:
        _wait_for(port)
        yield port, process.pid
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(20)


def _wait_for(port: int) -> None:
    for _ in range(200):
        try:
            connection = http.client.HTTPConnection("127.0.0.1", port, timeout=5)
            connection.request("GET", "/healthz")
            connection.getresponse().read()
        except OSError:
            time.sleep(0.1)
        else:
            return
    raise SystemExit("The web server did not start.")


def _send(port: int, case: Case, key: str, bodies: list[bytes]) -> None:
    """Post all bodies over the case's connections; any answer but 2xx ends the run."""
    todo = iter(bodies)
    lock = threading.Lock()
    failures: list[str] = []
    headers = {"Content-Type": case.content_type, "Authorization": f"Bearer {key}"}

    def work() -> None:
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
        while not failures:
            with lock:
                body = next(todo, None)
            if body is None:
                return
            connection.request("POST", case.path, body, headers)
            response = connection.getresponse()
            answer = response.read()
            if response.status not in (200, 207) or b"rejectedSpans" in answer or b'"rejected":[{' in answer:
                failures.append(f"{response.status} {answer[:300]!r}")

    threads = [threading.Thread(target=work) for _ in range(case.connections)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if failures:
        raise SystemExit(f"{case.name}: {failures[0]}")


def _children(pid: int) -> list[int]:
    return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def _cpu_seconds(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / TICKS


def _peak_mb(pid: int) -> float:
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmHWM"):
            return int(line.split()[1]) / 1000
    return 0.0


# -- inside Django ---------------------------------------------------------------------------------------------------


def _manage(environment: dict[str, str], *command: str) -> str:
    """Run one of the commands below in a process of its own, with the case's settings."""
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.recording_database", *command],
        env=environment,
        cwd=ROOT,
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    return done.stdout


if __name__ == "__main__":
    main()
