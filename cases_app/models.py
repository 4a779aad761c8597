"""What was learned: the case library and its taxonomy."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from typing import Any

from django.conf import settings
from django.db import models
from django.db.models import Count, Q
from django.utils import timezone
from django.utils.translation import get_language
from django.utils.translation import gettext_lazy as _

from cases_app import rules
from sessions_app import search
from sessions_app.audit import Transition
from sessions_app.fields import ExactCharField, Utf8JSONField
from sessions_app.models import DiagnosisSession


class SourceType(models.TextChoices):
    """Where a case came from."""

    AUTO = "AUTO", _("From a useful session")
    MANUAL = "MANUAL", _("Written by hand")
    CORRECTION = "CORRECTION", _("From a correction")


class CaseStatus(models.TextChoices):
    """DRAFT → ENRICHED ⇄ PUBLISHED; any of them → RETIRED → DRAFT or ENRICHED. Moves: `cases_app.services`."""

    DRAFT = rules.DRAFT, _("Draft")
    ENRICHED = rules.ENRICHED, _("Enriched")
    PUBLISHED = rules.PUBLISHED, _("Published")
    RETIRED = rules.RETIRED, _("Retired")


class FaultCategory(models.Model):
    """One kind of fault. `keywords` point to it in any language."""

    code = ExactCharField(_("code"), max_length=32, primary_key=True)
    name = models.CharField(_("name"), max_length=100)
    name_zh = models.CharField(_("name in Chinese"), max_length=100, blank=True)
    name_ru = models.CharField(_("name in Russian"), max_length=100, blank=True)
    description = models.TextField(_("description"), blank=True)
    keywords = Utf8JSONField(_("keywords"), default=list, blank=True)

    class Meta:
        db_table = "fault_category"
        verbose_name = _("fault category")
        verbose_name_plural = _("fault categories")
        ordering = ["code"]

    def __str__(self) -> str:
        return f"{self.local_name} ({self.code})"

    @property
    def local_name(self) -> str:
        """The name in the reader's language, else in English."""
        names = {"zh": self.name_zh, "ru": self.name_ru}
        return names.get((get_language() or "")[:2]) or self.name


class CaseQueue(models.TextChoices):
    """What reviewers look through. Which cases each holds: `QUEUES`."""

    TO_ENRICH = "to_enrich", _("To enrich")
    TO_PUBLISH = "to_publish", _("To publish")
    PUBLISHED = "published", _("Published")
    FLAGGED = "flagged", _("Flagged")
    RETIRED = "retired", _("Retired")
    ALL = "all", _("All")


_IN_WORK = Q(status__in=(CaseStatus.DRAFT, CaseStatus.ENRICHED))
QUEUES: Mapping[str, Q] = {
    # The design's enrichment queue: AUTO cases still GENERAL; and those that a correction made, which stand as they do.
    CaseQueue.TO_ENRICH: _IN_WORK
    & Q(source_type__in=(SourceType.AUTO, SourceType.CORRECTION), fault_category=rules.GENERAL),
    CaseQueue.TO_PUBLISH: Q(status=CaseStatus.ENRICHED) & ~Q(fault_category=rules.GENERAL),
    CaseQueue.PUBLISHED: Q(status=CaseStatus.PUBLISHED),
    CaseQueue.FLAGGED: Q(flagged_at__isnull=False),
    CaseQueue.RETIRED: Q(status=CaseStatus.RETIRED),
    CaseQueue.ALL: Q(),
}


class CaseLibraryQuerySet(models.QuerySet["CaseLibrary"]):
    """Questions about cases."""

    def published(self) -> CaseLibraryQuerySet:
        """What agents may see."""
        return self.in_queue(CaseQueue.PUBLISHED)

    def to_enrich(self) -> CaseLibraryQuerySet:
        """The enrichment queue."""
        return self.in_queue(CaseQueue.TO_ENRICH)

    def in_queue(self, queue: str) -> CaseLibraryQuerySet:
        """What one queue holds."""
        return self.filter(QUEUES[queue])

    def count_by_queue(self) -> dict[str, int]:
        """Queue → how many cases it holds, in one query."""
        counts = {queue: Count("pk", filter=condition) for queue, condition in QUEUES.items() if condition}
        return self.aggregate(**counts, **{CaseQueue.ALL: Count("pk")})

    def matching(self, text: str) -> CaseLibraryQuerySet:
        """Every word of `text`, by its beginning, in the title, error code, root cause, solution or an id."""
        return self.filter(search.matching(CaseTerm, text))


class CaseLibrary(search.Searchable):
    """One case: a fault, its cause, its remedy. At most one for each session, ever."""

    case_id = models.UUIDField(_("case id"), primary_key=True, default=uuid.uuid4, editable=False)
    diagnosis = models.OneToOneField(
        DiagnosisSession,
        verbose_name=_("session"),
        to_field="session_id",
        db_column="diagnosis_id",
        null=True,
        blank=True,
        on_delete=models.SET_NULL,
        related_name="case",
    )
    source_type = models.CharField(_("source"), max_length=16, choices=SourceType, default=SourceType.MANUAL)
    fault_category = models.ForeignKey(
        FaultCategory,
        verbose_name=_("fault category"),
        db_column="fault_category",
        default=rules.GENERAL,
        on_delete=models.PROTECT,
        related_name="cases",
    )
    error_code = ExactCharField(_("error code"), max_length=128, blank=True, default="")
    title = models.CharField(_("title"), max_length=200)
    root_cause = models.TextField(_("root cause"), blank=True, default="")
    solution = models.TextField(_("solution"), blank=True, default="")
    created_by = models.CharField(_("created by"), max_length=150, default="system")
    status = models.CharField(_("status"), max_length=16, choices=CaseStatus, default=CaseStatus.DRAFT)
    reviewed_by = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        verbose_name=_("reviewed by"),
        null=True,
        blank=True,
        on_delete=models.SET_NULL,
        related_name="reviewed_cases",
    )
    reviewed_at = models.DateTimeField(_("reviewed at"), null=True, blank=True)
    created_at = models.DateTimeField(_("created at"), default=timezone.now)
    updated_at = models.DateTimeField(_("updated at"), auto_now=True)

    # The reader took "useful" back: of a case nobody had worked on, it is retired; else it is flagged for its reviewer.
    retired_by_verdict = models.BooleanField(default=False, editable=False)
    flagged_at = models.DateTimeField(_("flagged at"), null=True, blank=True, editable=False)
    # Set on what was retired as the same as another. What is kept is never merged itself: one hop leads to it.
    merged_into: Any = models.ForeignKey(
        "self",
        verbose_name=_("merged into"),
        null=True,
        blank=True,
        editable=False,
        on_delete=models.SET_NULL,
        related_name="merged",
    )
    # Counts what people and services wrote, so that a form knows when it is out of date.
    version = models.PositiveIntegerField(default=0, editable=False)

    objects = CaseLibraryQuerySet.as_manager()

    class Meta:
        db_table = "case_library"
        verbose_name = _("case")
        verbose_name_plural = _("cases")
        ordering = ["-created_at"]
        indexes = [
            # The queues in their orders, their filters and counts, from an index alone: a row may hold two long texts.
            models.Index(fields=["status", "created_at", "case_id", "fault_category"], name="case_to_publish"),
            models.Index(
                fields=[
                    "fault_category", "created_at", "case_id", "status", "source_type", "error_code", "updated_at",
                ],
                name="case_to_enrich_order",
            ),
            models.Index(fields=["status", "updated_at"], name="case_status_updated"),
            models.Index(
                fields=["updated_at", "status", "source_type", "fault_category", "reviewed_by", "flagged_at"],
                name="case_last_updated",
            ),
            models.Index(fields=["flagged_at"], name="case_flagged"),
            models.Index(
                fields=[
                    "status", "source_type", "fault_category", "flagged_at", "error_code", "updated_at", "created_at",
                    "reviewed_by",
                ],
                name="case_queue_orders",
            ),
            models.Index(fields=["error_code"], name="case_error_code"),
        ]  # fmt: skip
        constraints = [
            models.CheckConstraint(condition=Q(status__in=CaseStatus.values), name="case_status_known"),
            models.CheckConstraint(condition=Q(source_type__in=SourceType.values), name="case_source_known"),
            models.CheckConstraint(
                condition=Q(merged_into=None) | Q(status=CaseStatus.RETIRED), name="case_merged_is_retired"
            ),
        ]
        permissions = [
            ("enrich_caselibrary", _("Can enrich cases")),
            ("publish_caselibrary", _("Can publish and retire cases")),
        ]

    def __str__(self) -> str:
        return self.title

    @property
    def is_flagged(self) -> bool:
        """Whether a reader changed their mind since a reviewer worked on it."""
        return self.flagged_at is not None


class CaseTerm(search.SearchTerm):
    """What a case is found by (`cases_app.services.terms` keeps it)."""

    pk = models.CompositePrimaryKey("term", "owner_id")
    owner = models.ForeignKey(CaseLibrary, on_delete=models.CASCADE, related_name="terms")

    class Meta(search.SearchTerm.Meta):
        db_table = "case_term"
        verbose_name = _("search term of a case")
        verbose_name_plural = _("search terms of cases")


class CaseTransition(Transition):
    """What was done to a case."""

    LABELS = {
        "create": _("Created"),
        "correct": _("Made from a correction"),
        "enrich": _("Edited"),
        "revert": _("Earlier version restored"),
        "publish": _("Published"),
        "unpublish": _("Unpublished"),
        "retire": _("Retired"),
        "restore": _("Restored"),
        "merge": _("Merged into another"),
        "absorb": _("Another was merged into it"),
        "let_go": _("Stands without the other again"),
        "flag": _("Flagged"),
        "unflag": _("Flag taken off"),
    }
    case: Any = models.ForeignKey(CaseLibrary, on_delete=models.CASCADE, related_name="transitions")

    class Meta(Transition.Meta):
        db_table = "case_transition"
        verbose_name = _("case history")
        verbose_name_plural = _("case history")


class CaseVersion(models.Model):
    """What a case said after one change of its texts: append-only, and gone with the case.

    Kept from the first change by a person on, with what stood before it. `number` is the case's `version` then.
    """

    id = models.BigAutoField(primary_key=True)
    case: Any = models.ForeignKey(CaseLibrary, on_delete=models.CASCADE, related_name="versions")
    number = models.PositiveIntegerField(_("version"))
    at = models.DateTimeField(_("at"), default=timezone.now)
    actor = models.ForeignKey(
        settings.AUTH_USER_MODEL, verbose_name=_("by"), null=True, on_delete=models.SET_NULL, related_name="+"
    )
    action = models.CharField(_("action"), max_length=32, blank=True)  # "": as it stood before
    reason = models.TextField(_("why"), blank=True)
    fault_category = ExactCharField(_("fault category"), max_length=32)  # its code: a category may go
    error_code = ExactCharField(_("error code"), max_length=128, blank=True)
    title = models.CharField(_("title"), max_length=200)
    root_cause = models.TextField(_("root cause"), blank=True)
    solution = models.TextField(_("solution"), blank=True)

    class Meta:
        db_table = "case_version"
        default_permissions = ()
        ordering = ["-number"]
        constraints = [models.UniqueConstraint(fields=["case", "number"], name="case_version_number")]

    def __str__(self) -> str:
        return f"{self.case_id} #{self.number}"

    @property
    def label(self) -> str:
        """What was done, in the reader's language."""
        return str(CaseTransition.LABELS.get(self.action, self.action) if self.action else _("As it stood before"))


class JobState(models.TextChoices):
    """GATHERING → PREVIEW → RUNNING → DONE, or STOPPED by a person or for want of a right."""

    GATHERING = "GATHERING", _("Gathering")
    PREVIEW = "PREVIEW", _("Waits for you")
    RUNNING = "RUNNING", _("Running")
    DONE = "DONE", _("Done")
    STOPPED = "STOPPED", _("Stopped")


class BulkJob(models.Model):
    """One action on many objects. The row is the queue; `services.bulk` moves it, and its parts hold the objects.

    `preview`: reason → how many objects it speaks against, as they stood when the job was prepared.
    """

    id = models.BigAutoField(primary_key=True)
    action = models.CharField(_("action"), max_length=32)  # a name in `services.bulk.ACTIONS`
    actor = models.ForeignKey(
        settings.AUTH_USER_MODEL, verbose_name=_("by"), null=True, on_delete=models.SET_NULL, related_name="+"
    )
    parameters = Utf8JSONField(default=dict, blank=True)
    state = models.CharField(_("state"), max_length=16, choices=JobState, default=JobState.GATHERING)
    total = models.PositiveIntegerField(_("objects"), default=0)
    preview = Utf8JSONField(default=dict, blank=True)
    details = Utf8JSONField(default=dict, blank=True)  # of an import: `services.importing.prepare_import`
    language = models.CharField(max_length=16, blank=True, default="")  # in which refusals are noted
    note = models.CharField(_("note"), max_length=200, blank=True, default="")
    created_at = models.DateTimeField(_("created at"), default=timezone.now)
    confirmed_at = models.DateTimeField(_("confirmed at"), null=True)
    finished_at = models.DateTimeField(_("finished at"), null=True)

    class Meta:
        db_table = "bulk_job"
        default_permissions = ()
        verbose_name = _("bulk job")
        verbose_name_plural = _("bulk jobs")
        ordering = ["-id"]
        indexes = [models.Index(fields=["state", "id"], name="bulk_job_state")]
        constraints = [models.CheckConstraint(condition=Q(state__in=JobState.values), name="bulk_job_state_known")]

    def __str__(self) -> str:
        return f"{self.action} #{self.pk}"


class BulkPart(models.Model):
    """Some objects of a job, done one after another. `position` moves with each object, in its transaction."""

    id = models.BigAutoField(primary_key=True)
    job: Any = models.ForeignKey(BulkJob, on_delete=models.CASCADE, related_name="parts")
    items = Utf8JSONField()
    size = models.PositiveIntegerField()
    position = models.PositiveIntegerField(default=0)
    failed = models.PositiveIntegerField(default=0)
    claim = models.CharField(max_length=32, blank=True, default="")  # whoever lost it to another finds another's here
    claimed_until = models.DateTimeField(null=True)

    class Meta:
        db_table = "bulk_part"
        default_permissions = ()
        ordering = ["id"]
        constraints = [models.CheckConstraint(condition=Q(position__lte=models.F("size")), name="bulk_part_position")]

    def __str__(self) -> str:
        return f"{self.job_id}/{self.pk}"


class BulkFailure(models.Model):
    """One object that its service refused, and why, in the language of whoever asked. It quotes nothing."""

    id = models.BigAutoField(primary_key=True)
    job: Any = models.ForeignKey(BulkJob, on_delete=models.CASCADE, related_name="failures")
    object_id = models.CharField(_("object"), max_length=64)
    reason = models.TextField(_("why"))

    class Meta:
        db_table = "bulk_failure"
        default_permissions = ()
        ordering = ["id"]

    def __str__(self) -> str:
        return f"{self.object_id}: {self.reason}"
