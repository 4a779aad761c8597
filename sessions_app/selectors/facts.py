"""What happened in the tool calls of a session, in a few words."""

from __future__ import annotations

from typing import NamedTuple

from django.conf import settings
from django.db.models import Count, Q

from sessions_app import rules
from sessions_app.models import ToolInvocation


class CallFacts(NamedTuple):
    """Which of these happened in any call. A miss: there were retrievals, and none of them hit anything."""

    has_l0_hit: bool
    has_l1_hit: bool
    is_missed: bool
    is_truncated: bool
    has_failed_call: bool


def call_facts(session_id: str) -> CallFacts:
    """Counted from the rows, in one query."""
    counts = (
        ToolInvocation.objects.of(session_id)
        .order_by()
        .aggregate(
            l0=Count("pk", filter=rules.hits("L0")),
            l1=Count("pk", filter=rules.hits("L1")),
            retrievals=Count("pk", filter=rules.is_retrieval(settings.RETRIEVAL_TOOLS)),
            truncated=Count("pk", filter=Q(is_truncated=True)),
            failed=Count("pk", filter=Q(success=False)),
        )
    )
    hit = counts["l0"] + counts["l1"] > 0
    return CallFacts(
        has_l0_hit=counts["l0"] > 0,
        has_l1_hit=counts["l1"] > 0,
        is_missed=counts["retrievals"] > 0 and not hit,
        is_truncated=counts["truncated"] > 0,
        has_failed_call=counts["failed"] > 0,
    )
