"""The wire form of sessions (contract 3). In: strict, snake_case out of it for the writer. Out: every column."""

from __future__ import annotations

from typing import Any, cast

from django.utils.translation import gettext_lazy as _
from rest_framework import serializers

from sessions_app.models import AgentStep, DiagnosisSession, RetrievalLayer, Status, ToolInvocation
from sessions_app.records import SessionData, StepKey
from sessions_app.wire.fields import (
    MAX_COUNT,
    SANITISED,
    CountField,
    FreeJSONField,
    FreeObjectField,
    IdField,
    MomentField,
    NameField,
    OutputField,
    TextField,
)
from sessions_app.wire.reports import AverageSerializer, PeriodSerializer, RateSerializer
from sessions_app.wire.serializers import StrictSerializer

_OPTIONAL: dict[str, Any] = {"required": False, "allow_null": True}


class StepRefSerializer(StrictSerializer):
    """Names a step by its place."""

    agentName = NameField(max_length=32)
    stepIndex = CountField()

    def to_internal_value(self, data: Any) -> StepKey:
        """The key of the step."""
        value = super().to_internal_value(data)
        return StepKey(value["agentName"], value["stepIndex"])


class InvocationInputSerializer(StrictSerializer):
    """One tool invocation, nested in its step."""

    invocationId = IdField(source="invocation_id", **_OPTIONAL)
    toolName = NameField(source="tool_name", max_length=64)
    inputParams = FreeJSONField(source="input_params", **_OPTIONAL)
    output = OutputField(help_text="Whole; kept are its length and the first 500 characters.", **_OPTIONAL)
    outputPreview = TextField(source="output_preview", **_OPTIONAL)
    outputLength = CountField(source="output_length", **_OPTIONAL)
    retrievalLayer = serializers.ChoiceField(source="retrieval_layer", choices=RetrievalLayer.choices, **_OPTIONAL)
    l0MatchCount = CountField(source="l0_match_count", **_OPTIONAL)
    l1MatchCount = CountField(source="l1_match_count", **_OPTIONAL)
    isTruncated = serializers.BooleanField(source="is_truncated", **_OPTIONAL)
    retrievalDetails = FreeJSONField(source="retrieval_details", **_OPTIONAL)
    durationMs = CountField(source="duration_ms", **_OPTIONAL)
    success = serializers.BooleanField(**_OPTIONAL)
    errorMessage = TextField(source="error_message", **_OPTIONAL)
    startedAt = MomentField(source="started_at", **_OPTIONAL)


class LooseInvocationInputSerializer(InvocationInputSerializer):
    """One tool invocation sent on its own; `step` says which step asked for it."""

    step = StepRefSerializer(**_OPTIONAL)


class StepInputSerializer(StrictSerializer):
    """One step with its tool invocations."""

    agentName = NameField(source="agent_name", max_length=32)
    stepIndex = CountField(source="step_index")
    parentStep = StepRefSerializer(source="parent_step", **_OPTIONAL)
    modelName = TextField(source="model_name", max_length=128, **_OPTIONAL)
    modelInput = FreeJSONField(source="model_input", **_OPTIONAL)
    modelOutput = FreeJSONField(source="model_output", **_OPTIONAL)
    thought = TextField(**_OPTIONAL)
    hasToolCall = serializers.BooleanField(source="has_tool_call", **_OPTIONAL)
    durationMs = CountField(source="duration_ms", **_OPTIONAL)
    tokenCount = CountField(source="token_count", **_OPTIONAL)
    inputTokens = CountField(source="input_tokens", **_OPTIONAL)
    outputTokens = CountField(source="output_tokens", **_OPTIONAL)
    spanId = IdField(source="span_id", **_OPTIONAL)
    startedAt = MomentField(source="started_at", **_OPTIONAL)
    toolInvocations = InvocationInputSerializer(source="tool_invocations", many=True, required=False)


class SessionFieldsSerializer(StrictSerializer):
    """What a session says of itself, without its id: the body of a PATCH."""

    query = TextField(**_OPTIONAL)
    status = serializers.ChoiceField(choices=Status.choices, **_OPTIONAL)
    agentFlow = NameField(source="agent_flow", max_length=32, **_OPTIONAL)
    answer = TextField(**_OPTIONAL)
    selfEvaluation = FreeObjectField(source="self_evaluation", **_OPTIONAL)
    agentId = IdField(source="agent_id", **_OPTIONAL)
    conversationId = IdField(source="conversation_id", **_OPTIONAL)
    userRef = IdField(source="user_ref", **_OPTIONAL)
    consent = serializers.BooleanField(**_OPTIONAL)
    startedAt = MomentField(source="started_at", **_OPTIONAL)
    finishedAt = MomentField(source="finished_at", **_OPTIONAL)
    metadata = FreeObjectField(**_OPTIONAL)
    totalDurationMs = CountField(source="total_duration_ms", **_OPTIONAL)
    totalTokenCount = serializers.IntegerField(
        source="total_token_count", min_value=0, max_value=MAX_COUNT**2, **_OPTIONAL
    )
    stepCount = CountField(source="step_count", **_OPTIONAL)
    toolCallCount = CountField(source="tool_call_count", **_OPTIONAL)


class SessionInputSerializer(SessionFieldsSerializer):
    """A session, whole or just opened."""

    sessionId = IdField(source="session_id")
    steps = StepInputSerializer(many=True, required=False)
    toolInvocations = LooseInvocationInputSerializer(source="tool_invocations", many=True, required=False)


class SessionReader:
    """Reads whole sessions from their wire form, one after another; making it costs more than reading one."""

    def __init__(self) -> None:
        self._serializer = SessionInputSerializer(context={})

    def read(self, data: object) -> SessionData:
        """One session. Raises serializers.ValidationError."""
        context: Any = self._serializer.context
        context[SANITISED] = False
        validated = self._serializer.run_validation(data)
        return cast("SessionData", {**validated, "is_sanitised": context[SANITISED]})


def session_fields(session_id: str, data: object) -> SessionData:
    """What a PATCH says of a session. Raises serializers.ValidationError."""
    serializer = SessionFieldsSerializer(data=data)
    serializer.is_valid(raise_exception=True)
    is_sanitised = bool(serializer.context.get(SANITISED))
    return cast("SessionData", {**serializer.validated_data, "session_id": session_id, "is_sanitised": is_sanitised})


def child_data(serializer_class: type[StrictSerializer], data: object) -> tuple[list[Any], bool]:
    """Steps or invocations, one or a list, and whether any text was sanitised. Raises serializers.ValidationError."""
    if not isinstance(data, dict | list) or not data:
        raise serializers.ValidationError(_("Expected a JSON object, or a list of at least one."))
    many = isinstance(data, list)
    serializer = serializer_class(data=data, many=many)
    serializer.is_valid(raise_exception=True)
    items = serializer.validated_data if many else [serializer.validated_data]
    return list(items), bool(serializer.context.get(SANITISED))


# -- out -------------------------------------------------------------------------------------------------------------


class InvocationSerializer(serializers.ModelSerializer[ToolInvocation]):
    """One `tool_invocation` row."""

    invocationId = IdField(source="invocation_id")
    toolName = serializers.CharField(source="tool_name")
    inputParams = serializers.JSONField(source="input_params")
    outputPreview = serializers.CharField(source="output_preview")
    outputLength = serializers.IntegerField(source="output_length")
    retrievalLayer = serializers.CharField(source="retrieval_layer")
    l0MatchCount = serializers.IntegerField(source="l0_match_count")
    l1MatchCount = serializers.IntegerField(source="l1_match_count")
    isTruncated = serializers.BooleanField(source="is_truncated")
    retrievalDetails = serializers.JSONField(source="retrieval_details")
    durationMs = serializers.IntegerField(source="duration_ms")
    errorMessage = serializers.CharField(source="error_message")
    startedAt = MomentField(source="started_at")
    createdAt = MomentField(source="created_at")

    class Meta:
        model = ToolInvocation
        fields = (
            "invocationId", "toolName", "inputParams", "outputPreview", "outputLength", "retrievalLayer",
            "l0MatchCount", "l1MatchCount", "isTruncated", "retrievalDetails", "durationMs", "success",
            "errorMessage", "startedAt", "createdAt",
        )  # fmt: skip


class StepSerializer(serializers.ModelSerializer[AgentStep]):
    """One `agent_step` row with the invocations it asked for."""

    stepIndex = serializers.IntegerField(source="step_index")
    agentName = serializers.CharField(source="agent_name")
    parentStep = serializers.SerializerMethodField()
    modelName = serializers.CharField(source="model_name")
    modelInput = serializers.JSONField(source="model_input")
    modelOutput = serializers.JSONField(source="model_output")
    hasToolCall = serializers.BooleanField(source="has_tool_call")
    durationMs = serializers.IntegerField(source="duration_ms")
    tokenCount = serializers.IntegerField(source="token_count")
    inputTokens = serializers.IntegerField(source="input_tokens")
    outputTokens = serializers.IntegerField(source="output_tokens")
    spanId = IdField(source="span_id")
    startedAt = MomentField(source="started_at")
    createdAt = MomentField(source="created_at")
    toolInvocations = InvocationSerializer(source="tool_invocations.all", many=True)

    class Meta:
        model = AgentStep
        fields = (
            "agentName", "stepIndex", "parentStep", "modelName", "modelInput", "modelOutput", "thought", "hasToolCall",
            "durationMs", "tokenCount", "inputTokens", "outputTokens", "spanId", "startedAt", "createdAt",
            "toolInvocations",
        )  # fmt: skip

    def get_parentStep(self, step: AgentStep) -> dict[str, Any] | None:
        """The step that called this one, by its place."""
        parent = step.parent_step
        return {"agentName": parent.agent_name, "stepIndex": parent.step_index} if parent else None


class SessionRowSerializer(serializers.ModelSerializer[DiagnosisSession]):
    """A session as lists show it: every column but the long ones."""

    sessionId = IdField(source="session_id")
    agentFlow = serializers.CharField(source="agent_flow")
    agentId = IdField(source="agent_id")
    conversationId = IdField(source="conversation_id")
    userRef = IdField(source="user_ref")
    totalDurationMs = serializers.IntegerField(source="total_duration_ms")
    totalTokenCount = serializers.IntegerField(source="total_token_count")
    stepCount = serializers.IntegerField(source="step_count")
    toolCallCount = serializers.IntegerField(source="tool_call_count")
    selfEvaluation = serializers.JSONField(source="self_evaluation")
    evidenceScore = serializers.IntegerField(source="evidence_score")
    isEvaluationPending = serializers.BooleanField(source="is_evaluation_pending")
    evaluationError = serializers.CharField(source="evaluation_error")
    isSanitised = serializers.BooleanField(source="is_sanitised")
    createdAt = MomentField(source="created_at")
    updatedAt = MomentField(source="updated_at")
    startedAt = MomentField(source="started_at")
    finishedAt = MomentField(source="finished_at")

    class Meta:
        model = DiagnosisSession
        fields: tuple[str, ...] = (
            "sessionId", "query", "status", "agentFlow", "agentId", "conversationId", "userRef", "consent",
            "totalDurationMs", "totalTokenCount", "stepCount", "toolCallCount", "selfEvaluation", "evidenceScore",
            "isEvaluationPending", "evaluationError", "feedback", "isSanitised", "createdAt", "updatedAt",
            "startedAt", "finishedAt",
        )  # fmt: skip


class SessionSerializer(SessionRowSerializer):
    """A session with its answer, steps and invocations."""

    steps = StepSerializer(source="chain", many=True)
    toolInvocations = InvocationSerializer(source="loose_invocations", many=True)

    class Meta(SessionRowSerializer.Meta):
        fields = (*SessionRowSerializer.Meta.fields, "answer", "metadata", "steps", "toolInvocations")


class OpenedSerializer(serializers.Serializer[Any]):
    """Answer to opening or changing a session."""

    sessionId = serializers.CharField(source="session_id")
    status = serializers.CharField()
    feedbackToken = serializers.CharField(source="feedback_token")


class StoredSerializer(serializers.Serializer[Any]):
    """Answer to steps or invocations sent on their own."""

    accepted = serializers.IntegerField()
    invocationIds = serializers.ListField(child=serializers.CharField(), required=False)


class RejectedSerializer(serializers.Serializer[Any]):
    """One item of a batch that was not taken."""

    index = serializers.IntegerField()
    sessionId = serializers.CharField(allow_null=True)
    errors = serializers.DictField(child=serializers.ListField(child=serializers.CharField()))  # type: ignore[assignment]


class BatchSerializer(serializers.Serializer[Any]):
    """Answer to a batch."""

    accepted = serializers.IntegerField()
    rejected = RejectedSerializer(many=True)


# -- metrics ---------------------------------------------------------------------------------------------------------


class ToolAdoptionSerializer(serializers.Serializer[Any]):
    """Tools accepted of those proposed, over the sessions that said both."""

    value = serializers.FloatField(source="tool_adoption.value", allow_null=True)
    numerator = serializers.IntegerField(source="tool_adoption.numerator")
    denominator = serializers.IntegerField(source="tool_adoption.denominator")
    sessions = serializers.IntegerField(source="adoption_sessions")


class RetrievalsSerializer(serializers.Serializer[Any]):
    """Where retrievals hit. `none`: a retrieval tool that said neither its layer nor a count."""

    total = serializers.IntegerField()
    l0Only = serializers.IntegerField(source="l0_only")
    l1Only = serializers.IntegerField(source="l1_only")
    both = serializers.IntegerField()
    miss = serializers.IntegerField()
    none = serializers.IntegerField(source="unsaid")


class StepDurationSerializer(serializers.Serializer[Any]):
    """How long one agent's steps take on average."""

    agentName = serializers.CharField(source="agent_name")
    averageDurationMs = AverageSerializer(source="duration_ms")


class ConfidentSerializer(serializers.ModelSerializer[DiagnosisSession]):
    """A session that was sure of itself."""

    sessionId = IdField(source="session_id")
    evidenceScore = serializers.IntegerField(source="evidence_score")
    createdAt = MomentField(source="created_at")

    class Meta:
        model = DiagnosisSession
        fields = ("sessionId", "confidence", "evidenceScore", "createdAt")


class ConfidentButRejectedSerializer(serializers.Serializer[Any]):
    """Sessions more than 80 % sure of themselves, yet rejected: how many, and the newest of them."""

    count = serializers.IntegerField()
    newest = ConfidentSerializer(many=True)


class MetricsSerializer(serializers.Serializer[Any]):
    """The six metrics and the aggregate questions of one period. Rates are shares from 0 to 1."""

    period = PeriodSerializer()
    agentFlow = serializers.CharField(allow_null=True)
    agentName = serializers.CharField(allow_null=True)
    sessions = serializers.IntegerField(source="figures.sessions")
    averageDurationMs = AverageSerializer(source="figures.duration_ms")
    averageTokens = AverageSerializer(source="figures.tokens")
    toolAdoptionRate = ToolAdoptionSerializer(source="figures")
    l0HitRate = RateSerializer(source="retrievals.l0_hit_rate")
    truncationRate = RateSerializer(source="retrievals.truncation_rate")
    satisfactionRate = RateSerializer(source="figures.satisfaction")
    retrievals = RetrievalsSerializer()
    stepDurations = StepDurationSerializer(source="step_durations", many=True)
    confidentButRejected = ConfidentButRejectedSerializer(source="confident_but_rejected")
