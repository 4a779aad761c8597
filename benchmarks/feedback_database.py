"""The database's side of `benchmarks.feedback`, in a process of its own: prepare, empty, raw."""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import django

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
django.setup()

from django.db import connection, transaction  # noqa: E402

from benchmarks.recording_database import prepare as make_database  # noqa: E402
from feedback_app.services.submission import record_event, submit_verdict  # noqa: E402
from sessions_app.models import DiagnosisSession  # noqa: E402
from sessions_app.services.recording import record_batch  # noqa: E402

WARM_UP = 400
CHILDREN = ("case_transition", "bad_case_transition", "bad_case_review", "agent_feedback", "case_library")

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


def raw(kind: str, posts: str, connections: str) -> None:
    """Print the transactions a second of the statements that the posts send, over so many connections."""
    scripts = [_statements(kind, f"bench-{number}") for number in range(int(posts))]
    empty()
    ready = threading.Barrier(int(connections))

    def send(part: list[Statements]) -> tuple[float, float]:
        connection.ensure_connection()
        ready.wait()
        start = time.perf_counter()
        for statements in part:
            with transaction.atomic(), connection.cursor() as cursor:
                for sql, parameters in statements:
                    cursor.execute(sql, parameters)
        end = time.perf_counter()
        connection.close()
        return start, end

    parts = [scripts[number :: int(connections)] for number in range(int(connections))]
    with ThreadPoolExecutor(int(connections)) as pool:
        times = list(pool.map(send, parts))
    print(int(posts) / (max(end for _, end in times) - min(start for start, _ in times)))


def _statements(kind: str, session_id: str) -> Statements:
    """What one post sends inside its transaction, by doing it."""
    statements: Statements = []

    def note(execute: Callable[..., Any], sql: str, parameters: Any, *more: Any) -> Any:
        statements.append((sql, parameters))
        return execute(sql, parameters, *more)

    with connection.execute_wrapper(note):
        if kind == "star":
            record_event({"session_id": session_id, "type": "star", "value": 4, "client_event_id": f"e-{session_id}"})
        else:
            submit_verdict(session_id=session_id, verdict=kind, comment="It was the pool, as it said.")
    # SQLite's own BEGIN comes as a statement; `send` opens its transaction itself.
    return [each for each in statements if not each[0].startswith("BEGIN")]


if __name__ == "__main__":
    command, *arguments = sys.argv[1:]
    {"prepare": prepare, "empty": empty, "raw": raw}[command](*arguments)
