"""What a reviewer looks at before a verdict."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.contrib.auth import get_user_model
from django.db.models import Count, Min, Q, QuerySet
from django.db.models.functions import Left
from django.utils import timezone

from feedback_app.models import BadCaseReview, BadCaseTransition, TriageState, claim_expiry
from feedback_app.priority import NO_QUESTION
from feedback_app.selectors.second_reviews import hidden_from
from sessions_app.models import AgentStep, DiagnosisSession

HISTORY_SHOWN = 100
TRIAGE_PERMISSION = "feedback_app.triage_badcasereview"
DAYS_OF_PROGRESS = 7
STEPS_OFFERED = 500
MAX_INDEX_DIGITS = 9
OTHERS_SHOWN = 5
QUESTION_CHARS = 240
ROW_QUESTION_CHARS = 480
"""As fetched for a row; more than is shown, because blanks are folded."""
OTHER_COLUMNS = ("state", "failure_mode", "created_at", "session__session_id")


def bad_case(review_id: str) -> BadCaseReview | None:
    """A triage with its session, the session's case and its assignee; None for an unknown or impossible id."""
    if not review_id.isdecimal():
        return None
    related = BadCaseReview.objects.select_related("session__case", "assignee", "case", "second")
    return related.filter(pk=int(review_id)).first()


def steps_of(session_id: str) -> list[tuple[str, str]]:
    """The steps that can be blamed, as `<agent>/<index>`, with what they are called; STEPS_OFFERED at most."""
    rows = AgentStep.objects.of(session_id).order_by("started_at", "pk").values_list("agent_name", "step_index")
    return [(f"{agent}/{index}", f"{agent} #{index}") for agent, index in rows[:STEPS_OFFERED]]


def has_step(review: BadCaseReview, name: str) -> bool:
    """Whether the session has the step `<agent>/<index>`."""
    agent, _, index = name.rpartition("/")
    if not index.isdecimal() or len(index) > MAX_INDEX_DIGITS:
        return False
    return AgentStep.objects.of(str(review.session_id)).filter(agent_name=agent, step_index=int(index)).exists()


def heads_of_sessions(session_ids: Iterable[str]) -> dict[str, DiagnosisSession]:
    """Session id → what a row of the queue shows of it: score and beginning of the question. Never an answer."""
    shown = DiagnosisSession.objects.only("session_id", "evidence_score", "evaluation_due_at", "evaluation_error")
    heads = shown.annotate(query_head=Left("query", ROW_QUESTION_CHARS)).filter(session_id__in=list(session_ids))
    return {session.session_id: session for session in heads.order_by()}


def same_question(review: BadCaseReview, user: Any) -> list[BadCaseReview]:
    """Other bad cases with the same question, the newest first: what was found there may be what is wrong here."""
    if review.question_key in ("", NO_QUESTION):
        return []
    others = BadCaseReview.objects.filter(question_key=review.question_key).exclude(pk=review.pk)
    rows = others.exclude(hidden_from(user)).select_related("session").order_by("-pk")
    return list(rows.only(*OTHER_COLUMNS)[:OTHERS_SHOWN])


def same_conversation(session: DiagnosisSession) -> list[DiagnosisSession]:
    """Other sessions of the conversation, the newest first."""
    if not session.conversation_id:
        return []
    others = DiagnosisSession.objects.filter(conversation_id=session.conversation_id).exclude(pk=session.pk)
    heads = others.only("session_id", "created_at", "feedback").annotate(query_head=Left("query", QUESTION_CHARS))
    return list(heads.order_by("-created_at")[:OTHERS_SHOWN])


def history(review: BadCaseReview) -> list[BadCaseTransition]:
    """What was done to it, the latest first."""
    return list(BadCaseTransition.objects.filter(review=review).select_related("actor")[:HISTORY_SHOWN])


def reviewers() -> QuerySet[Any]:
    """Who may be given a bad case, by name."""
    people: Any = get_user_model().objects
    backend = "django.contrib.auth.backends.ModelBackend"
    may_triage: QuerySet[Any] = people.with_perm(TRIAGE_PERMISSION, backend=backend).filter(is_staff=True)
    return may_triage.order_by("username")


@dataclass(slots=True)
class Holding:
    """What one person has in hand, and has done in the last DAYS_OF_PROGRESS days. `user` is None for nobody."""

    user: Any
    held: int = 0
    overdue: int = 0
    expired: int = 0
    next_due: datetime | None = None
    oldest_claim: datetime | None = None
    resolved: int = 0
    dismissed: int = 0


@dataclass(frozen=True, slots=True)
class Progress:
    """How the queue stands."""

    waiting: int
    closed: int

    @property
    def share(self) -> int:
        """Percent of what waited or was closed in these days that is closed."""
        total = self.waiting + self.closed
        return round(100 * self.closed / total) if total else 100


def holdings() -> tuple[list[Holding], Holding, Progress]:
    """Who holds what, those with most overdue first; what nobody holds; and how far the queue is. Three queries."""
    now = timezone.now()
    expiry = claim_expiry()
    rows: dict[int | None, Holding] = {user.pk: Holding(user) for user in reviewers()}
    waiting: Any = BadCaseReview.objects.waiting().order_by().values("assignee_id", "assignee__username")
    for row in waiting.annotate(
        held=Count("pk"),
        overdue=Count("pk", filter=Q(due_at__lt=now)),
        expired=Count("pk", filter=Q(claimed_at__lt=expiry)) if expiry else Count("pk", filter=Q(pk=None)),
        next_due=Min("due_at"),
        oldest_claim=Min("claimed_at"),
    ):
        holding = _holding_of(rows, row)
        for name in ("held", "overdue", "expired", "next_due", "oldest_claim"):
            setattr(holding, name, row[name])
    closed: Any = (
        BadCaseReview.objects.closed().filter(resolved_at__gte=now - timedelta(days=DAYS_OF_PROGRESS)).order_by()
    )
    for row in closed.values("assignee_id", "assignee__username").annotate(
        resolved=Count("pk", filter=Q(state=TriageState.RESOLVED)),
        dismissed=Count("pk", filter=Q(state=TriageState.DISMISSED)),
    ):
        holding = _holding_of(rows, row)
        holding.resolved, holding.dismissed = row["resolved"], row["dismissed"]
    nobody = rows.pop(None, Holding(None))
    people = sorted(rows.values(), key=lambda one: (-one.overdue, -one.held, one.user.get_username()))
    everybody = [*people, nobody]
    progress = Progress(sum(one.held for one in everybody), sum(one.resolved + one.dismissed for one in everybody))
    return people, nobody, progress


def _holding_of(rows: dict[int | None, Holding], row: dict[str, Any]) -> Holding:
    """The line of a person; also of one who may no longer triage."""
    pk = row["assignee_id"]
    if pk not in rows:
        rows[pk] = Holding(get_user_model()(pk=pk, username=row["assignee__username"]) if pk else None)
    return rows[pk]
