"""The buttons on the page of a bad case: each calls one service."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from django.contrib.auth.models import AbstractBaseUser
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from feedback_app.admin.forms import VerdictForm
from feedback_app.models import BadCaseReview
from feedback_app.services import triage
from sessions_app.errors import InvalidInputError
from sessions_app.pages import Button


class Press(NamedTuple):
    """A button that somebody pressed. `form` is None where it was pressed in the list, which has no fields."""

    review: BadCaseReview
    user: AbstractBaseUser
    form: VerdictForm | None
    reason: str
    is_lead: bool
    assignee: AbstractBaseUser | None = None

    @property
    def text(self) -> dict[str, Any]:
        """What stands in the form's fields, and over what it was written."""
        return dict(self.form.cleaned_data) if self.form else {}


def _claim(press: Press) -> object:
    return triage.claim(review_id=press.review.pk, reviewer=press.user)


def _release(press: Press) -> object:
    if press.form and press.form.has_changed() and press.review.assignee_id == press.user.pk:
        triage.save_notes(review_id=press.review.pk, reviewer=press.user, **press.text)
    return triage.release(review_id=press.review.pk, reviewer=press.user, is_lead=press.is_lead, reason=press.reason)


def _assign(press: Press) -> object:
    if press.assignee is None:
        raise InvalidInputError(gettext("Choose to whom it is to go."))
    if press.form and press.form.has_changed() and press.review.assignee_id == press.user.pk:
        triage.save_notes(review_id=press.review.pk, reviewer=press.user, **press.text)
    return triage.assign(
        review_id=press.review.pk,
        actor=press.user,
        assignee=press.assignee,
        is_lead=press.is_lead,
        reason=press.reason,
    )


def _save_notes(press: Press) -> object:
    return triage.save_notes(review_id=press.review.pk, reviewer=press.user, **press.text)


def _resolve(press: Press) -> object:
    return triage.resolve(review_id=press.review.pk, reviewer=press.user, **press.text)


def _make_case(press: Press) -> object:
    return triage.resolve_with_case(review_id=press.review.pk, reviewer=press.user, **press.text)


def _dismiss(press: Press) -> object:
    return triage.dismiss(review_id=press.review.pk, reviewer=press.user, **press.text)


def _reopen(press: Press) -> object:
    return triage.reopen(review_id=press.review.pk, reviewer=press.user, reason=press.reason)


BUTTONS: Mapping[str, Button] = {
    "claim": Button(_claim, "triage", _("You have taken this bad case.")),
    "release": Button(_release, "release", _("The bad case is back in the queue.")),
    "assign": Button(_assign, "release", _("The bad case is in other hands.")),
    "save_notes": Button(_save_notes, "triage", _("Your notes are saved."), needs_fields=True),
    "resolve": Button(_resolve, "triage", _("The bad case is resolved."), needs_fields=True),
    "make_case": Button(
        _make_case, "make_case", _("The bad case is resolved, and a case is made of the correction."), needs_fields=True
    ),
    "dismiss": Button(_dismiss, "triage", _("The bad case is dismissed."), needs_fields=True),
    "reopen": Button(_reopen, "assign", _("The bad case is open again.")),
}
