"""What reports and lists may be asked for in a query string."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

import django_filters
from django import forms
from django.core.exceptions import ValidationError
from django.utils.translation import gettext as _
from drf_spectacular.utils import OpenApiParameter
from rest_framework import serializers
from rest_framework.request import Request

from sessions_app.models import DiagnosisSession
from sessions_app.selectors.slices import Period
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


class ReportFilter(django_filters.FilterSet):
    """What every report may be narrowed to. `read` gives the values; the report's selector does the filtering."""

    class Meta:
        model = DiagnosisSession
        fields: list[str] = []

    @classmethod
    def get_filters(cls) -> Any:
        """`from` is a word of Python's, so it cannot be a class attribute."""
        shared = {"from": MomentFilter(), "to": MomentFilter(), "agentFlow": django_filters.CharFilter(max_length=32)}
        return {**shared, **super().get_filters()}

    @classmethod
    def read(cls, request: Request) -> dict[str, Any]:
        """The values by wire name, and the `period` they speak of.

        A parameter that is not known is an error that names it: a typo would give the figures of something else.
        Raises serializers.ValidationError, InvalidInputError.
        """
        form = cls(request.query_params, queryset=DiagnosisSession.objects.none()).form
        if unknown := [name for name in request.query_params if name not in form.fields]:
            raise serializers.ValidationError({name: [_("Unknown parameter.")] for name in unknown[:20]})
        if not form.is_valid():
            raise serializers.ValidationError({name: list(errors) for name, errors in form.errors.items()})
        values = {name: value or None for name, value in form.cleaned_data.items()}
        return {**values, "period": Period.given(values["from"], values["to"])}


REPORT_PARAMETERS: Sequence[OpenApiParameter] = [
    OpenApiParameter("from", str, description="ISO 8601, inclusive. Default: 30 days before `to`."),
    OpenApiParameter("to", str, description="ISO 8601, exclusive. Default: now."),
    OpenApiParameter("agentFlow", str),
]
