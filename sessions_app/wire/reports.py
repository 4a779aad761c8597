"""What reports are made of, on the wire."""

from typing import Any

from rest_framework import serializers

from sessions_app.wire.fields import MomentField


class PeriodSerializer(serializers.Serializer[Any]):
    """The period a report speaks of: `from` inclusive, `to` exclusive."""

    to = MomentField(source="end")

    def get_fields(self) -> Any:
        """`from` is a word of Python's, so it cannot be a class attribute."""
        return {"from": MomentField(source="start"), **super().get_fields()}


class AverageSerializer(serializers.Serializer[Any]):
    """A mean and the number of values it is made of; null of none."""

    value = serializers.FloatField(allow_null=True)
    count = serializers.IntegerField()


class RateSerializer(serializers.Serializer[Any]):
    """A share from 0 to 1 and what was divided; null where there is nothing to divide."""

    value = serializers.FloatField(allow_null=True)
    numerator = serializers.IntegerField()
    denominator = serializers.IntegerField()
