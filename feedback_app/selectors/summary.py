"""Feedback events added up, as the design's "Агрегация обратной связи для анализа" does, for a period and its parts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from django.db.models import Count, Exists, OuterRef, Q, QuerySet, Sum

from feedback_app import rules
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
    sessions_with_feedback: int = 0  # of them, those with an event of whatever kind and source, given at any time
    sessions_with_explicit_feedback: int = 0  # of them, those of which somebody said something
    sessions_asked_again: int = 0  # by events of the period
    thumbs_up: int = 0
    counts: dict[str, int] = field(default_factory=lambda: dict.fromkeys(EventType.values, 0))
    _sums: dict[str, float] = field(default_factory=lambda: dict.fromkeys(EventType.values, 0.0))

    def add(self, kind: str, count: int, total: float, positive: int) -> None:
        """Take in `count` events of one kind."""
        self.counts[kind] += count
        self._sums[kind] += total
        if kind == EventType.THUMBS:
            self.thumbs_up += positive

    def add_sessions(self, count: int, with_feedback: int, with_explicit: int) -> None:
        """Take in sessions created in the period, or in a part of it."""
        self.sessions += count
        self.sessions_with_feedback += with_feedback
        self.sessions_with_explicit_feedback += with_explicit

    @property
    def approval_rate(self) -> float | None:
        """Percent of the thumbs that point up."""
        return _ratio(PERCENT * self.thumbs_up, self.counts[EventType.THUMBS])

    @property
    def approval_confidence(self) -> dict[str, float] | None:
        """Between which percents the approval rate may well lie: ten thumbs are not a thousand."""
        thumbs = self.counts[EventType.THUMBS]
        if not thumbs:
            return None
        low, high = rules.confidence_bounds(self.thumbs_up, thumbs)
        return {
            "level": rules.CONFIDENCE_LEVEL,
            "low": round(PERCENT * low, DECIMALS),
            "high": round(PERCENT * high, DECIMALS),
        }

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
        """Sessions whose question was asked again, however often, in percent of the sessions."""
        return _ratio(PERCENT * self.sessions_asked_again, self.sessions)

    @property
    def feedback_rate(self) -> float | None:
        """Sessions with any feedback in percent of the sessions."""
        return _ratio(PERCENT * self.sessions_with_feedback, self.sessions)

    @property
    def explicit_feedback_rate(self) -> float | None:
        """Sessions of which somebody said something in percent of the sessions."""
        return _ratio(PERCENT * self.sessions_with_explicit_feedback, self.sessions)


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
    # Events and sessions both have these two columns; an event knows its flow only through its session.
    condition = period.covers("created_at")
    if agent_id:
        condition &= Q(agent_id=agent_id)
    events: Any = AgentFeedback.objects.filter(condition).order_by()
    sessions: Any = DiagnosisSession.objects.filter(condition).order_by()
    if agent_flow:
        events, sessions = events.filter(session__agent_flow=agent_flow), sessions.filter(agent_flow=agent_flow)

    place = bucket_of("created_at", list(buckets) or [period])
    events, sessions = events.annotate(place=place), sessions.annotate(place=place)

    def summaries(index: int) -> list[Summary]:
        return [whole, parts[index]] if parts else [whole]

    for index, *figures in events.values_list("place", "type").annotate(**_sums()):
        for summary in summaries(index):
            summary.add(*figures)
    asked_again = set(events.filter(type=EventType.RE_ASK).values_list("place", "session_id").distinct())
    for index, _session_id in asked_again if parts else ():
        parts[index].sessions_asked_again += 1
    # Not added up from the parts: a session that was asked again on two days is one session.
    whole.sessions_asked_again = len({session_id for _index, session_id in asked_again})
    for index, *counts in sessions.values_list("place").annotate(**_session_counts()):
        for summary in summaries(index):
            summary.add_sessions(*counts)
    return FeedbackReport(whole, parts)


def agent_summaries(period: Period) -> dict[str, Summary]:
    """The same for each agent by itself, as `feedback_report(…, agent_id=…)` gives it. Three queries."""
    summaries: dict[str, Summary] = {}
    covered: Any = Q(period.covers("created_at"), agent_id__isnull=False)
    events: Any = AgentFeedback.objects.filter(covered).order_by()
    for agent_id, kind, *figures in events.values_list("agent_id", "type").annotate(**_sums()):
        summaries.setdefault(agent_id, Summary(period)).add(kind, *figures)
    # Told apart here: MariaDB takes seconds to count distinct ids in groups of some thousand rows.
    asked_again = events.filter(type=EventType.RE_ASK).values_list("agent_id", "session_id").distinct()
    for agent_id, _session_id in asked_again:
        summaries[agent_id].sessions_asked_again += 1
    sessions: Any = DiagnosisSession.objects.filter(covered).order_by()
    for agent_id, *counts in sessions.values_list("agent_id").annotate(**_session_counts()):
        summaries.setdefault(agent_id, Summary(period)).add_sessions(*counts)
    return summaries


def _sums() -> dict[str, Any]:
    """What is asked of events; in the order of the arguments of `Summary.add`."""
    return {
        "count": Count("pk"),
        "total": Sum("value", default=0.0),
        "positive": Count("pk", filter=Q(value__gt=0)),
    }


def _session_counts() -> dict[str, Any]:
    """What is asked of sessions; in the order of the arguments of `Summary.add_sessions`."""
    said: QuerySet[AgentFeedback] = AgentFeedback.objects.filter(session_id=OuterRef("session_id"))
    explicit = said.filter(type__in=rules.EXPLICIT_TYPES)
    return {
        "count": Count("pk"),
        "with_feedback": Count("pk", filter=Exists(said)),
        "with_explicit": Count("pk", filter=Exists(explicit)),
    }
