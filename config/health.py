"""`/healthz`: the process answers. `/readyz`: the product can do its work, part by part. No secrets in either."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

from django.db import connection
from django.http import HttpRequest, JsonResponse
from django.utils import timezone
from django.views.decorators.cache import never_cache

from config.celery import app as celery_app
from sessions_app.models import DiagnosisSession, Heartbeat

WORKER_SILENCE = timedelta(seconds=12)
"""Two sweeps missed: beat, broker or worker stands still."""


@never_cache
def healthz(request: HttpRequest) -> JsonResponse:
    """Alive."""
    return JsonResponse({"status": "ok"})


@never_cache
def readyz(request: HttpRequest) -> JsonResponse:
    """200 when every part works, else 503; which part, and since when the oldest session waits for its score."""
    parts = {name: _state(check) for name, check in _CHECKS.items()}
    ready = all(state == "ok" for state in parts.values())
    body: dict[str, Any] = {"status": "ok" if ready else "unavailable", "parts": parts}
    if parts["database"] == "ok":
        body["oldestUnscoredSeconds"] = _oldest_debt_seconds()
    return JsonResponse(body, status=200 if ready else 503)


def _state(check: Callable[[], str]) -> str:
    try:
        return check()
    except Exception as error:  # noqa: BLE001 - whatever fails in a part is that part's state
        return type(error).__name__


def _database() -> str:
    with connection.cursor() as cursor:
        cursor.execute("SELECT 1")
    return "ok"


def _broker() -> str:
    with celery_app.connection_for_write() as broker:
        broker.ensure_connection(max_retries=0, timeout=1)
    return "ok"


def _worker() -> str:
    seen_at = Heartbeat.objects.values_list("seen_at", flat=True).filter(name="worker").first()
    if seen_at is None:
        return "never seen"
    silence = timezone.now() - seen_at
    return "ok" if silence < WORKER_SILENCE else f"silent for {int(silence.total_seconds())} s"


_CHECKS: dict[str, Callable[[], str]] = {"database": _database, "broker": _broker, "worker": _worker}


def _oldest_debt_seconds() -> int:
    due = DiagnosisSession.objects.filter(evaluation_due_at__isnull=False).order_by("evaluation_due_at")
    oldest = due.values_list("evaluation_due_at", flat=True).first()
    return max(0, int((timezone.now() - oldest).total_seconds())) if oldest else 0
