"""Keeping what bad cases are found by in step with their texts (`sessions_app.search` has the rules)."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from feedback_app.models import AgentFeedback, BadCaseReview, BadCaseTerm
from sessions_app import search
from sessions_app.db import in_transaction
from sessions_app.models import DiagnosisSession

SAID = ("comment", "userNote")
EVENTS_READ = 200


@in_transaction
def refresh(session_id: str) -> None:
    """Write anew what the triage of a session is found by; nothing where it has none.

    Called after a text is written, in the same transaction. The row's lock makes two writers one after the other.
    """
    locked = BadCaseReview.objects.select_for_update().only("session_id", "notes", "corrected_answer")
    review = locked.filter(session__session_id=session_id).first()
    if review is not None:
        search.index(BadCaseTerm, review.pk, _texts(review))


def follow_questions(session_ids: Collection[str]) -> None:
    """Questions came or changed: those of bad cases are found by what they ask now."""
    for session_id in BadCaseReview.objects.filter(session__session_id__in=session_ids).values_list(
        "session__session_id", flat=True
    ):
        refresh(session_id)


def _texts(review: BadCaseReview) -> Iterator[str]:
    session_id = str(review.session_id)
    yield session_id
    yield DiagnosisSession.objects.values_list("query", flat=True).get(session_id=session_id) or ""
    yield review.notes
    yield review.corrected_answer
    events = AgentFeedback.objects.with_words().filter(session__session_id=session_id).order_by("-created_at", "pk")
    for payload in events.values_list("payload", flat=True)[:EVENTS_READ]:
        yield from (str(payload.get(key) or "") for key in SAID)
