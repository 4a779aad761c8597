"""Filters of the session list and of the metrics."""

from __future__ import annotations

from typing import Any

import django_filters

from sessions_app.models import DiagnosisSession, Status, Verdict
from sessions_app.rules import MAX_SCORE, MIN_SCORE
from sessions_app.wire.filters import MomentFilter, ReportFilter

_SCORE: dict[str, Any] = {"min_value": MIN_SCORE, "max_value": MAX_SCORE, "decimal_places": 0}
"""Whole and bounded: `-1e9999999` would be written out digit by digit."""


class MetricsFilter(ReportFilter):
    """Of `/api/metrics`."""

    agentName = django_filters.CharFilter(max_length=32)


class SessionFilter(django_filters.FilterSet):
    """`from` and `to` bound `createdAt`: from inclusive, to exclusive."""

    status = django_filters.ChoiceFilter(choices=Status.choices)
    agentFlow = django_filters.CharFilter("agent_flow")
    agentId = django_filters.CharFilter("agent_id")
    conversationId = django_filters.CharFilter("conversation_id")
    userRef = django_filters.CharFilter("user_ref")
    feedback = django_filters.ChoiceFilter(choices=Verdict.choices)
    minScore = django_filters.NumberFilter("evidence_score", lookup_expr="gte", **_SCORE)
    maxScore = django_filters.NumberFilter("evidence_score", lookup_expr="lte", **_SCORE)

    class Meta:
        model = DiagnosisSession
        fields: list[str] = []

    @classmethod
    def get_filters(cls) -> Any:
        """`from` is a word of Python's, so it cannot be a class attribute."""
        filters = super().get_filters()
        filters["from"] = MomentFilter("created_at", lookup_expr="gte")
        filters["to"] = MomentFilter("created_at", lookup_expr="lt")
        return filters
