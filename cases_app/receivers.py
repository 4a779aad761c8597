"""Reactions to news of sessions."""

from typing import Any

from cases_app.services import creation
from sessions_app import signals


def follow_answers(session_ids: list[str], **_: Any) -> None:
    """Make the cases that waited for these answers, in the transaction that brings them."""
    creation.follow_answers(session_ids)


def connect() -> None:
    """Called once, when the apps are ready."""
    signals.answers_changed.connect(follow_answers, dispatch_uid="cases_app.follow_answers")
