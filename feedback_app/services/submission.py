"""Taking feedback (contract 1). One rule for a verdict, whichever door it comes through.

Locks in one order: session, case, triage. The session's lock makes eight identical clicks one after another.
"""

from __future__ import annotations

import uuid
from dataclasses import dataclass
from datetime import datetime
from typing import Any, NotRequired, TypedDict

from django.utils import timezone
from django.utils.translation import gettext as _

from cases_app.services import creation
from feedback_app import rules, similarity
from feedback_app.models import AgentFeedback, EventSource, EventType
from feedback_app.services import priority, terms, triage
from sessions_app.db import in_transaction
from sessions_app.errors import InvalidInputError, UnknownObjectError
from sessions_app.models import DiagnosisSession, Verdict
from sessions_app.services.anonymity import note_new_text
from sessions_app.services.bulk import insert, new_row, select_one, update

THUMBS = {Verdict.USEFUL: "up", Verdict.NOT_USEFUL: "down"}
VERDICTS = {1.0: Verdict.USEFUL, -1.0: Verdict.NOT_USEFUL}

_OF_EVENT = ("session_id", "agent_id", "feedback", "anonymised_at")
_OF_VERDICT = (*_OF_EVENT, "query", "answer")
"""What is read of a session; its other columns may be long."""
_OF_KNOWN = ("session_id", "type", "value", "payload", "consent")
_BREAK = "\n\n"
"""Between comments that came one after another."""


class EventData(TypedDict):
    """One feedback event as its door read it."""

    session_id: str
    type: str
    value: NotRequired[Any]
    payload: NotRequired[dict[str, Any]]
    turn_id: NotRequired[str | None]
    agent_id: NotRequired[str | None]
    client_event_id: NotRequired[str | None]
    consent: NotRequired[bool]
    created_at: NotRequired[datetime | None]
    source: NotRequired[str]
    is_sanitised: NotRequired[bool]  # some text had characters that no database holds; the payload says so


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a feedback led to."""

    event_id: uuid.UUID
    case_id: uuid.UUID | None
    is_repeat: bool = False  # the same clientEventId was here before; at most its comment was written


def submit_verdict(
    *,
    session_id: str,
    verdict: str,
    comment: str = "",
    is_sanitised: bool = False,
    client_event_id: str | None = None,
    created_at: datetime | None = None,
) -> Outcome:
    """Say useful or not_useful of a session, which is a thumbs event with its consequences.

    useful: makes the case if the answer exists, or gives back the one that is there. not_useful: opens a triage, and
    retires or flags the case. The session's status is never touched. A repeated `client_event_id` changes no verdict.
    Raises UnknownObjectError.
    """
    return record_event(
        {
            "session_id": session_id,
            "type": EventType.THUMBS,
            "value": THUMBS[Verdict(verdict)],
            "payload": {"comment": comment} if comment else {},
            "is_sanitised": is_sanitised,
            "client_event_id": client_event_id,
            "created_at": created_at,
        }
    )


def record_event(data: EventData) -> Outcome:
    """Store one event; a thumbs event also sets the session's verdict.

    A clientEventId that was here before makes it a repeat, which counts nothing and changes no verdict; but a comment
    that the event lacks is added to it: who first presses and then writes is one person. Raises InvalidInputError
    naming the field (also for a clientEventId that belongs to another event), UnknownObjectError.
    """
    try:
        reading = rules.read_event(
            data["type"], data.get("value"), data.get("payload") or {}, similarity=similarity.configured()
        )
    except rules.EventError as error:
        raise InvalidInputError(str(error), errors={error.field: [str(error)]}) from error
    return _store(data, reading)


@in_transaction
def _store(data: EventData, reading: rules.Reading) -> Outcome:
    is_verdict = data["type"] == EventType.THUMBS
    wanted = _OF_VERDICT if is_verdict else _OF_EVENT
    session = select_one(DiagnosisSession, "session_id", data["session_id"], wanted, lock=True)
    if session is None:
        raise UnknownObjectError(_("There is no session %(id)s.") % {"id": data["session_id"]})
    known = _known_event(data)
    if known is None:
        event = _append(session, data, reading)
    elif words := _new_words(known, reading):
        event = _add_words(known, words, data)
        session.updated_at = timezone.now()  # by which retention sees it: there are no more events than before
        update(session, "updated_at")
    else:
        return Outcome(known.id, None, is_repeat=True)
    if session.anonymised_at:
        note_new_text(session.session_id)
    was_judged = session.feedback is not None
    case_id = _apply_verdict(session, VERDICTS[reading.value]) if is_verdict and known is None else None
    if session.feedback == Verdict.NOT_USEFUL:  # others have no triage, or one that nobody waits for
        priority.refresh(session.session_id)
    if event.comment and was_judged:  # else there is no bad case, or a new one, which owes its terms by itself
        terms.owe([session.session_id])
    return Outcome(event.id, case_id, is_repeat=known is not None)


def _append(session: DiagnosisSession, data: EventData, reading: rules.Reading) -> AgentFeedback:
    event = new_row(
        AgentFeedback,
        session_id=session.session_id,
        turn_id=data.get("turn_id") or session.session_id,
        agent_id=data.get("agent_id") or session.agent_id,
        type=data["type"],
        value=reading.value,
        payload={**reading.payload, **_marks(data)},
        created_at=data.get("created_at") or timezone.now(),
        source=data.get("source", EventSource.USER),
        client_event_id=data.get("client_event_id"),
        consent=data.get("consent", True),
    )
    insert(AgentFeedback, [event])
    return event


def _marks(data: EventData) -> dict[str, bool]:
    return {"sanitised": True} if data.get("is_sanitised") else {}


def _known_event(data: EventData) -> AgentFeedback | None:
    """What came under this clientEventId before. Raises InvalidInputError where that was another event."""
    client_event_id = data.get("client_event_id")
    if client_event_id is None:
        return None
    known = select_one(AgentFeedback, "client_event_id", client_event_id, _OF_KNOWN)
    if known is not None and (known.session_id, known.type) != (data["session_id"], data["type"]):
        message = _("This clientEventId belongs to another event.")
        raise InvalidInputError(message, errors={"clientEventId": [message]})
    return known


def _new_words(known: AgentFeedback, reading: rules.Reading) -> str:
    """What a repeat says beyond the event, else nothing."""
    before, words = (str(each.get("comment") or "") for each in (known.payload, reading.payload))
    is_said = _BREAK + words + _BREAK in _BREAK + before + _BREAK
    return "" if is_said or known.value != reading.value else words


def _add_words(known: AgentFeedback, words: str, data: EventData) -> AgentFeedback:
    """Add a comment, after what was said before."""
    before = known.payload.get("comment")
    comment = before + _BREAK + words if before else words
    if len(comment) > rules.MAX_JOINED_CHARS:
        message = _("Longer than %(count)s characters.") % {"count": rules.MAX_JOINED_CHARS}
        raise InvalidInputError(message, errors={"payload.comment": [message]})
    known.payload = {**known.payload, "comment": comment, **_marks(data)}
    known.consent = known.consent and data.get("consent", True)
    update(known, "payload", "consent")
    return known


def _apply_verdict(session: DiagnosisSession, verdict: Verdict) -> uuid.UUID | None:
    """The one rule. The caller holds the session's lock."""
    before = session.feedback
    if before != verdict:
        session.feedback = verdict
        session.updated_at = timezone.now()
        update(session, "feedback", "updated_at")
    if verdict == Verdict.USEFUL:
        if before == Verdict.NOT_USEFUL:
            triage.close_by_verdict(session)
        case = creation.case_of_useful_session(session)
        return case.case_id if case else None
    creation.withdraw_case(session)
    triage.open_triage(session)
    return None
