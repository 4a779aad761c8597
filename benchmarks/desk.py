"""How fast the reviewers' pages answer over 100,000 sessions, 20,000 bad cases and 20,000 cases.

One Lead, signed in, asks a web server as in the Procfile for each page again and again, over one connection.
Printed per page, a table for each kind: milliseconds (median and 95th percentile), milliseconds of the processor in the
web server, how many statements it took, and the slowest of them. The database is made anew, in about three minutes,
unless --reuse says otherwise.
"""

from __future__ import annotations

import argparse
import http.client
import json
import math
import os
import secrets
import tempfile
import time
from collections.abc import Mapping, Sequence
from urllib.parse import quote, unquote

from benchmarks.server import ROOT, children, cpu_seconds, inside, web_server

DATABASE = "benchmarks.desk_database"
DEFAULT_MYSQL = "mysql://root@127.0.0.1:3306/bench_desk"
PROCESSES, THREADS = 2, 8
ROLE = "Lead"
"""Who sees most, and so waits longest."""
POST = "POST "
"""Before the address of a button."""
QUEUE, LIBRARY, SESSIONS, EVENTS = (
    f"/admin/{name}/"
    for name in (
        "feedback_app/badcasereview",
        "cases_app/caselibrary",
        "sessions_app/diagnosissession",
        "feedback_app/agentfeedback",
    )
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
    "queue=all&q=desk-00000006", "q=timeout+pool", "queue=all&q=nothinglikethis", "queue=all&o=3",
    "queue=all&source=CORRECTION&o=8", "queue=all&period=7d&category=GENERAL", "queue=to_publish&o=8",
)  # fmt: skip
SESSIONS_FILTERS = (
    "", "scoring=scored", "score_from=50&score_to=70", "feedback=not_useful", "feedback=none", "facts=l0", "facts=miss",
    "facts=truncated", "facts=failed", "period=7d", "status=SUCCESS", "flow=CHAT", "agent=agent-3", "o=4", "o=-4",
    "o=8", "p=99", "q=desk-00000005", f"q={quote('连接池')}", "q=timeout", f"q={quote('память')}", "q=nothinglikethis",
    "period=30d&q=timeout&o=4", "day_to=2026-10-20&q=timeout", "flow=CHAT&feedback=useful&score_from=90",
    "status=FAILED", "status=FAILED&flow=CHAT", "scoring=pending", "scoring=failed", "flow=other",
    "agent=agent-3&facts=failed",
)  # fmt: skip
EVENTS_FILTERS = (
    "", "type=correction", "type=star", "source=system", "comment=yes", "agent=agent-3", "session=desk-00000005",
    "period=7d", "o=7", "p=99", "q=timeout", f"q={quote('память')}", "q=desk-000005",
)  # fmt: skip
OTHERS = (
    "/admin/", f"{QUEUE}holders/", "/admin/feedback_app/weeklyreport/", "/admin/feedback_app/secondreview/",
    "/admin/cases_app/bulkjob/", f"{LIBRARY}next/",
)  # fmt: skip


def main() -> None:
    """Fill the database, ask for the pages, print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sessions", type=int, default=100_000, help="sessions; a fifth each is a bad case, a case")
    parser.add_argument("--times", type=int, default=20, help="how often each page is asked for (default 20)")
    parser.add_argument("--only", default="", help="only lines whose table and name hold this: 'pages one'")
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
        tables = {
            title: {name: urls for name, urls in pages.items() if arguments.only in f"{title} {name}"}
            for title, pages in _tables(keys).items()
        }
        firsts = [urls[0] for pages in tables.values() for urls in pages.values()]
        told = json.loads(inside(DATABASE, environment, "queries", ROLE, *firsts).splitlines()[-1])
        cookie = inside(DATABASE, environment, "cookie", ROLE).splitlines()[-1]
        with web_server(environment, PROCESSES, THREADS) as (port, master):
            desk = Desk(port, children(master), cookie)
            for title, pages in tables.items():
                if pages:
                    _measure(desk, title, pages, told, arguments.times, shows_statements=arguments.statements)
    print(f"load: {os.getloadavg()[0]:.1f}")


def _tables(keys: Mapping[str, Sequence[object]]) -> dict[str, dict[str, list[str]]]:
    """What a table is called → what a line is called → the addresses that it asks for in turn."""
    lists = {
        "queue": (QUEUE, QUEUE_FILTERS),
        "case library": (LIBRARY, LIBRARY_FILTERS),
        "sessions": (SESSIONS, SESSIONS_FILTERS),
        "feedback events": (EVENTS, EVENTS_FILTERS),
    }
    tables = {
        title: {unquote(query) or "as it opens": [f"{folder}?{query}"] for query in queries}
        for title, (folder, queries) in lists.items()
    }
    objects = {
        "one bad case": (QUEUE, keys["triages"]),
        "a bad case of 1,000 steps": (QUEUE, keys["long"]),
        "one case, to enrich": (LIBRARY, keys["cases"]),
        "one session": (SESSIONS, keys["sessions"]),
        "a weekly report": ("/admin/feedback_app/weeklyreport/", keys["reports"]),
    }
    pages = {title: [f"{folder}{key}/change/" for key in some] for title, (folder, some) in objects.items() if some}
    tables["pages"] = {**pages, **{path: [path] for path in OTHERS}, "take next": [f"{POST}{QUEUE}next/"]}
    return tables


class Desk:
    """One reviewer's connection to the web server, and what its processes use."""

    def __init__(self, port: int, workers: Sequence[int], session: str) -> None:
        self.connection = http.client.HTTPConnection("127.0.0.1", port, timeout=120)
        self.workers = workers
        token = "a" * 32
        self.headers = {"Cookie": f"sessionid={session}; csrftoken={token}", "X-CSRFToken": token}
        for _ in range(2 * PROCESSES):
            for url in (QUEUE, LIBRARY, SESSIONS, EVENTS):
                self.ask(url)

    def ask(self, url: str) -> float:
        """Seconds that a page took, or the way that a button leads; any other answer ends the run."""
        start = time.perf_counter()
        method = "POST" if url.startswith(POST) else "GET"
        self.connection.request(method, url.removeprefix(POST), headers=self.headers)
        response = self.connection.getresponse()
        response.read()
        is_way = response.status == http.HTTPStatus.FOUND and "/next/" in url
        if response.status != http.HTTPStatus.OK and not is_way:
            raise SystemExit(f"{url}: {response.status} {response.getheader('Location')}")
        return time.perf_counter() - start

    def cpu_ms(self) -> float:
        """Milliseconds of the processor that the web server has used."""
        return sum(map(cpu_seconds, self.workers)) * 1000


def _measure(
    desk: Desk,
    title: str,
    pages: Mapping[str, list[str]],
    told: Mapping[str, tuple[int, float, str]],
    times: int,
    *,
    shows_statements: bool,
) -> None:
    print(f"\n| {title} | p50 ms | p95 ms | CPU ms | statements | slowest, ms |")
    print("|---|---:|---:|---:|---:|---:|")
    for name, urls in pages.items():
        before = desk.cpu_ms()
        taken = sorted(desk.ask(urls[number % len(urls)]) * 1000 for number in range(times))
        p50, p95 = (taken[math.ceil(times * share) - 1] for share in (0.5, 0.95))
        count, slowest, statement = told[urls[0]]
        cpu = (desk.cpu_ms() - before) / times
        print(f"| {name} | {p50:.0f} | {p95:.0f} | {cpu:.0f} | {count} | {slowest:.0f} |", flush=True)
        if shows_statements:
            print(f"  {statement[:3000]}")


if __name__ == "__main__":
    main()
