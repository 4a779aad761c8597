"""How fast the reviewers' pages answer over 100,000 sessions, 20,000 bad cases and 20,000 cases.

One reviewer, signed in, asks a web server as in the Procfile for each page again and again, over one connection.
Printed per page: milliseconds (median and 95th percentile), milliseconds of the processor in the web server, how many
statements it took, and the slowest of them. The database is made anew unless --reuse says otherwise, which takes some
minutes.
"""

from __future__ import annotations

import argparse
import http.client
import json
import os
import secrets
import tempfile
import time
from collections.abc import Mapping, Sequence
from urllib.parse import quote

from benchmarks.server import ROOT, children, cpu_seconds, inside, web_server

DATABASE = "benchmarks.desk_database"
DEFAULT_MYSQL = "mysql://root@127.0.0.1:3306/bench_desk"
PROCESSES, THREADS = 2, 8
QUEUE, LIBRARY, SESSIONS = (
    f"/admin/{name}/"
    for name in ("feedback_app/badcasereview", "cases_app/caselibrary", "sessions_app/diagnosissession")
)
QUEUE_FILTERS = (
    "", "state=OPEN", "state=closed", "state=all", "assignee=mine", "assignee=nobody", "due=overdue", "comment=yes",
    "flow=CHAT", "agent=agent-3", "score_from=50&score_to=70", "confidence_from=81", "facts=l0", "facts=l1",
    "facts=miss", "facts=truncated", "facts=failed", "state=closed&failure_mode=HALLUCINATION",
    "state=closed&severity=HIGH", "period=7d", "day_from=2026-01-01", "p=40", "o=3", "o=-4", "o=8", "state=all&o=3",
    "q=desk-00000005", f"q={quote('连接池')}", f"q={quote('память')}", "q=timeout+pool", f"q={quote('超时')}+desk",
    "q=nothinglikethis", "state=all&q=was+too+small",
)  # fmt: skip
LIBRARY_FILTERS = (
    "", "queue=to_publish", "queue=published", "queue=flagged", "queue=retired", "queue=all", "category=GENERAL",
    "source=AUTO", "reviewer=me&queue=all", "period=7d", "o=3", "o=8", "queue=all&o=-3", "queue=all&p=40",
    f"queue=all&q={quote('连接')}", "queue=all&q=ERR_POOL_7", f"queue=all&q={quote('память')}",
    "queue=all&q=desk-00000006", "q=timeout+pool", "queue=all&q=nothinglikethis",
)  # fmt: skip
SESSIONS_FILTERS = (
    "", "scoring=scored", "score_from=50&score_to=70", "feedback=not_useful", "feedback=none", "facts=l0", "facts=miss",
    "facts=truncated", "facts=failed", "period=7d", "status=SUCCESS", "flow=CHAT", "agent=agent-3", "o=4", "o=-4",
    "o=8", "p=99", "q=desk-00000005", f"q={quote('连接池')}", "q=timeout",
)  # fmt: skip


def main() -> None:
    """Fill the database, ask for the pages, print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sessions", type=int, default=100_000, help="sessions; a fifth each is a bad case, a case")
    parser.add_argument("--times", type=int, default=20, help="how often each page is asked for (default 20)")
    parser.add_argument("--only", default="", help="only pages whose address holds this")
    parser.add_argument("--reuse", action="store_true", help="the database is there already")
    parser.add_argument("--statements", action="store_true", help="also print the slowest statement of each page")
    parser.add_argument("--mysql-url", default=os.environ.get("BENCH_DATABASE_URL", DEFAULT_MYSQL))
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="bench-") as folder:
        environment = {
            **os.environ,
            "DATABASE_URL": arguments.mysql_url,
            "DATA_DIR": folder,
            "SECRET_KEY": secrets.token_urlsafe(40),
            "LOG_LEVEL": "WARNING",
            "PYTHONPATH": str(ROOT),
        }
        if not arguments.reuse:
            inside(DATABASE, environment, "prepare", str(arguments.sessions))
        keys = json.loads(inside(DATABASE, environment, "keys").splitlines()[-1])
        pages = {name: urls for name, urls in _pages(keys).items() if arguments.only in name}
        told = inside(DATABASE, environment, "queries", "Reviewer", *(urls[0] for urls in pages.values()))
        _measure(
            pages,
            json.loads(told.splitlines()[-1]),
            environment,
            arguments.times,
            shows_statements=arguments.statements,
        )


def _pages(keys: Mapping[str, Sequence[object]]) -> dict[str, list[str]]:
    """What a line is called → the addresses that it asks for in turn."""
    pages = {
        f"{folder}?{query}": [f"{folder}?{query}"]
        for folder, queries in ((QUEUE, QUEUE_FILTERS), (LIBRARY, LIBRARY_FILTERS), (SESSIONS, SESSIONS_FILTERS))
        for query in queries
    }
    for folder, kind in ((QUEUE, "triages"), (LIBRARY, "cases"), (SESSIONS, "sessions")):
        pages[f"{folder}…/"] = [f"{folder}{key}/change/" for key in keys[kind]]
    return pages


def _measure(
    pages: Mapping[str, list[str]],
    told: Mapping[str, tuple[int, float, str]],
    environment: dict[str, str],
    times: int,
    *,
    shows_statements: bool,
) -> None:
    cookie = inside(DATABASE, environment, "cookie", "Reviewer").splitlines()[-1]
    print("| page | p50 ms | p95 ms | CPU ms | statements | slowest, ms |")
    print("|---|---:|---:|---:|---:|---:|")
    with web_server(environment, PROCESSES, THREADS) as (port, master):
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=120)
        for _ in range(2 * PROCESSES):
            for url in (QUEUE, LIBRARY, SESSIONS):
                _ask(connection, url, cookie)
        workers = children(master)
        for name, urls in pages.items():
            before = sum(map(cpu_seconds, workers))
            taken = sorted(_ask(connection, urls[number % len(urls)], cookie) * 1000 for number in range(times))
            p50, p95 = (taken[min(times - 1, int(times * share))] for share in (0.5, 0.95))
            cpu = (sum(map(cpu_seconds, workers)) - before) / times * 1000
            count, slowest, statement = told[urls[0]]
            print(f"| `{name}` | {p50:.0f} | {p95:.0f} | {cpu:.0f} | {count} | {slowest:.0f} |", flush=True)
            if shows_statements:
                print(f"  {statement[:3000]}")


def _ask(connection: http.client.HTTPConnection, url: str, cookie: str) -> float:
    """Seconds that a page took; any answer but 200 ends the run."""
    start = time.perf_counter()
    connection.request("GET", url, headers={"Cookie": f"sessionid={cookie}"})
    response = connection.getresponse()
    response.read()
    if response.status != http.HTTPStatus.OK:
        raise SystemExit(f"{url}: {response.status} {response.getheader('Location')}")
    return time.perf_counter() - start


if __name__ == "__main__":
    main()
