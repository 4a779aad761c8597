"""The wire form of feedback (contract 1)."""

from typing import Any

from rest_framework import serializers

from feedback_app.rules import EVENT_TYPES, MAX_EVENT_TEXT_CHARS
from sessions_app.models import Verdict
from sessions_app.wire.fields import FreeObjectField, IdField, MomentField, TextField
from sessions_app.wire.serializers import StrictSerializer


class VerdictInputSerializer(StrictSerializer):
    """`POST /api/feedback`."""

    sessionId = IdField(source="session_id")
    feedback = serializers.ChoiceField(source="verdict", choices=Verdict.choices)
    comment = TextField(required=False, allow_null=True, max_length=MAX_EVENT_TEXT_CHARS)
    token = serializers.CharField(
        required=False, write_only=True, max_length=300, help_text="The session's token, when FEEDBACK_AUTH=token."
    )


class VerdictOutcomeSerializer(serializers.Serializer[Any]):
    """Its answer."""

    success = serializers.BooleanField()
    message = serializers.CharField()
    caseId = serializers.UUIDField(allow_null=True)


class EventInputSerializer(StrictSerializer):
    """One feedback event."""

    sessionId = IdField(source="session_id")
    type = serializers.ChoiceField(choices=[(name, name) for name in EVENT_TYPES])
    value = serializers.JSONField(required=False, allow_null=True)
    payload = FreeObjectField(required=False, default=dict)
    turnId = IdField(source="turn_id", required=False, allow_null=True)
    agentId = IdField(source="agent_id", required=False, allow_null=True)
    clientEventId = IdField(source="client_event_id", required=False, allow_null=True)
    consent = serializers.BooleanField(required=False)
    createdAt = MomentField(source="created_at", required=False, allow_null=True)
    token = serializers.CharField(required=False, write_only=True, max_length=300)


class EventRejectionSerializer(serializers.Serializer[Any]):
    """One event that was not taken."""

    index = serializers.IntegerField()
    errors = serializers.DictField(child=serializers.ListField(child=serializers.CharField()))  # type: ignore[assignment]


class EventsOutcomeSerializer(serializers.Serializer[Any]):
    """Answer to `POST /api/feedback/events`."""

    accepted = serializers.IntegerField()
    rejected = EventRejectionSerializer(many=True)
