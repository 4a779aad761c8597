"""Filters of the case library."""

from __future__ import annotations

from typing import Any

from django.contrib.auth import get_user_model
from django.http import HttpRequest
from django.utils.translation import gettext_lazy as _
from unfold.contrib.filters.admin import DropdownFilter

from cases_app.models import CaseLibraryQuerySet, CaseQueue, FaultCategory, SourceType
from sessions_app.filters import PeriodFilter


class QueueFilter(DropdownFilter):
    """What is to be enriched, unless another queue is asked for."""

    title = _("queue")
    parameter_name = "queue"
    all_option = None

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, Any]]:
        """As the tabs above the list."""
        return [("" if queue == CaseQueue.TO_ENRICH else queue.value, queue.label) for queue in CaseQueue]

    def queryset(self, request: HttpRequest, queryset: CaseLibraryQuerySet) -> CaseLibraryQuerySet:
        """A queue that does not exist holds nothing."""
        queue = self.value() or CaseQueue.TO_ENRICH
        if queue not in CaseQueue.values:
            return queryset.none()
        # All of them are more than "" too: of a range MariaDB sorts what an index holds, without one whole rows.
        return queryset.in_queue(queue).filter(status__gt="")


class ReviewerFilter(DropdownFilter):
    """Who worked on it last."""

    title = _("reviewer")
    parameter_name = "reviewer"
    ME = "me"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, Any]]:
        """Oneself, and everybody who worked on a case."""
        people = get_user_model().objects.filter(reviewed_cases__isnull=False).distinct().order_by("username")
        return [(self.ME, _("Me")), *((str(pk), name) for pk, name in people.values_list("pk", "username"))]

    def queryset(self, request: HttpRequest, queryset: CaseLibraryQuerySet) -> CaseLibraryQuerySet:
        """A value that is no person finds nothing."""
        match self.value():
            case None | "":
                return queryset
            case ReviewerFilter.ME:
                return queryset.filter(reviewed_by_id=request.user.pk)
            case pk:
                return queryset.filter(reviewed_by_id=int(pk)) if pk.isdecimal() else queryset.none()


class CategoryFilter(DropdownFilter):
    """One fault category."""

    title = _("fault category")
    parameter_name = "category"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, Any]]:
        """All that there are."""
        return [(category.code, str(category)) for category in FaultCategory.objects.all()]

    def queryset(self, request: HttpRequest, queryset: CaseLibraryQuerySet) -> CaseLibraryQuerySet:
        """An unknown value finds nothing."""
        value = self.value()
        return queryset.filter(fault_category_id=value) if value else queryset


class SourceFilter(DropdownFilter):
    """Where cases came from."""

    title = _("source")
    parameter_name = "source"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, Any]]:
        """All that there are."""
        return list(SourceType.choices)

    def queryset(self, request: HttpRequest, queryset: CaseLibraryQuerySet) -> CaseLibraryQuerySet:
        """An unknown value finds nothing."""
        value = self.value()
        return queryset.filter(source_type=value) if value else queryset


class UpdatedFilter(PeriodFilter):
    """When a case last changed."""

    title = _("updated")
    column = "updated_at"
