"""One action on many objects, in the background, each through the service that does it for one.

1. `prepare_job` reads the keys of a selection once, a page at a time, into parts; counts what speaks against which.
2. A person sees that, says what the action needs to know, and `confirm_job` makes it due.
3. `run_jobs`, called by any number of workers, claims a part by a conditional UPDATE and does its objects one by one.
   An object, its history and the part's position are one transaction: whatever dies where, nothing is done twice.

Selections are kept as keys, not as filters: what was previewed is what is done, though doing it changes the filter.
"""

from __future__ import annotations

import time
import uuid
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import structlog
from django.contrib.auth import get_user_model
from django.db import DatabaseError, models, transaction
from django.db.models import F, Q, QuerySet, Sum
from django.utils import timezone, translation
from django.utils.translation import gettext as _

from cases_app.models import BulkFailure, BulkJob, BulkPart, JobState
from sessions_app.db import in_transaction, is_passing
from sessions_app.errors import ConflictError, DomainError, InvalidInputError, UnknownObjectError
from sessions_app.fields import dumps

logger = structlog.get_logger(__name__)

PART_OBJECTS = 500
PART_BYTES = 2 * 2**20
"""Of JSON. A client escapes it once more, and a statement must stay below the 16 MB of MySQL's and MariaDB's packet."""
MAX_OBJECTS = 200_000
"""Of one job: gathering more keys takes longer than a browser waits."""
LEASE = timedelta(seconds=60)
"""Longer than a task may run."""
PREVIEW_FOR = timedelta(days=1)
"""What nobody confirmed is forgotten after this."""
KEPT_FOR = timedelta(days=90)


@dataclass(frozen=True, slots=True)
class Order:
    """What is to be done to one object: a key, or for an import a row."""

    item: Any
    actor: Any
    parameters: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Ask:
    """Something that an action must be told: a choice where there are choices, else text."""

    name: str
    label: Any  # lazily translated
    choices: Callable[[], Sequence[tuple[str, str]]] | None = None
    is_required: bool = True
    max_chars: int = 500


@dataclass(frozen=True, slots=True)
class BulkAction:
    """An action that can be done to many objects."""

    name: str
    label: Any  # lazily translated
    permission: str
    apply: Callable[[Order], object]  # calls a service; raises DomainError
    columns: tuple[str, ...] = ()
    objection: Callable[[Mapping[str, Any], Any], str] = lambda row, actor: ""  # noqa: ARG005
    """Says what speaks against an object, read by `columns`; for the preview alone. The service has the last word."""
    asks: tuple[Ask, ...] = ()
    name_of: Callable[[Any], str] = str


ACTIONS: dict[str, BulkAction] = {}


def register(*actions: BulkAction) -> None:
    """Make actions known. Called from `AppConfig.ready()` of the app that owns the objects."""
    ACTIONS.update({action.name: action for action in actions})


# -- before ----------------------------------------------------------------------------------------------------------


def prepare_job(*, action: BulkAction, rows: QuerySet[Any], actor: Any) -> BulkJob:
    """A job on all of `rows` that waits for its confirmation. Raises InvalidInputError for none, and for too many."""
    rows = rows.order_by()
    if rows.values("pk")[MAX_OBJECTS : MAX_OBJECTS + 1].exists():
        raise InvalidInputError(_("One job takes up to %(count)s objects.") % {"count": MAX_OBJECTS})
    objections: Counter[str] = Counter()
    pages = _pages(rows, action.columns)

    def keys() -> Iterator[Any]:
        for row in pages:
            if reason := action.objection(row, actor):
                objections[str(reason)] += 1
            key = row["pk"]
            yield key if isinstance(key, int) else str(key)

    return gather_job(action=action, items=keys(), actor=actor, preview=objections)


def gather_job(
    *,
    action: BulkAction,
    items: Iterable[Any],
    actor: Any,
    preview: Mapping[str, Any] | None = None,
    details: Mapping[str, Any] | None = None,
    size: int = PART_OBJECTS,
) -> BulkJob:
    """A job on `items`, stored as they come. `preview` is read when they all have come. Raises InvalidInputError."""
    job = BulkJob.objects.create(action=action.name, actor_id=actor.pk)
    total = 0
    for part in _parts(items, size):
        BulkPart.objects.create(job=job, items=part, size=len(part))
        total += len(part)
    if not total:
        job.delete()
        raise InvalidInputError(_("Nothing is selected."))
    job.total, job.preview, job.details, job.state = total, dict(preview or {}), dict(details or {}), JobState.PREVIEW
    job.save()
    return job


def _parts(items: Iterable[Any], size: int) -> Iterator[list[Any]]:
    """Up to `size` items and PART_BYTES at once; an item that is longer alone is a part of its own."""
    part: list[Any] = []
    weight = 0
    for item in items:
        added = len(dumps(item).encode())
        if part and weight + added > PART_BYTES:
            yield part
            part, weight = [], 0
        part.append(item)
        weight += added
        if len(part) == size:
            yield part
            part, weight = [], 0
    if part:
        yield part


def _pages(rows: QuerySet[Any], columns: Sequence[str]) -> Iterator[Mapping[str, Any]]:
    ordered = rows.order_by("pk").values("pk", *columns)
    last: Any = None
    while page := list((ordered if last is None else ordered.filter(pk__gt=last))[:PART_OBJECTS]):
        yield from page
        last = page[-1]["pk"]


@in_transaction
def confirm_job(*, job_id: int, actor: Any, parameters: Mapping[str, Any]) -> BulkJob:
    """Make a job due. Raises ConflictError when it is already, or somebody else's."""
    confirmed = BulkJob.objects.filter(pk=job_id, state=JobState.PREVIEW, actor_id=actor.pk).update(
        state=JobState.RUNNING,
        parameters=dict(parameters),
        language=translation.get_language() or "",
        confirmed_at=timezone.now(),
    )
    if not confirmed:
        raise ConflictError(_("This job waits for no confirmation of yours."))
    return _without_quotes(job_id)


@in_transaction
def stop_job(*, job_id: int, note: str = "") -> BulkJob:
    """End a job after the objects that are being done. What is done stays done. Raises ConflictError."""
    stopped = BulkJob.objects.filter(pk=job_id, state__in=(JobState.PREVIEW, JobState.RUNNING)).update(
        state=JobState.STOPPED, finished_at=timezone.now(), note=note
    )
    if not stopped:
        raise ConflictError(_("This job has ended."))
    BulkPart.objects.filter(job_id=job_id).update(items=[])
    return _without_quotes(job_id)


def _without_quotes(job_id: int) -> BulkJob:
    """What a preview quotes of people's texts has been seen."""
    job = BulkJob.objects.get(pk=job_id)
    if job.details.pop("rows", None) is not None:
        job.save(update_fields=["details"])
    return job


# -- while -----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a job is."""

    total: int
    done: int
    failed: int

    @property
    def seen(self) -> int:
        """How many objects had their turn."""
        return self.done + self.failed

    @property
    def percent(self) -> int:
        """Of all, rounded down: 100 only at the end."""
        return self.seen * 100 // self.total if self.total else 100


def progress_of(job: BulkJob) -> Progress:
    """Added up over the parts."""
    sums = job.parts.aggregate(seen=Sum("position", default=0), failed=Sum("failed", default=0))
    return Progress(job.total, sums["seen"] - sums["failed"], sums["failed"])


def run_jobs(*, until: float) -> bool:
    """Do what is due until the monotonic clock says `until`; whether something is left."""
    for job in BulkJob.objects.filter(state=JobState.RUNNING).order_by("pk"):
        with translation.override(job.language or None):
            while time.monotonic() < until and (part := _claim_part(job)) is not None:
                if not _do_part(job, part, until):
                    break
        _finish(job)
    return BulkJob.objects.filter(state=JobState.RUNNING).exists()


def forget_jobs() -> None:
    """Delete jobs that nobody confirmed, and old ones. Their objects have histories of their own."""
    now = timezone.now()
    idle = Q(state__in=(JobState.GATHERING, JobState.PREVIEW), created_at__lt=now - PREVIEW_FOR)
    old = Q(state__in=(JobState.DONE, JobState.STOPPED), finished_at__lt=now - KEPT_FOR)
    for job in BulkJob.objects.filter(idle | old)[:20]:
        job.delete()


def _unfinished(job: BulkJob) -> QuerySet[BulkPart]:
    return BulkPart.objects.filter(job=job, position__lt=F("size"))


def _claim_part(job: BulkJob) -> BulkPart | None:
    """A part that nobody works on; None when there is none, or the job was stopped."""
    free = _unfinished(job).filter(Q(claimed_until=None) | Q(claimed_until__lt=timezone.now()))
    running = models.Exists(BulkJob.objects.filter(pk=job.pk, state=JobState.RUNNING))
    for key, until in list(free.filter(running).values_list("pk", "claimed_until")[:50]):
        claim = uuid.uuid4().hex
        mine = BulkPart.objects.filter(pk=key, claimed_until=until, position__lt=F("size"))
        if mine.update(claim=claim, claimed_until=timezone.now() + LEASE):
            return BulkPart.objects.get(pk=key)
    return None


def _do_part(job: BulkJob, part: BulkPart, until: float) -> bool:
    """Do the objects of a claimed part, and give the claim back; whether the job may go on."""
    action = ACTIONS.get(job.action)
    actor = get_user_model().objects.filter(pk=job.actor_id or 0, is_active=True).first()
    if action is None or actor is None or not actor.has_perm(action.permission):
        _stop_for_want_of_right(job)
        return False
    try:
        while part.position < part.size and time.monotonic() < until and _is_running(job):
            _do_next(job, part, action, actor)
    except _LostClaimError:
        return True  # the lease ran out, and somebody else goes on from where we were
    except DatabaseError as error:
        if not is_passing(error):
            raise
        logger.warning("bulk_part_interrupted", job=job.pk, part=part.pk, error=type(error).__name__)
        return False  # the next sweep tries again
    finally:
        _release(part)
    return True


def _release(part: BulkPart) -> None:
    finished = part.position >= part.size
    mine = BulkPart.objects.filter(pk=part.pk, claim=part.claim)
    # What an import wrote stands in its cases now: no second copy of people's texts.
    mine.update(claimed_until=None, **({"items": []} if finished else {}))


def _is_running(job: BulkJob) -> bool:
    return BulkJob.objects.filter(pk=job.pk, state=JobState.RUNNING).exists()


def _do_next(job: BulkJob, part: BulkPart, action: BulkAction, actor: Any) -> None:
    item = part.items[part.position]
    try:
        failed = _do_one(job, part, action, Order(item, actor, job.parameters))
    except _LostClaimError:
        raise
    except Exception as error:
        if isinstance(error, DatabaseError) and is_passing(error):
            raise
        # A fault of ours must not hold up the objects behind it.
        logger.exception("bulk_object_failed", job=job.pk, object_id=action.name_of(item))
        failed = _give_up_on_one(job, part, action.name_of(item))
    part.position += 1
    part.failed += failed


@in_transaction
def _do_one(job: BulkJob, part: BulkPart, action: BulkAction, order: Order) -> bool:
    """Whether it failed."""
    _advance(part)
    try:
        with transaction.atomic():
            action.apply(order)
    except DomainError as refusal:
        _note(job, part, action.name_of(order.item), _reasons(refusal))
        return True
    return False


@in_transaction
def _give_up_on_one(job: BulkJob, part: BulkPart, object_id: str) -> bool:
    _advance(part)
    _note(job, part, object_id, _("An unexpected error; it stands in the log."))
    return True


def _advance(part: BulkPart) -> None:
    """Take the next object: first of all, so that whoever lost the claim touches none."""
    mine = BulkPart.objects.filter(pk=part.pk, claim=part.claim, position=part.position)
    if not mine.update(position=F("position") + 1):
        raise _LostClaimError


def _note(job: BulkJob, part: BulkPart, object_id: str, reason: str) -> None:
    BulkPart.objects.filter(pk=part.pk).update(failed=F("failed") + 1)
    BulkFailure.objects.create(job=job, object_id=object_id[:64], reason=reason)


def _reasons(refusal: DomainError) -> str:
    """The refusal, with what is wrong field by field where there is more to say than that."""
    told = [text for texts in refusal.errors.values() for text in texts if text != refusal.message]
    return " ".join([refusal.message, *dict.fromkeys(told)])


def _stop_for_want_of_right(job: BulkJob) -> None:
    try:
        stop_job(job_id=job.pk, note=_("Who asked for it may not do this any more."))
    except ConflictError:
        logger.info("bulk_job_already_ended", job=job.pk)


def _finish(job: BulkJob) -> None:
    if not _unfinished(job).exists():
        BulkJob.objects.filter(pk=job.pk, state=JobState.RUNNING).update(
            state=JobState.DONE, finished_at=timezone.now()
        )


def job_of(job_id: str) -> BulkJob:
    """By its id as an address holds it. Raises UnknownObjectError."""
    job = BulkJob.objects.select_related("actor").filter(pk=int(job_id)).first() if job_id.isdecimal() else None
    if job is None:
        raise UnknownObjectError(_("There is no job %(id)s.") % {"id": job_id})
    return job


class _LostClaimError(Exception):
    """The part is another worker's by now."""
