"""What this app has to say on a session's page: what people said, and where its triage stands."""

from __future__ import annotations

from django.http import HttpRequest

from feedback_app.models import BadCaseReview
from feedback_app.selectors.failure_modes import mode_names
from feedback_app.selectors.second_reviews import is_hidden_from
from feedback_app.selectors.words import feedback_on
from sessions_app.models import DiagnosisSession
from sessions_app.panels import Panel, register


def words_panel(request: HttpRequest, session: DiagnosisSession) -> Panel | None:
    """What people said, if anybody did."""
    if not request.user.has_perm("feedback_app.view_agentfeedback"):
        return None
    feedback = feedback_on(session)
    return None if feedback.is_empty else Panel("feedback_app/words_panel.html", {"feedback": feedback})


def triage_panel(request: HttpRequest, session: DiagnosisSession) -> Panel | None:
    """Where the triage of a bad case stands."""
    if not request.user.has_perm("feedback_app.view_badcasereview"):
        return None
    review = BadCaseReview.objects.filter(session=session).select_related("assignee", "second").first()
    if review is None or is_hidden_from(request.user, review):
        return None
    return Panel(
        "feedback_app/triage_panel.html", {"review": review, "mode_names": mode_names() if review.failure_mode else {}}
    )


def connect() -> None:
    """Called once, when the apps are ready."""
    register(words_panel)
    register(triage_panel)
