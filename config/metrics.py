"""The admin's page of metrics: a period, a flow, an agent; the six figures, their course, and the questions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from typing import Any

from django import forms
from django.contrib import admin
from django.core.exceptions import PermissionDenied
from django.core.validators import MaxValueValidator, MinValueValidator
from django.http import HttpRequest, HttpResponse
from django.template.response import TemplateResponse
from django.utils import timezone
from django.utils.formats import date_format
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext

from config.figures import SEE_SESSIONS, figures_of, rows_of, say_duration, say_number, sessions_url
from sessions_app import rules
from sessions_app.charts import Line, ceiling, share
from sessions_app.errors import InvalidInputError
from sessions_app.models import AgentFlow
from sessions_app.selectors.metrics import (
    SessionFigures,
    evidence_scores,
    figures_by_bucket,
    known_agents,
    known_flows,
    metrics,
)
from sessions_app.selectors.questions import Retrievals, confident_but_rejected, step_durations
from sessions_app.selectors.slices import DAY, WEEK, Period, Slice
from sessions_app.templatetags.desk import NOTHING, number, percent

CONFIDENT = 20
AGENTS = 30
PRESETS = (7, 30, 90)
DEFAULT_DAYS = 30
MOST_DAILY = 92
"""Longest period that is drawn day by day; a longer one goes week by week."""


class PeriodForm(forms.Form):
    """Which sessions the page speaks of. Days in the server's time zone, both included."""

    first = forms.DateField(label=gettext_lazy("From"))
    last = forms.DateField(label=gettext_lazy("To"))
    flow = forms.ChoiceField(label=gettext_lazy("Flow"), required=False)
    agent = forms.ChoiceField(label=gettext_lazy("Agent"), required=False)

    def __init__(self, asked: Any, today: date) -> None:
        default = {"first": today - timedelta(days=DEFAULT_DAYS - 1), "last": today}
        super().__init__({**default, **{name: value for name, value in asked.items() if value}})
        for name in default:
            self.fields[name].widget = forms.DateInput({"type": "date", "class": "figures-input"}, format="%Y-%m-%d")
            self.fields[name].validators += [MinValueValidator(date(1970, 1, 1)), MaxValueValidator(date(9998, 1, 1))]
        for name, names, all_of_them in (
            ("flow", known_flows(), _("All flows")),
            ("agent", known_agents(), _("All agents")),
        ):
            labels = dict(AgentFlow.choices) if name == "flow" else {}
            field: Any = self.fields[name]
            field.widget.attrs["class"] = "figures-input"
            field.choices = [("", all_of_them), *((each, labels.get(each, each)) for each in names)]

    def clean(self) -> dict[str, Any]:
        """The days in order, and few enough to be drawn."""
        cleaned: dict[str, Any] = super().clean() or {}
        if {"first", "last"} <= cleaned.keys():
            if cleaned["first"] > cleaned["last"]:
                self.add_error("first", _("The period must begin before it ends."))
            else:
                self._cut(cleaned)
        return cleaned

    def _cut(self, cleaned: dict[str, Any]) -> None:
        period = Period.of_days(cleaned["first"], cleaned["last"])
        cleaned["is_daily"] = cleaned["last"] - cleaned["first"] < timedelta(days=MOST_DAILY)
        try:
            cleaned["buckets"] = period.split(DAY if cleaned["is_daily"] else WEEK)
        except InvalidInputError as refusal:
            self.add_error("first", refusal.message)
        cleaned["slice"] = Slice(period, cleaned.get("flow") or None, cleaned.get("agent") or None)


def metrics_page(request: HttpRequest) -> HttpResponse:
    """The six metrics and the questions of the design, of the days, the flow and the agent that are chosen."""
    user: Any = request.user
    if not user.has_perm(SEE_SESSIONS):
        raise PermissionDenied
    today = timezone.localdate()
    form = PeriodForm(request.GET, today)
    context = {
        **admin.site.each_context(request),
        "title": _("Metrics"),
        "form": form,
        "presets": [_preset(form, days, today) for days in PRESETS],
    }
    if form.is_valid():
        context |= _report(form.cleaned_data)
    request.current_app = admin.site.name
    return TemplateResponse(request, "admin/metrics.html", context)


def _preset(form: PeriodForm, days: int, today: date) -> dict[str, Any]:
    first = today - timedelta(days=days - 1)
    chosen = form.is_valid() and (form.cleaned_data["first"], form.cleaned_data["last"]) == (first, today)
    return {
        "first": first.isoformat(),
        "last": today.isoformat(),
        "title": ngettext("%(n)s day", "%(n)s days", days) % {"n": days},
        "is_chosen": chosen,
    }


def _report(chosen: dict[str, Any]) -> dict[str, Any]:
    of: Slice = chosen["slice"]
    found = metrics(of)
    confident = found.of_sessions.confident_but_rejected
    return {
        "sessions": found.of_sessions.sessions,
        "figures": figures_of(found),
        "is_daily": chosen["is_daily"],
        "course": _course(chosen["buckets"], figures_by_bucket(of, chosen["buckets"]), is_daily=chosen["is_daily"]),
        "scores": _scores(of, chosen),
        "retrievals": _retrieval_bars(found.of_retrievals),
        "truncated": found.of_retrievals.truncated,
        "steps": _step_bars(of),
        "confident": list(rows_of(confident_but_rejected(of))[:CONFIDENT]) if confident else [],
        "confident_count": confident,
    }


@dataclass(frozen=True, slots=True)
class Column:
    """One day or week of the course."""

    label: str
    figures: SessionFigures
    unjudged: int
    satisfaction: str
    duration: str
    tokens: str
    heights: dict[str, str]  # of the parts of its bar, from the ground up

    @property
    def tip(self) -> str:
        """What a pointer over the column is told."""
        parts = (
            (_("Sessions"), self.figures.sessions),
            (_("Useful"), self.figures.useful),
            (_("Not useful"), self.figures.not_useful),
        )
        return f"{self.label}: " + ", ".join(f"{title} {number(count)}" for title, count in parts)


def _course(buckets: Sequence[Period], figures: Sequence[SessionFigures], *, is_daily: bool) -> dict[str, Any]:
    """How the figures ran: bars of sessions, lines of satisfaction, duration and tokens over the same columns."""
    top = ceiling(each.sessions for each in figures)
    columns = []
    for bucket, each in zip(buckets, figures, strict=True):
        unjudged = each.sessions - each.useful - each.not_useful
        columns.append(
            Column(
                label=_days(bucket, is_daily=is_daily),
                figures=each,
                unjudged=unjudged,
                satisfaction=percent(each.satisfaction.value),
                duration=say_duration(each.duration_ms.value),
                tokens=say_number(each.tokens.value),
                heights={
                    "useful": share(each.useful, top),
                    "not_useful": share(each.not_useful, top),
                    "unjudged": share(unjudged, top),
                },
            )
        )
    durations = Line.through([each.duration_ms.value for each in figures])
    tokens = Line.through([each.tokens.value for each in figures])
    return {
        "columns": columns,
        "top": say_number(top),
        "first": _day(buckets[0]),
        "last": _day(buckets[-1]),
        "satisfaction": Line.through([each.satisfaction.value for each in figures], 1),
        "durations": durations,
        "durations_top": say_duration(durations.top),
        "tokens": tokens,
        "tokens_top": say_number(tokens.top),
    }


def _day(bucket: Period) -> str:
    return date_format(timezone.localtime(bucket.start), "MONTH_DAY_FORMAT")


def _days(bucket: Period, *, is_daily: bool) -> str:
    first = timezone.localtime(bucket.start).date()
    last = timezone.localtime(bucket.end - timedelta(microseconds=1)).date()
    return first.isoformat() if is_daily or first == last else f"{first.isoformat()} – {last.isoformat()}"


@dataclass(frozen=True, slots=True)
class Bar:
    """One row of a table of bars."""

    title: str
    value: str
    of: str
    width: str
    mark: str = ""
    url: str | None = None


def _scores(of: Slice, chosen: dict[str, Any]) -> list[Bar]:
    counts = evidence_scores(of)
    total, top = sum(counts.values()), max(counts.values(), default=0)
    filters: dict[str, object] = {"flow": of.agent_flow} if of.agent_flow else {}
    has_list = not of.agent_name and (of.agent_flow is None or of.agent_flow in AgentFlow.values)
    bars = []
    for score, count in counts.items():
        url = None
        if score is not None and has_list:
            url = sessions_url(chosen["first"], chosen["last"], score_from=score, score_to=score, **filters)
        title = _("No score") if score is None else number(score)
        bars.append(Bar(title, number(count), percent(count / total), share(count, top), _band(score), url))
    return bars


def _band(score: int | None) -> str:
    return "none" if score is None else rules.band_of(score)


def _retrieval_bars(found: Retrievals) -> list[Bar]:
    kinds = (
        (_("L0 only"), found.l0_only, "l0"),
        (_("L0 and L1"), found.both, "both"),
        (_("L1 only"), found.l1_only, "l1"),
        (_("No hit"), found.miss, "miss"),
        (_("Not said"), found.unsaid, "none"),
    )
    top = max(count for _title, count, _mark in kinds)
    return [
        Bar(title, number(count), percent(count / found.total) if found.total else NOTHING, share(count, top), mark)
        for title, count, mark in kinds
    ]


def _step_bars(of: Slice) -> list[Bar]:
    """The slowest agents."""
    rows = sorted(step_durations(of), key=lambda row: -(row.duration_ms.value or 0))[:AGENTS]
    top = max((row.duration_ms.value or 0 for row in rows), default=0)
    return [
        Bar(
            row.agent_name,
            say_duration(row.duration_ms.value),
            ngettext("of %(n)s step", "of %(n)s steps", row.duration_ms.count) % {"n": number(row.duration_ms.count)},
            share(row.duration_ms.value or 0, top),
        )
        for row in rows
    ]
