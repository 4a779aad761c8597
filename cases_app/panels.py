"""What this app has to say on a session's page: its case."""

from __future__ import annotations

from django.http import HttpRequest

from cases_app.models import CaseLibrary
from sessions_app.models import DiagnosisSession
from sessions_app.panels import Panel, register

TEMPLATE = "cases_app/session_panel.html"


def case_panel(request: HttpRequest, session: DiagnosisSession) -> Panel | None:
    """The case that was made of the session."""
    if not request.user.has_perm("cases_app.view_caselibrary"):
        return None
    cases = CaseLibrary.objects.select_related("fault_category", "reviewed_by", "merged_into")
    texts = ("root_cause", "solution", "merged_into__root_cause", "merged_into__solution")
    case = cases.defer(*texts).filter(diagnosis=session).first()
    return Panel(TEMPLATE, {"case": case}) if case else None


def connect() -> None:
    """Called once, when the apps are ready."""
    register(case_panel)
