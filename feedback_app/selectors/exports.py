"""Triages as rows of a file."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from django.db.models import QuerySet

from sessions_app.sheets import rows_by_key

_PATHS: Mapping[str, str] = {
    "session_id": "session__session_id",
    "agent_id": "session__agent_id",
    "agent_flow": "session__agent_flow",
    "query": "session__query",
    "answer": "session__answer",
    "evidence_score": "session__evidence_score",
    "confidence": "session__confidence",
    "state": "state",
    "failure_mode": "failure_mode",
    "assignee": "assignee__username",
    "notes": "notes",
    "corrected_answer": "corrected_answer",
    "case_id": "case_id",
    "claimed_at": "claimed_at",
    "due_at": "due_at",
    "resolved_at": "resolved_at",
    "created_at": "created_at",
    "updated_at": "updated_at",
}
COLUMNS = tuple(_PATHS)


def exportable_triages(triages: QuerySet[Any]) -> QuerySet[Any]:
    """Without those of sessions whose text may not leave."""
    return triages.filter(session__consent=True)


def triage_rows(triages: QuerySet[Any]) -> Iterator[tuple[Any, ...]]:
    """The columns of COLUMNS, by primary key."""
    return rows_by_key(triages, list(_PATHS.values()))
