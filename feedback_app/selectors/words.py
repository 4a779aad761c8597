"""What people said of sessions."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from django.db.models import Case, When
from django.db.models.fields.json import KT
from django.db.models.functions import Left

from feedback_app.models import AgentFeedback, EventSource, EventType
from feedback_app.rules import EXPLICIT_TYPES
from sessions_app.models import DiagnosisSession

EXCERPT_CHARS = 240
EVENTS_SHOWN = 100


def latest_comments(session_ids: Iterable[str]) -> dict[str, str]:
    """Session → the beginning of the last comment of a person. One query, whatever the number."""
    comment, note = Left(KT("payload__comment"), EXCERPT_CHARS), Left(KT("payload__userNote"), EXCERPT_CHARS)
    said = AgentFeedback.objects.with_words().filter(session_id__in=list(session_ids), source=EventSource.USER)
    rows = said.order_by("created_at", "pk").values_list("session_id", comment, note)
    return {session_id: comment or note for session_id, comment, note in rows}


@dataclass(frozen=True, slots=True)
class Feedback:
    """What is known of a session from people: what they said, and apart from it what their behaviour suggests."""

    explicit: list[AgentFeedback]
    implicit: list[AgentFeedback]

    @property
    def is_empty(self) -> bool:
        """Whether nobody said or did anything."""
        return not self.explicit and not self.implicit


def feedback_on(session: DiagnosisSession) -> Feedback:
    """The feedback events of a session, the latest first, EVENTS_SHOWN at most. No flood of signals hides a word."""
    said_first = Case(When(type__in=EXPLICIT_TYPES, then=0), default=1)
    events = AgentFeedback.objects.filter(session=session).order_by(said_first, "-created_at", "pk")[:EVENTS_SHOWN]
    feedback = Feedback([], [])
    for event in events:
        (feedback.explicit if event.type in EXPLICIT_TYPES else feedback.implicit).append(event)
    find_later_sessions(feedback.implicit)
    return feedback


def find_later_sessions(events: Iterable[Any]) -> None:
    """Give each event of a question asked again the session in which it was, as `later`, where that is still there."""
    named = {event.pk: event.payload.get("laterSessionId") for event in events if event.type == EventType.RE_ASK}
    wanted = {name for name in named.values() if isinstance(name, str) and name}
    if not wanted:
        return
    found = {row.session_id: row for row in DiagnosisSession.objects.filter(session_id__in=wanted).only("session_id")}
    for event in events:
        event.later = found.get(named.get(event.pk))
