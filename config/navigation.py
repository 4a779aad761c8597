"""The sidebar: what there is to do, for those who may do it. Nobody is shown a link that would answer 403."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from django.db.models import QuerySet
from django.http import HttpRequest
from django.urls import reverse
from django.utils.translation import gettext_lazy as _

from cases_app.models import CaseLibrary
from feedback_app.models import BadCaseReview

BADGE_LIMIT = 99
"""A queue is counted no further; the query stops there too."""


@dataclass(frozen=True, slots=True)
class Link:
    """One line of the sidebar."""

    title: Any  # lazily translated
    icon: str
    route: str
    permission: str | None = None  # None: whoever is staff
    queue: Callable[[], QuerySet[Any]] | None = None

    def item(self, request: HttpRequest) -> dict[str, Any] | None:
        """What unfold draws; None for those who may not follow it."""
        user: Any = request.user
        if self.permission and not user.has_perm(self.permission):
            return None
        return {
            "title": self.title,
            "icon": self.icon,
            "link": reverse(self.route),
            "badge": _count(self.queue()) if self.queue else None,
            "badge_variant": "primary",
        }


NAVIGATION: tuple[tuple[Any, tuple[Link, ...]], ...] = (
    (
        _("Review"),
        (
            Link(_("Overview"), "dashboard", "admin:index"),
            Link(
                _("Triage queue"),
                "inbox",
                "admin:feedback_app_badcasereview_changelist",
                "feedback_app.view_badcasereview",
                BadCaseReview.objects.waiting,
            ),
            Link(
                _("Case library"),
                "menu_book",
                "admin:cases_app_caselibrary_changelist",
                "cases_app.view_caselibrary",
                CaseLibrary.objects.to_enrich,
            ),
            Link(
                _("Second reviews"),
                "how_to_vote",
                "admin:feedback_app_secondreview_changelist",
                "feedback_app.triage_badcasereview",
            ),
            Link(_("Bulk jobs"), "checklist", "admin:cases_app_bulkjob_changelist", "cases_app.enrich_caselibrary"),
            Link(
                _("Feedback events"),
                "forum",
                "admin:feedback_app_agentfeedback_changelist",
                "feedback_app.view_agentfeedback",
            ),
        ),
    ),
    (
        _("Diagnoses"),
        (
            Link(
                _("Sessions"),
                "troubleshoot",
                "admin:sessions_app_diagnosissession_changelist",
                "sessions_app.view_diagnosissession",
            ),
        ),
    ),
    (
        _("Quality"),
        (
            Link(_("Metrics"), "monitoring", "metrics", "sessions_app.view_diagnosissession"),
            Link(
                _("Weekly reports"),
                "calendar_view_week",
                "admin:feedback_app_weeklyreport_changelist",
                "feedback_app.view_agentfeedback",
            ),
        ),
    ),
    (
        _("Settings"),
        (
            Link(
                _("Fault categories"),
                "category",
                "admin:cases_app_faultcategory_changelist",
                "cases_app.view_faultcategory",
            ),
            Link(
                _("Alerts"), "notifications", "admin:feedback_app_alertrule_changelist", "feedback_app.view_alertrule"
            ),
            Link(
                _("Failure modes"),
                "rule",
                "admin:feedback_app_failuremode_changelist",
                "feedback_app.view_failuremode",
            ),
            Link(
                _("Erasures"),
                "person_remove",
                "admin:feedback_app_erasure_changelist",
                "feedback_app.view_erasure",
            ),
            Link(_("API keys"), "key", "admin:sessions_app_apikey_changelist", "sessions_app.view_apikey"),
            Link(_("Users"), "person", "admin:auth_user_changelist", "auth.view_user"),
            Link(_("Groups"), "group", "admin:auth_group_changelist", "auth.view_group"),
        ),
    ),
)


def sidebar(request: HttpRequest) -> list[dict[str, Any]]:
    """The navigation as unfold wants it, without what this person may not see. At most one query a queue."""
    groups = (
        {"title": title, "items": [item for link in links if (item := link.item(request))]}
        for title, links in NAVIGATION
    )
    return [group for group in groups if group["items"]]


def _count(rows: QuerySet[Any]) -> str | None:
    """How many wait: nothing for none, `99+` for more than anybody counts."""
    waiting = rows.order_by().values("pk")[: BADGE_LIMIT + 1].count()
    if not waiting:
        return None
    return f"{BADGE_LIMIT}+" if waiting > BADGE_LIMIT else str(waiting)
