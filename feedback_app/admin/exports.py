"""The export of feedback for training, as a download for Leads."""

from __future__ import annotations

from typing import Any

import structlog
from django import forms
from django.core.exceptions import PermissionDenied
from django.core.validators import MaxValueValidator, MinValueValidator
from django.http import HttpRequest, HttpResponseBase, StreamingHttpResponse
from django.template.response import TemplateResponse
from django.urls import URLPattern, path, reverse
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from unfold.widgets import UnfoldAdminRadioSelectWidget, UnfoldAdminTextInputWidget

from feedback_app.selectors.training import FIRST_DAY, LAST_DAY, Selection, TrainingFormat, count_rows, training_lines
from sessions_app.text import MAX_ID_LENGTH

logger = structlog.get_logger(__name__)

CHANGELIST = "admin:feedback_app_agentfeedback_changelist"
EXPORT = "feedback_app_agentfeedback_export"


class ExportForm(forms.Form):
    """What to export. Days in the server's time zone, both included."""

    content = forms.ChoiceField(
        label=gettext_lazy("Content"),
        choices=TrainingFormat.choices,
        initial=TrainingFormat.DPO,
        widget=UnfoldAdminRadioSelectWidget,
    )
    first = forms.DateField(label=gettext_lazy("From"), required=False)
    last = forms.DateField(label=gettext_lazy("To"), required=False)
    agent_id = forms.CharField(
        label=gettext_lazy("Agent"),
        required=False,
        max_length=MAX_ID_LENGTH,
        strip=False,
        widget=UnfoldAdminTextInputWidget,
        help_text=gettext_lazy("Its id; of all agents without one."),
    )

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        for name in ("first", "last"):
            self.fields[name].widget = UnfoldAdminTextInputWidget(attrs={"type": "date"})
            self.fields[name].validators += [MinValueValidator(FIRST_DAY), MaxValueValidator(LAST_DAY)]

    def clean(self) -> dict[str, Any]:
        """The days in order."""
        cleaned: dict[str, Any] = super().clean() or {}
        first, last = cleaned.get("first"), cleaned.get("last")
        if first and last and first > last:
            self.add_error("first", _("The period must begin before it ends."))
        return cleaned

    @property
    def selection(self) -> Selection:
        """What the form says."""
        said = self.cleaned_data
        return Selection(said["first"], said["last"], said["agent_id"] or None)


class ExportMixin:
    """Adds the page of the export to the admin of feedback events."""

    admin_site: Any
    opts: Any

    def has_export_permission(self, request: HttpRequest) -> bool:
        """Whoever may export."""
        return bool(request.user.has_perm("feedback_app.export_agentfeedback"))

    def get_urls(self) -> list[URLPattern]:
        """The page of the export before those of single events."""
        page = path("export/", self.admin_site.admin_view(self.export_view), name=EXPORT)
        return [page, *super().get_urls()]  # type: ignore[misc]

    def changelist_view(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> Any:
        """The list with the way to the export, for those who may."""
        url = reverse(f"admin:{EXPORT}") if self.has_export_permission(request) else None
        return super().changelist_view(request, {"export_url": url, **(extra_context or {})})  # type: ignore[misc]

    def export_view(self, request: HttpRequest) -> HttpResponseBase:
        """Ask what; on POST, send it line by line, as it is read."""
        if not self.has_export_permission(request):
            raise PermissionDenied
        form = ExportForm(request.POST if request.method == "POST" else None)
        if request.method == "POST" and form.is_valid():
            what = TrainingFormat(form.cleaned_data["content"])
            if count_rows(what, form.selection):
                return self._download(request, what, form.selection)
            form.add_error(None, _("There is nothing to export in this period."))
        request.current_app = self.admin_site.name
        context = {
            **self.admin_site.each_context(request),
            "opts": self.opts,
            "title": _("Export for training"),
            "list_url": reverse(CHANGELIST),
            "form": form,
        }
        return TemplateResponse(request, "admin/feedback_app/agentfeedback/export.html", context)

    def _download(self, request: HttpRequest, what: TrainingFormat, selection: Selection) -> StreamingHttpResponse:
        logger.info("feedback_exported", user_id=request.user.pk, form=what.value)
        name = f"feedback-{what.value}-{timezone.localdate():%Y-%m-%d}.jsonl"
        response = StreamingHttpResponse(training_lines(what, selection), content_type="application/x-ndjson")
        response["Content-Disposition"] = f'attachment; filename="{name}"'
        response["Cache-Control"] = "no-store"
        return response
