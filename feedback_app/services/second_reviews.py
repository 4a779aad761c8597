"""A second verdict on a share of the triages, by somebody who does not know the first.

Which triages is drawn by a digest of the session's id: nobody can foresee or choose it, and drawing again gives the
same. Until the second verdict is there, `selectors.second_reviews.hidden_from` keeps the first from everybody but its
author. Two that disagree are settled by a Lead.
"""

from __future__ import annotations

import hashlib
import hmac

from django.conf import settings
from django.contrib.auth.models import AbstractBaseUser
from django.db.models import F
from django.utils import timezone
from django.utils.translation import gettext as _

from feedback_app.models import (
    NOTHING_WRONG,
    BadCaseReview,
    BadCaseTransition,
    SecondReview,
    SecondState,
    TriageState,
)
from feedback_app.selectors.failure_modes import verdict_choices
from sessions_app.db import in_transaction
from sessions_app.errors import ConflictError, InvalidInputError, UnknownObjectError
from sessions_app.services.anonymity import note_new_text

_SPAN = 2**64


def is_drawn(session_id: str, share: float) -> bool:
    """Whether a triage is among the share that is reviewed twice."""
    digest = hmac.digest(settings.SECRET_KEY.encode(), b"second review\0" + session_id.encode(), hashlib.sha256)
    return int.from_bytes(digest[:8]) < share * _SPAN


def owe_second_review(review: BadCaseReview, reviewer: AbstractBaseUser) -> None:
    """Owe one for a triage that was just closed, where it is drawn. In the closing transaction; once each triage."""
    if review.case_id is not None:  # its case tells the verdict to everybody
        return
    if not is_drawn(review.session_id, settings.SECOND_REVIEW_SHARE):
        return
    if SecondReview.objects.filter(review=review).exists():
        return
    SecondReview.objects.create(
        review=review, first_reviewer_id=reviewer.pk, first_mode=review.failure_mode or NOTHING_WRONG
    )


def cancel_second_review(review: BadCaseReview) -> None:
    """The triage is open again: there is no first verdict to compare with."""
    SecondReview.objects.filter(review=review, state=SecondState.WAITING).delete()


@in_transaction
def judge(*, second_id: int, reviewer: AbstractBaseUser, mode: str, notes: str = "") -> SecondReview:
    """Give the second verdict. Raises InvalidInputError, ConflictError for one's own triage and for what is judged."""
    _check(mode)
    second = _get(second_id)
    if second.first_reviewer_id == reviewer.pk:
        raise ConflictError(_("The first verdict is yours; the second is for somebody else."))
    state = SecondState.AGREED if mode == second.first_mode else SecondState.DISAGREED
    judged = SecondReview.objects.filter(pk=second_id, state=SecondState.WAITING).update(
        state=state, reviewer_id=reviewer.pk, mode=mode, notes=notes, judged_at=timezone.now()
    )
    if not judged:
        raise ConflictError(_("Somebody has given the second verdict already."))
    second = _get(second_id)
    BadCaseReview.objects.filter(pk=second.review_id).update(updated_at=timezone.now())  # by which retention sees it
    note_new_text(second.review.session_id)
    return second


@in_transaction
def settle(*, second_id: int, lead: AbstractBaseUser, mode: str) -> SecondReview:
    """Decide between two verdicts, or for a third, and write it into the triage.

    Raises InvalidInputError, ConflictError. What one of the two said may be retired by now, and still be right.
    """
    second = _get(second_id)
    if mode not in (second.first_mode, second.mode):
        _check(mode)
    settled = SecondReview.objects.filter(pk=second_id, state=SecondState.DISAGREED).update(
        state=SecondState.SETTLED, settled_by_id=lead.pk, settled_mode=mode, settled_at=timezone.now()
    )
    if not settled:
        raise ConflictError(_("There is nothing to settle here."))
    second = _get(second_id)
    if mode != second.first_mode:
        _overrule(second, lead, mode)
    return second


def _overrule(second: SecondReview, lead: AbstractBaseUser, mode: str) -> None:
    """The triage says from now on what the Lead decided; one that was opened again meanwhile is left alone."""
    review = BadCaseReview.objects.get(pk=second.review_id)
    source = review.state
    target = TriageState.DISMISSED if mode == NOTHING_WRONG else TriageState.RESOLVED
    changed = (
        BadCaseReview.objects.closed()
        .filter(pk=review.pk, state=source, resolved_at__lte=second.created_at)  # not closed anew since
        .update(
            state=target,
            failure_mode="" if mode == NOTHING_WRONG else mode,
            version=F("version") + 1,
            updated_at=timezone.now(),
            **({"severity": "", "blamed_step": ""} if mode == NOTHING_WRONG else {}),
        )
    )
    if changed:
        BadCaseTransition.objects.create(
            review=review, action="settle", from_state=source, to_state=target, actor_id=lead.pk, reason=""
        )


def _check(mode: str) -> None:
    if mode not in dict(verdict_choices()):
        message = _("Choose what went wrong.")
        raise InvalidInputError(message, errors={"mode": [message]})


def _get(second_id: int) -> SecondReview:
    second = SecondReview.objects.filter(pk=second_id).first()
    if second is None:
        raise UnknownObjectError(_("There is no second review %(id)s.") % {"id": second_id})
    return second
