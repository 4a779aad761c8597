"""Celery doors of this app. Each task may run twice, late or not at all."""

import time

from celery import shared_task

from cases_app.services import bulk
from sessions_app.hints import hint_on_commit

RUN_SECONDS = 10
"""Half of the soft time limit of a task."""


@shared_task
def run_bulk_jobs() -> None:
    """Go on with the bulk jobs that are due; what is left waits for the next message or sweep.

    Who stopped for want of time asks to go on at once. Who found all parts taken does not: idle workers would keep
    waking each other.
    """
    until = time.monotonic() + RUN_SECONDS
    if bulk.run_jobs(until=until) and time.monotonic() >= until:
        hint_on_commit(run_bulk_jobs)


@shared_task
def forget_bulk_jobs() -> None:
    """Forget jobs that nobody confirmed, and old ones."""
    bulk.forget_jobs()
