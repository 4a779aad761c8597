"""A reviewer's handling of one bad case. Each move is one conditional UPDATE: its row count decides who was first."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import Any

from django.conf import settings
from django.contrib.auth.models import AbstractBaseUser
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import gettext_noop

from feedback_app import rules
from feedback_app.models import BadCaseReview, BadCaseTransition, FailureMode, TriageState
from feedback_app.selectors.triage import TRIAGE_PERMISSION
from sessions_app.db import in_transaction
from sessions_app.errors import ConflictError, InvalidInputError, UnknownObjectError
from sessions_app.models import DiagnosisSession
from sessions_app.services.anonymity import note_new_text

CANDIDATES = 10
"""How many are looked up at once, for as many reviewers who press in the same moment."""


class TakenError(ConflictError):
    """Another reviewer holds this bad case. `holder` is their user name."""

    code = "taken"

    def __init__(self, holder: str) -> None:
        super().__init__(_("%(holder)s has taken this bad case.") % {"holder": holder})
        self.holder = holder


def open_triage(session: DiagnosisSession) -> BadCaseReview:
    """The session's triage; opened if there is none, or if only a change of mind had closed it.

    The caller holds the session's lock, and has the priority counted when it has written all that it knows.
    """
    review = BadCaseReview.objects.select_for_update().filter(session_id=session.session_id).first()
    if review is None:
        due_at = timezone.now() + timedelta(hours=settings.TRIAGE_DUE_HOURS)
        review = BadCaseReview.objects.create(session=session, due_at=due_at)
        _log(review, "open", "", None, gettext_noop("The reader found the answer not useful."))
    elif review.state == TriageState.DISMISSED and review.assignee_id is None:
        _move(
            review,
            "reopen",
            TriageState.OPEN,
            None,
            gettext_noop("The reader changed their mind again."),
            resolved_at=None,
        )
    return review


def close_by_verdict(session: DiagnosisSession) -> None:
    """The reader now finds the answer useful: a triage nobody took is dismissed; one in review is its reviewer's."""
    dismissed = BadCaseReview.objects.filter(session_id=session.session_id, state=TriageState.OPEN).update(
        state=TriageState.DISMISSED, resolved_at=timezone.now(), assignee=None, updated_at=timezone.now()
    )
    if dismissed:
        review = BadCaseReview.objects.get(session_id=session.session_id)
        _log(review, "dismiss", TriageState.OPEN, None, gettext_noop("The reader changed their mind."))


@in_transaction
def claim(*, review_id: int, reviewer: AbstractBaseUser) -> BadCaseReview:
    """Take a bad case. Taking one's own again changes nothing. Raises TakenError, ConflictError when it is closed."""
    review = _get(review_id)
    if review.state == TriageState.IN_REVIEW and review.assignee_id == reviewer.pk and not review.is_claim_expired:
        return review
    source, holder_id = review.state, review.assignee_id
    if source == TriageState.OPEN:
        free = BadCaseReview.objects.filter(state=TriageState.OPEN)
    else:  # of whoever held it when we looked: somebody may have taken it over just now
        free = BadCaseReview.objects.left_behind().filter(assignee_id=holder_id, claimed_at=review.claimed_at)
    now = timezone.now()
    taken = free.filter(pk=review_id).update(
        state=TriageState.IN_REVIEW, assignee_id=reviewer.pk, claimed_at=now, updated_at=now
    )
    if not taken:
        raise _refusal(_get(review_id))
    review = _get(review_id)
    if holder_id != reviewer.pk:  # whose own claim had run out goes on with it
        _log(review, "take_over" if holder_id else "claim", source, reviewer, "")
    return review


def claim_next(*, reviewer: AbstractBaseUser) -> BadCaseReview | None:
    """Take the free bad case that deserves attention first; None when none is free.

    Where somebody else is quicker, the one after it.
    """
    missed: list[int] = []
    while candidates := _first_free(missed):
        for review in candidates:
            try:
                return claim(review_id=review.pk, reviewer=reviewer)
            except ConflictError:
                missed.append(review.pk)
    return None


def _first_free(missed: Sequence[int]) -> list[BadCaseReview]:
    """Two questions, each answered by the index: of what is open, and of what was left behind."""
    kinds = (BadCaseReview.objects.filter(state=TriageState.OPEN), BadCaseReview.objects.left_behind())
    found: list[BadCaseReview] = []
    for free in kinds:
        ordered = free.exclude(pk__in=missed).order_by("attention_at", "pk")
        found += ordered.only("pk", "attention_at")[:CANDIDATES]
    return sorted(found, key=lambda review: (review.attention_at, review.pk))


@in_transaction
def assign(
    *, review_id: int, actor: AbstractBaseUser, assignee: AbstractBaseUser, is_lead: bool = False, reason: str = ""
) -> BadCaseReview:
    """Give a bad case to somebody: one's own to a colleague, or as a Lead any that waits.

    To whom it belongs already, nothing changes. Raises InvalidInputError for who may not triage, ConflictError.
    """
    if not (assignee.is_active and assignee.has_perm(TRIAGE_PERMISSION)):  # type: ignore[attr-defined]
        message = _("%(name)s may not triage.") % {"name": assignee.get_username()}
        raise InvalidInputError(message, errors={"assignee": [message]})
    review = _get(review_id)
    if review.state == TriageState.IN_REVIEW and review.assignee_id == assignee.pk and not review.is_claim_expired:
        return review
    is_own = review.state == TriageState.IN_REVIEW and review.assignee_id == actor.pk
    if not is_own and not is_lead:
        raise _refusal(review)
    said = _("To %(name)s.") % {"name": assignee.get_username()}
    _move(
        review,
        "hand_over" if is_own else "assign",
        TriageState.IN_REVIEW,
        actor,
        f"{said} {reason}".strip(),
        assignee_id=assignee.pk,
        claimed_at=timezone.now(),
    )
    return review


@in_transaction
def release(*, review_id: int, reviewer: AbstractBaseUser, is_lead: bool = False, reason: str = "") -> BadCaseReview:
    """Give a bad case back to the queue: one's own, or as a Lead anyone's. Raises ConflictError."""
    review = _held(review_id, reviewer, is_lead=is_lead)
    _move(review, "release", TriageState.OPEN, reviewer, reason, assignee_id=None, claimed_at=None)
    return review


@in_transaction
def save_notes(
    *, review_id: int, reviewer: AbstractBaseUser, notes: str, corrected_answer: str, failure_mode: str = ""
) -> BadCaseReview:
    """Keep what the holder has written and chosen so far. Raises InvalidInputError, ConflictError."""
    if failure_mode:
        _check_failure_mode(failure_mode)
    _held(review_id, reviewer)
    saved = BadCaseReview.objects.filter(pk=review_id, state=TriageState.IN_REVIEW, assignee_id=reviewer.pk).update(
        notes=notes,
        corrected_answer=corrected_answer,
        failure_mode=failure_mode,
        claimed_at=timezone.now(),  # who is still writing still holds it
        updated_at=timezone.now(),
    )
    review = _get(review_id)
    if not saved:
        raise _refusal(review)
    note_new_text(review.session_id)
    return review


@in_transaction
def resolve(
    *, review_id: int, reviewer: AbstractBaseUser, failure_mode: str, notes: str = "", corrected_answer: str = ""
) -> BadCaseReview:
    """Close a bad case with what went wrong. Raises InvalidInputError without a failure mode, ConflictError."""
    _check_failure_mode(failure_mode)
    return _close(review_id, "resolve", TriageState.RESOLVED, reviewer, notes, corrected_answer, failure_mode)


@in_transaction
def dismiss(*, review_id: int, reviewer: AbstractBaseUser, notes: str) -> BadCaseReview:
    """Close a bad case in which nothing was wrong, saying why. Raises InvalidInputError (no notes), ConflictError."""
    if not notes.strip():
        message = _("Say why nothing is to be done.")
        raise InvalidInputError(message, errors={"notes": [message]})
    return _close(review_id, "dismiss", TriageState.DISMISSED, reviewer, notes, "", "")


@in_transaction
def reopen(*, review_id: int, reviewer: AbstractBaseUser, reason: str = "") -> BadCaseReview:
    """Put a closed bad case back into the queue. Raises ConflictError."""
    review = _get(review_id)
    _move(review, "reopen", TriageState.OPEN, reviewer, reason, assignee_id=None, claimed_at=None, resolved_at=None)
    return review


def _close(
    review_id: int,
    action: str,
    target: TriageState,
    reviewer: AbstractBaseUser,
    notes: str,
    corrected_answer: str,
    failure_mode: str,
) -> BadCaseReview:
    review = _held(review_id, reviewer)
    _move(
        review,
        action,
        target,
        reviewer,
        notes,
        resolved_at=timezone.now(),
        notes=notes,
        corrected_answer=corrected_answer,
        failure_mode=failure_mode,
    )
    return review


def _check_failure_mode(failure_mode: str) -> None:
    if failure_mode not in FailureMode.values:
        message = _("Choose what went wrong.")
        raise InvalidInputError(message, errors={"failure_mode": [message]})


def _get(review_id: int) -> BadCaseReview:
    review = BadCaseReview.objects.select_related("assignee").filter(pk=review_id).first()
    if review is None:
        raise UnknownObjectError(_("There is no bad case %(id)s.") % {"id": review_id})
    return review


def _held(review_id: int, reviewer: AbstractBaseUser, *, is_lead: bool = False) -> BadCaseReview:
    review = _get(review_id)
    if review.state != TriageState.IN_REVIEW or (review.assignee_id != reviewer.pk and not is_lead):
        raise _refusal(review)
    return review


def _refusal(review: BadCaseReview) -> ConflictError:
    if review.state == TriageState.IN_REVIEW and review.assignee is not None:
        return TakenError(review.assignee.get_username())
    state = TriageState(review.state).label
    return ConflictError(_("This bad case is %(state)s; take it first.") % {"state": state})


def _move(
    review: BadCaseReview, action: str, target: TriageState, actor: AbstractBaseUser | None, reason: str, **columns: Any
) -> None:
    """The conditional UPDATE: from the state and the holder that the caller saw."""
    source = review.state
    moved = (
        BadCaseReview.objects.filter(pk=review.pk, state=source, assignee_id=review.assignee_id)
        .filter(state__in=rules.TRIAGE_SOURCES[action])
        .update(state=target, updated_at=timezone.now(), **columns)
    )
    if not moved:
        raise _refusal(_get(review.pk))
    review.refresh_from_db()
    note_new_text(review.session_id)
    _log(review, action, source, actor, reason)


def _log(review: BadCaseReview, action: str, source: str, actor: AbstractBaseUser | None, reason: str) -> None:
    BadCaseTransition.objects.create(
        review=review,
        action=action,
        from_state=source,
        to_state=review.state,
        actor_id=actor.pk if actor else None,
        reason=reason,
    )
