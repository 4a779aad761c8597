"""What cases are found by (`sessions_app.services.indexing` keeps it in step with their texts)."""

from __future__ import annotations

import uuid
from collections.abc import Collection

from cases_app.models import CaseLibrary, CaseTerm
from sessions_app.services import indexing
from sessions_app.services.indexing import Index, Texts, write_now

COLUMNS = ("title", "error_code", "root_cause", "solution", "diagnosis_id")


def owe(case_ids: Collection[uuid.UUID]) -> None:
    """The texts of these cases were written: they owe new terms. A new case does by itself."""
    indexing.owe(CaseLibrary.objects.filter(pk__in=case_ids))


def refresh(case_ids: Collection[uuid.UUID]) -> None:
    """Write anew what cases are found by, in the caller's transaction: text went that must not be found any more."""
    write_now(CASES, case_ids)


def _texts(case_ids: Collection[uuid.UUID]) -> Texts:
    for pk, *texts in CaseLibrary.objects.filter(pk__in=case_ids).order_by().values_list("pk", *COLUMNS):
        yield pk, [str(pk), *(text or "" for text in texts)]


CASES = Index(CaseLibrary, CaseTerm, _texts)
