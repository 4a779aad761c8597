"""Rows past the ORM: what is read and written is what the ORM reads and writes."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from django.db import transaction

from cases_app.models import CaseLibrary
from sessions_app.models import DiagnosisSession
from sessions_app.services.bulk import select_one, update
from tests.factories import CaseFactory, SessionFactory

pytestmark = pytest.mark.django_db

AT = datetime(2026, 3, 4, 5, 6, 7, 890123, tzinfo=UTC)


def test_a_row_is_found_with_the_values_that_django_reads():
    SessionFactory(session_id="s1", answer="答😀", metadata={"n": [1, None]}, is_sanitised=True, anonymised_at=AT)
    names = ("session_id", "answer", "metadata", "is_sanitised", "anonymised_at", "evidence_score")
    row, same = select_one(DiagnosisSession, "session_id", "s1", names), DiagnosisSession.objects.get()
    assert [getattr(row, name) for name in ("pk", *names)] == [getattr(same, name) for name in ("pk", *names)]
    assert row == same
    assert row.get_deferred_fields() >= {"query", "created_at"}
    assert row.query == same.query  # fetched when asked for


def test_of_a_key_in_other_letters_or_unknown_there_is_none():
    SessionFactory(session_id="s1")
    assert select_one(DiagnosisSession, "session_id", "S1", ()) is None
    assert select_one(DiagnosisSession, "session_id", "' OR 1=1 --", ()) is None


def test_a_row_is_changed_by_its_key_and_nothing_else_of_it():
    case, other = CaseFactory(title="old", solution="stays"), CaseFactory(title="other")
    with transaction.atomic():
        row = select_one(CaseLibrary, "diagnosis", case.diagnosis_id, ("title", "flagged_at"), lock=True)
        row.title, row.flagged_at = "新", AT
        update(row, "title", "flagged_at")
    case.refresh_from_db()
    assert (case.title, case.flagged_at, case.solution) == ("新", AT, "stays")
    row.flagged_at = None
    update(row, "flagged_at")
    case.refresh_from_db()
    assert case.flagged_at is None
    other.refresh_from_db()
    assert other.title == "other"
