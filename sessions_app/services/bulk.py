"""Writing many rows in a few statements of bounded size."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeVar

from django.db import connection, models

from sessions_app.fields import dumps
from sessions_app.models import AgentStep, DiagnosisSession, OtlpTrace, ToolInvocation

STATEMENT_CHARS = 1_000_000
"""About how many characters one INSERT carries; MariaDB's packet is 16 MiB and escaping may take 7 bytes for each."""

AnyRow = TypeVar("AnyRow", DiagnosisSession, AgentStep, ToolInvocation, OtlpTrace)


def insert(model: type[AnyRow], rows: list[AnyRow]) -> None:
    """Insert new rows; a key that is taken raises IntegrityError."""
    for chunk in _statements(rows):
        model.objects.bulk_create(chunk)


def upsert(model: type[AnyRow], rows: list[AnyRow], fields: list[str]) -> None:
    """Update stored rows in one statement a chunk; their keys exist, so nothing is inserted."""
    target = ["pk"] if connection.features.supports_update_conflicts_with_target else None
    for chunk in _statements(rows):
        model.objects.bulk_create(chunk, update_conflicts=True, update_fields=fields, unique_fields=target)


def _statements(rows: list[AnyRow]) -> Iterator[list[AnyRow]]:
    """Cut rows into statements of bounded size."""
    chunk: list[AnyRow] = []
    chars = 0
    for row in rows:
        weight = _weight(row)
        if chunk and chars + weight > STATEMENT_CHARS:
            yield chunk
            chunk, chars = [], 0
        chunk.append(row)
        chars += weight
    if chunk:
        yield chunk


_HEAVY = {
    DiagnosisSession: ("query", "answer", "metadata", "self_evaluation"),
    AgentStep: ("model_input", "model_output", "thought"),
    ToolInvocation: ("input_params", "retrieval_details", "error_message"),
    OtlpTrace: ("spans",),
}


def _weight(row: models.Model) -> int:
    """About how many characters a row takes in a statement."""
    heavy = (getattr(row, name) for name in _HEAVY[type(row)])
    return 500 + sum(len(value) if isinstance(value, str | bytes) else len(dumps(value)) for value in heavy if value)
