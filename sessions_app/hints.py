"""Waking the worker. A hint may be lost: the row says what is owed, and the sweep reads the row.

So a hint never fails the request that gives it and never holds it up: a thread of its own publishes. Hints that come
close together go as one message, lest a busy service spend its time on waking. A publish is bounded by the broker's
socket time-outs (`CELERY_BROKER_TRANSPORT_OPTIONS`), and after a failure none is tried for a few seconds.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from functools import partial
from typing import Any

import structlog
from celery import Task
from django.db import transaction

logger = structlog.get_logger(__name__)

GATHER_SECONDS = 0.2
PAUSE_SECONDS = 5.0
MESSAGE_IDS = 50
"""Ids a message: a large batch is shared among the workers."""


def hint_on_commit(task: Task[Any, Any], ids: Sequence[str] | None = None) -> None:
    """Ask the worker to run `task` once the open transaction is committed; now, when there is none.

    The task takes a list of `ids`, or nothing.
    """
    transaction.on_commit(partial(_messenger.give, task, ids), robust=True)


class _Messenger:
    """Publishes what is waiting from a thread that lives while something is; at exit Python waits for it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._waiting: dict[Task[Any, Any], dict[str, None] | None] = {}
        self._thread: threading.Thread | None = None
        self._silent_until = 0.0

    def give(self, task: Task[Any, Any], ids: Sequence[str] | None) -> None:
        """Take a hint; back at once."""
        with self._lock:
            self._waiting[task] = None if ids is None else (self._waiting.get(task) or {}) | dict.fromkeys(ids)
            if self._thread is None or not self._thread.is_alive():  # a fork leaves the thread behind
                self._thread = threading.Thread(target=self._publish_all, name="hints")
                self._thread.start()

    def _publish_all(self) -> None:
        while True:
            time.sleep(GATHER_SECONDS)
            with self._lock:
                waiting, self._waiting = self._waiting, {}
                if not waiting:
                    self._thread = None
                    return
            for task, ids in waiting.items():
                self._publish(task, ids)

    def _publish(self, task: Task[Any, Any], ids: dict[str, None] | None) -> None:
        names = list(ids or ())
        parts = [(names[at : at + MESSAGE_IDS],) for at in range(0, len(names), MESSAGE_IDS)]
        for arguments in [()] if ids is None else parts:
            if time.monotonic() < self._silent_until:
                return
            try:
                task.apply_async(args=arguments, retry=False)
            except Exception as error:  # noqa: BLE001 - transports raise what they like; the sweep covers every case
                self._silent_until = time.monotonic() + PAUSE_SECONDS
                logger.warning("hint_not_sent", task=task.name, error=type(error).__name__)


_messenger = _Messenger()
