"""Feedback events added up, as the design's "Агрегация обратной связи для анализа" does, for a period and its parts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from django.db.models import Count, Q, Sum

from feedback_app.models import AgentFeedback, EventType
from sessions_app.models import DiagnosisSession
from sessions_app.selectors.slices import Period, bucket_of

PERCENT = 100
DECIMALS = 4


@dataclass(slots=True)
class Summary:
    """What the events of a period say. Each figure is None where there is nothing to divide.

    Every event counts: somebody who changes their mind gave two thumbs. How many are satisfied with the answers as
    things stand is another question, which `sessions_app.selectors.metrics` answers.
    """

    period: Period
    sessions: int = 0  # created in the period
    thumbs_up: int = 0
    counts: dict[str, int] = field(default_factory=lambda: dict.fromkeys(EventType.values, 0))
    _sums: dict[str, float] = field(default_factory=lambda: dict.fromkeys(EventType.values, 0.0))

    def add(self, kind: str, count: int, total: float, positive: int) -> None:
        """Take in `count` events of one kind."""
        self.counts[kind] += count
        self._sums[kind] += total
        if kind == EventType.THUMBS:
            self.thumbs_up += positive

    @property
    def approval_rate(self) -> float | None:
        """Percent of the thumbs that point up."""
        return _ratio(PERCENT * self.thumbs_up, self.counts[EventType.THUMBS])

    @property
    def avg_star(self) -> float | None:
        """1 to 5; the events hold stars as 0 to 1."""
        mean = _ratio(self._sums[EventType.STAR], self.counts[EventType.STAR])
        return None if mean is None else round(mean * 4 + 1, DECIMALS)

    @property
    def avg_edit_distance(self) -> float | None:
        """0 (nothing was changed) to 1, over the edits."""
        return _ratio(self._sums[EventType.EDIT], self.counts[EventType.EDIT])

    @property
    def correction_count(self) -> int:
        """How often somebody wrote what the answer should have been."""
        return self.counts[EventType.CORRECTION]

    @property
    def re_ask_rate(self) -> float | None:
        """Questions asked again, in percent of the sessions."""
        return _ratio(PERCENT * self.counts[EventType.RE_ASK], self.sessions)


def _ratio(total: float, count: int) -> float | None:
    return round(total / count, DECIMALS) if count else None


@dataclass(frozen=True, slots=True)
class FeedbackReport:
    """A period as a whole, and part by part."""

    whole: Summary
    parts: list[Summary]


def feedback_report(
    period: Period, buckets: Sequence[Period] = (), *, agent_id: str | None = None, agent_flow: str | None = None
) -> FeedbackReport:
    """Add up the events and count the sessions of `period`, and of each of `buckets`, into which it is cut."""
    whole, parts = Summary(period), [Summary(bucket) for bucket in buckets]
    place = bucket_of("created_at", list(buckets) or [period])

    def summaries(index: int) -> list[Summary]:
        return [whole, parts[index]] if parts else [whole]

    # Events and sessions both have these two columns; an event knows its flow only through its session.
    condition = period.covers("created_at")
    if agent_id:
        condition &= Q(agent_id=agent_id)
    events: Any = AgentFeedback.objects.filter(condition).order_by()
    sessions: Any = DiagnosisSession.objects.filter(condition).order_by()
    if agent_flow:
        events, sessions = events.filter(session__agent_flow=agent_flow), sessions.filter(agent_flow=agent_flow)

    for index, kind, *figures in (
        events.annotate(place=place)
        .values_list("place", "type")
        .annotate(count=Count("pk"), total=Sum("value", default=0.0), positive=Count("pk", filter=Q(value__gt=0)))
    ):
        for summary in summaries(index):
            summary.add(kind, *figures)
    for index, count in sessions.annotate(place=place).values_list("place").annotate(count=Count("pk")):
        for summary in summaries(index):
            summary.sessions += count
    return FeedbackReport(whole, parts)
