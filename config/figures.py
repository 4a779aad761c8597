"""What the selectors know, put into words and links for people."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date
from typing import Any
from urllib.parse import urlencode

from django.db.models.functions import Left
from django.urls import NoReverseMatch, reverse
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from sessions_app.selectors.metrics import Metrics
from sessions_app.selectors.questions import Retrievals
from sessions_app.selectors.slices import Average, Rate
from sessions_app.templatetags.desk import NOTHING, duration, number, percent, signed

SEE_SESSIONS = "sessions_app.view_diagnosissession"
QUESTION_CHARS = 480
"""Of a question, as fetched for a row; more than is shown, because blanks are folded."""

# -- links -----------------------------------------------------------------------------------------------------------


def admin_url(page: str) -> str | None:
    """A page of the admin; None where it has no such page."""
    try:
        return reverse(f"admin:{page}")
    except NoReverseMatch:
        return None


def list_url(model: str, **filters: object) -> str | None:
    """The admin's list of `app_model`, filtered."""
    url = admin_url(f"{model}_changelist")
    return f"{url}?{urlencode(filters)}" if url and filters else url


def sessions_url(first: date, last: date, **filters: object) -> str | None:
    """The list of the sessions of some days."""
    return list_url("sessions_app_diagnosissession", day_from=first, day_to=last, **filters)


def metrics_url(first: date, last: date) -> str:
    """The page of metrics of some days."""
    return f"{reverse('metrics')}?{urlencode({'first': first, 'last': last})}"


def rows_of(sessions: Any) -> Any:
    """What a row shows of a session: never its answer, of its question the beginning."""
    return sessions.only(
        "session_id", "status", "agent_flow", "agent_id", "feedback", "created_at", "confidence", "evidence_score",
        "evaluation_due_at", "evaluation_error",
    ).annotate(question_head=Left("query", QUESTION_CHARS))  # fmt: skip


# -- the six metrics -------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Figure:
    """One of the six metrics: its value, and of how much it is the value, so that a share of three is seen as such."""

    title: str
    value: str
    of: str
    meaning: str
    raw: float | None
    is_share: bool

    def change_from(self, before: Figure) -> str:
        """How it changed: shares in percentage points, averages in percent."""
        if self.raw is None or before.raw is None:
            return NOTHING
        if not self.is_share:
            return relative_change(self.raw, before.raw)
        points = round(100 * self.raw) - round(100 * before.raw)
        return ngettext("%(n)s point", "%(n)s points", abs(points)) % {"n": signed(points)}


def relative_change(now: float, before: float) -> str:
    """The change in percent of what was."""
    return f"{signed(round(100 * (now - before) / before))}%" if before else NOTHING


def figures_of(found: Metrics) -> list[Figure]:
    """The six metrics."""
    sessions, retrievals = found.of_sessions, found.of_retrievals
    adoption = sessions.tool_adoption
    return [
        _share(
            _("Satisfaction"),
            sessions.satisfaction,
            ngettext("%(part)s of %(n)s judged", "%(part)s of %(n)s judged", sessions.satisfaction.denominator),
            _("Useful among the sessions their readers judged, by the verdict that stands."),
        ),
        _share(
            _("L0 hit rate"), retrievals.l0_hit_rate, _of_retrievals(retrievals), _("Retrievals that hit by exact key.")
        ),
        _share(
            _("Truncation rate"),
            retrievals.truncation_rate,
            _of_retrievals(retrievals),
            _("Retrievals whose result was cut off."),
        ),
        _share(
            _("Tool adoption"),
            adoption,
            ngettext("%(part)s of %(n)s proposed", "%(part)s of %(n)s proposed", adoption.denominator),
            _("Tools accepted among those proposed, over the sessions that said both."),
        ),
        _average(_("Average duration"), sessions.duration_ms, say_duration(sessions.duration_ms.value)),
        _average(_("Average tokens"), sessions.tokens, say_number(sessions.tokens.value)),
    ]


def _share(title: str, rate: Rate, of: str, meaning: str) -> Figure:
    words = of % {"part": number(rate.numerator), "n": number(rate.denominator)}
    return Figure(title, percent(rate.value), words, meaning, rate.value, is_share=True)


def _average(title: str, average: Average, value: str) -> Figure:
    words = ngettext("of %(n)s session", "of %(n)s sessions", average.count) % {"n": number(average.count)}
    return Figure(title, value, words, _("Over the sessions that have one."), average.value, is_share=False)


def _of_retrievals(retrievals: Retrievals) -> str:
    return ngettext("%(part)s of %(n)s retrieval", "%(part)s of %(n)s retrievals", retrievals.total)


def say_duration(milliseconds: float | None) -> str:
    """A mean of milliseconds, as people say it."""
    return duration(None if milliseconds is None else round(milliseconds))


def say_number(value: float | None) -> str:
    """A mean, in whole numbers."""
    return number(None if value is None else round(value))
