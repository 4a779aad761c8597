"""What people said of sessions."""

from __future__ import annotations

from collections.abc import Iterable

from django.db.models.fields.json import KT
from django.db.models.functions import Left

from feedback_app.models import AgentFeedback, EventSource
from sessions_app.models import DiagnosisSession

EXCERPT_CHARS = 240
EVENTS_SHOWN = 50


def latest_comments(session_ids: Iterable[str]) -> dict[str, str]:
    """Session → the beginning of the last comment of a person. One query, whatever the number."""
    comment, note = Left(KT("payload__comment"), EXCERPT_CHARS), Left(KT("payload__userNote"), EXCERPT_CHARS)
    said = AgentFeedback.objects.with_words().filter(session_id__in=list(session_ids), source=EventSource.USER)
    rows = said.order_by("created_at", "pk").values_list("session_id", comment, note)
    return {session_id: comment or note for session_id, comment, note in rows}


def feedback_on(session: DiagnosisSession) -> list[AgentFeedback]:
    """The feedback events of a session, the latest first, EVENTS_SHOWN at most."""
    return list(AgentFeedback.objects.filter(session=session).order_by("-created_at", "pk")[:EVENTS_SHOWN])
