"""What people thought: feedback events, and the triage of what they rejected."""

from __future__ import annotations

import uuid
from datetime import datetime, timedelta
from typing import Any

from django.conf import settings
from django.contrib.auth.models import AbstractBaseUser
from django.db import models
from django.db.models import Count, F, Q
from django.db.models.expressions import OrderBy
from django.utils import timezone
from django.utils.translation import get_language
from django.utils.translation import gettext_lazy as _

from cases_app.models import CaseLibrary
from feedback_app import languages, rules
from sessions_app import search
from sessions_app.audit import Transition
from sessions_app.db import holds
from sessions_app.fields import ExactCharField, IdField, Utf8JSONField
from sessions_app.models import DiagnosisSession


class EventType(models.TextChoices):
    """The five kinds of feedback event."""

    THUMBS = "thumbs", _("Thumbs")
    STAR = "star", _("Stars")
    CORRECTION = "correction", _("Correction")
    RE_ASK = "re_ask", _("Asked again")
    EDIT = "edit", _("Edit")


class EventSource(models.TextChoices):
    """Who gave it."""

    USER = "user", _("User")
    SYSTEM = "system", _("System")
    REVIEWER = "reviewer", _("Reviewer")


class AgentFeedbackQuerySet(models.QuerySet["AgentFeedback"]):
    """Questions about feedback events."""

    def with_words(self) -> AgentFeedbackQuerySet:
        """Events in which a person says something."""
        comment = Q(payload__comment__isnull=False) & ~Q(payload__comment="")
        note = Q(payload__userNote__isnull=False) & ~Q(payload__userNote="")
        return self.filter(comment | note)

    def saying(self, word: str) -> AgentFeedbackQuerySet:
        """Events whose words hold `word`."""
        return self.filter(_says(word))

    def matching(self, text: str) -> AgentFeedbackQuerySet:
        """Every word of `text` in the person's words, or at the beginning of the session id."""
        found = self
        for word in text.split():
            found = found.filter(_says(word) | Q(session__session_id__startswith=word))
        return found


def _says(word: str) -> Q:
    return holds("payload__comment", word) | holds("payload__userNote", word)


class AgentFeedback(models.Model):
    """One feedback event. Append-only, but for words that follow under the same `clientEventId`.

    `value`: thumbs +1/−1; star 0–1; correction and edit: edit distance 0–1; re_ask: similarity 0–1.
    `payload` by type: star `{stars}`; correction `{original, corrected, userNote?}`; edit `{original, edited,
    diff}`; re_ask `{question, previousQuestion, laterSessionId?}`; any of them `{comment?}`.
    """

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    session = models.ForeignKey(
        DiagnosisSession,
        verbose_name=_("session"),
        to_field="session_id",
        db_column="session_id",
        on_delete=models.CASCADE,
        related_name="feedback_events",
    )
    turn_id = IdField(_("turn"))
    agent_id = IdField(_("agent"), null=True, blank=True)
    type = models.CharField(_("type"), max_length=16, choices=EventType)
    value = models.FloatField(_("value"), null=True)
    payload = Utf8JSONField(_("payload"), default=dict, blank=True)
    created_at = models.DateTimeField(_("created at"), default=timezone.now)
    source = models.CharField(_("source"), max_length=16, choices=EventSource, default=EventSource.USER)
    client_event_id = IdField(_("client event"), null=True, blank=True, unique=True)
    consent = models.BooleanField(_("consent"), default=True)

    objects = AgentFeedbackQuerySet.as_manager()

    class Meta:
        db_table = "agent_feedback"
        verbose_name = _("feedback event")
        verbose_name_plural = _("feedback events")
        ordering = ["-created_at"]
        indexes = [
            # Summaries read these two alone, without the payloads.
            models.Index(fields=["agent_id", "created_at", "type", "value", "session"], name="feedback_agent_created"),
            models.Index(fields=["created_at", "type", "value", "session"], name="feedback_created"),
            models.Index(fields=["type"], name="feedback_type"),
            models.Index(fields=["session", "type"], name="feedback_session_type"),
        ]
        constraints = [
            models.CheckConstraint(condition=Q(type__in=EventType.values), name="feedback_type_known"),
        ]
        permissions = [("export_agentfeedback", _("Can export feedback for training"))]

    def __str__(self) -> str:
        return f"{self.get_type_display()} ({self.session_id})"

    @property
    def comment(self) -> str:
        """The person's own words, if any."""
        payload: Any = self.payload
        return str(payload.get("comment") or payload.get("userNote") or "")


class QuestionsToCompare(models.Model):
    """Sessions whose questions are to be compared with those around them. The row is the queue: the worker deletes it.

    Written in the transaction that records the questions, one row each time; comparing twice does no harm.
    """

    id = models.BigAutoField(primary_key=True)
    session_ids = models.JSONField()  # no foreign keys: a session that is gone needs no comparing

    class Meta:
        db_table = "questions_to_compare"
        default_permissions = ()
        verbose_name = _("questions to compare")
        verbose_name_plural = _("questions to compare")

    def __str__(self) -> str:
        return str(self.pk)


class TriageState(models.TextChoices):
    """OPEN ⇄ IN_REVIEW → RESOLVED | DISMISSED → OPEN. Moves: `feedback_app.services.triage`."""

    OPEN = rules.OPEN, _("Open")
    IN_REVIEW = rules.IN_REVIEW, _("In review")
    RESOLVED = rules.RESOLVED, _("Resolved")
    DISMISSED = rules.DISMISSED, _("Dismissed")


class FailureModeQuerySet(models.QuerySet["FailureMode"]):
    """Questions about failure modes."""

    def offered(self) -> FailureModeQuerySet:
        """Those that a verdict may say."""
        return self.filter(is_retired=False)


class FailureMode(models.Model):
    """What can be wrong with a rejected answer. Leads keep the list; verdicts hold the code, which never changes."""

    code = ExactCharField(_("code"), max_length=32, primary_key=True)
    name = models.CharField(_("name"), max_length=100)
    name_zh = models.CharField(_("name in Chinese"), max_length=100, blank=True)
    name_ru = models.CharField(_("name in Russian"), max_length=100, blank=True)
    description = models.TextField(_("description"), blank=True)
    position = models.PositiveSmallIntegerField(_("place in the list"), default=100)
    is_retired = models.BooleanField(
        _("retired"), default=False, help_text=_("No longer offered. What was judged so stays so.")
    )

    objects = FailureModeQuerySet.as_manager()

    class Meta:
        db_table = "failure_mode"
        verbose_name = _("failure mode")
        verbose_name_plural = _("failure modes")
        ordering = ["position", "code"]

    def __str__(self) -> str:
        return self.local_name

    @property
    def local_name(self) -> str:
        """The name in the reader's language, else in English."""
        names = {"zh": self.name_zh, "ru": self.name_ru}
        return names.get((get_language() or "")[:2]) or self.name


class QuestionLanguage(models.TextChoices):
    """In which language a question is asked (`feedback_app.languages`)."""

    ZH = languages.ZH, _("Chinese")
    RU = languages.RU, _("Russian")
    EN = languages.EN, _("English")
    OTHER = languages.OTHER, _("Other language")


class Severity(models.TextChoices):
    """How bad it is that this was answered."""

    LOW = "LOW", _("Low")
    MEDIUM = "MEDIUM", _("Medium")
    HIGH = "HIGH", _("High")
    CRITICAL = "CRITICAL", _("Critical")


class BadCaseReviewQuerySet(models.QuerySet["BadCaseReview"]):
    """Questions about triages."""

    def waiting(self) -> BadCaseReviewQuerySet:
        """Not decided yet."""
        return self.filter(state__in=(TriageState.OPEN, TriageState.IN_REVIEW))

    def closed(self) -> BadCaseReviewQuerySet:
        """Resolved or dismissed."""
        return self.filter(state__in=(TriageState.RESOLVED, TriageState.DISMISSED))

    def overdue(self) -> BadCaseReviewQuerySet:
        """Waiting past their due date."""
        return self.waiting().filter(due_at__lt=timezone.now())

    def free(self) -> BadCaseReviewQuerySet:
        """Waiting, and nobody has them."""
        return self.waiting().unheld()

    def unheld(self) -> BadCaseReviewQuerySet:
        """Those that nobody ever took, or that are free again."""
        return self.filter(_unheld())

    def left_behind(self) -> BadCaseReviewQuerySet:
        """Free again though somebody claimed them: who is deleted, or longer ago than `TRIAGE_CLAIM_HOURS`.

        No job frees them: whoever takes one finds it free.
        """
        return self.filter(_left_behind())

    def count_waiting(self, reviewer: AbstractBaseUser) -> dict[str, int]:
        """How many wait: `waiting` in all, of them `mine`, `free`, `overdue`. One query."""
        return self.waiting().aggregate(
            waiting=Count("pk"),
            mine=Count("pk", filter=Q(assignee_id=reviewer.pk)),
            free=Count("pk", filter=_unheld()),
            overdue=Count("pk", filter=Q(due_at__lt=timezone.now())),
        )

    def with_words(self) -> BadCaseReviewQuerySet:
        """Those whose reader left words."""
        return self.filter(has_words=True)

    def matching(self, text: str) -> BadCaseReviewQuerySet:
        """Every word of `text`, by its beginning, in the question, session id, notes or the reader's own words."""
        return self.filter(search.matching(BadCaseTerm, text))

    @staticmethod
    def queue_order() -> list[OrderBy]:
        """What deserves attention first, open before in review: by an index, `triage_attention`.

        Of the states that wait, OPEN stands last in the alphabet.
        """
        return [F("state").desc(), F("attention_at").asc(), F("pk").asc()]


def claim_expiry() -> datetime | None:
    """Claims from before this moment are free again; None where claims last for ever."""
    hours = settings.TRIAGE_CLAIM_HOURS
    return timezone.now() - timedelta(hours=hours) if hours > 0 else None


def has_expired(claimed_at: datetime | None) -> bool:
    """Whether a claim of this moment is free again."""
    expiry = claim_expiry()
    return claimed_at is not None and expiry is not None and claimed_at < expiry


def _left_behind() -> Q:
    expiry = claim_expiry()
    lost = Q(assignee=None) | Q(claimed_at__lt=expiry) if expiry else Q(assignee=None)
    return Q(state=TriageState.IN_REVIEW) & lost


def _unheld() -> Q:
    return Q(assignee=None) | _left_behind()


class BadCaseReview(search.Searchable):
    """The triage of one bad case (`feedback = 'not_useful'`). One for each session."""

    id = models.BigAutoField(primary_key=True)
    session = models.OneToOneField(
        DiagnosisSession,
        verbose_name=_("session"),
        to_field="session_id",
        db_column="session_id",
        on_delete=models.CASCADE,
        related_name="triage",
    )
    state = models.CharField(_("state"), max_length=16, choices=TriageState, default=TriageState.OPEN)
    failure_mode = models.CharField(_("failure mode"), max_length=32, blank=True, default="")  # FailureMode.code
    severity = models.CharField(_("severity"), max_length=16, choices=Severity, blank=True, default="")
    # By the step's own name in its session, `planner/3`: a trace that grows may give it another row.
    blamed_step = models.CharField(_("step to blame"), max_length=48, blank=True, default="")
    assignee = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        verbose_name=_("assignee"),
        null=True,
        blank=True,
        on_delete=models.SET_NULL,
        related_name="triages",
    )
    claimed_at = models.DateTimeField(_("claimed at"), null=True)
    resolved_at = models.DateTimeField(_("closed at"), null=True)
    due_at = models.DateTimeField(_("due at"), null=True)
    notes = models.TextField(_("notes"), blank=True, default="")
    corrected_answer = models.TextField(_("corrected answer"), blank=True, default="")
    case = models.ForeignKey(
        CaseLibrary,
        verbose_name=_("case"),
        null=True,
        blank=True,
        on_delete=models.SET_NULL,
        related_name="triages",
    )
    created_at = models.DateTimeField(_("created at"), default=timezone.now)
    updated_at = models.DateTimeField(_("updated at"), auto_now=True)
    # Its place in the queue: what `feedback_app.priority` makes of the facts, which services keep in step.
    attention_at = models.DateTimeField(_("priority"), default=timezone.now, editable=False)
    priority_hours = models.JSONField(default=dict, editable=False)  # rule → hours earlier than the due date
    # Counts what people wrote here, so that a form knows when it is out of date.
    version = models.PositiveIntegerField(default=0, editable=False)
    question_key = models.CharField(max_length=32, default="", editable=False)  # "": not counted yet

    # What the queue is filtered and ordered by: facts of the session, repeated by `services.priority`, because sessions
    # are wide, and looking at each of them takes seconds.
    agent_id = IdField(_("agent"), null=True, editable=False)
    agent_flow = ExactCharField(_("agent flow"), max_length=32, null=True, editable=False)
    evidence_score = models.PositiveSmallIntegerField(_("evidence score"), null=True, editable=False)
    confidence = models.FloatField(_("confidence"), null=True, editable=False)
    has_words = models.BooleanField(_("comment"), default=False, editable=False)
    has_l0_hit = models.BooleanField(default=False, editable=False)
    has_l1_hit = models.BooleanField(default=False, editable=False)
    is_missed = models.BooleanField(default=False, editable=False)
    is_truncated = models.BooleanField(default=False, editable=False)
    has_failed_call = models.BooleanField(default=False, editable=False)
    language = models.CharField(
        _("language"), max_length=8, choices=QuestionLanguage, default=QuestionLanguage.OTHER, editable=False
    )

    objects = BadCaseReviewQuerySet.as_manager()

    class Meta:
        db_table = "bad_case_review"
        verbose_name = _("bad case")
        verbose_name_plural = _("bad cases")
        ordering = ["due_at", "id"]
        indexes = [
            models.Index(fields=["state", "due_at"], name="triage_state_due"),
            models.Index(fields=["resolved_at"], name="triage_resolved"),
            models.Index(fields=["-state", "attention_at", "id"], name="triage_attention"),
            models.Index(fields=["question_key"], name="triage_question"),
            models.Index(fields=["created_at"], name="triage_created"),
        ]
        constraints = [
            models.CheckConstraint(condition=Q(state__in=TriageState.values), name="triage_state_known"),
        ]
        permissions = [
            ("triage_badcasereview", _("Can triage bad cases")),
            ("assign_badcasereview", _("Can release what others claimed, and reopen")),
        ]

    def __str__(self) -> str:
        return str(self.session_id)

    @property
    def is_claim_expired(self) -> bool:
        """In review for so long that it is free again."""
        return self.state == TriageState.IN_REVIEW and has_expired(self.claimed_at)

    @property
    def is_overdue(self) -> bool:
        """Waiting past the due date."""
        waiting = self.state in (TriageState.OPEN, TriageState.IN_REVIEW)
        return waiting and self.due_at is not None and self.due_at < timezone.now()


class BadCaseTerm(search.SearchTerm):
    """What a bad case is found by (`feedback_app.services.terms` keeps it)."""

    pk = models.CompositePrimaryKey("term", "owner_id")
    owner = models.ForeignKey(BadCaseReview, on_delete=models.CASCADE, related_name="terms")

    class Meta(search.SearchTerm.Meta):
        db_table = "bad_case_term"
        verbose_name = _("search term of a bad case")
        verbose_name_plural = _("search terms of bad cases")


class BadCaseTransition(Transition):
    """What was done to a triage."""

    LABELS = {
        "open": _("Opened"),
        "claim": _("Claimed"),
        "take_over": _("Taken over after the claim had expired"),
        "hand_over": _("Handed over"),
        "assign": _("Assigned"),
        "release": _("Released"),
        "resolve": _("Resolved"),
        "dismiss": _("Dismissed"),
        "reopen": _("Reopened"),
        "settle": _("Settled between two reviewers"),
    }
    review: Any = models.ForeignKey(BadCaseReview, on_delete=models.CASCADE, related_name="transitions")

    class Meta(Transition.Meta):
        db_table = "bad_case_transition"
        verbose_name = _("triage history")
        verbose_name_plural = _("triage history")


class WeeklyReport(models.Model):
    """The figures of one week, stored once. They stand as they were counted, whatever comes in later.

    `figures`: `feedback_app.selectors.weekly.WeeklyFigures`. It names agents and sessions and quotes nobody, so that
    erasing a session erases its question here too.
    """

    id = models.BigAutoField(primary_key=True)
    week = models.DateField(_("week"), unique=True, help_text=_("Its Monday, in the server's time zone."))
    starts_at = models.DateTimeField(_("starts at"))
    ends_at = models.DateTimeField(_("ends at"))
    figures = Utf8JSONField(_("figures"))
    created_at = models.DateTimeField(_("created at"), default=timezone.now)

    class Meta:
        db_table = "weekly_report"
        default_permissions = ()  # who may see feedback may see what it adds up to
        verbose_name = _("weekly report")
        verbose_name_plural = _("weekly reports")
        ordering = ["-week"]

    def __str__(self) -> str:
        return self.week.isoformat()


class ReportDelivery(models.Model):
    """One report for one person by e-mail: made with the report, claimed by a conditional UPDATE, sent once."""

    id = models.BigAutoField(primary_key=True)
    report: Any = models.ForeignKey(WeeklyReport, on_delete=models.CASCADE, related_name="deliveries")
    user: Any = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="+")
    sent_at = models.DateTimeField(_("sent at"), null=True)
    claimed_until = models.DateTimeField(null=True)
    attempts = models.PositiveSmallIntegerField(_("attempts"), default=0)
    error = models.CharField(_("error"), max_length=200, blank=True, default="")

    class Meta:
        db_table = "weekly_report_delivery"
        default_permissions = ()
        verbose_name = _("delivery of a weekly report")
        verbose_name_plural = _("deliveries of weekly reports")
        ordering = ["id"]
        constraints = [models.UniqueConstraint(fields=["report", "user"], name="weekly_report_once_each")]
        indexes = [models.Index(fields=["sent_at", "claimed_until"], name="weekly_report_unsent")]

    def __str__(self) -> str:
        return f"{self.report_id} → {self.user_id}"


class ReaderLanguage(models.Model):
    """The language in which somebody last signed in or that they chose: what the product writes to them in."""

    user: Any = models.OneToOneField(
        settings.AUTH_USER_MODEL, primary_key=True, on_delete=models.CASCADE, related_name="+"
    )
    code = models.CharField(_("language"), max_length=16)

    class Meta:
        db_table = "reader_language"
        default_permissions = ()
        verbose_name = _("language of a person")
        verbose_name_plural = _("languages of people")

    def __str__(self) -> str:
        return self.code


class Erasure(models.Model):
    """One person's data was erased: who did it, when, and how much. The person is told by a keyed digest alone."""

    id = models.BigAutoField(primary_key=True)
    at = models.DateTimeField(_("at"), default=timezone.now)
    actor = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        verbose_name=_("by"),
        null=True,  # by the command
        on_delete=models.SET_NULL,
        related_name="+",
    )
    subject = models.CharField(_("fingerprint of the person"), max_length=64)
    counts = Utf8JSONField(_("rows"), default=dict)  # table → rows deleted or cleaned

    class Meta:
        db_table = "erasure"
        verbose_name = _("erasure")
        verbose_name_plural = _("erasures")
        ordering = ["-id"]
        indexes = [models.Index(fields=["subject"], name="erasure_subject")]

    def __str__(self) -> str:
        return f"{self.subject[:12]}…"


class SecondState(models.TextChoices):
    """WAITING → AGREED, or → DISAGREED → SETTLED. Moves: `feedback_app.services.second_reviews`."""

    WAITING = "WAITING", _("Waiting for a second verdict")
    AGREED = "AGREED", _("Agreed")
    DISAGREED = "DISAGREED", _("Disagreed")
    SETTLED = "SETTLED", _("Settled")


NOTHING_WRONG = "NOTHING_WRONG"
"""What a dismissal says, beside the codes of failure modes."""


class SecondReview(models.Model):
    """A second verdict on a triage, by somebody who does not know the first."""

    id = models.BigAutoField(primary_key=True)
    review: Any = models.OneToOneField(BadCaseReview, on_delete=models.CASCADE, related_name="second")
    state = models.CharField(_("state"), max_length=16, choices=SecondState, default=SecondState.WAITING)
    first_reviewer: Any = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL, related_name="+"
    )
    first_mode = models.CharField(_("first verdict"), max_length=32)
    reviewer: Any = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        verbose_name=_("second reviewer"),
        null=True,
        on_delete=models.SET_NULL,
        related_name="+",
    )
    mode = models.CharField(_("second verdict"), max_length=32, blank=True, default="")
    notes = models.TextField(_("notes"), blank=True, default="")
    settled_by: Any = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL, related_name="+"
    )
    settled_mode = models.CharField(max_length=32, blank=True, default="")
    created_at = models.DateTimeField(_("created at"), default=timezone.now)
    judged_at = models.DateTimeField(_("judged at"), null=True)
    settled_at = models.DateTimeField(_("settled at"), null=True)

    class Meta:
        db_table = "second_review"
        default_permissions = ()  # who may triage may judge
        verbose_name = _("second review")
        verbose_name_plural = _("second reviews")
        ordering = ["id"]
        indexes = [models.Index(fields=["state", "id"], name="second_review_state")]
        constraints = [models.CheckConstraint(condition=Q(state__in=SecondState.values), name="second_state_known")]

    def __str__(self) -> str:
        return str(self.review_id)


class AlertKind(models.TextChoices):
    """What a rule looks for."""

    CONFIDENT = "confident_but_rejected", _("Stated with confidence, and rejected")
    OVERDUE = "queue_overdue", _("Queue past its due date")
    SATISFACTION = "satisfaction_low", _("Satisfaction below a threshold")


class AlertChannel(models.TextChoices):
    """How it is told."""

    WEBHOOK = "webhook", _("Webhook")
    EMAIL = "email", _("E-mail")


class AlertRule(models.Model):
    """What is to be told to whom. Kind and channel stay as they were made.

    A webhook's secret is derived from SECRET_KEY and `secret_nonce`, so that the database alone signs nothing;
    `feedback_app.services.alert_rules` shows it once.
    """

    id = models.BigAutoField(primary_key=True)
    name = models.CharField(_("name"), max_length=100)
    kind = models.CharField(_("what is told"), max_length=32, choices=AlertKind)
    # With its versions: `ops` is `ops/2` too. None: all agents together, or each by itself.
    agent_id = IdField(_("agent"), null=True)
    # Of the queue, how many are overdue; of satisfaction, percent.
    threshold = models.PositiveSmallIntegerField(_("threshold"), null=True)
    period_days = models.PositiveSmallIntegerField(_("period in days"), null=True)
    min_votes = models.PositiveSmallIntegerField(_("least number of verdicts"), null=True)
    channel = models.CharField(_("how"), max_length=16, choices=AlertChannel)
    url = models.CharField(_("address"), max_length=500, blank=True, default="")
    recipients: Any = models.ManyToManyField(settings.AUTH_USER_MODEL, related_name="+")  # none: every Lead
    language = models.CharField(_("language"), max_length=16, blank=True, default="")  # of a webhook's sentence
    is_active = models.BooleanField(_("active"), default=True)
    active_since = models.DateTimeField(default=timezone.now)  # what was before is not told
    secret_nonce = models.CharField(max_length=32, blank=True, default="")
    secret_begins = models.CharField(max_length=16, blank=True, default="")
    former_nonce = models.CharField(max_length=32, blank=True, default="")
    former_until = models.DateTimeField(null=True)  # until then the former secret signs too
    held_until = models.DateTimeField(null=True)  # one delivery at a time, and a pause after one that failed
    version = models.PositiveIntegerField(default=0)
    created_at = models.DateTimeField(_("created at"), default=timezone.now)

    class Meta:
        db_table = "alert_rule"
        default_permissions = ("add", "change", "view")
        verbose_name = _("alert")
        verbose_name_plural = _("alerts")
        ordering = ["name", "id"]
        constraints = [
            models.CheckConstraint(condition=Q(kind__in=AlertKind.values), name="alert_kind_known"),
            models.CheckConstraint(condition=Q(channel__in=AlertChannel.values), name="alert_channel_known"),
        ]

    def __str__(self) -> str:
        return self.name


class AlertCondition(models.Model):
    """Whether what a rule looks for holds just now, of one agent or ("") of the queue: it is told, not told again."""

    id = models.BigAutoField(primary_key=True)
    rule: Any = models.ForeignKey(AlertRule, on_delete=models.CASCADE, related_name="conditions")
    subject = IdField(blank=True, default="")
    raised_at = models.DateTimeField(null=True)  # None: all is well
    episode = models.PositiveIntegerField(default=0)  # counts how often it was raised

    class Meta:
        db_table = "alert_condition"
        default_permissions = ()
        verbose_name = _("condition of an alert")
        verbose_name_plural = _("conditions of alerts")
        ordering = ["id"]
        constraints = [models.UniqueConstraint(fields=["rule", "subject"], name="alert_condition_once")]

    def __str__(self) -> str:
        return f"{self.rule_id} {self.subject}"


class AlertState(models.TextChoices):
    """WAITING → SENT, or → FAILED ⇄ … → SENT | GIVEN_UP → WAITING. Moves: `feedback_app.services.alert_sending`."""

    WAITING = "waiting", _("To be sent")
    FAILED = "retried", _("Is tried again")
    SENT = "sent", _("Sent")
    GIVEN_UP = "given_up", _("Given up")


class AlertDeliveryQuerySet(models.QuerySet["AlertDelivery"]):
    """Questions about deliveries."""

    def unsent(self) -> AlertDeliveryQuerySet:
        """Still to be sent, now or later."""
        return self.filter(state__in=(AlertState.WAITING, AlertState.FAILED))

    def due(self, now: datetime) -> AlertDeliveryQuerySet:
        """To be sent now, and in nobody's hands."""
        free = Q(claimed_until=None) | Q(claimed_until__lt=now)
        to_be_sent = self.unsent().exclude(event=AlertDelivery.TEST)  # a test is sent once, by who asks for it
        return to_be_sent.filter(free, due_at__lte=now, rule__is_active=True)


class AlertDelivery(models.Model):
    """One thing told by one rule: the queue of what is to be sent, and the record of what was.

    `key` names the occurrence, so that it is told once. `facts`: `feedback_app.alerts.words.Facts`; no text of people
    stands there. It goes with its session.
    """

    TEST = "test"
    EVENTS = (*AlertKind.choices, (TEST, _("Test")))

    id = models.BigAutoField(primary_key=True)
    rule: Any = models.ForeignKey(
        AlertRule, verbose_name=_("alert"), on_delete=models.CASCADE, related_name="deliveries"
    )
    event = models.CharField(_("what is told"), max_length=32, choices=EVENTS)
    key = ExactCharField(max_length=64)
    message_id = ExactCharField(max_length=40, unique=True)  # the same in every try
    session = models.ForeignKey(
        DiagnosisSession,
        to_field="session_id",
        db_column="session_id",
        null=True,
        on_delete=models.CASCADE,
        related_name="alerts",
    )
    recipient: Any = models.ForeignKey(
        settings.AUTH_USER_MODEL, verbose_name=_("recipient"), null=True, on_delete=models.CASCADE, related_name="+"
    )
    facts = Utf8JSONField(default=dict)
    state = models.CharField(_("state"), max_length=16, choices=AlertState, default=AlertState.WAITING)
    attempts = models.PositiveSmallIntegerField(_("attempts"), default=0)
    due_at = models.DateTimeField(_("next try"), default=timezone.now)
    claimed_until = models.DateTimeField(null=True)
    failure = models.CharField(max_length=64, blank=True, default="")  # why the last try failed
    status_code = models.PositiveSmallIntegerField(_("status"), null=True)
    answer = models.TextField(_("answer"), blank=True, default="")
    duration_ms = models.PositiveIntegerField(_("duration"), null=True)
    created_at = models.DateTimeField(_("created at"), default=timezone.now)
    tried_at = models.DateTimeField(_("last try"), null=True)

    objects = AlertDeliveryQuerySet.as_manager()

    class Meta:
        db_table = "alert_delivery"
        default_permissions = ()  # who may see alerts may see what they told
        verbose_name = _("told alert")
        verbose_name_plural = _("told alerts")
        ordering = ["-id"]
        constraints = [
            models.UniqueConstraint(fields=["rule", "key"], name="alert_once"),
            models.CheckConstraint(condition=Q(state__in=AlertState.values), name="alert_state_known"),
        ]
        indexes = [
            models.Index(fields=["state", "due_at"], name="alert_due"),
            models.Index(fields=["created_at"], name="alert_created"),
        ]

    def __str__(self) -> str:
        return str(self.message_id)
