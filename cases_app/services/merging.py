"""Two cases that are one: the kept case stands for the sources of both, the other is retired and points to it.

A merged case keeps its session, and one hop leads to the kept one, however often that is merged again. Texts are not
moved: whoever is erased takes their own words along, and nobody else's.
"""

from __future__ import annotations

import uuid
from typing import Any

from django.contrib.auth.models import AbstractBaseUser
from django.db.models import F
from django.utils.translation import gettext as _

from cases_app import rules
from cases_app.models import CaseLibrary, CaseStatus
from cases_app.services import moving
from sessions_app.db import in_transaction
from sessions_app.errors import ConflictError, InvalidInputError


@in_transaction
def merge_cases(
    *,
    kept_id: uuid.UUID,
    kept_version: int,
    merged_id: uuid.UUID,
    merged_version: int,
    reviewer: AbstractBaseUser,
    reason: str = "",
) -> CaseLibrary:
    """Retire one case as merged into another, both at the versions that were previewed. Gives the kept one.

    Raises InvalidInputError (one and the same), StaleCaseError, ConflictError where the states forbid it.
    """
    if kept_id == merged_id:
        raise InvalidInputError(_("A case cannot be merged into itself."))
    # What was merged into the other before moves along. A new one of these would have changed the other's version.
    earlier = list(CaseLibrary.objects.filter(merged_into_id=merged_id).values_list("pk", flat=True))
    cases = moving.locked_all(kept_id, merged_id, *earlier)
    kept, merged = cases[kept_id], cases[merged_id]
    moving.check_version(kept, kept_version)
    moving.check_version(merged, merged_version)
    if objection := rules.objection_to_merging(kept.status, merged.status):
        raise ConflictError(_(objection))
    takes = taken(kept, merged)
    for pk in earlier:
        CaseLibrary.objects.filter(pk=pk).update(merged_into=kept, version=F("version") + 1)
        moving.log(cases[pk], "merge", cases[pk].status, actor=reviewer, reason=str(kept_id))
    moving.move(
        merged,
        "merge",
        CaseStatus.RETIRED,
        reviewer,
        f"{kept_id} {reason}".strip(),
        merged_into_id=kept_id,
        flagged_at=None,
        retired_by_verdict=False,
    )
    return moving.move(kept, "absorb", rules.state_after_enrichment(kept.status), reviewer, str(merged_id), **takes)


def taken(kept: CaseLibrary, merged: CaseLibrary) -> dict[str, Any]:
    """What the kept case takes from the other: a category, a code, a doubt, where it has none. Column → value."""
    columns: dict[str, Any] = {}
    if kept.fault_category_id == rules.GENERAL != merged.fault_category_id:
        columns["fault_category_id"] = merged.fault_category_id
    if merged.error_code and not kept.error_code:
        columns["error_code"] = merged.error_code
    if merged.flagged_at and not kept.flagged_at:
        columns["flagged_at"] = merged.flagged_at
    return columns
