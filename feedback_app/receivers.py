"""Reactions to news of sessions."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

import structlog
from django.contrib.auth.signals import user_logged_in
from django.utils import timezone
from django.utils.translation import get_language

from feedback_app import rules
from feedback_app.models import EventSource
from feedback_app.services import priority, re_asks, reports, terms
from feedback_app.services.submission import record_event
from sessions_app import signals
from sessions_app.errors import DomainError
from sessions_app.models import DiagnosisSession

logger = structlog.get_logger(__name__)


def take_judgements(session_id: str, judgements: list[dict[str, Any]], **_: Any) -> None:
    """Record what people said in a trace, each once however often the trace tells it; a thumb sets the verdict."""
    session = DiagnosisSession.objects.filter(session_id=session_id).only("consent").first()
    if session is None:
        return
    for said in sorted(judgements, key=lambda judgement: judgement["at"]):
        read = rules.read_judgement(said["name"], said["score"], said["label"], said["explanation"])
        if read is None:
            continue
        try:
            record_event(
                {
                    "session_id": session_id,
                    "type": read.type,
                    "value": read.value,
                    "payload": {"comment": read.comment} if read.comment else {},
                    "source": EventSource.USER,
                    "consent": session.consent,
                    "client_event_id": _event_id(session_id, said),
                    "created_at": _moment(said["at"]),
                }
            )
        except DomainError as error:  # one judgement must not cost the trace
            logger.warning("judgement_refused", session_id=session_id, reason=error.message)


def note_questions(session_ids: list[str], **_: Any) -> None:
    """Have these questions compared with those around them."""
    re_asks.note_questions(session_ids)


def follow_questions(session_ids: list[str], **_: Any) -> None:
    """Have bad cases found by what they ask now."""
    terms.owe(session_ids)


def rank_bad_case(session_id: str, **_: Any) -> None:
    """A rejected session's score has a say in what is judged first."""
    priority.refresh(session_id)


def note_language(user: Any, **_: Any) -> None:
    """Remember the language in which somebody signs in: mails to them speak it."""
    reports.remember_language(user.pk, get_language() or "")


def _event_id(session_id: str, judgement: Mapping[str, Any]) -> str:
    """The same for the same words about the same session."""
    words = [judgement[key] for key in ("name", "score", "label", "explanation", "id")]
    digest = hashlib.sha256(json.dumps([session_id, *words]).encode()).hexdigest()
    return f"trace-{digest[:32]}"


def _moment(at_ns: int) -> datetime | None:
    """When it was said; None where the clock said nothing, or what cannot be."""
    seconds = at_ns / 1_000_000_000
    return datetime.fromtimestamp(seconds, tz=UTC) if 0 < seconds <= timezone.now().timestamp() else None


def connect() -> None:
    """Called once, when the apps are ready."""
    signals.people_judged.connect(take_judgements, dispatch_uid="feedback_app.take_judgements")
    user_logged_in.connect(note_language, dispatch_uid="feedback_app.note_language")
    signals.session_scored.connect(rank_bad_case, dispatch_uid="feedback_app.rank_bad_case")
    signals.answers_changed.connect(follow_questions, dispatch_uid="feedback_app.follow_questions")
    signals.questions_asked.connect(note_questions, dispatch_uid="feedback_app.note_questions")
