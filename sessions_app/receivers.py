"""What this app does about its own news."""

from typing import Any

from sessions_app import signals, tasks
from sessions_app.hints import hint_on_commit

HINT_SESSIONS = 50
"""Sessions a message: a large batch is shared among the workers."""


def wake_evaluation(session_ids: list[str], **_: Any) -> None:
    """Ask the worker to score these sessions once they are committed."""
    for start in range(0, len(session_ids), HINT_SESSIONS):
        hint_on_commit(tasks.evaluate_sessions, session_ids[start : start + HINT_SESSIONS])


def connect() -> None:
    """Called once, when the apps are ready."""
    signals.facts_changed.connect(wake_evaluation, dispatch_uid="sessions_app.wake_evaluation")
