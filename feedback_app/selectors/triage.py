"""What a reviewer looks at before a verdict."""

from __future__ import annotations

from feedback_app.models import BadCaseReview, BadCaseTransition

HISTORY_SHOWN = 100


def bad_case(review_id: str) -> BadCaseReview | None:
    """A triage with its session, the session's case and its assignee; None for an unknown or impossible id."""
    if not review_id.isdecimal():
        return None
    related = BadCaseReview.objects.select_related("session__case", "assignee", "case")
    return related.filter(pk=int(review_id)).first()


def history(review: BadCaseReview) -> list[BadCaseTransition]:
    """What was done to it, the latest first."""
    return list(BadCaseTransition.objects.filter(review=review).select_related("actor")[:HISTORY_SHOWN])
