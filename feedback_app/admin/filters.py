"""Filters of the triage queue and of the list of feedback events."""

from __future__ import annotations

from typing import Any

from django import forms
from django.contrib.auth import get_user_model
from django.http import HttpRequest
from django.utils.translation import gettext_lazy as _
from unfold.contrib.filters.admin import CheckboxFilter, DropdownFilter, TextFilter

from feedback_app.models import (
    AgentFeedbackQuerySet,
    BadCaseReviewQuerySet,
    EventSource,
    EventType,
    FailureMode,
    Severity,
    TriageState,
)
from sessions_app import filters as shared


class StateFilter(DropdownFilter):
    """Waiting, unless something else is asked for."""

    title = _("state")
    parameter_name = "state"
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


class DueFilter(DropdownFilter):
    """Past the due date."""

    title = _("due")
    parameter_name = "due"
    OVERDUE = "overdue"

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


class FailureModeFilter(DropdownFilter):
    """What went wrong."""

    title = _("failure mode")
    parameter_name = "failure_mode"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, Any]]:
        """All that there are."""
        return list(FailureMode.choices)

    def queryset(self, request: HttpRequest, queryset: BadCaseReviewQuerySet) -> BadCaseReviewQuerySet:
        """An unknown value finds nothing."""
        value = self.value()
        return queryset.filter(failure_mode=value) if value else queryset


class FlowFilter(shared.FlowFilter):
    """Flow of the session."""

    column = "session__agent_flow"


class AgentFilter(shared.AgentFilter):
    """Agent of the session."""

    column = "session__agent_id"


class ScoreFilter(shared.ScoreFilter):
    """Score of the session."""

    column = "session__evidence_score"


class ConfidenceFilter(shared.RangeFilter):
    """Confidence that the agent stated, in percent, from … to, both included."""

    title = _("stated confidence")
    parameter_name = "confidence"
    column = "session__confidence"
    field = forms.FloatField(
        required=False, min_value=0, max_value=100, widget=forms.NumberInput({"min": 0, "max": 100})
    )

    def queryset(self, request: HttpRequest, queryset: Any) -> Any:
        """Those within the bounds; who stated none is in no range."""
        for end, lookup in (("from", "gte"), ("to", "lte")):
            if (bound := self.bound(end)) is not None:
                queryset = queryset.filter(**{f"{self.column}__{lookup}": bound})
        return queryset


class SeverityFilter(DropdownFilter):
    """How bad reviewers found it."""

    title = _("severity")
    parameter_name = "severity"

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
