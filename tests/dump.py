"""All that a copy of the database would hold, as one text: rows, packed ledgers, and the bytes of the files."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from django.db import connection

from sessions_app.models import OtlpTrace
from sessions_app.services.traces import _unpack


def holds(text: str) -> list[str]:
    """Where in the database a text stands: tables and columns, "dump", names of files. Empty when nowhere."""
    return sorted({place for place, content in _places() if any(form in content for form in _forms(text))})


def _forms(text: str) -> tuple[bytes, ...]:
    """As itself, and as JSON writes it with escapes."""
    return (text.encode(), text.encode("unicode_escape"))


def _places() -> Iterator[tuple[str, bytes]]:
    with connection.cursor() as cursor:
        for table in connection.introspection.table_names(cursor):
            cursor.execute(f"SELECT * FROM {connection.ops.quote_name(table)}")
            columns = [column[0] for column in cursor.description]
            for row in cursor.fetchall():
                for column, value in zip(columns, row, strict=True):
                    yield f"{table}.{column}", _bytes(value)
    for ledger in OtlpTrace.objects.exclude(spans=b""):
        yield "otlp_trace.spans", json.dumps(_unpack(ledger), ensure_ascii=False).encode()
    yield "dump", _dump()
    if connection.vendor == "sqlite":
        for path in Path(connection.settings_dict["NAME"]).parent.glob(
            Path(connection.settings_dict["NAME"]).name + "*"
        ):
            yield path.name, path.read_bytes()


def _bytes(value: Any) -> bytes:
    return bytes(value) if isinstance(value, bytes | memoryview) else str(value).encode()


def _dump() -> bytes:
    if connection.vendor == "sqlite":
        connection.ensure_connection()
        return "\n".join(connection.connection.iterdump()).encode(errors="surrogateescape")
    program = shutil.which("mariadb-dump") or shutil.which("mysqldump")
    if program is None:
        return b""
    database = connection.settings_dict
    options = [f"--host={database['HOST']}", f"--user={database['USER']}", "--protocol=tcp", "--single-transaction"]
    options += [f"--port={database['PORT']}"] if database["PORT"] else []
    options += [f"--password={database['PASSWORD']}"] if database["PASSWORD"] else []
    return subprocess.run([program, *options, str(database["NAME"])], check=True, capture_output=True).stdout
