"""Bulk jobs: what one would do, how far one is, what it could not do and why."""

from __future__ import annotations

from typing import Any

from django import forms
from django.contrib import admin, messages
from django.core.exceptions import PermissionDenied
from django.db.models import Count, QuerySet
from django.http import HttpRequest, HttpResponse, HttpResponseBadRequest, HttpResponseBase, JsonResponse
from django.shortcuts import redirect
from django.urls import path
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from unfold.widgets import UnfoldAdminSelectWidget, UnfoldAdminTextInputWidget

from cases_app import tasks
from cases_app.models import BulkFailure, BulkJob, JobState
from cases_app.services import bulk
from cases_app.services.bulk import ACTIONS, BulkAction
from sessions_app.errors import ConflictError, UnknownObjectError
from sessions_app.hints import hint_on_commit
from sessions_app.pages import HTTP_CONFLICT, ObjectPageAdmin
from sessions_app.paging import BoundedPaginator
from sessions_app.sheets import SheetFormat, rows_by_key, sheet_response
from sessions_app.templatetags.desk import badge, moment, number

FAILURES_SHOWN = 100
REASONS_SHOWN = 20


class AsksForm(forms.Form):
    """What an action must be told."""

    def __init__(self, action: BulkAction, data: Any = None) -> None:
        super().__init__(data)
        for ask in action.asks:
            self.fields[ask.name] = (
                forms.ChoiceField(label=ask.label, choices=[("", "—"), *ask.choices()], widget=UnfoldAdminSelectWidget)
                if ask.choices
                else forms.CharField(
                    label=ask.label,
                    required=ask.is_required,
                    max_length=ask.max_chars,
                    widget=UnfoldAdminTextInputWidget,
                )
            )


@admin.register(BulkJob)
class BulkJobAdmin(ObjectPageAdmin):
    """The jobs, each seen by who may do what it does."""

    list_display = ("what", "actor", "objects", "state_mark", "created")
    list_display_links = ("what",)
    list_per_page = 50
    list_max_show_all = 0
    list_select_related = ("actor",)
    sortable_by = ()
    paginator = BoundedPaginator
    show_full_result_count = False
    list_fullwidth = True
    page_template = "admin/cases_app/bulkjob/change_form.html"

    def has_add_permission(self, request: HttpRequest) -> bool:
        """Lists prepare jobs."""
        return False

    def has_view_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Whoever may do the action one by one."""
        if obj is not None:
            action = ACTIONS.get(obj.action)
            return action is not None and request.user.has_perm(action.permission)
        return any(request.user.has_perm(action.permission) for action in ACTIONS.values())

    def has_module_permission(self, request: HttpRequest) -> bool:
        """As the list."""
        return self.has_view_permission(request)

    def get_queryset(self, request: HttpRequest) -> QuerySet[BulkJob]:
        """Without those of actions that this person may not do."""
        rows: QuerySet[BulkJob] = super().get_queryset(request)
        mine = [name for name, action in ACTIONS.items() if request.user.has_perm(action.permission)]
        return rows.filter(action__in=mine).exclude(state=JobState.GATHERING)

    @admin.display(description=gettext_lazy("action"))
    def what(self, job: BulkJob) -> str:
        """In words."""
        return str(ACTIONS[job.action].label)

    @admin.display(description=gettext_lazy("objects"))
    def objects(self, job: BulkJob) -> str:
        """How many."""
        return number(job.total)

    @admin.display(description=gettext_lazy("state"))
    def state_mark(self, job: BulkJob) -> str:
        """Where it stands."""
        return badge(job.state, job.get_state_display())

    @admin.display(description=gettext_lazy("created"))
    def created(self, job: BulkJob) -> str:
        """When somebody asked for it."""
        return moment(job.created_at)

    # -- the page of one ---------------------------------------------------------------------------------------------

    def get_urls(self) -> list[Any]:
        """Also how far a job is, as JSON, and what it could not do, as a file."""
        progress = self.admin_site.admin_view(self.progress_view)
        failures = self.admin_site.admin_view(self.failures_view)
        return [
            path("<int:job_id>/progress/", progress, name="cases_app_bulkjob_progress"),
            path("<int:job_id>/failures/", failures, name="cases_app_bulkjob_failures"),
            *super().get_urls(),
        ]

    def progress_view(self, request: HttpRequest, job_id: int) -> HttpResponse:
        """How far it is."""
        job = self._seen(request, str(job_id))
        progress = bulk.progress_of(job)
        said = _("%(seen)s of %(total)s") % {"seen": number(progress.seen), "total": number(progress.total)}
        return JsonResponse(
            {
                "state": job.state,
                "total": progress.total,
                "done": progress.done,
                "failed": progress.failed,
                "percent": progress.percent,
                "said": said,
            }
        )

    def failures_view(self, request: HttpRequest, job_id: int) -> HttpResponseBase:
        """All that was refused, as CSV."""
        job = self._seen(request, str(job_id))
        rows = rows_by_key(BulkFailure.objects.filter(job=job), ["object_id", "reason"])
        return sheet_response(SheetFormat.CSV, f"failures-{job.pk}", ["object", "reason"], rows)

    def change_view(
        self, request: HttpRequest, object_id: str, form_url: str = "", extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        """The preview of a job, or how far it is; a POST confirms or stops it."""
        self.require(request, "view")
        try:
            job = bulk.job_of(object_id)
        except UnknownObjectError:
            return self.unknown(request, object_id)
        if not self.has_view_permission(request, job):
            raise PermissionDenied
        action = ACTIONS[job.action]
        if request.method != "POST":
            return self._page(request, job, AsksForm(action))
        if job.actor_id != self.person(request).pk:
            raise PermissionDenied
        match request.POST.get("action"):
            case "confirm":
                return self._confirm(request, job, AsksForm(action, request.POST))
            case "stop":
                return self._stop(request, job)
        return HttpResponseBadRequest()

    def _seen(self, request: HttpRequest, job_id: str) -> BulkJob:
        try:
            job = bulk.job_of(job_id)
        except UnknownObjectError as refusal:
            raise PermissionDenied from refusal
        if not self.has_view_permission(request, job):
            raise PermissionDenied
        return job

    def _confirm(self, request: HttpRequest, job: BulkJob, form: AsksForm) -> HttpResponse:
        if not form.is_valid():
            return self._page(request, job, form)
        try:
            bulk.confirm_job(job_id=job.pk, actor=self.person(request), parameters=form.cleaned_data)
        except ConflictError as refusal:
            return self._refused(request, job, refusal)
        hint_on_commit(tasks.run_bulk_jobs)
        self.done(request, job, _("The job is running."))
        return redirect(self.object_url(job))

    def _stop(self, request: HttpRequest, job: BulkJob) -> HttpResponse:
        try:
            bulk.stop_job(job_id=job.pk)
        except ConflictError as refusal:
            return self._refused(request, job, refusal)
        self.done(request, job, _("The job is stopped. What was done stays done."))
        return redirect(self.object_url(job))

    def _refused(self, request: HttpRequest, job: BulkJob, refusal: ConflictError) -> HttpResponse:
        messages.error(request, refusal.message)
        job = bulk.job_of(str(job.pk))
        return self._page(request, job, AsksForm(ACTIONS[job.action]), status=HTTP_CONFLICT)

    def _page(self, request: HttpRequest, job: BulkJob, form: AsksForm, *, status: int = 200) -> HttpResponse:
        failures = BulkFailure.objects.filter(job=job)
        objections = sorted(job.preview.items(), key=lambda pair: (-pair[1], pair[0]))
        against = sum(job.preview.values())
        label = str(ACTIONS[job.action].label)
        context = {
            "original": label,
            "title": label,
            "job": job,
            "form": form,
            "is_mine": job.actor_id == self.person(request).pk,
            "objections": objections,
            "against": against,
            "allowed": job.total - against,
            "progress": bulk.progress_of(job),
            "answers": [
                (ask.label, dict(ask.choices() if ask.choices else ()).get(said, said))
                for ask in ACTIONS[job.action].asks
                if (said := job.parameters.get(ask.name))
            ],
            "reasons": list(
                failures.order_by().values_list("reason").annotate(n=Count("pk")).order_by("-n")[:REASONS_SHOWN]
            ),
            "failures": list(failures[:FAILURES_SHOWN]),
            "progress_url": self.view_url("progress", None, job.pk),
            "failures_url": self.view_url("failures", None, job.pk),
        }
        return self.page(request, job, context, status=status)
