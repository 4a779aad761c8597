"""What can be done to many cases: each through the service that does it for one."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from typing import Any

from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from cases_app import rules
from cases_app.models import CaseLibrary, CaseStatus, FaultCategory
from cases_app.services import enrichment
from cases_app.services.bulk import Ask, BulkAction, Order
from sessions_app.errors import ConflictError, UnknownObjectError

ENRICH, PUBLISH = "cases_app.enrich_caselibrary", "cases_app.publish_caselibrary"


def _against(action: str, row: Mapping[str, Any]) -> str:
    """What the state says against it."""
    if row["status"] in rules.SOURCES[action]:
        return ""
    return _("This case is %(state)s; it cannot go that way from there.") % {"state": CaseStatus(row["status"]).label}


def _against_category(row: Mapping[str, Any], actor: Any) -> str:
    if row["status"] == CaseStatus.PUBLISHED and not actor.has_perm(PUBLISH):
        return _("This case is published: only who publishes may change it.")
    return _against("enrich", row)


def _set_category(order: Order) -> object:
    case = CaseLibrary.objects.filter(pk=uuid.UUID(order.item)).first()
    if case is None:
        raise UnknownObjectError(_("There is no case %(id)s.") % {"id": order.item})
    if objection := _against_category({"status": case.status}, order.actor):
        raise ConflictError(objection)
    category = order.parameters["category"]
    if case.fault_category_id == category:
        return case
    content = {**enrichment.content_of(case), "fault_category": category}
    return enrichment.enrich_case(
        case_id=case.pk,
        content=content,  # type: ignore[arg-type]
        version=case.version,
        reviewer=order.actor,
    )


def _against_publication(row: Mapping[str, Any], actor: Any) -> str:
    if objection := _against("publish", row):
        return objection
    return _("A published case needs a category beyond GENERAL.") if row["fault_category_id"] == rules.GENERAL else ""


def _publish(order: Order) -> object:
    return enrichment.publish_case(case_id=uuid.UUID(order.item), reviewer=order.actor)


def _retire(order: Order) -> object:
    reason = order.parameters.get("reason", "")
    return enrichment.retire_case(case_id=uuid.UUID(order.item), reviewer=order.actor, reason=reason)


REASON = Ask("reason", gettext_lazy("Why"), is_required=False)
SET_CATEGORY = BulkAction(
    "case.set_category",
    gettext_lazy("Set the category of cases"),
    ENRICH,
    _set_category,
    ("status",),
    _against_category,
    (
        Ask(
            "category",
            gettext_lazy("Fault category"),
            lambda: [(one.code, str(one)) for one in FaultCategory.objects.all()],
        ),
    ),
)
PUBLISH_CASES = BulkAction(
    "case.publish",
    gettext_lazy("Publish cases"),
    PUBLISH,
    _publish,
    ("status", "fault_category_id"),
    _against_publication,
)
RETIRE_CASES = BulkAction(
    "case.retire",
    gettext_lazy("Retire cases"),
    PUBLISH,
    _retire,
    ("status",),
    lambda row, actor: _against("retire", row),  # noqa: ARG005
    (REASON,),
)
CASE_ACTIONS = (SET_CATEGORY, PUBLISH_CASES, RETIRE_CASES)
