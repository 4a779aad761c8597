"""The case library: its queues, and one page for each case to enrich and publish it.

Every button is a POST of `action` to the page of its case. Each calls one service, which alone moves the case.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from django.contrib import admin, messages
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse, HttpResponseBadRequest
from django.shortcuts import redirect
from django.template.response import TemplateResponse
from django.urls import path, reverse
from django.utils.html import format_html
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from cases_app.admin import filters
from cases_app.admin.buttons import BUTTONS, Press
from cases_app.admin.forms import CaseForm, ImportForm
from cases_app.admin.keys import CASE_KEYS, LIST_KEYS
from cases_app.admin.merging import MergingAdmin
from cases_app.admin.versions import VersionsAdmin
from cases_app.bulk_lists import JOB_PAGE, list_action
from cases_app.case_files import FIELDS, MAX_BYTES, MAX_ROWS
from cases_app.models import CaseLibrary, CaseLibraryQuerySet, CaseQueue, CaseStatus, SourceType
from cases_app.panels import TEMPLATE as OWN_PANEL
from cases_app.selectors import enrichment as selectors
from cases_app.selectors import exports
from cases_app.selectors.suggestions import suggestions_for
from cases_app.services import enrichment
from cases_app.services.case_bulk import CASE_ACTIONS
from cases_app.services.importing import prepare_import
from cases_app.services.moving import StaleCaseError
from sessions_app.errors import ConflictError, InvalidInputError
from sessions_app.exporting import EXPORT_ACTIONS, Export, ExportMixin
from sessions_app.forms import NOT_SAVED, ReasonForm
from sessions_app.pages import HTTP_CONFLICT, Tab
from sessions_app.paging import BoundedPaginator, bounded_count
from sessions_app.panels import panels_of
from sessions_app.saved_views import SavedViewsMixin
from sessions_app.templatetags.desk import badge, excerpt, moment, nothing

ROW_CHARS = 110


SOURCES: Mapping[SourceType, Any] = {
    SourceType.AUTO: gettext_lazy("Session"),
    SourceType.MANUAL: gettext_lazy("By hand"),
    SourceType.CORRECTION: gettext_lazy("Correction"),
}
"""In one word, for a row."""


@admin.register(CaseLibrary)
class CaseLibraryAdmin(SavedViewsMixin, ExportMixin, MergingAdmin, VersionsAdmin):
    """The case library."""

    list_display = ("name", "category", "error", "source", "status_mark", "flag", "reviewer", "updated")
    list_filter = (
        filters.QueueFilter,
        filters.CategoryFilter,
        filters.SourceFilter,
        filters.ReviewerFilter,
        filters.UpdatedFilter,
    )
    list_filter_submit = True
    list_fullwidth = True
    list_per_page = 50
    list_max_show_all = 0
    paginator = BoundedPaginator
    show_full_result_count = False
    show_facets = admin.ShowFacets.NEVER  # its counts look at every row
    search_fields = ("title",)  # shows the box; what is searched: `CaseLibraryQuerySet.matching`
    search_help_text = gettext_lazy("Title, error code, text, case id or session id")
    sortable_by = ("error", "updated")
    list_before_template = "cases_app/tabs.html"
    page_template = "admin/cases_app/caselibrary/change_form.html"
    shows_history = True
    actions = (*map(list_action, CASE_ACTIONS), *EXPORT_ACTIONS)
    export = Export("cases", exports.COLUMNS, exports.exportable_cases, exports.case_rows)

    # -- who may what ------------------------------------------------------------------------------------------------

    def has_add_permission(self, request: HttpRequest) -> bool:
        """Who may enrich may write a case by hand."""
        return self.has_enrich_permission(request)

    def has_enrich_permission(self, request: HttpRequest) -> bool:
        """May write into cases."""
        return request.user.has_perm("cases_app.enrich_caselibrary")

    def has_publish_permission(self, request: HttpRequest) -> bool:
        """May give cases to the agents, take them back, retire and restore them."""
        return request.user.has_perm("cases_app.publish_caselibrary")

    def has_export_permission(self, request: HttpRequest) -> bool:
        """May take cases out: who may give them to agents."""
        return self.has_publish_permission(request)

    def offers(self, request: HttpRequest, case: CaseLibrary) -> list[str]:
        """The buttons that make sense for this person and this case now."""
        may_publish, may_write = self.has_publish_permission(request), self.may_write(request, case)
        offers = ["save"] if may_write else []
        if not may_publish:
            return offers
        match case.status:
            case CaseStatus.RETIRED:
                return ["restore"]
            case CaseStatus.PUBLISHED:
                return [*offers, "unpublish", "retire"]
            case CaseStatus.ENRICHED if not may_write:
                return ["publish", "retire"]
        return [*offers, *(["save_and_publish"] if may_write else []), "retire"]

    def may_write(self, request: HttpRequest, case: CaseLibrary) -> bool:
        """May change the text: of what agents see, only who may also publish."""
        if case.status == CaseStatus.RETIRED or not self.has_enrich_permission(request):
            return False
        return case.status != CaseStatus.PUBLISHED or self.has_publish_permission(request)

    # -- the list ----------------------------------------------------------------------------------------------------

    def get_queryset(self, request: HttpRequest) -> QuerySet[CaseLibrary]:
        """Only what a row shows: root cause and solution may be an answer each."""
        rows: QuerySet[CaseLibrary] = super().get_queryset(request)
        return rows.select_related("fault_category", "reviewed_by").defer("root_cause", "solution")

    def get_ordering(self, request: HttpRequest) -> Sequence[str]:
        """What waits longest first in the queues; what changed last first elsewhere."""
        queue = request.GET.get(filters.QueueFilter.parameter_name) or CaseQueue.TO_ENRICH
        return ("created_at", "pk") if queue in (CaseQueue.TO_ENRICH, CaseQueue.TO_PUBLISH) else ("-updated_at", "-pk")

    def get_search_results(
        self, request: HttpRequest, queryset: CaseLibraryQuerySet, search_term: str
    ) -> tuple[CaseLibraryQuerySet, bool]:
        """Words, found literally."""
        return queryset.matching(search_term), False

    def list_context(self, request: HttpRequest) -> dict[str, Any]:
        """The queues, and the ways from here."""
        name = filters.QueueFilter.parameter_name
        tabs = [
            Tab.among(
                request,
                str(queue.label),
                bounded_count(CaseLibrary.objects.in_queue(queue)),
                **({} if is_default else {name: queue.value}),
            )
            for queue in CaseQueue
            for is_default in [queue == CaseQueue.TO_ENRICH]
        ]
        is_to_enrich = request.GET.get(name) in (None, "", CaseQueue.TO_ENRICH)
        return {
            "tabs": tabs,
            "progress": selectors.progress() if is_to_enrich else None,
            "next_url": self.next_url(request),
            "keys": LIST_KEYS,
            "import_url": self.view_url("import", request) if self.has_enrich_permission(request) else None,
            "export_links": self.export_links(request),
        }

    @admin.display(description=gettext_lazy("title"))
    def name(self, case: CaseLibrary) -> str:
        """What the case is called."""
        return format_html(
            '<span class="desk-cell-question" dir="auto">{}</span>', excerpt(case.title, ROW_CHARS) or case.pk
        )

    @admin.display(description=gettext_lazy("fault category"))
    def category(self, case: CaseLibrary) -> str:
        """In the reader's language."""
        return str(case.fault_category.local_name)

    @admin.display(description=gettext_lazy("error code"), ordering="error_code")
    def error(self, case: CaseLibrary) -> str:
        """As it stands in logs."""
        code = excerpt(case.error_code, 60)
        return format_html('<span class="desk-code">{}</span>', code) if code else nothing()

    @admin.display(description=gettext_lazy("source"))
    def source(self, case: CaseLibrary) -> str:
        """Where it came from."""
        return str(SOURCES[SourceType(case.source_type)])

    @admin.display(description=gettext_lazy("status"))
    def status_mark(self, case: CaseLibrary) -> str:
        """Where it stands."""
        return badge(case.status, case.get_status_display())

    @admin.display(description=gettext_lazy("flagged"))
    def flag(self, case: CaseLibrary) -> str:
        """Whether its reader changed their mind."""
        return badge("flagged", _("Flagged")) if case.is_flagged else nothing()

    @admin.display(description=gettext_lazy("reviewer"))
    def reviewer(self, case: CaseLibrary) -> str:
        """Who worked on it last."""
        return case.reviewed_by.get_username() if case.reviewed_by else nothing()

    @admin.display(description=gettext_lazy("updated"), ordering="updated_at")
    def updated(self, case: CaseLibrary) -> str:
        """When it last changed."""
        return moment(case.updated_at)

    # -- a new case --------------------------------------------------------------------------------------------------

    def add_view(
        self, request: HttpRequest, form_url: str = "", extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        """Write a case by hand."""
        self.require(request, "enrich")
        form = CaseForm(request.POST or None)
        if request.method == "POST" and form.is_valid():
            try:
                case = enrichment.create_case(content=form.content, author=self.person(request))
            except InvalidInputError as refusal:
                form.refuse(refusal.errors)
            else:
                self.log_addition(request, case, {})
                messages.success(request, _("The case is written."))
                return redirect(self.object_url(case, request))
        return self.page(request, None, {"form": form, "offers": ["create"], "keys": CASE_KEYS})

    # -- a case and its buttons --------------------------------------------------------------------------------------

    def get_urls(self) -> list[Any]:
        """Also the way to the next case of the queue, to an import, a merge and the versions."""
        view = self.admin_site.admin_view(self.next_to_enrich)
        importing = self.admin_site.admin_view(self.import_view)
        merging = self.admin_site.admin_view(self.merge_view)
        versions = self.admin_site.admin_view(self.versions_view)
        return [
            path("next/", view, name="cases_app_caselibrary_next"),
            path("import/", importing, name="cases_app_caselibrary_import"),
            path("<str:object_id>/merge/<str:other_id>/", merging, name="cases_app_caselibrary_merge"),
            path("<str:object_id>/versions/", versions, name="cases_app_caselibrary_versions"),
            *super().get_urls(),
        ]

    def import_view(self, request: HttpRequest) -> HttpResponse:
        """Take a file of cases; lead to the preview of what it would change."""
        self.require(request, "enrich")
        form = ImportForm(request.POST or None, request.FILES or None)
        if request.method == "POST" and form.is_valid():
            file = form.cleaned_data["file"]
            try:
                job = prepare_import(name=file.name, file=file, actor=self.person(request))
            except InvalidInputError as refusal:
                form.add_error("file", refusal.message)
            else:
                return redirect(reverse(JOB_PAGE, args=[job.pk]))
        request.current_app = self.admin_site.name
        context = {
            **self.admin_site.each_context(request),
            "opts": self.opts,
            "title": _("Import cases"),
            "list_url": self.list_url(request),
            "form": form,
            "columns": ["case_id", *FIELDS],
            "max_rows": MAX_ROWS,
            "max_megabytes": MAX_BYTES // 2**20,
        }
        return TemplateResponse(request, "admin/cases_app/caselibrary/import.html", context)

    def next_url(self, request: HttpRequest, after: CaseLibrary | None = None) -> str | None:
        """Where the button leads; None for those who may not enrich."""
        if not self.has_enrich_permission(request):
            return None
        url = self.view_url("next", request)
        if after is None:
            return url
        return f"{url}{'&' if '?' in url else '?'}after={after.pk}"

    def next_to_enrich(self, request: HttpRequest) -> HttpResponse:
        """Lead to the oldest case to enrich; with `after`, to the one behind it."""
        self.require(request, "view")
        after = selectors.case_with_session(request.GET.get("after", ""))
        case = selectors.next_to_enrich(after)
        if case is None:
            messages.info(request, _("No case waits to be enriched."))
            return redirect(self.list_url(request))
        return redirect(self.object_url(case, request))

    def change_view(
        self, request: HttpRequest, object_id: str, form_url: str = "", extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        """The page of one case; a POST presses one of its buttons."""
        self.require(request, "view")
        case = selectors.case_with_session(object_id)
        if case is None:
            return self.unknown(request, object_id)
        if request.method == "POST":
            return self._press(request, case)
        return self._page(request, case)

    def _press(self, request: HttpRequest, case: CaseLibrary) -> HttpResponse:
        name = request.POST.get("action", "")
        button = BUTTONS.get(name)
        if button is None:
            return HttpResponseBadRequest()
        self.require(request, button.permission)
        form = CaseForm.of(case, 0, request.POST) if "title" in request.POST else None
        if button.needs_fields:
            self.require(request, "enrich")
            if case.status == CaseStatus.PUBLISHED:
                self.require(request, "publish")
            if form is None:
                return HttpResponseBadRequest()
            if not form.is_valid():
                return self._page(request, case, form)
        try:
            moved = button.move(Press(case, self.person(request), form, ReasonForm.given(request.POST)))
        except StaleCaseError as refusal:
            return self._stale(request, case, form, refusal)
        except InvalidInputError as refusal:
            return self._incomplete(request, case, form, refusal)
        except ConflictError as refusal:
            messages.error(request, refusal.message)
            return self._page(request, self._again(case), form, status=HTTP_CONFLICT)
        self.done(request, moved, button.done)
        if form and form.has_new_content() and not button.needs_fields:
            messages.warning(request, NOT_SAVED)
            case = self._again(case)
            return self._page(request, case, form.rebased(case, self._last_row(case)))
        return redirect(self.object_url(case, request))

    def _stale(
        self, request: HttpRequest, case: CaseLibrary, form: CaseForm | None, refusal: StaleCaseError
    ) -> HttpResponse:
        """Show what others did since the page was opened; what was typed stays, and the next press saves it."""
        messages.error(request, refusal.message)
        case = self._again(case)
        if form is None:
            return self._page(request, case, status=HTTP_CONFLICT)
        since = {
            "changes": form.changes_since(case),
            "rows_since": selectors.history(case, since=form.cleaned_data["seen"] or 0),
        }
        return self._page(request, case, form.rebased(case, self._last_row(case)), since=since, status=HTTP_CONFLICT)

    def _incomplete(
        self, request: HttpRequest, case: CaseLibrary, form: CaseForm | None, refusal: InvalidInputError
    ) -> HttpResponse:
        """Name what is missing, at its field where there are fields."""
        if form is not None:
            form.refuse(refusal.errors)
            return self._page(request, case, form)
        labels = [str(CaseForm.base_fields[name].label) for name in refusal.errors]
        messages.error(request, f"{refusal.message} {', '.join(labels)}")
        return self._page(request, case)

    def _again(self, case: CaseLibrary) -> CaseLibrary:
        return selectors.case_with_session(str(case.pk)) or case

    def _last_row(self, case: CaseLibrary) -> int:
        return max((row.pk for row in selectors.history(case)), default=0)

    def _page(
        self,
        request: HttpRequest,
        case: CaseLibrary,
        form: CaseForm | None = None,
        *,
        since: Mapping[str, Any] | None = None,
        status: int = 200,
    ) -> TemplateResponse:
        history = selectors.history(case)
        if form is None and self.may_write(request, case):
            form = CaseForm.of(case, history[0].pk if history else 0)
        if form is not None:
            form.offer(suggestions_for(case))
        session = case.diagnosis
        panels = panels_of(request, session) if session else []
        context = {
            "case": case,
            "session": session,
            "panels": [panel for panel in panels if panel.template != OWN_PANEL],
            "history": history,
            "versions_url": self.view_url("versions", request, case.pk),
            "sources": [case, *merged] if (merged := selectors.merged_cases(case)) else [],
            "duplicates": self.duplicates(request, case),
            "form": form,
            "reason_form": ReasonForm(),
            "offers": self.offers(request, case),
            "next_url": self.next_url(request, case),
            "keys": CASE_KEYS,
            **(since or {}),
        }
        return self.page(request, case, context, status=status)
