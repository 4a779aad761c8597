"""How fast feedback is taken, beside the same SQL statements sent by nothing but the driver, in the same run.

For each database: a web server as in the Procfile (two processes of eight threads), its limits raised, rates counted in
the Redis of --redis-url. Each post is for a session of its own. Printed per case: posts a second, their ratio to the
raw transactions over as many connections, and how long a post took in milliseconds (median, 95th and 99th percentile).
"""

from __future__ import annotations

import argparse
import http.client
import json
import os
import secrets
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

from benchmarks.server import ROOT, children, cpu_seconds, inside, over_connections, web_server

DATABASE = "benchmarks.feedback_database"
DEFAULT_MYSQL = "mysql://root@127.0.0.1:3306/bench_feedback"
PROCESSES, THREADS = 2, 8


class Case(NamedTuple):
    """One line of the table."""

    kind: str  # a star, or the verdict that makes a case
    connections: int


CASES = [Case(kind, connections) for kind in ("star", "useful") for connections in (1, 16)]


def main() -> None:
    """Run the cases on each database and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--posts", type=int, default=2000, help="posts a case (default 2000)")
    parser.add_argument("--database", choices=("mysql", "sqlite", "both"), default="both")
    parser.add_argument("--mysql-url", default=os.environ.get("BENCH_DATABASE_URL", DEFAULT_MYSQL))
    parser.add_argument("--redis-url", default="redis://127.0.0.1:6379/9")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="bench-") as folder:
        urls = {"sqlite": f"sqlite:///{folder}/bench.sqlite3", "mysql": arguments.mysql_url}
        wanted = urls if arguments.database == "both" else {arguments.database: urls[arguments.database]}
        for kind, url in wanted.items():
            _run(kind, url, Path(folder) / kind, arguments.posts, arguments.redis_url)


def _run(database: str, url: str, folder: Path, posts: int, redis_url: str) -> None:
    folder.mkdir()
    rate = "100000000/min"
    environment = {
        **os.environ,
        "DATABASE_URL": url,
        "DATA_DIR": str(folder),
        "SECRET_KEY": secrets.token_urlsafe(40),
        "LOG_LEVEL": "WARNING",
        "CELERY_BROKER_URL": redis_url,
        "FEEDBACK_RATE_PER_ADDRESS": rate,
        "FEEDBACK_RATE_PER_SESSION": rate,
        "PYTHONPATH": str(ROOT),
    }
    inside(DATABASE, environment, "prepare", str(posts))
    print(f"\n{database}: {posts} posts a case, {PROCESSES} web processes of {THREADS} threads\n")
    print("| feedback | connections | posts/s | of raw transactions | p50 ms | p95 ms | p99 ms | CPU ms/post |")
    print("|---|---:|---:|---:|---:|---:|---:|---:|")
    for case in CASES:
        inside(DATABASE, environment, "empty")
        seconds, rate_of_posts, cpu = _measure(case, environment, posts)
        inside(DATABASE, environment, "empty")
        answer = inside(DATABASE, environment, "raw", case.kind, str(posts), str(case.connections))
        raw = float(answer.strip().splitlines()[-1])
        times = sorted(second * 1000 for second in seconds)
        p50, p95, p99 = (times[int(len(times) * share)] for share in (0.5, 0.95, 0.99))
        print(
            f"| {case.kind} | {case.connections} | {rate_of_posts:,.0f} | {rate_of_posts / raw:.2f} |"
            f" {p50:.1f} | {p95:.1f} | {p99:.1f} | {cpu:.2f} |",
            flush=True,
        )


def _measure(case: Case, environment: dict[str, str], posts: int) -> tuple[list[float], float, float]:
    """Seconds of each post, posts a second, the web processes' CPU milliseconds a post."""
    with web_server(environment, PROCESSES, THREADS) as (port, master):
        _send(port, case, range(posts, posts + 20 * case.connections))  # sessions of their own, to warm up
        workers = children(master)
        before = sum(map(cpu_seconds, workers))
        start = time.perf_counter()
        seconds = _send(port, case, range(posts))
        rate = posts / (time.perf_counter() - start)
        cpu = sum(map(cpu_seconds, workers)) - before
    return seconds, rate, cpu / posts * 1000


def _send(port: int, case: Case, numbers: range) -> list[float]:
    """Post for each session over the case's connections; any answer but 200 ends the run."""
    seconds: list[float] = []

    def post(connection: http.client.HTTPConnection, number: int) -> str:
        path, body = _post(case.kind, f"bench-{number}")
        start = time.perf_counter()
        connection.request("POST", path, body, {"Content-Type": "application/json"})
        response = connection.getresponse()
        answer = response.read()
        seconds.append(time.perf_counter() - start)
        return "" if response.status == 200 else f"{case.kind}: {response.status} {answer[:300]!r}"  # noqa: PLR2004

    over_connections(port, case.connections, numbers, post)
    return seconds


def _post(kind: str, session_id: str) -> tuple[str, bytes]:
    if kind == "star":
        event = {"sessionId": session_id, "type": "star", "value": 4, "clientEventId": f"event-{session_id}"}
        return "/api/feedback/events", json.dumps(event).encode()
    body = {"sessionId": session_id, "feedback": kind, "comment": "It was the pool, as it said."}
    return "/api/feedback", json.dumps(body).encode()


if __name__ == "__main__":
    main()
