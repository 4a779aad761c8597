"""The wire form of feedback (contract 1)."""

from typing import Any

from rest_framework import serializers

from feedback_app.rules import EVENT_TYPES, MAX_EVENT_TEXT_CHARS
from sessions_app.models import Verdict
from sessions_app.wire.fields import FreeObjectField, IdField, MomentField, TextField
from sessions_app.wire.reports import PeriodSerializer
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


class CountsSerializer(serializers.Serializer[Any]):
    """Events of each kind."""

    def get_fields(self) -> Any:
        """One for each kind there is, under its name on the wire."""
        return {name: serializers.IntegerField() for name in EVENT_TYPES}


class ConfidenceSerializer(serializers.Serializer[Any]):
    """Wilson's score interval: between which percents a rate lies, at a level of confidence in percent."""

    level = serializers.IntegerField()
    low = serializers.FloatField()
    high = serializers.FloatField()


class SummarySerializer(serializers.Serializer[Any]):
    """What the feedback events of a period say. Null where there is nothing to divide.

    - `approvalRate`: percent of the thumbs that point up, every event counted; `approvalConfidence`: between which
      percents it lies with 95 % confidence (Wilson's score interval).
    - `avgStar`: 1 to 5. `avgEditDistance`: 0 to 1, of edits.
    - `reAskRate`: sessions whose question was asked again (`sessionsAskedAgain`, by the events of the period) in
      percent of the sessions created in the period.
    - `feedbackRate`: those of them that have any event, of whatever kind, from a user, a reviewer or the system, given
      at any time (`sessionsWithFeedback`); `explicitFeedbackRate`: the same with thumbs, stars or corrections only.
    """

    period = PeriodSerializer()
    approvalRate = serializers.FloatField(source="approval_rate", allow_null=True)
    approvalConfidence = ConfidenceSerializer(source="approval_confidence", allow_null=True)
    avgStar = serializers.FloatField(source="avg_star", allow_null=True)
    avgEditDistance = serializers.FloatField(source="avg_edit_distance", allow_null=True)
    correctionCount = serializers.IntegerField(source="correction_count")
    reAskRate = serializers.FloatField(source="re_ask_rate", allow_null=True)
    feedbackRate = serializers.FloatField(source="feedback_rate", allow_null=True)
    explicitFeedbackRate = serializers.FloatField(source="explicit_feedback_rate", allow_null=True)
    sessions = serializers.IntegerField()
    sessionsWithFeedback = serializers.IntegerField(source="sessions_with_feedback")
    sessionsWithExplicitFeedback = serializers.IntegerField(source="sessions_with_explicit_feedback")
    sessionsAskedAgain = serializers.IntegerField(source="sessions_asked_again")
    thumbsUp = serializers.IntegerField(source="thumbs_up")
    counts = CountsSerializer()


class FeedbackReportSerializer(SummarySerializer):
    """The summary of the whole period, and of each day or week of it where an interval was asked for."""

    agentId = serializers.CharField(allow_null=True)
    agentFlow = serializers.CharField(allow_null=True)
    interval = serializers.CharField()
    buckets = SummarySerializer(many=True)
