"""The export of a list in the admin: what its filters show, or the rows that are ticked."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import structlog
from django.contrib import messages
from django.contrib.admin.options import IncorrectLookupParameters
from django.core.exceptions import PermissionDenied
from django.db.models import QuerySet
from django.http import Http404, HttpRequest, HttpResponseBase
from django.shortcuts import redirect
from django.urls import URLPattern, path
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from sessions_app.lists import admin_url
from sessions_app.sheets import MAX_SHEET_ROWS, SheetFormat, sheet_response

logger = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class Export:
    """What a list gives away: the rows of whoever did not refuse, and what is read of each."""

    name: str
    columns: Sequence[str]
    allowed: Callable[[QuerySet[Any]], QuerySet[Any]]
    rows: Callable[[QuerySet[Any]], Iterable[Sequence[Any]]]


@dataclass(frozen=True, slots=True)
class ExportLink:
    """A button above the list."""

    title: str
    url: str


def _action(form: SheetFormat) -> Any:
    def export(model_admin: Any, request: HttpRequest, queryset: QuerySet[Any]) -> HttpResponseBase | None:
        return model_admin.send_export(request, queryset, form)  # type: ignore[no-any-return]

    export.__name__ = f"export_{form.value}"
    export.short_description = EXPORT_AS[form]  # type: ignore[attr-defined]
    export.allowed_permissions = ["export"]  # type: ignore[attr-defined]
    return export


EXPORT_AS = {
    SheetFormat.CSV: gettext_lazy("Export as CSV"),
    SheetFormat.XLSX: gettext_lazy("Export as XLSX"),
    SheetFormat.JSONL: gettext_lazy("Export as JSONL"),
}
EXPORT_ACTIONS = [_action(form) for form in SheetFormat]


class ExportMixin:
    """Adds the buttons and actions of the export to a list."""

    admin_site: Any
    opts: Any
    export: Export

    def has_export_permission(self, request: HttpRequest) -> bool:
        """Whoever may take the texts out of the product."""
        raise NotImplementedError

    def get_urls(self) -> list[URLPattern]:
        """One address for each format, filtered as the list is."""
        view = self.admin_site.admin_view(self.export_view)
        page = path("export/<slug:form>/", view, name=f"{self.opts.app_label}_{self.opts.model_name}_export")
        return [page, *super().get_urls()]  # type: ignore[misc]

    def export_links(self, request: HttpRequest) -> list[ExportLink]:
        """The buttons; none for those who may not."""
        if not self.has_export_permission(request):
            return []
        filters = request.GET.copy()
        filters.pop("p", None)
        query = f"?{filters.urlencode()}" if filters else ""
        return [ExportLink(str(form.label), admin_url(self, "export", form.value) + query) for form in SheetFormat]

    def export_view(self, request: HttpRequest, form: str) -> HttpResponseBase:
        """What the filters of the address show, as a file."""
        if not self.has_export_permission(request):
            raise PermissionDenied
        if form not in SheetFormat.values:
            raise Http404
        try:
            changes = self.get_changelist_instance(request)  # type: ignore[attr-defined]
        except IncorrectLookupParameters:
            return redirect(admin_url(self, "changelist"))
        sent = self.send_export(request, changes.get_queryset(request), SheetFormat(form))
        return sent or redirect(self.list_again(request))

    def list_again(self, request: HttpRequest) -> str:
        """The list, filtered as it was."""
        url = admin_url(self, "changelist")
        return f"{url}?{request.GET.urlencode()}" if request.GET else url

    def send_export(self, request: HttpRequest, rows: QuerySet[Any], form: SheetFormat) -> HttpResponseBase | None:
        """The file; None, and a word why, where a workbook would take too long."""
        rows = self.export.allowed(rows.order_by())
        if form is SheetFormat.XLSX and rows.values("pk")[MAX_SHEET_ROWS : MAX_SHEET_ROWS + 1].exists():
            text = _("XLSX takes up to %(count)s rows. Take CSV, or filter the list.") % {"count": MAX_SHEET_ROWS}
            messages.error(request, text)
            return None
        logger.info("list_exported", user_id=request.user.pk, what=self.export.name, form=form.value)
        return sheet_response(form, self.export.name, self.export.columns, self.export.rows(rows))
