"""Keeping what cases are found by in step with their texts (`sessions_app.search` has the rules)."""

from __future__ import annotations

import uuid
from collections.abc import Collection

from cases_app.models import CaseLibrary, CaseTerm
from sessions_app import search
from sessions_app.db import in_transaction

COLUMNS = ("title", "error_code", "root_cause", "solution", "diagnosis_id")


@in_transaction
def refresh(case_ids: Collection[uuid.UUID]) -> None:
    """Write anew what cases are found by. Called after their texts are written, in the same transaction."""
    for pk, *texts in CaseLibrary.objects.filter(pk__in=case_ids).values_list("pk", *COLUMNS):
        search.index(CaseTerm, pk, [str(pk), *(text or "" for text in texts)])
