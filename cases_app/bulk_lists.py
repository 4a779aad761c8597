"""Actions on the rows of a list in the admin that become jobs in the background."""

from __future__ import annotations

from typing import Any

from django.contrib import messages
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import reverse

from cases_app.services import bulk
from cases_app.services.bulk import BulkAction
from sessions_app.errors import InvalidInputError

JOB_PAGE = "admin:cases_app_bulkjob_change"


def list_action(action: BulkAction) -> Any:
    """What Django's list calls with the ticked rows, or with all that its filters show."""

    def prepare(model_admin: Any, request: HttpRequest, queryset: QuerySet[Any]) -> HttpResponse | None:
        try:
            job = bulk.prepare_job(action=action, rows=queryset, actor=model_admin.person(request))
        except InvalidInputError as refusal:
            messages.error(request, refusal.message)
            return None
        return redirect(reverse(JOB_PAGE, args=[job.pk]))

    prepare.__name__ = action.name.replace(".", "_")
    prepare.short_description = action.label  # type: ignore[attr-defined]
    codename = action.permission.rpartition(".")[2]
    prepare.allowed_permissions = [codename.partition("_")[0]]  # type: ignore[attr-defined]  # `has_…_permission`
    return prepare
