"""What can be done to many bad cases: each through the service that does it for one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.contrib.auth import get_user_model
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from cases_app.services.bulk import Ask, BulkAction, Order
from feedback_app.models import TriageState, has_expired
from feedback_app.selectors.triage import TRIAGE_PERMISSION, reviewers
from feedback_app.services import triage
from sessions_app.errors import UnknownObjectError

ASSIGN_PERMISSION = "feedback_app.assign_badcasereview"
COLUMNS = ("state", "assignee_id", "assignee__username", "claimed_at")


def _against_taking(row: Mapping[str, Any], actor: Any) -> str:
    if objection := _against_closed(row):
        return objection
    if row["assignee_id"] in (None, actor.pk) or has_expired(row["claimed_at"]):
        return ""
    return _("%(holder)s has taken this bad case.") % {"holder": row["assignee__username"]}


def _against_closed(row: Mapping[str, Any]) -> str:
    if row["state"] in (TriageState.OPEN, TriageState.IN_REVIEW):
        return ""
    return _("This bad case is closed.")


def _claim(order: Order) -> object:
    return triage.claim(review_id=order.item, reviewer=order.actor)


def _assign(order: Order) -> object:
    assignee = get_user_model().objects.filter(pk=order.parameters["assignee"]).first()
    if assignee is None:
        raise UnknownObjectError(_("This person is no more."))
    return triage.assign(
        review_id=order.item,
        actor=order.actor,
        assignee=assignee,
        is_lead=True,
        reason=order.parameters.get("reason", ""),
    )


def _assignees() -> list[tuple[str, str]]:
    """Whoever may triage."""
    return [(str(pk), name) for pk, name in reviewers().values_list("pk", "username")]


def _dismiss(order: Order) -> object:
    """Who dismisses must hold it: a free one is taken first, in the same transaction. What was written stays."""
    review = triage.claim(review_id=order.item, reviewer=order.actor)
    notes = "\n\n".join(filter(None, (review.notes, order.parameters["notes"])))
    return triage.dismiss(
        review_id=order.item,
        reviewer=order.actor,
        version=review.version,
        notes=notes,
        corrected_answer=review.corrected_answer,
    )


TRIAGE_ACTIONS = (
    BulkAction("triage.claim", gettext_lazy("Claim bad cases"), TRIAGE_PERMISSION, _claim, COLUMNS, _against_taking),
    BulkAction(
        "triage.assign",
        gettext_lazy("Assign bad cases"),
        ASSIGN_PERMISSION,
        _assign,
        COLUMNS,
        lambda row, actor: _against_closed(row),  # noqa: ARG005
        (
            Ask("assignee", gettext_lazy("Assignee"), _assignees),
            Ask("reason", gettext_lazy("Why"), is_required=False),
        ),
    ),
    BulkAction(
        "triage.dismiss",
        gettext_lazy("Dismiss bad cases"),
        TRIAGE_PERMISSION,
        _dismiss,
        COLUMNS,
        _against_taking,
        (Ask("notes", gettext_lazy("Why nothing is to be done")),),
    ),
)
