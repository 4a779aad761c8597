"""What an agent did: sessions, their steps and tool invocations; the keys that may record and read them.

Column names are the design document's. Children refer to a session by its external `session_id`, so that the design's
own SQL (`SELECT … FROM tool_invocation WHERE session_id = ?`) works as written and no writer needs a key first.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any, TypeVar

from django.conf import settings
from django.db import models
from django.db.models import Q
from django.http import QueryDict
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from sessions_app.fields import ExactCharField, IdField, Utf8JSONField

PartT = TypeVar("PartT", bound=models.Model)


class Status(models.TextChoices):
    """How the run went: PENDING → RUNNING → SUCCESS | FAILED. Never touched by feedback, never goes back."""

    PENDING = "PENDING", _("Pending")
    RUNNING = "RUNNING", _("Running")
    SUCCESS = "SUCCESS", _("Success")
    FAILED = "FAILED", _("Failed")


FINISHED = (Status.SUCCESS, Status.FAILED)


class AgentFlow(models.TextChoices):
    """The flows the design names. Others are stored as they come."""

    CHAT = "CHAT", _("Chat")
    AI_OPS = "AI_OPS", _("Alert analysis")


class Verdict(models.TextChoices):
    """What a person said of the answer."""

    USEFUL = "useful", _("Useful")
    NOT_USEFUL = "not_useful", _("Not useful")


class RetrievalLayer(models.TextChoices):
    """Where a retrieval looked: by exact key (L0), by meaning (L1)."""

    L0 = "L0", "L0"
    L1 = "L1", "L1"
    BOTH = "L0+L1", "L0+L1"


class DiagnosisSessionQuerySet(models.QuerySet["DiagnosisSession"]):
    """Questions about sessions."""

    def finished(self) -> DiagnosisSessionQuerySet:
        """Runs that came to an end, well or not."""
        return self.filter(status__in=FINISHED)

    def bad_cases(self) -> DiagnosisSessionQuerySet:
        """Sessions whose reader said the answer was not useful."""
        return self.filter(feedback=Verdict.NOT_USEFUL)

    def answered(self) -> DiagnosisSessionQuerySet:
        """Sessions that have an answer."""
        return self.exclude(answer=None).exclude(answer="")

    def evaluation_owed(self, now: datetime) -> DiagnosisSessionQuerySet:
        """Sessions that owe a score and that no worker holds."""
        unclaimed = Q(evaluation_claimed_until=None) | Q(evaluation_claimed_until__lt=now)
        return self.filter(unclaimed, evaluation_due_at__lte=now)

    def evaluation_pending(self) -> DiagnosisSessionQuerySet:
        """Sessions that owe a score, whoever holds them."""
        return self.exclude(evaluation_due_at=None)

    def evaluation_failed(self) -> DiagnosisSessionQuerySet:
        """Sessions whose last attempt at scoring failed: none follows unless facts change or somebody asks."""
        return self.filter(evaluation_due_at=None, evaluation_attempts__gt=0)


class DiagnosisSession(models.Model):
    """One diagnosis: one question, one answer.

    `self_evaluation` holds what the agent said of itself, with the rules' verdict merged over it:
    `{"confidence": 0-100, "reasoning", "evidence_count", "tools_proposed", "tools_accepted",
    "evidence_score": 0-100, "source": "rule", "factors": [{"name", "delta", "description"}]}`.
    `evidence_score`, `confidence` and the two counts of tools repeat its values as columns, for lists and figures.
    """

    id = models.BigAutoField(primary_key=True)
    session_id = IdField(_("session id"), unique=True)
    query = models.TextField(_("question"), blank=True, default="")
    status = models.CharField(_("status"), max_length=16, choices=Status, default=Status.PENDING)
    agent_flow = ExactCharField(_("agent flow"), max_length=32, null=True, blank=True)
    total_duration_ms = models.PositiveBigIntegerField(_("duration (ms)"), null=True)
    total_token_count = models.PositiveBigIntegerField(_("tokens"), null=True)
    step_count = models.PositiveIntegerField(_("steps"), null=True)
    tool_call_count = models.PositiveIntegerField(_("tool calls"), null=True)
    self_evaluation = Utf8JSONField(_("self evaluation"), null=True)
    feedback = models.CharField(_("feedback"), max_length=16, choices=Verdict, null=True, blank=True)
    answer = models.TextField(_("answer"), null=True, blank=True)
    # The agent's own start where it gives one, so that runs loaded later stand where they happened; else receipt.
    created_at = models.DateTimeField(_("created at"), default=timezone.now)
    updated_at = models.DateTimeField(_("updated at"), auto_now=True)

    agent_id = IdField(_("agent"), null=True, blank=True)
    conversation_id = IdField(_("conversation"), null=True, blank=True)
    user_ref = IdField(_("user"), null=True, blank=True, help_text=_("A pseudonym, never a name."))
    consent = models.BooleanField(_("consent"), default=True, help_text=_("Whether the text may be exported."))
    started_at = models.DateTimeField(_("started at"), null=True)
    finished_at = models.DateTimeField(_("finished at"), null=True)
    metadata = Utf8JSONField(_("metadata"), default=dict, blank=True)
    # Totals the caller sent itself; the others follow our own rows.
    reported_totals = Utf8JSONField(default=dict, blank=True, editable=False)
    is_sanitised = models.BooleanField(
        _("sanitised"), default=False, help_text=_("Characters that no database holds became U+FFFD.")
    )

    evidence_score = models.PositiveSmallIntegerField(_("evidence score"), null=True)
    confidence = models.FloatField(_("confidence"), null=True)
    # Both or neither, and only when they make sense (`rules.stated_adoption`).
    tools_proposed = models.PositiveIntegerField(_("tools proposed"), null=True)
    tools_accepted = models.PositiveIntegerField(_("tools accepted"), null=True)
    # When a score became due; null when none is owed. The row is the queue, the broker only a hint.
    evaluation_due_at = models.DateTimeField(_("score due at"), null=True)
    evaluation_claimed_until = models.DateTimeField(null=True)
    evaluation_attempts = models.PositiveSmallIntegerField(_("scoring attempts"), default=0)
    evaluation_error = models.TextField(_("why there is no score"), blank=True, default="")
    # When retention last took personal data out of all its texts; null when some came since.
    anonymised_at = models.DateTimeField(_("anonymised at"), null=True, editable=False)

    objects = DiagnosisSessionQuerySet.as_manager()

    class Meta:
        db_table = "diagnosis_session"
        verbose_name = _("session")
        verbose_name_plural = _("sessions")
        ordering = ["-created_at", "-id"]
        indexes = [
            models.Index(fields=["created_at"], name="session_created_at"),
            models.Index(fields=["status"], name="session_status"),
            models.Index(fields=["agent_flow"], name="session_agent_flow"),
            models.Index(fields=["feedback", "created_at"], name="session_feedback_created"),
            models.Index(fields=["evaluation_due_at", "evaluation_attempts"], name="session_evaluation_due"),
            models.Index(fields=["conversation_id"], name="session_conversation"),
            models.Index(fields=["evidence_score"], name="session_evidence_score"),
            models.Index(fields=["anonymised_at", "created_at"], name="session_anonymised"),
            # Figures over a period read this index alone: the rows, with their long texts, are 20 times as wide.
            models.Index(
                fields=[
                    "created_at",
                    "agent_flow",
                    "agent_id",
                    "session_id",
                    "feedback",
                    "total_duration_ms",
                    "total_token_count",
                    "evidence_score",
                    "confidence",
                    "tools_proposed",
                    "tools_accepted",
                ],
                name="session_figures",
            ),
        ]
        constraints = [
            models.CheckConstraint(condition=Q(status__in=Status.values), name="session_status_known"),
            models.CheckConstraint(
                condition=Q(feedback=None) | Q(feedback__in=Verdict.values), name="session_feedback_known"
            ),
        ]

    def __str__(self) -> str:
        return str(self.session_id)

    @property
    def is_finished(self) -> bool:
        """Whether the run came to an end."""
        return self.status in FINISHED

    @property
    def is_evaluation_pending(self) -> bool:
        """Whether a score is owed, so that what stands there is missing or old."""
        return self.evaluation_due_at is not None


class SessionPartQuerySet(models.QuerySet[PartT]):
    """Questions about rows that belong to a session."""

    def of(self, *session_ids: str) -> SessionPartQuerySet[PartT]:
        """Those of the sessions with these ids."""
        wanted: dict[str, Any] = {"session_id__in": session_ids}
        return self.filter(**wanted)


class AgentStep(models.Model):
    """One model call of one agent. `step_index` counts from 0 within its agent."""

    id = models.BigAutoField(primary_key=True)
    session = models.ForeignKey(
        DiagnosisSession,
        verbose_name=_("session"),
        to_field="session_id",
        db_column="session_id",
        on_delete=models.CASCADE,
        related_name="steps",
    )
    step_index = models.PositiveIntegerField(_("step"))
    agent_name = ExactCharField(_("agent"), max_length=32)
    model_input = Utf8JSONField(_("model input"), null=True)
    model_output = Utf8JSONField(_("model output"), null=True)
    thought = models.TextField(_("thought"), null=True, blank=True)
    has_tool_call = models.BooleanField(_("called a tool"), default=False)
    duration_ms = models.PositiveIntegerField(_("duration (ms)"), null=True)
    token_count = models.PositiveIntegerField(_("tokens"), null=True)
    created_at = models.DateTimeField(_("created at"), auto_now_add=True)

    input_tokens = models.PositiveIntegerField(_("input tokens"), null=True)
    output_tokens = models.PositiveIntegerField(_("output tokens"), null=True)
    model_name = models.CharField(_("model"), max_length=128, null=True, blank=True)
    parent_step = models.ForeignKey(
        "self",
        verbose_name=_("called by"),
        null=True,
        on_delete=models.SET_NULL,
        related_name="sub_steps",
    )
    span_id = IdField(_("span"), null=True, blank=True)
    started_at = models.DateTimeField(_("started at"), null=True)

    objects = SessionPartQuerySet["AgentStep"].as_manager()

    class Meta:
        db_table = "agent_step"
        verbose_name = _("step")
        verbose_name_plural = _("steps")
        ordering = ["id"]
        constraints = [
            models.UniqueConstraint(fields=["session", "agent_name", "step_index"], name="agent_step_place"),
        ]
        indexes = [
            models.Index(fields=["session", "step_index"], name="agent_step_order"),
            models.Index(fields=["agent_name"], name="agent_step_agent"),
            models.Index(fields=["session", "agent_name", "duration_ms"], name="agent_step_figures"),
        ]

    def __str__(self) -> str:
        return f"{self.agent_name} #{self.step_index}"


class ToolInvocation(models.Model):
    """One tool call of a step, with what a retrieval hit and whether its result was cut off.

    `retrieval_details` as the agent gives it: `{"l0_titles": [], "l1_scores": [], "has_supplement": true}`.
    """

    PREVIEW_CHARS = 500

    id = models.BigAutoField(primary_key=True)
    session = models.ForeignKey(
        DiagnosisSession,
        verbose_name=_("session"),
        to_field="session_id",
        db_column="session_id",
        on_delete=models.CASCADE,
        related_name="tool_invocations",
    )
    step = models.ForeignKey(
        AgentStep,
        verbose_name=_("step"),
        null=True,
        db_constraint=False,
        on_delete=models.SET_NULL,
        related_name="tool_invocations",
    )
    tool_name = ExactCharField(_("tool"), max_length=64)
    input_params = Utf8JSONField(_("input"), default=dict)
    output_preview = models.TextField(_("output"), null=True, blank=True)
    output_length = models.PositiveBigIntegerField(_("output length"), null=True)
    retrieval_layer = models.CharField(
        _("retrieval layer"), max_length=8, choices=RetrievalLayer, null=True, blank=True
    )
    l0_match_count = models.PositiveIntegerField(_("L0 matches"), null=True)
    l1_match_count = models.PositiveIntegerField(_("L1 matches"), null=True)
    is_truncated = models.BooleanField(_("truncated"), default=False)
    retrieval_details = Utf8JSONField(_("retrieval details"), null=True)
    duration_ms = models.PositiveIntegerField(_("duration (ms)"), null=True)
    success = models.BooleanField(_("success"), default=True)
    error_message = models.TextField(_("error"), null=True, blank=True)
    created_at = models.DateTimeField(_("created at"), auto_now_add=True)

    invocation_id = IdField(_("invocation"), help_text=_("The caller's id or span id; else its place in its step."))
    started_at = models.DateTimeField(_("started at"), null=True)

    objects = SessionPartQuerySet["ToolInvocation"].as_manager()

    class Meta:
        db_table = "tool_invocation"
        verbose_name = _("tool invocation")
        verbose_name_plural = _("tool invocations")
        ordering = ["id"]
        constraints = [
            models.UniqueConstraint(fields=["session", "invocation_id"], name="tool_invocation_identity"),
        ]
        indexes = [
            models.Index(fields=["tool_name"], name="tool_invocation_tool"),
            models.Index(fields=["retrieval_layer"], name="tool_invocation_layer"),
            models.Index(
                fields=[
                    "session",
                    "tool_name",
                    "retrieval_layer",
                    "l0_match_count",
                    "l1_match_count",
                    "is_truncated",
                ],
                name="tool_invocation_figures",
            ),
        ]

    def __str__(self) -> str:
        return str(self.tool_name)


class OtlpTrace(models.Model):
    """The ledger of one trace: what each span known so far says, from which its session's rows are derived.

    Spans come in any order and number, so rows cannot be told from the last batch alone. When nothing came for a
    session for OTLP_LEDGER_DAYS, its ledgers are closed: the spans go, and what comes later is refused, for no rows
    could be told from it.
    """

    id = models.BigAutoField(primary_key=True)  # in the order of arrival: by random ids pages would be half empty
    trace_id = IdField(unique=True, max_length=32)
    session_id = IdField(db_index=True)  # no foreign key: a trace of mere HTTP spans has no session
    spans = models.BinaryField()  # zstd of JSON: span id → SpanFacts; empty when closed
    updated_at = models.DateTimeField(auto_now=True)
    closed_at = models.DateTimeField(null=True)

    class Meta:
        db_table = "otlp_trace"
        verbose_name = _("ledger of a trace")
        verbose_name_plural = _("ledgers of traces")
        indexes = [models.Index(fields=["closed_at", "updated_at"], name="otlp_trace_quiet")]

    def __str__(self) -> str:
        return str(self.trace_id)


class ErasedId(models.Model):
    """A session or trace that was erased at its person's wish: what comes late must not bring its text back.

    Only a keyed digest of the id is kept (`sessions_app.privacy.fingerprint`).
    """

    fingerprint = ExactCharField(primary_key=True, max_length=64)
    erased_at = models.DateTimeField(default=timezone.now)

    class Meta:
        db_table = "erased_id"
        verbose_name = _("erased id")
        verbose_name_plural = _("erased ids")

    def __str__(self) -> str:
        return str(self.fingerprint[:12])


class Scope(models.TextChoices):
    """What a key opens (contract 4)."""

    INGEST = "ingest", _("Record sessions")
    FEEDBACK = "feedback", _("Post feedback (publishable)")
    READ = "read", _("Read, look up, report")


class ApiKeyQuerySet(models.QuerySet["ApiKey"]):
    """Questions about keys."""

    def valid(self) -> ApiKeyQuerySet:
        """Keys nobody revoked."""
        return self.filter(revoked_at=None)


class ApiKey(models.Model):
    """A key for agents and frontends. Only its SHA-256 is stored; the key itself is shown once."""

    name = models.CharField(_("name"), max_length=100)
    prefix = models.CharField(_("begins with"), max_length=12, editable=False)
    digest = models.CharField(max_length=64, unique=True, editable=False)
    scopes = models.JSONField(_("scopes"), default=list)
    owner = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        verbose_name=_("owner"),
        null=True,
        blank=True,
        on_delete=models.SET_NULL,
        related_name="api_keys",
    )
    created_at = models.DateTimeField(_("created at"), auto_now_add=True)
    last_used_at = models.DateTimeField(_("last used at"), null=True, editable=False)
    revoked_at = models.DateTimeField(_("revoked at"), null=True, editable=False)

    objects = ApiKeyQuerySet.as_manager()

    class Meta:
        db_table = "api_key"
        verbose_name = _("API key")
        verbose_name_plural = _("API keys")
        ordering = ["-id"]

    def __str__(self) -> str:
        return f"{self.name} ({self.prefix}…)"

    @property
    def is_revoked(self) -> bool:
        """Whether the key opens nothing any more."""
        return self.revoked_at is not None

    def opens(self, scope: str) -> bool:
        """Whether the key carries `scope`."""
        scopes: Any = self.scopes
        return scope in scopes


class SavedView(models.Model):
    """How somebody wants to look at a list: filters under a name. A shared one is there for all who see the list."""

    id = models.BigAutoField(primary_key=True)
    owner: Any = models.ForeignKey(
        settings.AUTH_USER_MODEL, verbose_name=_("by"), on_delete=models.CASCADE, related_name="+"
    )
    listed = models.CharField(max_length=100)  # what the list shows: `feedback_app.badcasereview`
    name = models.CharField(_("name"), max_length=60)
    filters = Utf8JSONField(default=dict)  # parameter → values, as the list reads them; no text hides in an encoding
    is_shared = models.BooleanField(_("shared"), default=False)
    created_at = models.DateTimeField(_("created at"), default=timezone.now)

    class Meta:
        db_table = "list_view"
        default_permissions = ()  # whoever sees a list has views of it
        permissions = [("share_savedview", _("Can share views of lists"))]
        verbose_name = _("saved view")
        verbose_name_plural = _("saved views")
        ordering = ["name", "id"]
        constraints = [models.UniqueConstraint(fields=["owner", "listed", "name"], name="list_view_name")]

    def __str__(self) -> str:
        return self.name

    @property
    def query(self) -> str:
        """What leads to it, behind the `?`."""
        query = QueryDict(mutable=True)
        for name, values in self.filters.items():
            query.setlist(name, values)
        return query.urlencode()


class DefaultView(models.Model):
    """The view in which somebody finds a list when they come to it."""

    id = models.BigAutoField(primary_key=True)
    user: Any = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="+")
    listed = models.CharField(max_length=100)  # as the view's own; here, so that there is one for each list
    view: Any = models.ForeignKey(SavedView, on_delete=models.CASCADE, related_name="defaults")

    class Meta:
        db_table = "default_list_view"
        default_permissions = ()
        verbose_name = _("default view")
        verbose_name_plural = _("default views")
        constraints = [models.UniqueConstraint(fields=["user", "listed"], name="default_list_view_one")]

    def __str__(self) -> str:
        return str(self.view_id)


class Heartbeat(models.Model):
    """When a background process last did its periodic work. Readiness reads it."""

    name = models.CharField(primary_key=True, max_length=32)
    seen_at = models.DateTimeField()

    class Meta:
        db_table = "heartbeat"
        verbose_name = _("heartbeat")
        verbose_name_plural = _("heartbeats")

    def __str__(self) -> str:
        return self.name
