"""Forgetting what has served its time. Apart from what makes it, so that the worker need not load that."""

from datetime import timedelta

from django.conf import settings
from django.utils import timezone

from sessions_app.db import in_transaction
from sessions_app.models import OtlpTrace

PRUNE_ROWS = 500


@in_transaction
def prune_quiet_traces() -> int:
    """Forget ledgers that nothing was added to for OTLP_LEDGER_DAYS, some at a time; returns how many."""
    before = timezone.now() - timedelta(days=settings.OTLP_LEDGER_DAYS)
    quiet = OtlpTrace.objects.filter(updated_at__lt=before).order_by("updated_at")
    ids = list(quiet.values_list("trace_id", flat=True)[:PRUNE_ROWS])
    OtlpTrace.objects.filter(trace_id__in=ids, updated_at__lt=before).delete()
    return len(ids)
