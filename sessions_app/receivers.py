"""What this app does about its own news."""

from typing import Any

from django.db.models.signals import post_delete

from sessions_app import signals, tasks
from sessions_app.hints import hint_on_commit
from sessions_app.models import DiagnosisSession
from sessions_app.services import pruning


def wake_evaluation(session_ids: list[str], **_: Any) -> None:
    """Ask the worker to score these sessions once they are committed."""
    hint_on_commit(tasks.evaluate_sessions, session_ids)


def wake_indexing(**_: Any) -> None:
    """Ask the worker to write the terms that are owed once they are committed."""
    hint_on_commit(tasks.write_terms)


def forget_traces(instance: DiagnosisSession, **_: Any) -> None:
    """Whoever deletes a session deletes the spans it was derived from."""
    pruning.forget_session(instance.session_id)


def connect() -> None:
    """Called once, when the apps are ready."""
    post_delete.connect(forget_traces, sender=DiagnosisSession, dispatch_uid="sessions_app.forget_traces")
    signals.facts_changed.connect(wake_evaluation, dispatch_uid="sessions_app.wake_evaluation")
    signals.terms_owed.connect(wake_indexing, dispatch_uid="sessions_app.wake_indexing")
