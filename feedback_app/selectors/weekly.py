"""The figures of one week against the week before. All of them are those of the summary, which the API gives."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from datetime import date, timedelta
from typing import Any, NamedTuple, TypedDict

from django.db.models import Count
from django.db.models.fields.json import KT
from django.db.models.functions import Left

from feedback_app import rules
from feedback_app.models import AgentFeedback, BadCaseReview, EventType, TriageState
from feedback_app.selectors.summary import Summary, agent_summaries, feedback_report
from feedback_app.similarity import features
from sessions_app.models import DiagnosisSession
from sessions_app.selectors.slices import DAY, Period

DAYS = 7
MODES_NAMED = 5
QUESTIONS_NAMED = 5
MOST_RE_ASKS = 5_000
"""Of a week, the latest; more are not told apart."""
COMPARED_CHARS = 500
HEAD_CHARS = 480


class Totals(TypedDict):
    """A `Summary` as it is stored."""

    sessions: int
    sessions_with_feedback: int
    sessions_with_explicit_feedback: int
    sessions_asked_again: int
    thumbs_up: int
    counts: dict[str, int]  # of each kind of event
    approval_rate: float | None  # percent
    approval_confidence: dict[str, float] | None  # level, low, high; percent
    avg_star: float | None  # 1 to 5
    avg_edit_distance: float | None  # 0 to 1
    correction_count: int
    re_ask_rate: float | None  # percent
    feedback_rate: float | None  # percent
    explicit_feedback_rate: float | None  # percent


class AgentTotals(TypedDict):
    """What one agent's events add up to."""

    agent_id: str
    totals: Totals


class ModeCount(TypedDict):
    """How many triages of the week and of the week before were resolved with one failure mode."""

    mode: str
    count: int
    before: int


class ReAsked(TypedDict):
    """A question that was asked again, with the latest session in which it was first asked; its text is not stored."""

    session_id: str
    count: int
    sessions: int


class WeeklyFigures(TypedDict):
    """All of a report."""

    week: Totals
    before: Totals
    days: list[Totals]  # Monday to Sunday
    best: list[AgentTotals]
    worst: list[AgentTotals]
    agents_ranked: int
    failure_modes: list[ModeCount]
    re_asked: list[ReAsked]


class Head(NamedTuple):
    """A session's question, as a report shows it."""

    pk: int
    text: str
    consent: bool


def monday_of(day: date) -> date:
    """The Monday of the week of a day."""
    return day - timedelta(days=day.weekday())


def week_of(monday: date) -> Period:
    """Monday to Sunday in the server's time zone."""
    return Period.of_days(monday, monday + timedelta(days=DAYS - 1))


def is_silent(period: Period) -> bool:
    """Whether nothing at all happened."""
    covered = period.covers("created_at")
    return not (DiagnosisSession.objects.filter(covered).exists() or AgentFeedback.objects.filter(covered).exists())


def weekly_figures(monday: date) -> WeeklyFigures:
    """Count the week that begins on `monday`."""
    period = week_of(monday)
    before = week_of(monday - timedelta(days=DAYS))
    report = feedback_report(period, period.split(DAY))
    agents = agent_summaries(period)
    thumbs = {agent: (each.thumbs_up, each.counts[EventType.THUMBS]) for agent, each in agents.items()}
    best, worst = rules.best_and_worst(thumbs)
    return {
        "week": _totals(report.whole),
        "before": _totals(feedback_report(before).whole),
        "days": [_totals(part) for part in report.parts],
        "best": [{"agent_id": agent, "totals": _totals(agents[agent])} for agent in best],
        "worst": [{"agent_id": agent, "totals": _totals(agents[agent])} for agent in worst],
        "agents_ranked": sum(total >= rules.MIN_AGENT_THUMBS for _, total in thumbs.values()),
        "failure_modes": _failure_modes(period, before),
        "re_asked": _re_asked(period),
    }


def question_heads(session_ids: Iterable[str]) -> dict[str, Head]:
    """The beginnings of questions, of those sessions that are still there."""
    rows: Any = DiagnosisSession.objects.filter(session_id__in=list(session_ids)).order_by()
    heads = rows.annotate(head=Left("query", HEAD_CHARS)).values_list("session_id", "pk", "head", "consent")
    return {session_id: Head(*head) for session_id, *head in heads}


def _totals(summary: Summary) -> Totals:
    return {
        "sessions": summary.sessions,
        "sessions_with_feedback": summary.sessions_with_feedback,
        "sessions_with_explicit_feedback": summary.sessions_with_explicit_feedback,
        "sessions_asked_again": summary.sessions_asked_again,
        "thumbs_up": summary.thumbs_up,
        "counts": {str(kind): count for kind, count in summary.counts.items()},
        "approval_rate": summary.approval_rate,
        "approval_confidence": summary.approval_confidence,
        "avg_star": summary.avg_star,
        "avg_edit_distance": summary.avg_edit_distance,
        "correction_count": summary.correction_count,
        "re_ask_rate": summary.re_ask_rate,
        "feedback_rate": summary.feedback_rate,
        "explicit_feedback_rate": summary.explicit_feedback_rate,
    }


def _failure_modes(period: Period, before: Period) -> list[ModeCount]:
    now, then = _modes_resolved(period), _modes_resolved(before)
    most = sorted(now.items(), key=lambda row: (-row[1], row[0]))[:MODES_NAMED]
    return [{"mode": mode, "count": count, "before": then[mode]} for mode, count in most]


def _modes_resolved(period: Period) -> Counter[str]:
    resolved = BadCaseReview.objects.filter(period.covers("resolved_at"), state=TriageState.RESOLVED).order_by()
    rows: Any = resolved.exclude(failure_mode="").values_list("failure_mode").annotate(count=Count("pk"))
    return Counter(dict(rows))


def _re_asked(period: Period) -> list[ReAsked]:
    """The questions asked again most often; those of the same words are one, whatever their case and punctuation."""
    question = Left(KT("payload__previousQuestion"), COMPARED_CHARS)
    events: Any = AgentFeedback.objects.filter(period.covers("created_at"), type=EventType.RE_ASK)
    rows = events.order_by("-created_at", "pk").values_list("session_id", question)[:MOST_RE_ASKS]
    sessions: dict[frozenset[str], list[str]] = {}
    for session_id, text in rows:
        if words := features(text or ""):
            sessions.setdefault(words, []).append(session_id)
    # The sort is stable: of equals, the question asked last goes first.
    most = sorted(sessions.values(), key=len, reverse=True)[:QUESTIONS_NAMED]
    return [{"session_id": ids[0], "count": len(ids), "sessions": len(set(ids))} for ids in most]
