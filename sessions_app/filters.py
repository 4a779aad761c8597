"""Filters that lists of several apps share. Each matches one `column`, its own or that of a related table.

None of them counts anything.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping
from datetime import date, datetime, time, timedelta
from typing import Any

from django import forms
from django.contrib import admin
from django.core.validators import MaxValueValidator, MinValueValidator
from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils import timezone
from django.utils.translation import gettext_lazy as _
from unfold.contrib.filters.admin import RadioFilter, TextFilter
from unfold.widgets import INPUT_CLASSES

from sessions_app import rules
from sessions_app.models import AgentFlow

Rows = QuerySet[Any]


CALL_FACTS = (
    ("l0", _("Hit by exact key (L0)")),
    ("l1", _("Hit by meaning (L1)")),
    ("miss", _("Retrieval without any hit")),
    ("truncated", _("Truncated result")),
    ("failed", _("Failed tool call")),
)
"""What may have happened in the tool calls of a session, in the order in which marks are read."""


class FlowFilter(RadioFilter):
    """The flows the design names, and all others together."""

    title = _("agent flow")
    parameter_name = "flow"
    column = "agent_flow"
    OTHER = "other"

    def lookups(self, request: HttpRequest, model_admin: Any) -> Any:
        """The named flows and the rest."""
        return [*AgentFlow.choices, (self.OTHER, _("Other"))]

    def queryset(self, request: HttpRequest, queryset: Rows) -> Rows:
        """Those of that flow."""
        value = self.value()
        if value == self.OTHER:
            return queryset.exclude(**{f"{self.column}__in": AgentFlow.values})
        return queryset.filter(**{self.column: value}) if value in AgentFlow.values else queryset


class AgentFilter(TextFilter):
    """One agent, all its versions: `oncall` finds `oncall-assistant/2.4`."""

    title = _("agent")
    parameter_name = "agent"
    column = "agent_id"

    def queryset(self, request: HttpRequest, queryset: Rows) -> Rows:
        """Those whose agent begins so."""
        value = self.value()
        return queryset.filter(**{f"{self.column}__startswith": value}) if value else queryset


class RangeFilter(admin.SimpleListFilter):
    """Two bounds of a column, each optional; subclasses say how a bound is read."""

    template = "unfold/filters/filters_numeric_range.html"
    column: str
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
    column = "evidence_score"
    field = forms.IntegerField(
        required=False,
        min_value=rules.MIN_SCORE,
        max_value=rules.MAX_SCORE,
        widget=forms.NumberInput({"min": rules.MIN_SCORE, "max": rules.MAX_SCORE}),
    )

    def queryset(self, request: HttpRequest, queryset: Rows) -> Rows:
        """Those between the bounds."""
        if (lowest := self.bound("from")) is not None:
            queryset = queryset.filter(**{f"{self.column}__gte": lowest})
        if (highest := self.bound("to")) is not None:
            queryset = queryset.filter(**{f"{self.column}__lte": highest})
        return queryset


class PeriodFilter(RadioFilter):
    """The last day, week, month."""

    title = _("period")
    parameter_name = "period"
    column = "created_at"
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

    def queryset(self, request: HttpRequest, queryset: Rows) -> Rows:
        """Those no older than that."""
        age = self.AGES.get(self.value() or "")
        return queryset.filter(**{f"{self.column}__gte": timezone.now() - age}) if age else queryset


class DayFilter(RangeFilter):
    """Days from … to, both included, in the server's time zone. Bounds are moments: no date arithmetic in SQL."""

    title = _("day")
    parameter_name = "day"
    column = "created_at"
    field = forms.DateField(
        required=False,
        widget=forms.DateInput({"type": "date"}),
        validators=[MinValueValidator(date(1970, 1, 1)), MaxValueValidator(date(9998, 12, 31))],
    )

    def queryset(self, request: HttpRequest, queryset: Rows) -> Rows:
        """Those of these days."""
        if first := self.bound("from"):
            queryset = queryset.filter(**{f"{self.column}__gte": _midnight(first)})
        if last := self.bound("to"):
            queryset = queryset.filter(**{f"{self.column}__lt": _midnight(last + timedelta(days=1))})
        return queryset


def _midnight(day: date) -> datetime:
    return timezone.make_aware(datetime.combine(day, time.min))
