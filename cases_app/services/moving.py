"""What every move of a case is made of: rows locked in one order, a conditional UPDATE, a row of history."""

from __future__ import annotations

import uuid
from typing import Any

from django.contrib.auth.models import AbstractBaseUser
from django.db.models import F
from django.utils import timezone
from django.utils.translation import gettext as _

from cases_app import rules
from cases_app.models import CaseLibrary, CaseStatus, CaseTransition, CaseVersion
from cases_app.services import terms
from sessions_app.errors import ConflictError, UnknownObjectError
from sessions_app.services.anonymity import note_new_text
from sessions_app.services.bulk import insert, new_row

CONTENT = frozenset({"fault_category_id", "error_code", "title", "root_cause", "solution"})
"""The columns that people write."""


class StaleCaseError(ConflictError):
    """The case was changed since the caller read it. `current` is how it stands now."""

    code = "stale"

    def __init__(self, current: CaseLibrary) -> None:
        super().__init__(
            _("Somebody changed this case since you opened it. Your text is still here; compare and save.")
        )
        self.current = current


def locked(case_id: uuid.UUID) -> CaseLibrary:
    """The case, locked. Raises UnknownObjectError."""
    return locked_all(case_id)[case_id]


def locked_all(*case_ids: uuid.UUID) -> dict[uuid.UUID, CaseLibrary]:
    """Several cases, locked in the order of their ids, so that nobody waits in a ring. Raises UnknownObjectError."""
    rows = CaseLibrary.objects.select_for_update().filter(pk__in=case_ids).order_by("pk")
    found = {case.pk: case for case in rows}
    for case_id in case_ids:
        if case_id not in found:
            raise UnknownObjectError(_("There is no case %(id)s.") % {"id": case_id})
    return found


def check_version(case: CaseLibrary, version: int) -> None:
    """Raises StaleCaseError for another version than the caller read."""
    if case.version != version:
        raise StaleCaseError(case)


def check_state(case: CaseLibrary, action: str) -> None:
    """Raises ConflictError where the action may not start from the case's state."""
    if case.status not in rules.SOURCES[action]:
        raise ConflictError(
            _("This case is %(state)s; it cannot go that way from there.") % {"state": CaseStatus(case.status).label}
        )


def move(
    case: CaseLibrary, action: str, target: str, reviewer: AbstractBaseUser, reason: str = "", **columns: Any
) -> CaseLibrary:
    """The conditional UPDATE, its row of history, and of a change of texts a version.

    Raises StaleCaseError, ConflictError.
    """
    check_state(case, action)
    is_written = not CONTENT.isdisjoint(columns)
    if is_written:
        keep_former_version(case)
    source, now = case.status, timezone.now()
    columns |= {"status": target, "reviewed_by_id": reviewer.pk, "reviewed_at": now, "updated_at": now}
    moved = CaseLibrary.objects.filter(pk=case.pk, version=case.version).update(version=F("version") + 1, **columns)
    if not moved:
        raise StaleCaseError(CaseLibrary.objects.get(pk=case.pk))
    note_new_text(case.diagnosis_id)
    case.refresh_from_db()
    log(case, action, source, actor=reviewer, reason=reason)
    if is_written:
        keep_version(case, action, actor=reviewer, reason=reason)
        terms.owe([case.pk])
    return case


def keep_version(case: CaseLibrary, action: str, *, actor: AbstractBaseUser, reason: str = "") -> None:
    """Store what the case says now."""
    _store(case, action=action, actor_id=actor.pk, reason=reason)


def keep_former_version(case: CaseLibrary) -> None:
    """Before the first change by a person: store what stands, which no person wrote here."""
    if not CaseVersion.objects.filter(case=case).exists():
        _store(case, at=case.updated_at)


def _store(case: CaseLibrary, **columns: Any) -> None:
    said = {column.removesuffix("_id"): getattr(case, column) for column in CONTENT}
    CaseVersion.objects.create(case=case, number=case.version, **said, **columns)


def log(case: CaseLibrary, action: str, source: str, *, actor: AbstractBaseUser | None, reason: str = "") -> None:
    """One row of history: from `source` to where the case stands. Without an actor, a reader's verdict did it."""
    transition = new_row(
        CaseTransition,
        case_id=case.case_id,
        action=action,
        from_state=source,
        to_state=case.status,
        actor_id=actor.pk if actor else None,
        reason=reason,
    )
    insert(CaseTransition, [transition])
