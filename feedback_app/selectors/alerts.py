"""What alerts look at. Each question reads an index, and none of them a text."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from datetime import datetime
from typing import Any, NamedTuple

from django.db.models import Count, Exists, F, OuterRef, Q, QuerySet
from django.utils import timezone

from feedback_app.models import AlertDelivery, AlertKind, AlertRule, BadCaseReview
from sessions_app.models import DiagnosisSession, Verdict
from sessions_app.rules import CONFIDENT_ABOVE
from sessions_app.selectors.slices import Rate

MOST_COUNTED = 10_000


class Overdue(NamedTuple):
    """How far the queue is behind."""

    cases: int  # MOST_COUNTED stands for more
    oldest_due_at: datetime | None


def of_agent(name: str, path: str = "") -> Q:
    """The sessions of an agent and of all its versions: `ops` and `ops/2`."""
    return Q((f"{path}agent_id", name)) | Q((f"{path}agent_id__startswith", f"{name}/"))


def confident_but_rejected(rule: AlertRule, since: datetime) -> QuerySet[BadCaseReview]:
    """Bad cases opened since then whose answer was stated with confidence and is rejected now, not told yet."""
    told = AlertDelivery.objects.filter(rule=rule, event=AlertKind.CONFIDENT, session_id=OuterRef("session_id"))
    found = BadCaseReview.objects.filter(
        ~Exists(told),
        created_at__gte=since,
        session__feedback=Verdict.NOT_USEFUL,
        session__confidence__gt=CONFIDENT_ABOVE,
    )
    if rule.agent_id:
        found = found.filter(of_agent(rule.agent_id, "session__"))
    return found.order_by("created_at", "pk").annotate(
        agent=F("session__agent_id"), stated=F("session__confidence"), score=F("session__evidence_score")
    )


def overdue(now: datetime | None = None) -> Overdue:
    """Bad cases that wait past their due date."""
    late = BadCaseReview.objects.waiting().filter(due_at__lt=now or timezone.now()).order_by()
    oldest = late.order_by("due_at").values_list("due_at", flat=True).first()
    return Overdue(late.values("pk")[:MOST_COUNTED].count(), oldest)


def satisfaction_by_agent(rule: AlertRule, since: datetime) -> Iterator[tuple[str, Rate]]:
    """Each agent that was judged, and how many found its answers useful, by the verdicts that stand.

    Of the sessions created since then. Where the rule names an agent, all its versions are one.
    """
    judged: Any = DiagnosisSession.objects.filter(created_at__gte=since, feedback__isnull=False, agent_id__isnull=False)
    if rule.agent_id:
        judged = judged.filter(of_agent(rule.agent_id))
    rows = judged.order_by().values_list("agent_id", "feedback").annotate(count=Count("*"))
    counts: dict[str, dict[str, int]] = defaultdict(dict)
    for agent, verdict, count in rows:
        each = counts[rule.agent_id or agent]
        each[verdict] = each.get(verdict, 0) + count
    for agent, each in sorted(counts.items()):
        yield agent, Rate(each.get(Verdict.USEFUL, 0), sum(each.values()))
