"""The database's side of `benchmarks.recording`, in a process of its own: prepare, empty, bytes, raw."""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path
from typing import Any

import django

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
django.setup()

from django.apps import apps  # noqa: E402
from django.conf import settings  # noqa: E402
from django.core.management import call_command  # noqa: E402
from django.db import connection, transaction  # noqa: E402

from sessions_app.services.keys import create_key  # noqa: E402

TABLES = ("diagnosis_session", "agent_step", "tool_invocation")
ALL_TABLES = (*TABLES, "otlp_trace")


def prepare() -> None:
    """Make the database, migrate it, print a key."""
    if connection.vendor == "mysql":
        import MySQLdb

        parameters = connection.get_connection_params()
        name = parameters.pop("database")
        allowed = ("host", "user", "password", "port", "unix_socket")
        server = MySQLdb.connect(**{key: parameters[key] for key in allowed if key in parameters})
        server.cursor().execute(f"DROP DATABASE IF EXISTS `{name}`")
        server.cursor().execute(f"CREATE DATABASE `{name}` CHARACTER SET utf8mb4 COLLATE utf8mb4_unicode_ci")
    call_command("migrate", verbosity=0)
    print(create_key(name="bench", scopes=["ingest"])[1])


def empty() -> None:
    """Remove all sessions."""
    with connection.cursor() as cursor:
        for table in reversed(ALL_TABLES):
            cursor.execute(f"DELETE FROM {table}")
        if connection.vendor == "mysql":
            for table in ALL_TABLES:
                cursor.execute(f"OPTIMIZE TABLE {table}")
                cursor.fetchall()


def stored_bytes() -> None:
    """Print how many bytes the tables of sessions take, indexes included."""
    with connection.cursor() as cursor:
        if connection.vendor == "mysql":
            cursor.execute(f"ANALYZE TABLE {', '.join(ALL_TABLES)}")
            cursor.fetchall()
            cursor.execute(
                "SELECT SUM(data_length + index_length) FROM information_schema.tables "
                "WHERE table_schema = DATABASE() AND table_name IN %s",
                [ALL_TABLES],
            )
            print(float(cursor.fetchone()[0]))
            return
        cursor.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        cursor.execute("VACUUM")
    print(Path(settings.DATABASES["default"]["NAME"]).stat().st_size)


def raw(per_transaction: int) -> None:
    """Print the sessions a second of raw multi-row INSERTs of the rows that are there, into empty copies of the tables.

    The same indexes and constraints; a statement a table and a transaction for each `per_transaction` sessions.
    """
    columns, groups = _read_groups(per_transaction)
    empty()
    heads = {
        table: f"INSERT INTO {table} ({', '.join(connection.ops.quote_name(name) for name in columns[table])}) VALUES "
        for table in TABLES
    }
    sessions = 0
    start = time.perf_counter()
    for group in groups:
        with transaction.atomic(), connection.cursor() as cursor:
            for table in TABLES:
                rows = group[table]
                if rows:
                    place = f"({', '.join(['%s'] * len(columns[table]))})"
                    cursor.execute(heads[table] + ", ".join([place] * len(rows)), [v for row in rows for v in row])
            sessions += len(group["diagnosis_session"])
    print(sessions / (time.perf_counter() - start))


def _read_groups(size: int) -> tuple[dict[str, list[str]], list[dict[str, list[Any]]]]:
    """All rows, in groups of `size` sessions."""
    columns: dict[str, list[str]] = {}
    rows: dict[str, dict[str, list[Any]]] = {}
    models = {model._meta.db_table: model for model in apps.get_app_config("sessions_app").get_models()}
    with connection.cursor() as cursor:
        for table in TABLES:
            columns[table] = [field.column for field in models[table]._meta.concrete_fields]
            names = ", ".join(connection.ops.quote_name(name) for name in columns[table])
            cursor.execute(f"SELECT {names} FROM {table} ORDER BY id")
            place = columns[table].index("session_id")
            for row in cursor.fetchall():
                rows.setdefault(table, {}).setdefault(row[place], []).append(row)
    ids = list(rows["diagnosis_session"])
    groups = [
        {
            table: [row for session_id in ids[at : at + size] for row in rows[table].get(session_id, [])]
            for table in TABLES
        }
        for at in range(0, len(ids), size)
    ]
    return columns, groups


if __name__ == "__main__":
    command, *arguments = sys.argv[1:]
    {"prepare": prepare, "empty": empty, "bytes": stored_bytes, "raw": raw}[command](*map(int, arguments))
