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
from cases_app.models import CaseLibrary, CaseStatus, CaseVersion, FaultCategory, SourceType
from cases_app.services import moving
from cases_app.services.moving import StaleCaseError
from sessions_app.db import in_transaction
from sessions_app.errors import InvalidInputError, UnknownObjectError
from sessions_app.services import indexing


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


def content_to_edit(case: CaseLibrary) -> CaseContent:
    """What a reviewer begins with: an answer that nobody has split yet stands once, as the solution, not twice."""
    content = content_of(case)
    is_whole = case.status == CaseStatus.DRAFT or (case.diagnosis and case.diagnosis.answer == content["solution"])
    if case.source_type != SourceType.MANUAL and is_whole and content["root_cause"] == content["solution"]:
        return {**content, "root_cause": ""}
    return content


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
    moving.log(case, "create", "", actor=author)
    moving.keep_version(case, "create", actor=author)
    indexing.announce()
    return case


@in_transaction
def enrich_case(*, case_id: uuid.UUID, content: CaseContent, version: int, reviewer: AbstractBaseUser) -> CaseLibrary:
    """Save a reviewer's text over version `version`. A draft becomes ENRICHED, a published case stays published.

    Raises StaleCaseError, InvalidInputError (a published case must stay complete), ConflictError (retired).
    """
    case = moving.locked(case_id)
    moving.check_version(case, version)
    return _write(case, "enrich", content, reviewer)


@in_transaction
def restore_version(*, case_id: uuid.UUID, number: int, version: int, reviewer: AbstractBaseUser) -> CaseLibrary:
    """Save what the case said as its version `number` over version `version`, as a new one.

    Raises UnknownObjectError, StaleCaseError, ConflictError, InvalidInputError (nothing new; no longer allowed).
    """
    case = moving.locked(case_id)
    moving.check_version(case, version)
    former = CaseVersion.objects.filter(case=case, number=number).first()
    if former is None:
        raise UnknownObjectError(_("This case has no version %(number)s.") % {"number": number})
    content: CaseContent = {
        "fault_category": former.fault_category,
        "error_code": former.error_code,
        "title": former.title,
        "root_cause": former.root_cause,
        "solution": former.solution,
    }
    if content == content_of(case):
        raise InvalidInputError(_("The case says this already."))
    return _write(case, "revert", content, reviewer, f"#{number}")


def _write(
    case: CaseLibrary, action: str, content: CaseContent, reviewer: AbstractBaseUser, reason: str = ""
) -> CaseLibrary:
    _check_category(content["fault_category"])
    target = rules.state_after_enrichment(case.status)
    if target == CaseStatus.PUBLISHED:
        _check_complete(content)
    return moving.move(case, action, target, reviewer, reason, flagged_at=None, **_columns(content))


@in_transaction
def publish_case(*, case_id: uuid.UUID, reviewer: AbstractBaseUser) -> CaseLibrary:
    """Give the case to the agents. Raises InvalidInputError naming what is missing, ConflictError."""
    case = moving.locked(case_id)
    moving.check_state(case, "publish")
    _check_complete(content_of(case))
    return _move(case, "publish", CaseStatus.PUBLISHED, reviewer)


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
    return _move(moving.locked(case_id), "unpublish", CaseStatus.ENRICHED, reviewer, reason)


@in_transaction
def retire_case(*, case_id: uuid.UUID, reviewer: AbstractBaseUser, reason: str = "") -> CaseLibrary:
    """Close the case; a later verdict does not bring it back. Raises ConflictError."""
    return _move(moving.locked(case_id), "retire", CaseStatus.RETIRED, reviewer, reason)


@in_transaction
def restore_case(*, case_id: uuid.UUID, reviewer: AbstractBaseUser, reason: str = "") -> CaseLibrary:
    """Open a retired case again; one that was merged stands on its own from now on. Raises ConflictError."""
    kept_id = CaseLibrary.objects.filter(pk=case_id).values_list("merged_into_id", flat=True).first()
    cases = moving.locked_all(case_id, *filter(None, [kept_id]))
    case = cases[case_id]
    if case.merged_into_id != kept_id:
        raise StaleCaseError(case)
    if kept_id:
        kept = cases[kept_id]
        CaseLibrary.objects.filter(pk=kept_id).update(version=F("version") + 1)
        moving.log(kept, "let_go", kept.status, actor=reviewer, reason=str(case_id))
    target = CaseStatus(rules.state_after_restoring(case.fault_category_id))
    return _move(case, "restore", target, reviewer, reason, merged_into_id=None)


def _move(
    case: CaseLibrary, action: str, target: CaseStatus, reviewer: AbstractBaseUser, reason: str = "", **columns: Any
) -> CaseLibrary:
    """Whoever moves a case has looked at it: a reader's doubt is heard."""
    return moving.move(case, action, target, reviewer, reason, flagged_at=None, retired_by_verdict=False, **columns)


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
