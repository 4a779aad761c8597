"""What reviewers do to cases. Each is one conditional UPDATE and one row of history, in one transaction."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from typing import Any, TypedDict, cast

from django.contrib.auth.models import AbstractBaseUser
from django.db import transaction
from django.db.models import F
from django.utils import timezone
from django.utils.translation import gettext as _

from cases_app import rules
from cases_app.models import CaseLibrary, CaseStatus, CaseTransition, FaultCategory, SourceType
from sessions_app.db import in_transaction
from sessions_app.errors import ConflictError, InvalidInputError, UnknownObjectError
from sessions_app.services.anonymity import note_new_text


class CaseContent(TypedDict):
    """What a reviewer writes."""

    fault_category: str  # FaultCategory.code
    error_code: str
    title: str
    root_cause: str
    solution: str


def content_of(case: CaseLibrary) -> CaseContent:
    """What stands in a case."""
    return {
        "fault_category": case.fault_category_id,
        "error_code": case.error_code,
        "title": case.title,
        "root_cause": case.root_cause,
        "solution": case.solution,
    }


class StaleCaseError(ConflictError):
    """The case was changed since the caller read it. `current` is how it stands now."""

    code = "stale"

    def __init__(self, current: CaseLibrary) -> None:
        super().__init__(
            _("Somebody changed this case since you opened it. Your text is still here; compare and save.")
        )
        self.current = current


@in_transaction
def create_case(*, content: CaseContent, author: AbstractBaseUser) -> CaseLibrary:
    """Write a case by hand. Raises InvalidInputError for an empty title or an unknown category."""
    _check_category(content["fault_category"])
    if not content["title"].strip():
        raise InvalidInputError(_("A case needs a title."), errors={"title": [_("A case needs a title.")]})
    case = CaseLibrary.objects.create(
        **_columns(content),
        source_type=SourceType.MANUAL,
        status=CaseStatus.ENRICHED,
        created_by=author.get_username(),
        reviewed_by_id=author.pk,
        reviewed_at=timezone.now(),
    )
    _log(case, "create", "", author, "")
    return case


@in_transaction
def enrich_case(*, case_id: uuid.UUID, content: CaseContent, version: int, reviewer: AbstractBaseUser) -> CaseLibrary:
    """Save a reviewer's text over version `version`. A draft becomes ENRICHED, a published case stays published.

    Raises StaleCaseError, InvalidInputError (a published case must stay complete), ConflictError (retired).
    """
    case = _locked(case_id)
    if case.version != version:
        raise StaleCaseError(case)
    _check_category(content["fault_category"])
    source, target = case.status, rules.state_after_enrichment(case.status)
    if target == CaseStatus.PUBLISHED:
        _check_complete(content)
    _update(case, "enrich", target, reviewer, flagged_at=None, **_columns(content))
    _log(case, "enrich", source, reviewer, "")
    return case


@in_transaction
def publish_case(*, case_id: uuid.UUID, reviewer: AbstractBaseUser) -> CaseLibrary:
    """Give the case to the agents. Raises InvalidInputError naming what is missing, ConflictError."""
    case = _locked(case_id)
    _check_state(case, "publish")
    _check_complete(content_of(case))
    return _move(case, "publish", CaseStatus.PUBLISHED, reviewer, "")


@in_transaction
def enrich_and_publish_case(
    *, case_id: uuid.UUID, content: CaseContent, version: int, reviewer: AbstractBaseUser
) -> CaseLibrary:
    """Save a reviewer's text and give it to the agents: both or, with the errors of either, neither."""
    with transaction.atomic():  # a savepoint, so that "neither" holds inside a caller's transaction too
        enrich_case(case_id=case_id, content=content, version=version, reviewer=reviewer)
        return publish_case(case_id=case_id, reviewer=reviewer)


@in_transaction
def unpublish_case(*, case_id: uuid.UUID, reviewer: AbstractBaseUser, reason: str = "") -> CaseLibrary:
    """Take the case back from the agents. Raises ConflictError."""
    return _move(_locked(case_id), "unpublish", CaseStatus.ENRICHED, reviewer, reason)


@in_transaction
def retire_case(*, case_id: uuid.UUID, reviewer: AbstractBaseUser, reason: str = "") -> CaseLibrary:
    """Close the case; a later verdict does not bring it back. Raises ConflictError."""
    return _move(_locked(case_id), "retire", CaseStatus.RETIRED, reviewer, reason)


@in_transaction
def restore_case(*, case_id: uuid.UUID, reviewer: AbstractBaseUser, reason: str = "") -> CaseLibrary:
    """Open a retired case again. Raises ConflictError."""
    case = _locked(case_id)
    target = CaseStatus(rules.state_after_restoring(case.fault_category_id))
    return _move(case, "restore", target, reviewer, reason)


def _move(case: CaseLibrary, action: str, target: CaseStatus, reviewer: AbstractBaseUser, reason: str) -> CaseLibrary:
    source = case.status
    _update(case, action, target, reviewer, flagged_at=None, retired_by_verdict=False)
    _log(case, action, source, reviewer, reason)
    return case


def _update(case: CaseLibrary, action: str, target: str, reviewer: AbstractBaseUser, **columns: Any) -> None:
    _check_state(case, action)
    now = timezone.now()
    columns |= {"status": target, "reviewed_by_id": reviewer.pk, "reviewed_at": now, "updated_at": now}
    moved = CaseLibrary.objects.filter(pk=case.pk, version=case.version).update(version=F("version") + 1, **columns)
    if not moved:
        raise StaleCaseError(CaseLibrary.objects.get(pk=case.pk))
    note_new_text(case.diagnosis_id)
    case.refresh_from_db()


def _check_state(case: CaseLibrary, action: str) -> None:
    if case.status not in rules.SOURCES[action]:
        raise ConflictError(
            _("This case is %(state)s; it cannot go that way from there.") % {"state": CaseStatus(case.status).label}
        )


def _locked(case_id: uuid.UUID) -> CaseLibrary:
    case = CaseLibrary.objects.select_for_update().filter(pk=case_id).first()
    if case is None:
        raise UnknownObjectError(_("There is no case %(id)s.") % {"id": case_id})
    return case


def _columns(content: CaseContent) -> dict[str, str]:
    return {
        "fault_category_id": content["fault_category"],
        "error_code": content["error_code"].strip(),
        "title": content["title"].strip(),
        "root_cause": content["root_cause"],
        "solution": content["solution"],
    }


def _check_category(code: str) -> None:
    if not FaultCategory.objects.filter(pk=code).exists():
        message = _("There is no category %(code)s.") % {"code": code}
        raise InvalidInputError(message, errors={"fault_category": [message]})


def _check_complete(content: CaseContent) -> None:
    errors: dict[str, list[str]] = {}
    for objection in rules.objections_to_publication(cast(Mapping[str, str], content)):
        errors.setdefault(objection.field, []).append(_(objection.text) % objection.params)
    if errors:
        raise InvalidInputError(_("The case is not complete."), errors=errors)


def _log(case: CaseLibrary, action: str, source: str, actor: AbstractBaseUser, reason: str) -> None:
    CaseTransition.objects.create(
        case=case, action=action, from_state=source, to_state=case.status, actor_id=actor.pk, reason=reason
    )
