"""What bad cases are found by (`sessions_app.services.indexing` keeps it in step with their texts)."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from feedback_app.models import AgentFeedback, BadCaseReview, BadCaseTerm
from sessions_app.services import indexing
from sessions_app.services.indexing import Index, Texts, write_now

SAID = ("comment", "userNote")
EVENTS_READ = 200


def owe(session_ids: Collection[str]) -> None:
    """What is said or asked in these sessions was written: their bad cases, where they have any, owe new terms."""
    indexing.owe(BadCaseReview.objects.filter(session__session_id__in=session_ids))


def refresh(session_id: str) -> None:
    """Write anew what the bad case of a session is found by, in the caller's transaction.

    For text that went and must not be found any more; nothing where the session has no bad case.
    """
    write_now(BAD_CASES, BadCaseReview.objects.filter(session__session_id=session_id).values_list("pk", flat=True))


def _texts(review_ids: Collection[int]) -> Texts:
    columns = ("pk", "session_id", "session__query", "notes", "corrected_answer")
    for pk, session_id, *texts in BadCaseReview.objects.filter(pk__in=review_ids).order_by().values_list(*columns):
        yield pk, [session_id, *(text or "" for text in texts), *_said(session_id)]


def _said(session_id: str) -> Iterator[str]:
    events = AgentFeedback.objects.with_words().filter(session__session_id=session_id).order_by("-created_at", "pk")
    for payload in events.values_list("payload", flat=True)[:EVENTS_READ]:
        yield from (str(payload.get(key) or "") for key in SAID)


BAD_CASES = Index(BadCaseReview, BadCaseTerm, _texts)
