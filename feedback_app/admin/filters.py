"""Filters of the triage queue and of the list of feedback events."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping
from typing import Any

from django import forms
from django.contrib.auth import get_user_model
from django.http import HttpRequest
from django.utils import timezone
from django.utils.translation import gettext_lazy as _
from unfold.contrib.filters.admin import CheckboxFilter, DropdownFilter, TextFilter

from feedback_app.models import (
    AgentFeedbackQuerySet,
    BadCaseReviewQuerySet,
    EventSource,
    EventType,
    QuestionLanguage,
    Severity,
    TriageState,
)
from feedback_app.selectors.failure_modes import mode_names
from sessions_app import filters as shared
from sessions_app.models import AgentFlow

Column = Collection[Any]


class Counted:
    """A filter that shows beside each choice how many rows of the list fall under it, while it narrows nothing itself.

    `TriageChangeList.counts` reads the first rows once, for all such filters.
    """

    columns: tuple[str, ...]
    parameter_name: Any
    lookup_choices: Any
    value: Any

    def tally(self, *columns: Column) -> Mapping[str, int]:
        """Choice → how many rows fall under it, of what stands in each of `columns`, in the same order of rows."""
        return Counter(map(str, columns[0]))

    def choices(self, changelist: Any) -> Any:
        """With their counts; of a choice under which nothing falls, none."""
        counts = changelist.counts.get(self.parameter_name, {})
        self.lookup_choices = [
            (value, f"{label} ({counts[value]})" if value in counts else label) for value, label in self.lookup_choices
        ]
        return super().choices(changelist)  # type: ignore[misc]  # mixed into a filter


class StateFilter(Counted, DropdownFilter):
    """Waiting, unless something else is asked for."""

    title = _("state")
    parameter_name = "state"
    columns = ("state",)
    CLOSED, EVERY = "closed", "all"
    all_option = None

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, Any]]:
        """Sets of states first, then each."""
        return [("", _("Waiting")), (self.CLOSED, _("Closed")), (self.EVERY, _("All")), *TriageState.choices]

    @classmethod
    def is_waiting(cls, request: HttpRequest) -> bool:
        """Whether the list shows what waits: nothing else was asked for, or a state of those that wait."""
        return request.GET.get(cls.parameter_name, "") in ("", TriageState.OPEN, TriageState.IN_REVIEW)

    def queryset(self, request: HttpRequest, queryset: BadCaseReviewQuerySet) -> BadCaseReviewQuerySet:
        """An unknown value finds nothing."""
        match self.value():
            case None | "":
                return queryset.waiting()
            case StateFilter.CLOSED:
                return queryset.closed()
            case StateFilter.EVERY:
                return queryset
            case state:
                return queryset.filter(state=state)


class AssigneeFilter(DropdownFilter):
    """Mine, nobody's, or those of one person."""

    title = _("assignee")
    parameter_name = "assignee"
    MINE, NOBODY = "mine", "nobody"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, Any]]:
        """Everybody who ever took one."""
        people = get_user_model().objects.filter(triages__isnull=False).distinct().order_by("username")
        named = [(str(pk), name) for pk, name in people.values_list("pk", "username")]
        return [(self.MINE, _("Mine")), (self.NOBODY, _("Unassigned")), *named]

    def queryset(self, request: HttpRequest, queryset: BadCaseReviewQuerySet) -> BadCaseReviewQuerySet:
        """A value that is no person finds nothing."""
        match self.value():
            case None | "":
                return queryset
            case AssigneeFilter.MINE:
                return queryset.filter(assignee_id=request.user.pk)
            case AssigneeFilter.NOBODY:
                return queryset.unheld()
            case pk:
                return queryset.filter(assignee_id=int(pk)) if pk.isdecimal() else queryset.none()


class DueFilter(Counted, DropdownFilter):
    """Past the due date."""

    title = _("due")
    parameter_name = "due"
    columns = ("due_at", "state")
    OVERDUE = "overdue"

    def tally(self, *columns: Column) -> Mapping[str, int]:
        """As `BadCaseReviewQuerySet.overdue`."""
        now, waiting = timezone.now(), (TriageState.OPEN, TriageState.IN_REVIEW)
        overdue = (due for due, state in zip(*columns, strict=True) if due and due < now and state in waiting)
        return {self.OVERDUE: sum(1 for _due in overdue)}

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, Any]]:
        """One choice beside all."""
        return [(self.OVERDUE, _("Overdue"))]

    def queryset(self, request: HttpRequest, queryset: BadCaseReviewQuerySet) -> BadCaseReviewQuerySet:
        """Only what waits can be overdue."""
        return queryset.overdue() if self.value() == self.OVERDUE else queryset


class CommentFilter(DropdownFilter):
    """Whether the reader left words."""

    title = _("comment")
    parameter_name = "comment"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, Any]]:
        """One choice beside all."""
        return [("yes", _("With a comment"))]

    def queryset(self, request: HttpRequest, queryset: Any) -> Any:
        """Of bad cases and of events alike: both know which have words."""
        return queryset.with_words() if self.value() == "yes" else queryset


class BadCaseCommentFilter(Counted, CommentFilter):
    """Of bad cases, which know it themselves."""

    columns = ("has_words",)

    def tally(self, *columns: Column) -> Mapping[str, int]:
        """The one choice."""
        return {"yes": sum(columns[0])}


class FailureModeFilter(Counted, DropdownFilter):
    """What went wrong."""

    title = _("failure mode")
    parameter_name = "failure_mode"
    columns = ("failure_mode",)

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, Any]]:
        """All that there are."""
        return list(mode_names().items())

    def queryset(self, request: HttpRequest, queryset: BadCaseReviewQuerySet) -> BadCaseReviewQuerySet:
        """An unknown value finds nothing."""
        value = self.value()
        return queryset.filter(failure_mode=value) if value else queryset


class FlowFilter(Counted, shared.FlowFilter):
    """Flow of the session."""

    columns = ("agent_flow",)

    def tally(self, *columns: Column) -> Mapping[str, int]:
        """The named flows, and all others together."""
        counts = Counter(columns[0])
        named = {flow: counts.pop(flow, 0) for flow in AgentFlow.values}
        return {**named, self.OTHER: counts.total()}


class ConfidenceFilter(shared.RangeFilter):
    """Confidence that the agent stated, in percent, from … to, both included."""

    title = _("stated confidence")
    parameter_name = "confidence"
    column = "confidence"
    field = forms.FloatField(
        required=False, min_value=0, max_value=100, widget=forms.NumberInput({"min": 0, "max": 100})
    )

    def queryset(self, request: HttpRequest, queryset: Any) -> Any:
        """Those within the bounds; who stated none is in no range."""
        for end, lookup in (("from", "gte"), ("to", "lte")):
            if (bound := self.bound(end)) is not None:
                queryset = queryset.filter(**{f"{self.column}__{lookup}": bound})
        return queryset


class LanguageFilter(Counted, DropdownFilter):
    """In which language people asked."""

    title = _("language of the question")
    parameter_name = "language"
    columns = ("language",)

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, Any]]:
        """All that there are."""
        return list(QuestionLanguage.choices)

    def queryset(self, request: HttpRequest, queryset: BadCaseReviewQuerySet) -> BadCaseReviewQuerySet:
        """An unknown value finds nothing."""
        value = self.value()
        return queryset.filter(language=value) if value else queryset


class FactsFilter(Counted, CheckboxFilter):
    """What happened in the session's tool calls; all that are ticked must have happened."""

    title = _("tool calls")
    parameter_name = "facts"
    COLUMNS: Mapping[str, str] = {
        "l0": "has_l0_hit",
        "l1": "has_l1_hit",
        "miss": "is_missed",
        "truncated": "is_truncated",
        "failed": "has_failed_call",
    }
    columns = tuple(COLUMNS.values())

    def tally(self, *columns: Column) -> Mapping[str, int]:
        """Of how many rows each fact is true."""
        return {name: sum(column) for name, column in zip(self.COLUMNS, columns, strict=True)}

    def lookups(self, request: HttpRequest, model_admin: Any) -> Any:
        """The facts, named as in the list of sessions."""
        return shared.CALL_FACTS

    def queryset(self, request: HttpRequest, queryset: BadCaseReviewQuerySet) -> BadCaseReviewQuerySet:
        """Of these facts, which the triage repeats; unknown ones narrow nothing."""
        wanted = [self.COLUMNS[name] for name in self.value() or () if name in self.COLUMNS]
        return queryset.filter(**dict.fromkeys(wanted, True))


class SeverityFilter(Counted, DropdownFilter):
    """How bad reviewers found it."""

    title = _("severity")
    parameter_name = "severity"
    columns = ("severity",)

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, Any]]:
        """All that there are."""
        return list(Severity.choices)

    def queryset(self, request: HttpRequest, queryset: BadCaseReviewQuerySet) -> BadCaseReviewQuerySet:
        """An unknown value finds nothing."""
        value = self.value()
        return queryset.filter(severity=value) if value else queryset


class SessionFilter(TextFilter):
    """Of one session, by its id."""

    title = _("session")
    parameter_name = "session"

    def queryset(self, request: HttpRequest, queryset: AgentFeedbackQuerySet) -> AgentFeedbackQuerySet:
        """Those whose session has just this id."""
        value = self.value()
        return queryset.filter(session_id=value.strip()) if value else queryset


class EventTypeFilter(CheckboxFilter):
    """Kinds of events; several at once."""

    title = _("type")
    parameter_name = "type"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, Any]]:
        """All that there are."""
        return list(EventType.choices)

    def queryset(self, request: HttpRequest, queryset: AgentFeedbackQuerySet) -> AgentFeedbackQuerySet:
        """Any of those ticked."""
        wanted = [value for value in self.value() or () if value in EventType.values]
        return queryset.filter(type__in=wanted) if wanted else queryset


class EventSourceFilter(DropdownFilter):
    """Who gave it."""

    title = _("source")
    parameter_name = "source"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, Any]]:
        """All that there are."""
        return list(EventSource.choices)

    def queryset(self, request: HttpRequest, queryset: AgentFeedbackQuerySet) -> AgentFeedbackQuerySet:
        """An unknown value finds nothing."""
        value = self.value()
        return queryset.filter(source=value) if value else queryset
