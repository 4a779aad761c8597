"""A reader changes their mind while a reviewer moves the same bad case."""

from __future__ import annotations

import pytest

from feedback_app.models import BadCaseReview, BadCaseTransition
from feedback_app.services import submission, triage
from tests.factories import SessionFactory

pytestmark = pytest.mark.django_db


@pytest.fixture
def review(db):
    SessionFactory(session_id="s1")
    submission.submit_verdict(session_id="s1", verdict="not_useful")
    return BadCaseReview.objects.get()


def once(monkeypatch, name, move):
    """Let a reviewer make `move` just before triage calls `name` of a set of reviews."""
    queryset = type(BadCaseReview.objects.all())
    original = getattr(queryset, name)

    def interfere(self, *args, **kwargs):
        monkeypatch.setattr(queryset, name, original)
        move()
        return original(self, *args, **kwargs)

    monkeypatch.setattr(queryset, name, interfere)


def test_a_case_taken_just_now_is_not_dismissed_nor_said_to_be(review, reviewer, monkeypatch):
    once(monkeypatch, "update", lambda: triage.claim(review_id=review.pk, reviewer=reviewer))
    submission.submit_verdict(session_id="s1", verdict="useful")
    assert BadCaseReview.objects.get().state == "IN_REVIEW"
    assert not BadCaseTransition.objects.filter(action="dismiss").exists()


def test_the_row_is_locked_before_it_is_judged(review, monkeypatch):
    submission.submit_verdict(session_id="s1", verdict="useful")
    locked = []
    queryset = type(BadCaseReview.objects.all())
    lock = queryset.select_for_update
    monkeypatch.setattr(queryset, "select_for_update", lambda self: locked.append(1) or lock(self))
    submission.submit_verdict(session_id="s1", verdict="not_useful")
    assert locked
    assert BadCaseReview.objects.get().state == "OPEN"
