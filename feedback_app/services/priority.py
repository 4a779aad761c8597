"""Keeping what the queue knows of each bad case in step with the facts.

That is its place, for which `feedback_app.priority` has the rules, and what it is filtered by.
"""

from __future__ import annotations

from typing import Any

from django.db.models import Count, Q

from feedback_app import priority
from feedback_app.languages import language_of
from feedback_app.models import AgentFeedback, BadCaseReview, BadCaseReviewQuerySet, EventSource, EventType
from feedback_app.services import terms
from sessions_app.db import in_transaction
from sessions_app.models import DiagnosisSession
from sessions_app.selectors.facts import call_facts

ROWS_AT_ONCE = 200
REPEATED = ("agent_id", "agent_flow", "evidence_score", "confidence")
"""Columns of a session that its triage repeats."""


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
        others = _alike(review.question_key, review.pk)
        # Beyond so many nothing changes for any of them.
        if others.values("pk")[: priority.MOST_REPEATS + 1].count() <= priority.MOST_REPEATS:
            for other in others.waiting().select_for_update().order_by("pk"):
                _count(other)


def refresh_unranked() -> int:
    """Count those that came from before what is kept now, some at a time; returns how many."""
    unranked = BadCaseReview.objects.filter(question_key="").values_list("session__session_id", flat=True)
    session_ids = list(unranked[:ROWS_AT_ONCE])
    terms.owe(session_ids)  # first: one that is counted is not met again
    for session_id in session_ids:
        refresh(session_id)
    return len(session_ids)


def _count(review: BadCaseReview) -> None:
    """Write one row, if anything of it changed. The caller holds its lock."""
    session = DiagnosisSession.objects.only("session_id", *REPEATED, "query").get(session_id=review.session_id)
    question = session.query or ""
    columns: dict[str, Any] = {name: getattr(session, name) for name in REPEATED}
    columns |= call_facts(session.session_id)._asdict()
    columns |= {"question_key": priority.question_key(question), "language": language_of(question)}
    facts = _facts(session, columns["question_key"], review.pk)
    hours = priority.hours_by_rule(facts)
    columns |= {
        "has_words": facts.has_words,
        "priority_hours": hours,
        "attention_at": priority.attention_at(review.due_at or review.created_at, hours),
    }
    changed = {name: value for name, value in columns.items() if getattr(review, name) != value}
    for name, value in changed.items():
        setattr(review, name, value)
    if changed:
        review.save(update_fields=changed)


def _facts(session: DiagnosisSession, question_key: str, own_id: int) -> priority.Facts:
    events = AgentFeedback.objects.filter(session=session)
    counts = events.aggregate(
        corrections=Count("pk", filter=Q(type=EventType.CORRECTION)),
        re_asks=Count("pk", filter=Q(type=EventType.RE_ASK)),
    )
    no_question = question_key == priority.NO_QUESTION
    return priority.Facts(
        confidence=session.confidence,
        evidence_score=session.evidence_score,
        has_correction=counts["corrections"] > 0,
        has_words=events.with_words().filter(source=EventSource.USER).exists(),
        re_asks=counts["re_asks"],
        repeats=0 if no_question else _alike(question_key, own_id).values("pk")[: priority.MOST_REPEATS].count(),
    )


def _alike(question_key: str, own_id: int) -> BadCaseReviewQuerySet:
    """The other bad cases with the same question, decided ones too."""
    return BadCaseReview.objects.filter(question_key=question_key).exclude(pk=own_id)
