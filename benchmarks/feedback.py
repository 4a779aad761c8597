"""How fast feedback is taken, beside the same SQL statements sent by nothing but the driver, in the same run.

For each database: a web server as in the Procfile (two processes of eight threads), its limits raised, rates counted in
the Redis of --redis-url, a line of the log for each post. Each post is for a session of its own. The raw transactions
are the statements of the service with the same locks and a commit each: one after the other over one connection, which
is what the transaction costs (as in `benchmarks.recording`), and over as many connections held by as many processes as
the posts have. They take turns, --rounds times, so that other work on the machine meets all.

Printed per case: posts a second, their ratio to either kind of raw transactions (medians of the rounds), and how long a
post took in milliseconds (median, 95th and 99th percentile of all).
"""

from __future__ import annotations

import argparse
import http.client
import json
import os
import secrets
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import mean, median
from typing import NamedTuple

from benchmarks.server import ROOT, children, cpu_seconds, inside, over_connections, web_server

DATABASE = "benchmarks.feedback_database"
DEFAULT_MYSQL = "mysql://root@127.0.0.1:3306/bench_feedback"
PROCESSES, THREADS = 2, 8


class Case(NamedTuple):
    """One line of the table."""

    kind: str  # a star, or the verdict that makes a case
    connections: int


class Round(NamedTuple):
    """One turn of both."""

    seconds: list[float]  # of each post
    rate: float
    raw_alone: float  # raw transactions a second, one after the other
    raw_together: float  # over as many connections as the posts
    cpu_ms: float  # of the web processes, a post


KINDS = ("star", "useful")
CASES = [Case(kind, connections) for kind in KINDS for connections in (1, 16)]


def main() -> None:
    """Run the cases on each database and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--posts", type=int, default=1000, help="posts a case and round (default 1000)")
    parser.add_argument("--rounds", type=int, default=3, help="turns of each case (default 3)")
    parser.add_argument("--database", choices=("mysql", "sqlite", "both"), default="both")
    parser.add_argument("--mysql-url", default=os.environ.get("BENCH_DATABASE_URL", DEFAULT_MYSQL))
    parser.add_argument("--redis-url", default="redis://127.0.0.1:6379/9")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="bench-") as folder:
        urls = {"sqlite": f"sqlite:///{folder}/bench.sqlite3", "mysql": arguments.mysql_url}
        wanted = urls if arguments.database == "both" else {arguments.database: urls[arguments.database]}
        for kind, url in wanted.items():
            _run(kind, url, Path(folder) / kind, arguments)


def _run(database: str, url: str, folder: Path, arguments: argparse.Namespace) -> None:
    folder.mkdir()
    posts = arguments.posts
    rate = "100000000/min"
    environment = {
        **os.environ,
        "DATABASE_URL": url,
        "DATA_DIR": str(folder),
        "SECRET_KEY": secrets.token_urlsafe(40),
        "LOG_LEVEL": "INFO",
        "CELERY_BROKER_URL": arguments.redis_url,
        "FEEDBACK_RATE_PER_ADDRESS": rate,
        "FEEDBACK_RATE_PER_SESSION": rate,
        "PYTHONPATH": str(ROOT),
    }
    inside(DATABASE, environment, "prepare", str(posts))
    for kind in KINDS:
        inside(DATABASE, environment, "write_down", kind, str(posts), str(folder / kind))
    print(f"\n{database}: {arguments.rounds} × {posts} posts a case, {PROCESSES} web processes of {THREADS} threads\n")
    print("| feedback | connections | posts/s | of raw alone | of raw together | p50 ms | p95 ms | p99 ms | CPU ms |")
    print("|---|---:|---:|---:|---:|---:|---:|---:|---:|")
    for case in CASES:
        rounds = [_turn(case, environment, posts, folder) for _ in range(arguments.rounds)]
        times = sorted(second * 1000 for each in rounds for second in each.seconds)
        p50, p95, p99 = (times[int(len(times) * share)] for share in (0.5, 0.95, 0.99))
        alone = median(each.rate / each.raw_alone for each in rounds)
        together = median(each.rate / each.raw_together for each in rounds)
        print(
            f"| {case.kind} | {case.connections} | {median(each.rate for each in rounds):,.0f} | {alone:.2f} |"
            f" {together:.2f} | {p50:.1f} | {p95:.1f} | {p99:.1f} | {mean(each.cpu_ms for each in rounds):.2f} |",
            flush=True,
        )


def _turn(case: Case, environment: dict[str, str], posts: int, folder: Path) -> Round:
    inside(DATABASE, environment, "empty")
    with (
        (folder / "web.log").open("wb") as log,
        web_server(environment, PROCESSES, THREADS, stderr=log) as (port, master),
    ):
        _send(port, case, range(posts, posts + 20 * case.connections))  # sessions of their own, to warm up
        workers = children(master)
        before = sum(map(cpu_seconds, workers))
        start = time.perf_counter()
        seconds = _send(port, case, range(posts))
        rate = posts / (time.perf_counter() - start)
        cpu = sum(map(cpu_seconds, workers)) - before
    alone = _raw(1, environment, posts, folder / case.kind)
    together = alone if case.connections == 1 else _raw(case.connections, environment, posts, folder / case.kind)
    return Round(seconds, rate, alone, together, cpu / posts * 1000)


def _raw(connections: int, environment: dict[str, str], posts: int, script: Path) -> float:
    """Raw transactions a second: processes as many as web processes serve so many connections, which begin together."""
    inside(DATABASE, environment, "empty")
    processes = min(PROCESSES, connections)
    command = [sys.executable, "-m", DATABASE, "raw", str(script), str(connections // processes), str(processes)]
    running = [
        subprocess.Popen(
            [*command, str(number)], env=environment, cwd=ROOT, text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )
        for number in range(processes)
    ]
    pipes = [(each.stdin, each.stdout) for each in running if each.stdin and each.stdout]
    for _, answers in pipes:
        answers.readline()  # it is ready
    for orders, _ in pipes:
        orders.write("go\n")
        orders.flush()
    times = [tuple(map(float, answers.readline().split())) for _, answers in pipes]
    for each in running:
        each.communicate()
    return posts / (max(end for _, end in times) - min(start for start, _ in times))


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
