"""Forgetting what has served its time. Apart from what makes it, so that the worker need not load that."""

from datetime import timedelta

from django.conf import settings
from django.db.models import Exists, OuterRef
from django.utils import timezone

from sessions_app.db import in_transaction
from sessions_app.models import DiagnosisSession, OtlpTrace

PRUNE_ROWS = 500


@in_transaction
def prune_quiet_traces() -> int:
    """Close the ledgers of sessions that nothing came for in OTLP_LEDGER_DAYS, some at a time; returns how many.

    Traces of no session are forgotten.
    """
    now = timezone.now()
    before = now - timedelta(days=settings.OTLP_LEDGER_DAYS)
    busy = OtlpTrace.objects.filter(session_id=OuterRef("session_id"), updated_at__gte=before)
    quiet = OtlpTrace.objects.filter(closed_at=None, updated_at__lt=before).exclude(Exists(busy)).order_by("updated_at")
    found = dict(quiet.values_list("trace_id", "session_id")[:PRUNE_ROWS])
    sessions = DiagnosisSession.objects.filter(session_id__in=set(found.values()))
    told = set(sessions.values_list("session_id", flat=True))
    still_quiet = OtlpTrace.objects.filter(trace_id__in=found, updated_at__lt=before)
    still_quiet.filter(session_id__in=told).update(spans=b"", closed_at=now)
    still_quiet.exclude(session_id__in=told).delete()
    return len(found)


def forget_session(session_id: str) -> None:
    """Forget the ledgers of a session that is deleted: they hold its texts."""
    OtlpTrace.objects.filter(session_id=session_id).delete()
