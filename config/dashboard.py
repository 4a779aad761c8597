"""The start page of the admin: what waits, how it went lately, what came in. Each for those who may see it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from django.http import HttpRequest
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext as _

from cases_app.models import CaseLibrary, CaseQueue
from config.figures import (
    SEE_SESSIONS,
    admin_url,
    figures_of,
    list_url,
    metrics_url,
    relative_change,
    rows_of,
    sessions_url,
)
from feedback_app.models import BadCaseReview
from sessions_app.models import DiagnosisSession
from sessions_app.selectors.metrics import metrics
from sessions_app.selectors.slices import Period, Slice
from sessions_app.templatetags.desk import number

NEWEST = 8
DAYS_COMPARED = 7


@dataclass(frozen=True, slots=True)
class Queue:
    """Something that waits for people, and the list of it."""

    title: str
    count: int
    url: str | None
    mark: str  # of `desk.css`, when something is in it
    hint: str


@dataclass(frozen=True, slots=True)
class Comparison:
    """One figure of two periods."""

    title: str
    now: str
    now_of: str
    before: str
    change: str
    now_url: str | None
    before_url: str | None


def start_page(request: HttpRequest, context: dict[str, Any]) -> dict[str, Any]:
    """Unfold's DASHBOARD_CALLBACK."""
    user: Any = request.user
    context |= {"title": _("Overview"), "queues": _queues(user), "may_see_sessions": user.has_perm(SEE_SESSIONS)}
    if not context["may_see_sessions"]:
        return context
    context["newest"] = list(rows_of(DiagnosisSession.objects.order_by("-created_at", "-id"))[:NEWEST])
    if context["newest"]:
        context |= {"comparisons": _comparisons(), "sessions_url": list_url("sessions_app_diagnosissession")}
    else:
        context |= {
            "first_session": FIRST_SESSION,
            "ingest_url": request.build_absolute_uri(reverse("session-list")),
            "new_key_url": user.has_perm("sessions_app.add_apikey") and admin_url("sessions_app_apikey_add"),
        }
    return context


FIRST_SESSION = """{
  "sessionId": "first-session",
  "agentFlow": "CHAT",
  "query": "Why is order-service slow?",
  "status": "SUCCESS",
  "answer": "The connection pool is exhausted; raise its limit.",
  "selfEvaluation": {"confidence": 90},
  "steps": [{
    "agentName": "intelligent_assistant",
    "stepIndex": 0,
    "durationMs": 850,
    "toolInvocations": [{"toolName": "lookup_knowledge", "inputParams": {"query": "slow"}, "l0MatchCount": 1}]
  }]
}"""
"""What the start page of an empty database suggests to send."""


def _queues(user: Any) -> list[Queue]:
    queues: list[Queue] = []
    if user.has_perm("feedback_app.view_badcasereview"):
        triages = "feedback_app_badcasereview"
        counts = BadCaseReview.objects.count_waiting(user)
        queues += [
            Queue(_("Bad cases"), counts["waiting"], list_url(triages), "open", _("Rejected answers to judge")),
            Queue(
                _("Overdue"), counts["overdue"], list_url(triages, due="overdue"), "overdue", _("Past their due date")
            ),
            Queue(_("Mine"), counts["mine"], list_url(triages, assignee="mine"), "in_review", _("In review by you")),
        ]
    if user.has_perm("cases_app.view_caselibrary"):
        cases = "cases_app_caselibrary"
        held = CaseLibrary.objects.count_by_queue()
        queues += [
            Queue(
                _("Cases to enrich"),
                held[CaseQueue.TO_ENRICH],
                list_url(cases, queue=CaseQueue.TO_ENRICH.value),
                "draft",
                _("From useful answers, without a category"),
            ),
            Queue(
                _("Flagged cases"),
                held[CaseQueue.FLAGGED],
                list_url(cases, queue=CaseQueue.FLAGGED.value),
                "flagged",
                _("Their reader changed their mind"),
            ),
        ]
    if user.has_perm(SEE_SESSIONS):
        sessions = "sessions_app_diagnosissession"
        queues += [
            Queue(
                _("Scoring failed"),
                DiagnosisSession.objects.evaluation_failed().count(),
                list_url(sessions, scoring="failed"),
                "failed",
                _("Ask for another try on their pages"),
            ),
            Queue(
                _("Scoring pending"),
                DiagnosisSession.objects.evaluation_pending().count(),
                list_url(sessions, scoring="pending"),
                "pending",
                _("The worker takes them by itself"),
            ),
        ]
    return queues


def _comparisons() -> list[Comparison]:
    """The last seven days, today included, beside the seven before."""
    today = timezone.localdate()
    spans = [
        (today - timedelta(days=DAYS_COMPARED * ago + DAYS_COMPARED - 1), today - timedelta(days=DAYS_COMPARED * ago))
        for ago in (0, 1)
    ]
    now, before = (metrics(Slice(Period.of_days(*span))) for span in spans)
    own = [metrics_url(*span) for span in spans]
    rows = [
        Comparison(
            _("Sessions"),
            number(now.of_sessions.sessions),
            "",
            number(before.of_sessions.sessions),
            relative_change(now.of_sessions.sessions, before.of_sessions.sessions),
            sessions_url(*spans[0]),
            sessions_url(*spans[1]),
        )
    ]
    for new, old in zip(figures_of(now), figures_of(before), strict=True):
        rows.append(Comparison(new.title, new.value, new.of, old.value, new.change_from(old), *own))
    return rows
