"""Questions asked again: a signal that the answer before did not help. Noticed by the server, no reader says it.

Recording a question writes one row into the queue, in its own transaction. The worker compares what waits with the
questions around it, in both directions. So of two sessions that are written at the same time, the one whose row is
read last sees both; and a pair has one name, which is unique among events, so that it counts once however often and
in whatever order its sessions arrive.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from typing import Any

import structlog
from django.conf import settings

from feedback_app import similarity
from feedback_app.models import AgentFeedback, EventSource, EventType, QuestionsToCompare
from feedback_app.selectors.re_asks import Pair, Question, pairs_around, questions
from feedback_app.services.submission import record_event
from sessions_app.errors import DomainError

logger = structlog.get_logger(__name__)

ROWS_AT_ONCE = 50
QUESTIONS_AT_ONCE = 200
"""Each may stand in a time of its own, which is one more condition of the query."""


def note_questions(session_ids: Sequence[str]) -> None:
    """Put these sessions into the queue. One statement, in the caller's transaction."""
    if settings.RE_ASK_WINDOW_SECONDS > 0 and settings.RE_ASK_DEPTH > 0:
        QuestionsToCompare.objects.create(session_ids=session_ids)


def compare_waiting() -> int:
    """Compare the questions that wait longest, some at a time; returns how many. Safe to run twice, and at once."""
    waiting = dict(QuestionsToCompare.objects.order_by("pk").values_list("pk", "session_ids")[:ROWS_AT_ONCE])
    session_ids = sorted({session_id for row in waiting.values() for session_id in row})
    for start in range(0, len(session_ids), QUESTIONS_AT_ONCE):
        _compare(session_ids[start : start + QUESTIONS_AT_ONCE])
    QuestionsToCompare.objects.filter(pk__in=list(waiting)).delete()
    return len(session_ids)


def _compare(session_ids: Sequence[str]) -> None:
    pairs = {_event_id(pair): pair for pair in pairs_around(session_ids)}
    known = AgentFeedback.objects.filter(client_event_id__in=list(pairs))
    for event_id in known.values_list("client_event_id", flat=True):
        del pairs[str(event_id)]
    asked = questions(place.session_id for pair in pairs.values() for place in pair)
    for event_id, pair in pairs.items():
        earlier, later = asked.get(pair.earlier.session_id), asked.get(pair.later.session_id)
        if earlier and later and _is_again(pair, earlier, later):
            _record(event_id, pair, earlier, later)


def _is_again(pair: Pair, earlier: Question, later: Question) -> bool:
    try:
        return bool(similarity.configured()(later.text, earlier.text) >= settings.RE_ASK_THRESHOLD)
    except Exception:  # whatever measures it is not ours; one pair must not hold up the queue
        logger.exception("similarity_failed", sessions=[place.session_id for place in pair])
        return False


def _record(event_id: str, pair: Pair, earlier: Question, later: Question) -> None:
    payload: dict[str, Any] = {
        "question": later.text,
        "previousQuestion": earlier.text,
        "laterSessionId": pair.later.session_id,
    }
    try:
        record_event(
            {
                "session_id": pair.earlier.session_id,
                "type": EventType.RE_ASK,
                "payload": payload,
                "source": EventSource.SYSTEM,
                "consent": earlier.consent and later.consent,
                "client_event_id": event_id,
                "created_at": pair.later.asked_at,
            }
        )
    except DomainError as error:  # gone meanwhile, or told already, the other way round
        logger.info("re_ask_not_recorded", session_id=pair.earlier.session_id, reason=error.message)


def _event_id(pair: Iterable[Any]) -> str:
    """The name of a pair: the same whichever of the two turns out to be the earlier one."""
    names = sorted(place.session_id for place in pair)
    return f"re-ask-{hashlib.sha256(' '.join(names).encode()).hexdigest()[:32]}"
