"""Filters of the session list. None of them counts anything, and what they match is a column or an EXISTS."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping
from datetime import date, datetime, time, timedelta
from typing import Any

from django import forms
from django.conf import settings
from django.contrib import admin
from django.core.validators import MaxValueValidator, MinValueValidator
from django.db.models import Exists, OuterRef, Q, QuerySet
from django.http import HttpRequest
from django.utils import timezone
from django.utils.translation import gettext_lazy as _
from unfold.contrib.filters.admin import CheckboxFilter, RadioFilter, TextFilter
from unfold.widgets import INPUT_CLASSES

from sessions_app import rules
from sessions_app.models import AgentFlow, Status, ToolInvocation, Verdict

Sessions = QuerySet[Any]


class StatusFilter(CheckboxFilter):
    """How the run went; several at once."""

    title = _("status")
    parameter_name = "status"

    def lookups(self, request: HttpRequest, model_admin: Any) -> Any:
        """All of them."""
        return Status.choices

    def queryset(self, request: HttpRequest, queryset: Sessions) -> Sessions:
        """Any of those ticked."""
        wanted = [value for value in self.value() or () if value in Status.values]
        return queryset.filter(status__in=wanted) if wanted else queryset


class FlowFilter(RadioFilter):
    """The flows the design names, and all others together."""

    title = _("agent flow")
    parameter_name = "flow"
    OTHER = "other"

    def lookups(self, request: HttpRequest, model_admin: Any) -> Any:
        """The named flows and the rest."""
        return [*AgentFlow.choices, (self.OTHER, _("Other"))]

    def queryset(self, request: HttpRequest, queryset: Sessions) -> Sessions:
        """Sessions of that flow."""
        value = self.value()
        if value == self.OTHER:
            return queryset.exclude(agent_flow__in=AgentFlow.values)
        return queryset.filter(agent_flow=value) if value in AgentFlow.values else queryset


class VerdictFilter(RadioFilter):
    """What the reader said."""

    title = _("feedback")
    parameter_name = "feedback"
    NONE = "none"

    def lookups(self, request: HttpRequest, model_admin: Any) -> Any:
        """The verdicts, and their absence."""
        return [*Verdict.choices, (self.NONE, _("None yet"))]

    def queryset(self, request: HttpRequest, queryset: Sessions) -> Sessions:
        """Sessions with that verdict."""
        value = self.value()
        if value == self.NONE:
            return queryset.filter(feedback=None)
        return queryset.filter(feedback=value) if value in Verdict.values else queryset


class ScoringFilter(RadioFilter):
    """Where scoring stands."""

    title = _("scoring")
    parameter_name = "scoring"

    def lookups(self, request: HttpRequest, model_admin: Any) -> Any:
        """The three states."""
        return [("pending", _("Pending")), ("failed", _("Failed")), ("scored", _("Scored"))]

    def queryset(self, request: HttpRequest, queryset: Any) -> Any:
        """Sessions in that state."""
        match self.value():
            case "pending":
                return queryset.evaluation_pending()
            case "failed":
                return queryset.evaluation_failed()
            case "scored":
                return queryset.exclude(evidence_score=None)
        return queryset


_FACTS: Mapping[str, tuple[Any, Q]] = {
    "l0": (_("Hit by exact key (L0)"), rules.hits("L0")),
    "l1": (_("Hit by meaning (L1)"), rules.hits("L1")),
    "truncated": (_("Truncated result"), Q(is_truncated=True)),
    "failed": (_("Failed tool call"), Q(success=False)),
}


class FactsFilter(CheckboxFilter):
    """What happened in a session's tool calls; all that are ticked must have happened."""

    title = _("tool calls")
    parameter_name = "facts"
    MISS = "miss"

    def lookups(self, request: HttpRequest, model_admin: Any) -> Any:
        """The facts, in the order in which marks are read."""
        (l0, l1, *others) = ((name, label) for name, (label, _condition) in _FACTS.items())
        return [l0, l1, (self.MISS, _("Retrieval without any hit")), *others]

    def queryset(self, request: HttpRequest, queryset: Sessions) -> Sessions:
        """Sessions in whose calls all of these happened."""
        for name in self.value() or ():
            if name in _FACTS:
                queryset = queryset.filter(_has_call(_FACTS[name][1]))
            elif name == self.MISS:
                called = _has_call(rules.is_retrieval(settings.RETRIEVAL_TOOLS))
                queryset = queryset.filter(called, ~_has_call(rules.hits("L0") | rules.hits("L1")))
        return queryset


def _has_call(condition: Q) -> Exists:
    return Exists(ToolInvocation.objects.filter(condition, session_id=OuterRef("session_id")))


class AgentFilter(TextFilter):
    """Sessions of one agent, all its versions: `oncall` finds `oncall-assistant/2.4`."""

    title = _("agent")
    parameter_name = "agent"

    def queryset(self, request: HttpRequest, queryset: Sessions) -> Sessions:
        """Sessions whose agent begins so."""
        value = self.value()
        return queryset.filter(agent_id__startswith=value) if value else queryset


class RangeFilter(admin.SimpleListFilter):
    """Two bounds of a column, each optional; subclasses say how a bound is read."""

    template = "unfold/filters/filters_numeric_range.html"
    field_name: str
    field: forms.Field

    def __init__(self, request: HttpRequest, params: dict[str, Any], model: Any, model_admin: Any) -> None:
        super().__init__(request, params, model, model_admin)
        for name in self.expected_parameters():
            if value := params.pop(name, None):
                self.used_parameters[name] = value[-1] if isinstance(value, list) else value

    def lookups(self, request: HttpRequest, model_admin: Any) -> Any:
        """One form in place of choices."""
        return [("", "")]

    def expected_parameters(self) -> list[str]:  # type: ignore[override]  # never None here
        """`<name>_from` and `<name>_to`."""
        return [f"{self.parameter_name}_from", f"{self.parameter_name}_to"]

    def bound(self, end: str) -> Any:
        """A bound as Python knows it; None where none or none that makes sense was given."""
        try:
            return self.field.clean(self.used_parameters.get(f"{self.parameter_name}_{end}"))
        except forms.ValidationError:
            return None

    def choices(self, changelist: Any) -> Iterator[Any]:
        """The form that unfold's template draws."""
        form = forms.Form(data=self.used_parameters)
        for name, label in zip(self.expected_parameters(), (_("From"), _("To")), strict=True):
            field = copy.deepcopy(self.field)
            field.widget.attrs |= {"class": " ".join(INPUT_CLASSES), "placeholder": label, "aria-label": label}
            form.fields[name] = field
        yield {"form": form}


class ScoreFilter(RangeFilter):
    """Evidence scores from … to, both included."""

    title = _("evidence score")
    parameter_name = "score"
    field = forms.IntegerField(
        required=False,
        min_value=rules.MIN_SCORE,
        max_value=rules.MAX_SCORE,
        widget=forms.NumberInput({"min": rules.MIN_SCORE, "max": rules.MAX_SCORE}),
    )

    def queryset(self, request: HttpRequest, queryset: Sessions) -> Sessions:
        """Sessions between the bounds."""
        if (lowest := self.bound("from")) is not None:
            queryset = queryset.filter(evidence_score__gte=lowest)
        if (highest := self.bound("to")) is not None:
            queryset = queryset.filter(evidence_score__lte=highest)
        return queryset


class PeriodFilter(RadioFilter):
    """The last day, week, month."""

    title = _("period")
    parameter_name = "period"
    AGES: Mapping[str, timedelta] = {
        "1h": timedelta(hours=1),
        "24h": timedelta(hours=24),
        "7d": timedelta(days=7),
        "30d": timedelta(days=30),
    }

    def lookups(self, request: HttpRequest, model_admin: Any) -> Any:
        """From short to long."""
        labels = (_("Last hour"), _("Last 24 hours"), _("Last 7 days"), _("Last 30 days"))
        return list(zip(self.AGES, labels, strict=True))

    def queryset(self, request: HttpRequest, queryset: Sessions) -> Sessions:
        """Sessions no older than that."""
        age = self.AGES.get(self.value() or "")
        return queryset.filter(created_at__gte=timezone.now() - age) if age else queryset


class DayFilter(RangeFilter):
    """Days from … to, both included, in the server's time zone. Bounds are moments: no date arithmetic in SQL."""

    title = _("day")
    parameter_name = "day"
    field = forms.DateField(
        required=False,
        widget=forms.DateInput({"type": "date"}),
        validators=[MinValueValidator(date(1970, 1, 1)), MaxValueValidator(date(9998, 12, 31))],
    )

    def queryset(self, request: HttpRequest, queryset: Sessions) -> Sessions:
        """Sessions of those days."""
        if first := self.bound("from"):
            queryset = queryset.filter(created_at__gte=_midnight(first))
        if last := self.bound("to"):
            queryset = queryset.filter(created_at__lt=_midnight(last + timedelta(days=1)))
        return queryset


def _midnight(day: date) -> datetime:
    return timezone.make_aware(datetime.combine(day, time.min))
