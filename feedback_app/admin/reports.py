"""Weekly reports: a list, and a page for each. The worker stores them; nobody changes them."""

from __future__ import annotations

from typing import Any

from django.contrib import admin
from django.http import HttpRequest, HttpResponse, HttpResponseNotAllowed
from django.utils.formats import number_format
from django.utils.html import format_html
from django.utils.translation import gettext_lazy as _

from feedback_app.models import WeeklyReport
from feedback_app.reports.words import days_of, words_of
from sessions_app.pages import ObjectPageAdmin
from sessions_app.templatetags.desk import moment, nothing, number, percent

MAX_KEY_DIGITS = 18


@admin.register(WeeklyReport)
class WeeklyReportAdmin(ObjectPageAdmin):
    """Figures of past weeks, the newest first."""

    list_display = ("days", "sessions", "approval", "stars", "asked_again", "with_feedback", "stored")
    list_display_links = ("days",)
    list_fullwidth = True
    list_per_page = 50
    list_max_show_all = 0
    sortable_by = ()
    show_full_result_count = False
    page_template = "admin/feedback_app/weeklyreport/page.html"

    def has_add_permission(self, request: HttpRequest) -> bool:
        """The worker adds them."""
        return False

    def has_view_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Who may see feedback may see what it adds up to."""
        return request.user.has_perm("feedback_app.view_agentfeedback")

    def change_view(
        self, request: HttpRequest, object_id: str, form_url: str = "", extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        """One report."""
        self.require(request, "view")
        if request.method not in ("GET", "HEAD"):
            return HttpResponseNotAllowed(["GET"])
        is_key = object_id.isdecimal() and len(object_id) <= MAX_KEY_DIGITS
        report = WeeklyReport.objects.filter(pk=int(object_id)).first() if is_key else None
        if report is None:
            return self.unknown(request, object_id)
        words = words_of(report, is_shared=False)
        context = {
            "title": words.title,
            "report": words,
            "sees_sessions": request.user.has_perm("sessions_app.view_diagnosissession"),
            "newer": self._neighbour(request, WeeklyReport.objects.filter(week__gt=report.week).order_by("week")),
            "older": self._neighbour(request, WeeklyReport.objects.filter(week__lt=report.week).order_by("-week")),
            "mails": report.deliveries.exclude(sent_at=None).count(),
        }
        return self.page(request, report, context)

    def _neighbour(self, request: HttpRequest, reports: Any) -> str | None:
        report = reports.only("pk").first()
        return self.object_url(report, request) if report else None

    # -- the list ----------------------------------------------------------------------------------------------------

    @admin.display(description=_("week"))
    def days(self, report: WeeklyReport) -> str:
        """Its first and its last day."""
        return days_of(report.week)

    @admin.display(description=_("sessions"))
    def sessions(self, report: Any) -> str:
        """How many."""
        return number(report.figures["week"]["sessions"])

    @admin.display(description=_("approval"))
    def approval(self, report: Any) -> str:
        """The rate, and of how many thumbs."""
        week = report.figures["week"]
        if week["approval_rate"] is None:
            return nothing()
        of = f"{number(week['thumbs_up'])}/{number(week['counts']['thumbs'])}"
        return format_html('{} <span class="desk-quiet">{}</span>', percent(week["approval_rate"] / 100), of)

    @admin.display(description=_("average stars"))
    def stars(self, report: Any) -> str:
        """1 to 5."""
        mean = report.figures["week"]["avg_star"]
        return nothing() if mean is None else str(number_format(round(mean, 1), decimal_pos=1))

    @admin.display(description=_("asked again"))
    def asked_again(self, report: Any) -> str:
        """Share of the sessions."""
        return _share(report.figures["week"]["re_ask_rate"])

    @admin.display(description=_("with any feedback"))
    def with_feedback(self, report: Any) -> str:
        """Share of the sessions."""
        return _share(report.figures["week"]["feedback_rate"])

    @admin.display(description=_("created at"))
    def stored(self, report: WeeklyReport) -> str:
        """When it was counted."""
        return moment(report.created_at)


def _share(rate: float | None) -> str:
    return nothing() if rate is None else percent(rate / 100)
