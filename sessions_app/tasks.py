"""Celery doors of this app. Arguments are ids; each task may run twice, late or not at all."""

import time

from celery import shared_task

from sessions_app.hints import hint_on_commit
from sessions_app.services import evaluation, indexing, pruning

WRITE_SECONDS = 5
"""Then others have their turn: scoring is more urgent than search."""


@shared_task
def evaluate_sessions(session_ids: list[str]) -> None:
    """Score these sessions, those of them that still owe a score."""
    for session_id in session_ids:
        evaluation.evaluate_session(session_id)


@shared_task
def sweep_evaluations() -> None:
    """Score what no message spoke of, and show that the worker works."""
    evaluation.beat("worker")
    evaluation.evaluate_due()


@shared_task
def write_terms() -> None:
    """Have objects found by what their texts say now."""
    if indexing.write_due(until=time.monotonic() + WRITE_SECONDS):
        hint_on_commit(write_terms)


@shared_task
def prune_traces() -> None:
    """Forget the spans of traces that have long been quiet."""
    while pruning.prune_quiet_traces() == pruning.PRUNE_ROWS:
        pass
