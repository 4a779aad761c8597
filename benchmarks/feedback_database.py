"""The database's side of `benchmarks.feedback`, in processes of their own: prepare, empty, write_down, raw."""

from __future__ import annotations

import os
import pickle
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import django

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
django.setup()

from django.db import connection  # noqa: E402

from benchmarks.recording_database import prepare as make_database  # noqa: E402
from feedback_app.services.submission import record_event, submit_verdict  # noqa: E402
from sessions_app.models import DiagnosisSession  # noqa: E402
from sessions_app.services.recording import record_batch  # noqa: E402

WARM_UP = 400
CHILDREN = (
    "case_term",
    "bad_case_term",
    "case_version",
    "case_transition",
    "bad_case_transition",
    "bad_case_review",
    "agent_feedback",
    "case_library",
)

Statements = list[tuple[str, Any]]


def prepare(posts: str) -> None:
    """Make the database, with a finished session for each post."""
    make_database()
    items: Any = [
        {"session_id": f"bench-{number}", "query": "Why?", "answer": "The pool was full. " * 20, "status": "SUCCESS"}
        for number in range(int(posts) + WARM_UP)
    ]
    list(record_batch(items))


def empty() -> None:
    """Forget all feedback."""
    with connection.cursor() as cursor:
        for table in CHILDREN:
            cursor.execute(f"DELETE FROM {table}")
    DiagnosisSession.objects.update(feedback=None)


def write_down(kind: str, posts: str, script: str) -> None:
    """Keep the statements of so many posts in a file."""
    scripts = [_statements(kind, f"bench-{number}") for number in range(int(posts))]
    Path(script).write_bytes(pickle.dumps(scripts))
    empty()


def raw(script: str, connections: str, processes: str, number: str) -> None:
    """Send this process's part of the statements over so many connections, when told to; print when it began and ended.

    Over connections as the product opens them, by the driver alone: BEGIN, the statements, COMMIT.
    """
    scripts: list[Statements] = pickle.loads(Path(script).read_bytes())[int(number) :: int(processes)]
    threads = int(connections)
    ready = threading.Barrier(threads + 1)

    def send(part: list[Statements]) -> tuple[float, float]:
        connection.ensure_connection()
        cursor: Any = connection.connection.cursor()
        placeholder = "%s" if connection.vendor == "mysql" else "?"
        part = [[(sql.replace("%s", placeholder), values) for sql, values in statements] for statements in part]
        ready.wait()
        ready.wait()
        start = time.perf_counter()
        for statements in part:
            cursor.execute("BEGIN" if connection.vendor == "mysql" else "BEGIN IMMEDIATE")
            for sql, parameters in statements:
                cursor.execute(sql, parameters)
            cursor.execute("COMMIT")
        end = time.perf_counter()
        connection.close()
        return start, end

    with ThreadPoolExecutor(threads) as pool:
        sending = [pool.submit(send, scripts[each::threads]) for each in range(threads)]
        ready.wait()
        print("ready", flush=True)
        sys.stdin.readline()
        ready.wait()
        times = [each.result() for each in sending]
    print(min(start for start, _ in times), max(end for _, end in times), flush=True)


def _statements(kind: str, session_id: str) -> Statements:
    """What one post sends inside its transaction, by doing it."""
    statements: Statements = []

    def note(execute: Callable[..., Any], sql: str | bytes, parameters: Any, *more: Any) -> Any:
        statements.append((sql if isinstance(sql, str) else sql.decode(), parameters))
        return execute(sql, parameters, *more)

    with connection.execute_wrapper(note):
        if kind == "star":
            record_event({"session_id": session_id, "type": "star", "value": 4, "client_event_id": f"e-{session_id}"})
        else:
            submit_verdict(session_id=session_id, verdict=kind, comment="It was the pool, as it said.")
    # SQLite's BEGIN comes as a statement; `raw` opens its transactions itself.
    return [each for each in statements if not each[0].startswith("BEGIN")]


if __name__ == "__main__":
    command, *arguments = sys.argv[1:]
    {"prepare": prepare, "empty": empty, "write_down": write_down, "raw": raw}[command](*arguments)
