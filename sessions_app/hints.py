"""Waking the worker. A hint may be lost: the row says what is owed, and the sweep reads the row.

So a hint never fails the request that gives it and never holds it up: a publish is bounded by the broker's socket
time-outs (`CELERY_BROKER_TRANSPORT_OPTIONS`), and after a failure none is tried for a few seconds, lest every request
of a busy service pay for a dead broker.
"""

import time
from functools import partial
from typing import Any

import structlog
from celery import Task
from django.db import transaction

logger = structlog.get_logger(__name__)

PAUSE_SECONDS = 5.0
_silent_until = 0.0


def hint_on_commit(task: Task[Any, Any], *args: Any) -> None:
    """Ask the worker to run `task` once the open transaction is committed; now, when there is none."""
    transaction.on_commit(partial(_publish, task, args), robust=True)


def _publish(task: Task[Any, Any], args: tuple[Any, ...]) -> None:
    global _silent_until
    if time.monotonic() < _silent_until:
        return
    try:
        task.apply_async(args=args, retry=False)
    except Exception as error:  # noqa: BLE001 - transports raise what they like; the sweep covers every case
        _silent_until = time.monotonic() + PAUSE_SECONDS
        logger.warning("hint_not_sent", task=task.name, error=type(error).__name__)
