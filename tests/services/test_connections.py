"""How the running web and worker processes talk to the database, seen from the database itself."""

from __future__ import annotations

import threading
import time

import pytest
from django.db import close_old_connections, connection, transaction

from tests.services.conftest import whole_session
from tests.stack import wait_until

pytestmark = pytest.mark.services

ID_COLUMNS = {
    ("diagnosis_session", "session_id"),
    ("diagnosis_session", "conversation_id"),
    ("agent_step", "session_id"),
    ("agent_step", "agent_name"),
    ("tool_invocation", "session_id"),
    ("tool_invocation", "invocation_id"),
    ("tool_invocation", "tool_name"),
    ("case_library", "diagnosis_id"),
    ("agent_feedback", "session_id"),
    ("agent_feedback", "turn_id"),
    ("agent_feedback", "client_event_id"),
    ("bad_case_review", "session_id"),
}
"""Some that must compare exactly; that no other id column is forgotten is asserted by name below."""


def isolation_while_we_hold(stack, session_id, start):
    """Isolation levels of the transactions that wait for this session's row."""
    with stack.connection() as holder, holder.cursor() as cursor:
        cursor.execute("SELECT id FROM diagnosis_session WHERE session_id = %s FOR UPDATE", [session_id])
        start()
        wait_until(stack.isolation_of_waiters, 8, "nobody waits for the row")
        return stack.isolation_of_waiters()


def test_web_and_worker_run_at_read_committed(stack, new_ids):
    [session_id] = new_ids(1)
    stack.send("POST", "/api/sessions", {"sessionId": session_id, "query": "why?"})
    patch = {"status": "SUCCESS", "answer": "so."}
    answers = []
    sender = threading.Thread(
        target=lambda: answers.append(stack.send("PATCH", f"/api/sessions/{session_id}", patch).status)
    )
    assert isolation_while_we_hold(stack, session_id, sender.start) == {"READ COMMITTED"}
    sender.join()
    assert answers == [200]
    stack.wait_scored([session_id], 10)

    # A sweep picks up what is owed; holding the row, we see the worker's own connection wait.
    owe = "UPDATE diagnosis_session SET evaluation_due_at = UTC_TIMESTAMP(6) WHERE session_id = %s"
    stack.sql(owe, session_id)
    assert isolation_while_we_hold(stack, session_id, lambda: None) == {"READ COMMITTED"}
    stack.wait_scored([session_id], 20)


def test_the_environment_passes_the_database_check(stack):
    assert "no issues" in stack.manage("check", "--database", "default")


def test_ids_compare_exactly_and_text_keeps_every_character(stack, new_ids):
    [prefix] = new_ids(1)
    text = "👩‍👩‍👧‍👦 𠮷 🇩🇪 😀"
    for session_id in (f"{prefix}-ABC", f"{prefix}-abc"):
        whole = whole_session(session_id, query=text, metadata={text: text})
        assert stack.send("POST", "/api/sessions/batch", [whole]).body["accepted"] == 1
        assert stack.send("GET", f"/api/sessions/{session_id}").body["metadata"] == {text: text}
    stored = stack.sql("SELECT HEX(query) FROM diagnosis_session WHERE session_id LIKE %s", f"{prefix}-%")
    assert stored == [(text.encode().hex().upper(),)] * 2


def test_over_long_text_is_refused_not_cut(stack, new_ids):
    [session_id] = new_ids(1)
    answer = stack.send("POST", "/api/sessions", {"sessionId": session_id, "agentFlow": "x" * 33})
    assert (answer.status, list(answer.body["errors"])) == (400, ["agentFlow"])
    assert stack.sql("SELECT COUNT(*) FROM diagnosis_session WHERE session_id = %s", session_id) == [(0,)]


def test_id_columns_are_binary_and_all_text_is_utf8mb4(stack):
    columns = stack.sql(
        "SELECT TABLE_NAME, COLUMN_NAME, CHARACTER_SET_NAME, COLLATION_NAME FROM information_schema.COLUMNS"
        " WHERE TABLE_SCHEMA = %s AND CHARACTER_SET_NAME IS NOT NULL",
        stack.database,
    )
    assert {charset for *_, charset, _ in columns} == {"utf8mb4"}
    tables = {table for table, _ in ID_COLUMNS}
    ids = {
        (table, column): collation
        for table, column, _, collation in columns
        if (table, column) in ID_COLUMNS or (table in tables and column.endswith("_id"))
    }
    assert ids.keys() >= ID_COLUMNS
    assert set(ids.values()) == {"utf8mb4_bin"}, ids


def asked(statement):
    with connection.cursor() as cursor:
        cursor.execute(statement)
        return cursor.fetchone()[-1]


@pytest.mark.django_db(transaction=True)
def test_a_transaction_is_its_statements_and_nothing_more():
    before = int(asked("SHOW SESSION STATUS LIKE 'Questions'"))
    for _ in range(3):
        close_old_connections()  # as a request begins and ends
        with transaction.atomic():
            asked("SELECT 1")
    assert connection.get_autocommit()
    assert int(asked("SHOW SESSION STATUS LIKE 'Questions'")) - before == 3 * len(("BEGIN", "SELECT", "COMMIT")) + 1


@pytest.mark.django_db(transaction=True)
def test_what_is_rolled_back_is_not_there():
    def write():
        with transaction.atomic(), connection.cursor() as cursor:
            cursor.execute("INSERT INTO heartbeat (name, seen_at) VALUES ('never', UTC_TIMESTAMP(6))")
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        write()
    assert asked("SELECT COUNT(*) FROM heartbeat WHERE name = 'never'") == 0


@pytest.mark.django_db(transaction=True)
def test_a_connection_that_the_server_closed_is_noticed_before_it_is_used():
    first = asked("SELECT CONNECTION_ID()")
    for _ in range(2):
        close_old_connections()
        assert asked("SELECT CONNECTION_ID()") == first
    other = connection.copy()
    with other.cursor() as cursor:
        cursor.execute(f"KILL {first}")
    other.close()
    time.sleep(0.2)
    close_old_connections()
    with transaction.atomic():
        assert asked("SELECT CONNECTION_ID()") != first
