"""The six metrics of the design (section 5.2 of the session storage document), and how they run from day to day."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from django.db.models import Count, Q, Sum

from sessions_app import rules
from sessions_app.models import AgentStep, DiagnosisSession, Verdict
from sessions_app.selectors.questions import Retrievals, retrievals
from sessions_app.selectors.slices import NO_AVERAGE, NO_RATE, Average, Period, Rate, Slice, bucket_of

MAX_CHOICES = 100
"""Most names that a choice offers; agents may send any."""


@dataclass(frozen=True, slots=True)
class SessionFigures:
    """What some sessions add up to."""

    sessions: int = 0
    useful: int = 0
    not_useful: int = 0
    confident_but_rejected: int = 0
    duration_ms: Average = NO_AVERAGE
    tokens: Average = NO_AVERAGE
    tool_adoption: Rate = NO_RATE  # tools accepted of those proposed
    adoption_sessions: int = 0  # sessions that said both

    @property
    def satisfaction(self) -> Rate:
        """Useful among the sessions that were judged, by the verdict that stands."""
        return Rate(self.useful, self.useful + self.not_useful)


@dataclass(frozen=True, slots=True)
class Metrics:
    """Duration, tokens, tool adoption and satisfaction of the sessions; L0 hits and truncation of their retrievals."""

    of_sessions: SessionFigures
    of_retrievals: Retrievals


def metrics(of: Slice) -> Metrics:
    """All six, in two queries."""
    return Metrics(SessionFigures(**_read(of.sessions().aggregate(**_SUMS))), retrievals(of))


def figures_by_bucket(of: Slice, buckets: Sequence[Period]) -> list[SessionFigures]:
    """The sessions' figures in each of `buckets`, which lie within the slice's period. One query."""
    rows: Any = of.sessions().annotate(bucket=bucket_of("created_at", buckets)).values("bucket").annotate(**_SUMS)
    found = {row.pop("bucket"): SessionFigures(**_read(row)) for row in rows}
    return [found.get(index, SessionFigures()) for index in range(len(buckets))]


_USEFUL, _REJECTED = Q(feedback=Verdict.USEFUL), Q(feedback=Verdict.NOT_USEFUL)
_SUMS: dict[str, Any] = {
    "sessions": Count("*"),
    "useful": Count("pk", filter=_USEFUL),
    "not_useful": Count("pk", filter=_REJECTED),
    "confident_but_rejected": Count("pk", filter=_REJECTED & Q(confidence__gt=rules.CONFIDENT_ABOVE)),
    "duration_sum": Sum("total_duration_ms"),
    "duration_count": Count("total_duration_ms"),
    "token_sum": Sum("total_token_count"),
    "token_count": Count("total_token_count"),
    "accepted": Sum("tools_accepted"),
    "proposed": Sum("tools_proposed"),
    "adoption_sessions": Count("tools_proposed"),
}


def _read(row: dict[str, Any]) -> dict[str, Any]:
    """A row of `_SUMS` as arguments of SessionFigures. A sum over no values is NULL."""
    return {
        "duration_ms": Average(row.pop("duration_sum") or 0, row.pop("duration_count")),
        "tokens": Average(row.pop("token_sum") or 0, row.pop("token_count")),
        "tool_adoption": Rate(row.pop("accepted") or 0, row.pop("proposed") or 0),
        **row,
    }


def evidence_scores(of: Slice) -> dict[int | None, int]:
    """How many sessions have each score, lowest first; None, at the end, stands for those without one."""
    rows: Any = of.sessions().order_by("evidence_score").values_list("evidence_score").annotate(count=Count("*"))
    return dict(sorted(rows, key=lambda row: (row[0] is None, row[0])))


def known_flows() -> list[str]:
    """Flows that sessions name, for a choice."""
    flows: Any = DiagnosisSession.objects.exclude(agent_flow=None).order_by("agent_flow")
    return list(flows.values_list("agent_flow", flat=True).distinct()[:MAX_CHOICES])


def known_agents() -> list[str]:
    """Agents that took steps, for a choice."""
    return list(AgentStep.objects.order_by("agent_name").values_list("agent_name", flat=True).distinct()[:MAX_CHOICES])
