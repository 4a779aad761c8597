"""Filters of the session list only; `sessions_app.filters` has those that other lists share.

None of them counts anything, and what they match is a column or an EXISTS.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.conf import settings
from django.db.models import OuterRef, Q, QuerySet, Subquery
from django.db.models.lookups import IsNull
from django.http import HttpRequest
from django.utils.translation import gettext_lazy as _
from unfold.contrib.filters.admin import CheckboxFilter, RadioFilter

from sessions_app import rules
from sessions_app.filters import CALL_FACTS
from sessions_app.models import Status, ToolInvocation, Verdict

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


_FACTS: Mapping[str, Q] = {
    "l0": rules.hits("L0"),
    "l1": rules.hits("L1"),
    "truncated": Q(is_truncated=True),
    "failed": Q(success=False),
}


class FactsFilter(CheckboxFilter):
    """What happened in a session's tool calls; all that are ticked must have happened."""

    title = _("tool calls")
    parameter_name = "facts"
    MISS = "miss"

    def lookups(self, request: HttpRequest, model_admin: Any) -> Any:
        """The facts."""
        return CALL_FACTS

    def queryset(self, request: HttpRequest, queryset: Sessions) -> Sessions:
        """Sessions in whose calls all of these happened."""
        for name in self.value() or ():
            if name in _FACTS:
                queryset = queryset.filter(_calls(_FACTS[name], happened=True))
            elif name == self.MISS:
                queryset = queryset.filter(
                    _calls(rules.is_retrieval(settings.RETRIEVAL_TOOLS), happened=True),
                    _calls(rules.hits("L0") | rules.hits("L1"), happened=False),
                )
        return queryset


def _calls(condition: Q, *, happened: bool) -> IsNull:
    """Whether a session has such a call. Of an EXISTS, MariaDB may make a look through all calls there are."""
    calls = ToolInvocation.objects.filter(condition, session_id=OuterRef("session_id"))
    return IsNull(Subquery(calls.order_by().values("pk")[:1]), not happened)
