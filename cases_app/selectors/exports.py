"""Cases as rows of a file."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from django.db.models import Q, QuerySet

from cases_app.models import CaseLibrary
from sessions_app.sheets import rows_by_key

COLUMNS = (
    "case_id", "diagnosis_id", "source_type", "status", "fault_category", "error_code", "title", "root_cause",
    "solution", "created_by", "reviewed_by", "reviewed_at", "created_at", "updated_at",
)  # fmt: skip
_PATHS = {"diagnosis_id": "diagnosis__session_id", "reviewed_by": "reviewed_by__username"}


def exportable_cases(cases: QuerySet[Any]) -> QuerySet[Any]:
    """Without those that quote a session whose text may not leave, or stand for one."""
    refused = CaseLibrary.objects.filter(diagnosis__consent=False).exclude(merged_into=None).values("merged_into")
    return cases.filter(Q(diagnosis=None) | Q(diagnosis__consent=True)).exclude(pk__in=refused)


def case_rows(cases: QuerySet[Any]) -> Iterator[tuple[Any, ...]]:
    """The columns of COLUMNS, by primary key."""
    return rows_by_key(cases, [_PATHS.get(column, column) for column in COLUMNS])
