"""Old texts lose what points to people, and older sessions go, as the settings say. Both are off without them.

The rows are the queue: a session whose `anonymised_at` is null, or that is older than its time, is due. So it does not
matter where a run stops, whether two run at once, or that agents send old sessions late.

Writers do not wait. A text is cleaned outside of any transaction, which takes the time; then the changed columns are
written in a short one, if nothing else changed meanwhile, else the session's turn comes again. Each transaction touches
few sessions, and between two others have time to write.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import cache
from typing import Any

from django.conf import settings
from django.contrib.admin.models import LogEntry
from django.contrib.contenttypes.models import ContentType
from django.db import connection, models
from django.db.models import F, Q
from django.utils import timezone

from cases_app.models import CaseLibrary, CaseStatus, CaseVersion, SourceType
from cases_app.services import terms as case_terms
from feedback_app.models import AgentFeedback, BadCaseReview
from feedback_app.selectors import subjects
from feedback_app.services import priority, terms
from feedback_app.services.quoting import blank_log
from sessions_app.db import in_transaction
from sessions_app.models import DiagnosisSession, OtlpTrace
from sessions_app.privacy import anonymise_json, anonymise_text
from sessions_app.services import indexing

PAGE_SESSIONS = 100
REMOVED_A_TRANSACTION = 10
PAUSE_SECONDS = 0.01
"""Between two transactions: SQLite lets in who waits."""

_UNTOUCHED = Q(source_type=SourceType.AUTO) & (
    Q(status=CaseStatus.DRAFT) | Q(status=CaseStatus.RETIRED, retired_by_verdict=True)
)
"""Cases that nobody worked on: they are the person's question and the agent's answer, and no more."""


@dataclass
class Applied:
    """What one run did. `is_done`: nothing is due any more."""

    anonymised: int = 0
    removed: int = 0
    is_done: bool = False


def count_due(now: datetime | None = None) -> Applied:
    """How many sessions are due, of each kind."""
    now = now or timezone.now()
    old, older = _to_anonymise(now), _to_remove(now)
    return Applied(old.count() if old is not None else 0, older.count() if older is not None else 0)


def apply_retention(*, seconds: float | None = None) -> Applied:
    """Do what is due, oldest first, for at most so many seconds."""
    now = timezone.now()
    until = None if seconds is None else time.monotonic() + seconds
    done = Applied()
    if connection.vendor == "sqlite":
        with connection.cursor() as cursor:
            cursor.execute("PRAGMA secure_delete=ON")  # else the file's free pages keep what was deleted
    removed = (_remove(chunk) for chunk in _pages(_to_remove(now), REMOVED_A_TRANSACTION))
    for count in _in_time(removed, until):
        done.removed += count
    cleaned = (_anonymise(each, now) for page in _pages(_to_anonymise(now), PAGE_SESSIONS) for each in page)
    for count in _in_time(cleaned, until):
        done.anonymised += count
    due = count_due(now)
    done.is_done = not (due.anonymised or due.removed)
    return done


def _in_time(steps: Iterator[int], until: float | None) -> Iterator[int]:
    while until is None or time.monotonic() < until:
        step = next(steps, None)
        if step is None:
            return
        yield step
        time.sleep(PAUSE_SECONDS)


def _to_anonymise(now: datetime) -> models.QuerySet[DiagnosisSession] | None:
    if not settings.RETENTION_ANONYMISE_DAYS:
        return None
    before = now - timedelta(days=settings.RETENTION_ANONYMISE_DAYS)
    return DiagnosisSession.objects.filter(anonymised_at=None, created_at__lt=before).order_by("created_at", "pk")


def _to_remove(now: datetime) -> models.QuerySet[DiagnosisSession] | None:
    if not settings.RETENTION_REMOVE_DAYS:
        return None
    before = now - timedelta(days=settings.RETENTION_REMOVE_DAYS)
    return DiagnosisSession.objects.filter(created_at__lt=before).order_by("created_at", "pk")


def _pages(due: models.QuerySet[DiagnosisSession] | None, size: int) -> Iterator[list[str]]:
    """Ids of what is due, read anew each time; a session whose turn was put off is not met twice in one run."""
    met: set[str] = set()
    while due is not None:
        found = due.values_list("session_id", flat=True)[: size + len(met)]
        page = [each for each in found if each not in met][:size]
        if not page:
            return
        yield page
        met.update(
            DiagnosisSession.objects.filter(session_id__in=page, anonymised_at=None).values_list(
                "session_id", flat=True
            )
        )


# -- anonymising -----------------------------------------------------------------------------------------------------


@dataclass
class _Change:
    """A row whose texts change, and how it must still stand for the change to be written."""

    model: type[models.Model]
    pk: Any
    seen: dict[str, Any]
    columns: dict[str, Any] = field(default_factory=dict)


class _MeanwhileChangedError(Exception):
    """Somebody wrote while the texts were cleaned."""


def _anonymise(session_id: str, now: datetime) -> int:
    """Clean all texts of one session. Returns 1, or 0 where somebody wrote meanwhile."""
    stamp = _stamp(session_id)
    changes = list(_changes(subjects.rows_of([session_id])))
    try:
        _write(session_id, stamp, changes, now)
    except _MeanwhileChangedError:
        return 0
    return 1


def _stamp(session_id: str) -> tuple[Any, ...]:
    """Changes whenever a text of the session is written."""
    columns = ("updated_at", "triage__updated_at", "case__version")
    written = DiagnosisSession.objects.filter(session_id=session_id).values_list(*columns).first()
    return written, AgentFeedback.objects.filter(session__session_id=session_id).count()


def _changes(tables: dict[type[models.Model], models.QuerySet[Any]]) -> Iterator[_Change]:
    for model, rows in tables.items():
        columns = _text_columns(model)
        if not columns:
            continue
        guards = tuple(name for name in ("updated_at", "version") if name in _columns(model))
        for pk, *values in rows.order_by("pk").values_list("pk", *guards, *columns).iterator(PAGE_SESSIONS):
            seen = dict(zip(guards, values, strict=False))
            told = dict(zip(columns, values[len(guards) :], strict=True))
            cleaned = {name: _cleaned(value) for name, value in told.items()}
            if "title" in cleaned:  # a mark may be longer than what it stands for
                cleaned["title"] = cleaned["title"][: _columns(model)["title"].max_length]
            if cleaned != told:
                changed = {name: value for name, value in cleaned.items() if value != told[name]}
                yield _Change(model, pk, seen, changed)


def _cleaned(value: Any) -> Any:
    return anonymise_text(value) if isinstance(value, str) else anonymise_json(value)


@in_transaction
def _write(session_id: str, stamp: tuple[Any, ...], changes: Sequence[_Change], now: datetime) -> None:
    # Traces are locked before sessions. A closed ledger holds no texts, and takes no more.
    OtlpTrace.objects.filter(session_id=session_id, closed_at=None).update(spans=b"", closed_at=now)
    # Reviewers lock no session: their rows are locked too, so that what they write is either seen or comes after.
    key: Any = session_id
    list(DiagnosisSession.objects.select_for_update().filter(session_id=key).values_list("pk"))
    list(CaseLibrary.objects.select_for_update().filter(diagnosis_id=key).values_list("pk"))
    list(BadCaseReview.objects.select_for_update().filter(session_id=key).values_list("pk"))
    if _stamp(session_id) != stamp:
        raise _MeanwhileChangedError
    if not all(_apply(change, now) for change in changes):
        raise _MeanwhileChangedError
    DiagnosisSession.objects.filter(session_id=session_id).update(anonymised_at=now)
    priority.refresh(session_id)  # it keeps a digest of the question
    terms.refresh(session_id)


@in_transaction
def _apply(change: _Change, now: datetime) -> bool:
    """Write one row, if it still stands as it was read."""
    columns = change.columns
    if change.model is CaseLibrary:  # what was derived from its text is out of date
        columns = {**columns, "version": F("version") + 1, "updated_at": now}
    if not subjects.all_of(change.model).filter(pk=change.pk, **change.seen).update(**columns):
        return False
    if change.model is CaseLibrary:
        case_terms.refresh([change.pk])
    if title := columns.get("title"):
        _log_of(change.model, change.pk).update(object_repr=title[:200])
    return True


def _log_of(model: type[models.Model], pk: Any) -> models.QuerySet[LogEntry]:
    return LogEntry.objects.filter(content_type=ContentType.objects.get_for_model(model), object_id=str(pk))


def _columns(model: type[models.Model]) -> dict[str, models.Field[Any, Any]]:
    fields: Any = model._meta.concrete_fields  # noqa: SLF001 - Django's documented face
    return {each.attname: each for each in fields}


@cache
def _text_columns(model: type[models.Model]) -> tuple[str, ...]:
    """Where people and agents write at length; short columns hold names and codes, but a case's title is a question."""
    titled = model in (CaseLibrary, CaseVersion)
    return tuple(
        name
        for name, column in _columns(model).items()
        if isinstance(column, models.TextField | models.JSONField) or (titled and name == "title")
    )


# -- removing --------------------------------------------------------------------------------------------------------


def _remove(session_ids: Sequence[str]) -> int:
    """Remove sessions with all that hangs on them. Cases that people worked on stay, anonymised, of no session."""
    now = timezone.now()
    worked_on = CaseLibrary.objects.filter(diagnosis__session_id__in=session_ids, diagnosis__consent=True)
    worked_on = worked_on.exclude(_UNTOUCHED)
    tables = subjects.rows_below(CaseLibrary, list(worked_on.values_list("pk", flat=True)))
    changes = list(_changes({**tables, CaseLibrary: worked_on}))
    return _delete(session_ids) if all(_apply(change, now) for change in changes) else 0


@in_transaction
def _delete(session_ids: Sequence[str]) -> int:
    locked = DiagnosisSession.objects.select_for_update().filter(session_id__in=session_ids).order_by("session_id")
    found = list(locked.values_list("session_id", flat=True))
    # Without its session a case would no longer tell that its text may not leave.
    own_cases = CaseLibrary.objects.filter(diagnosis__session_id__in=found)
    reviews = BadCaseReview.objects.filter(session__session_id__in=found)
    for rows in (own_cases, reviews):
        indexing.lock(rows)
    untouched = own_cases.filter(_UNTOUCHED | Q(diagnosis__consent=False))
    own = DiagnosisSession.objects.filter(session_id__in=found)
    blank_log({CaseLibrary: untouched, DiagnosisSession: own, BadCaseReview: reviews})
    untouched.delete()
    kept = list(own_cases.values_list("pk", flat=True))
    own.delete()
    case_terms.refresh(kept)  # no longer by the session's id
    return len(found)
