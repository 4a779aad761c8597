"""Filters of the session list."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import django_filters
from django import forms
from django.core.exceptions import ValidationError
from rest_framework import serializers

from sessions_app.models import DiagnosisSession, Status, Verdict
from sessions_app.wire.fields import MomentField
from sessions_app.wire.serializers import flatten_errors


class _MomentFormField(forms.Field):
    """ISO 8601 as everywhere in the API; a date alone is its midnight, UTC."""

    def to_python(self, value: Any) -> datetime | None:
        if value in self.empty_values:
            return None
        text = f"{value}T00:00:00Z" if len(value) == len("2026-01-31") else str(value).replace(" ", "+")
        try:
            moment: datetime = MomentField().run_validation(text)
        except serializers.ValidationError as error:
            raise ValidationError(
                [m for messages in flatten_errors(error.detail).values() for m in messages]
            ) from error
        return moment.astimezone(UTC)


class MomentFilter(django_filters.Filter):
    """A moment in a query string."""

    field_class = _MomentFormField


class SessionFilter(django_filters.FilterSet):
    """`from` and `to` bound `createdAt`: from inclusive, to exclusive."""

    status = django_filters.ChoiceFilter(choices=Status.choices)
    agentFlow = django_filters.CharFilter("agent_flow")
    agentId = django_filters.CharFilter("agent_id")
    conversationId = django_filters.CharFilter("conversation_id")
    userRef = django_filters.CharFilter("user_ref")
    feedback = django_filters.ChoiceFilter(choices=Verdict.choices)
    minScore = django_filters.NumberFilter("evidence_score", lookup_expr="gte")
    maxScore = django_filters.NumberFilter("evidence_score", lookup_expr="lte")

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
