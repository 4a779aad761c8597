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
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

from benchmarks.server import ROOT, children, cpu_seconds, inside, over_connections, peak_mb, web_server
from benchmarks.workload import batch_body, otlp_body

DATABASE = "benchmarks.recording_database"
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
    key = inside(DATABASE, environment, "prepare").strip().splitlines()[-1]
    print(f"\n{kind}: {sessions} sessions a case of {len(otlp_body(range(1))) / 1000:.0f} kB each\n")
    print("| case | connections | processes | sessions/s | of raw INSERTs | CPU ms/session | peak MB | kB stored |")
    print("|---|---:|---:|---:|---:|---:|---:|---:|")
    for case in cases:
        inside(DATABASE, environment, "empty")
        figures = _measure(case, environment, key, sessions)
        stored = float(inside(DATABASE, environment, "bytes").strip().splitlines()[-1]) / sessions / 1000
        raw = float(inside(DATABASE, environment, "raw", str(case.per_request)).strip().splitlines()[-1])
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
    with web_server(environment, case.processes) as (port, master):
        _send(port, case, key, warm)
        workers = children(master)
        before = sum(map(cpu_seconds, workers))
        start = time.perf_counter()
        _send(port, case, key, bodies)
        seconds = time.perf_counter() - start
        cpu = sum(map(cpu_seconds, workers)) - before
        peak = max(map(peak_mb, workers))
    count = requests * case.per_request
    return Figures(count / seconds, cpu / count * 1000, peak)


def _send(port: int, case: Case, key: str, bodies: list[bytes]) -> None:
    """Post all bodies over the case's connections; any answer but 2xx ends the run."""
    headers = {"Content-Type": case.content_type, "Authorization": f"Bearer {key}"}

    def post(connection: http.client.HTTPConnection, body: bytes) -> str:
        connection.request("POST", case.path, body, headers)
        response = connection.getresponse()
        answer = response.read()
        if response.status in (200, 207) and b"rejectedSpans" not in answer and b'"rejected":[{' not in answer:
            return ""
        return f"{case.name}: {response.status} {answer[:300]!r}"

    over_connections(port, case.connections, bodies, post)


if __name__ == "__main__":
    main()
