"""Keeping the place of each bad case in the queue in step with the facts (`feedback_app.priority` has the rules)."""

from __future__ import annotations

from django.db.models import Count, Q

from feedback_app import priority
from feedback_app.models import AgentFeedback, BadCaseReview, BadCaseReviewQuerySet, EventSource, EventType
from sessions_app.db import in_transaction
from sessions_app.models import DiagnosisSession

ROWS_AT_ONCE = 200


@in_transaction
def refresh(session_id: str) -> None:
    """Count a bad case's priority anew; nothing where the session has no triage.

    A question that is new here makes the others with the same question one repeat richer. Two of them that open in
    the same moment may not see each other: then the next fact of either counts it. An order can bear that.
    """
    review = BadCaseReview.objects.select_for_update().filter(session__session_id=session_id).first()
    if review is None:
        return
    key_before = review.question_key
    _count(review)
    if review.question_key not in (key_before, priority.NO_QUESTION):
        others = _alike(review)
        # Beyond so many nothing changes for any of them.
        if others.values("pk")[: priority.MOST_REPEATS + 1].count() <= priority.MOST_REPEATS:
            for other in others.waiting().select_for_update().order_by("pk"):
                _count(other)


def refresh_unranked() -> int:
    """Count those that came from before there were priorities, some at a time; returns how many."""
    unranked = BadCaseReview.objects.filter(question_key="").values_list("session__session_id", flat=True)
    session_ids = list(unranked[:ROWS_AT_ONCE])
    for session_id in session_ids:
        refresh(session_id)
    return len(session_ids)


def _count(review: BadCaseReview) -> None:
    """Write one row, if anything of it changed. The caller holds its lock."""
    session = DiagnosisSession.objects.only("query", "confidence", "evidence_score").get(session_id=review.session_id)
    before = (review.question_key, review.priority_hours, review.attention_at)
    review.question_key = priority.question_key(session.query or "")
    hours = priority.hours_by_rule(_facts(review, session))
    review.priority_hours = hours
    review.attention_at = priority.attention_at(review.due_at or review.created_at, hours)
    if (review.question_key, review.priority_hours, review.attention_at) != before:
        review.save(update_fields=["question_key", "priority_hours", "attention_at"])


def _facts(review: BadCaseReview, session: DiagnosisSession) -> priority.Facts:
    events = AgentFeedback.objects.filter(session_id=review.session_id)
    counts = events.aggregate(
        corrections=Count("pk", filter=Q(type=EventType.CORRECTION)),
        re_asks=Count("pk", filter=Q(type=EventType.RE_ASK)),
    )
    no_question = review.question_key == priority.NO_QUESTION
    return priority.Facts(
        confidence=session.confidence,
        evidence_score=session.evidence_score,
        has_correction=counts["corrections"] > 0,
        has_words=events.with_words().filter(source=EventSource.USER).exists(),
        re_asks=counts["re_asks"],
        repeats=0 if no_question else _alike(review).values("pk")[: priority.MOST_REPEATS].count(),
    )


def _alike(review: BadCaseReview) -> BadCaseReviewQuerySet:
    """The other bad cases with the same question, decided ones too."""
    return BadCaseReview.objects.filter(question_key=review.question_key).exclude(pk=review.pk)
