"""A reviewer's handling of one bad case. Each move is one conditional UPDATE: its row count decides who was first."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import Any, TypedDict, Unpack

from django.conf import settings
from django.contrib.auth.models import AbstractBaseUser
from django.db import transaction
from django.db.models import F
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import gettext_noop

from cases_app.services import creation
from feedback_app import rules
from feedback_app.models import (
    BadCaseReview,
    BadCaseReviewQuerySet,
    BadCaseTransition,
    FailureMode,
    Severity,
    TriageState,
)
from feedback_app.selectors.triage import TRIAGE_PERMISSION, has_step
from feedback_app.services import terms
from feedback_app.services.second_reviews import cancel_second_review, owe_second_review
from sessions_app.db import in_transaction
from sessions_app.errors import ConflictError, InvalidInputError, UnknownObjectError
from sessions_app.models import DiagnosisSession
from sessions_app.services import indexing
from sessions_app.services.anonymity import note_new_text
from sessions_app.services.bulk import insert, new_row

CANDIDATES = 10
"""How many are looked up at once, for as many reviewers who press in the same moment."""


class TakenError(ConflictError):
    """Another reviewer holds this bad case. `holder` is their user name."""

    code = "taken"

    def __init__(self, holder: str) -> None:
        super().__init__(_("%(holder)s has taken this bad case.") % {"holder": holder})
        self.holder = holder


class StaleTriageError(ConflictError):
    """What stands there was written since the caller read it."""

    code = "stale"

    def __init__(self) -> None:
        super().__init__(_("This was changed since you opened it. Your text is still here; compare and save."))


class Findings(TypedDict, total=False):
    """What a reviewer found. What is left out says nothing."""

    failure_mode: str  # FailureMode.code
    severity: str  # Severity
    blamed_step: str  # `<agent>/<index>`
    notes: str
    corrected_answer: str


def open_triage(session: DiagnosisSession) -> BadCaseReview:
    """The session's triage; opened if there is none, or if only a change of mind had closed it.

    The caller holds the session's lock, and has the priority counted when it has written all that it knows.
    """
    review = BadCaseReview.objects.select_for_update().filter(session_id=session.session_id).first()
    if review is None:
        due_at = timezone.now() + timedelta(hours=settings.TRIAGE_DUE_HOURS)
        review = BadCaseReview.objects.create(session=session, due_at=due_at)
        indexing.announce()
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
        cancel_second_review(review)
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
    *, review_id: int, reviewer: AbstractBaseUser, version: int | None = None, **findings: Unpack[Findings]
) -> BadCaseReview:
    """Keep what the holder has written and chosen so far, over `version`. Raises InvalidInputError, ConflictError."""
    review = _held(review_id, reviewer, version=version)
    if findings.get("failure_mode"):
        _check_failure_mode(review, findings)
    columns = _columns(review, findings)
    now = timezone.now()
    # Who is still writing still holds it: the claim begins anew.
    if not _unmoved(review).update(claimed_at=now, updated_at=now, version=F("version") + 1, **columns):
        raise _lost(review)
    note_new_text(review.session_id)
    terms.owe([review.session_id])
    return _get(review_id)


@in_transaction
def resolve(
    *, review_id: int, reviewer: AbstractBaseUser, version: int | None = None, **findings: Unpack[Findings]
) -> BadCaseReview:
    """Close a bad case with what went wrong, over `version`.

    Raises InvalidInputError without a failure mode, StaleTriageError, ConflictError.
    """
    _check_failure_mode(_get(review_id), findings)
    return _close(review_id, "resolve", TriageState.RESOLVED, reviewer, version, findings)


@in_transaction
def resolve_with_case(
    *, review_id: int, reviewer: AbstractBaseUser, version: int | None = None, **findings: Unpack[Findings]
) -> BadCaseReview:
    """Close a bad case as `resolve` does, and make a case from the corrected answer; each knows the other.

    Raises InvalidInputError without a corrected answer too, ConflictError where a case stands that people worked on.
    """
    corrected_answer = findings.get("corrected_answer", "")
    if not corrected_answer.strip():
        message = _("Write what the agent should have answered.")
        raise InvalidInputError(message, errors={"corrected_answer": [message]})
    _check_failure_mode(_get(review_id), findings)
    with transaction.atomic():  # a savepoint: both or neither inside a caller's transaction too
        # Locks in the order of all: session, case, triage.
        session = DiagnosisSession.objects.select_for_update().get(triage=_get(review_id))
        _held(review_id, reviewer, version=version)  # before anything is written
        case = creation.case_of_correction(session, corrected_answer=corrected_answer, author=reviewer)
        return _close(review_id, "resolve", TriageState.RESOLVED, reviewer, version, findings, case=case)


@in_transaction
def dismiss(
    *, review_id: int, reviewer: AbstractBaseUser, version: int | None = None, **findings: Unpack[Findings]
) -> BadCaseReview:
    """Close a bad case in which nothing was wrong, saying why; what was written stays, what was chosen goes.

    Raises InvalidInputError (no notes), StaleTriageError, ConflictError.
    """
    if not findings.get("notes", "").strip():
        message = _("Say why nothing is to be done.")
        raise InvalidInputError(message, errors={"notes": [message]})
    written: Findings = {"notes": findings["notes"], "corrected_answer": findings.get("corrected_answer", "")}
    return _close(review_id, "dismiss", TriageState.DISMISSED, reviewer, version, written)


@in_transaction
def reopen(*, review_id: int, reviewer: AbstractBaseUser, reason: str = "") -> BadCaseReview:
    """Put a closed bad case back into the queue. Raises ConflictError."""
    review = _get(review_id)
    _move(review, "reopen", TriageState.OPEN, reviewer, reason, assignee_id=None, claimed_at=None, resolved_at=None)
    cancel_second_review(review)
    return review


def _close(
    review_id: int,
    action: str,
    target: TriageState,
    reviewer: AbstractBaseUser,
    version: int | None,
    findings: Findings,
    **columns: Any,
) -> BadCaseReview:
    review = _held(review_id, reviewer, version=version)
    columns |= _columns(review, findings)
    reason = findings.get("notes", "")
    _move(review, action, target, reviewer, reason, resolved_at=timezone.now(), version=F("version") + 1, **columns)
    terms.owe([review.session_id])
    owe_second_review(review, reviewer)
    return review


def _columns(review: BadCaseReview, findings: Findings) -> dict[str, Any]:
    """Findings as columns; what was not said is nothing. Raises InvalidInputError."""
    severity, blamed_step = findings.get("severity", ""), findings.get("blamed_step", "")
    if severity and severity not in Severity.values:
        message = _("Choose how bad it is.")
        raise InvalidInputError(message, errors={"severity": [message]})
    if blamed_step and not has_step(review, blamed_step):
        message = _("This session has no such step.")
        raise InvalidInputError(message, errors={"blamed_step": [message]})
    return {
        "failure_mode": findings.get("failure_mode", ""),
        "severity": severity,
        "blamed_step": blamed_step,
        "notes": findings.get("notes", ""),
        "corrected_answer": findings.get("corrected_answer", ""),
    }


def _check_failure_mode(review: BadCaseReview, findings: Findings) -> None:
    """One that is offered, or stands there already. Raises InvalidInputError."""
    mode = findings.get("failure_mode", "")
    if not mode or (mode != review.failure_mode and not FailureMode.objects.offered().filter(pk=mode).exists()):
        message = _("Choose what went wrong.")
        raise InvalidInputError(message, errors={"failure_mode": [message]})


def _get(review_id: int) -> BadCaseReview:
    review = BadCaseReview.objects.select_related("assignee").filter(pk=review_id).first()
    if review is None:
        raise UnknownObjectError(_("There is no bad case %(id)s.") % {"id": review_id})
    return review


def _held(
    review_id: int, reviewer: AbstractBaseUser, *, is_lead: bool = False, version: int | None = None
) -> BadCaseReview:
    review = _get(review_id)
    if review.state != TriageState.IN_REVIEW or (review.assignee_id != reviewer.pk and not is_lead):
        raise _refusal(review)
    if version is not None and review.version != version:
        raise StaleTriageError
    return review


def _unmoved(review: BadCaseReview) -> BadCaseReviewQuerySet:
    """The row, if it still stands as it was read: its state, its holder, its text."""
    return BadCaseReview.objects.filter(
        pk=review.pk, state=review.state, assignee_id=review.assignee_id, version=review.version
    )


def _refusal(review: BadCaseReview) -> ConflictError:
    if review.state == TriageState.IN_REVIEW and review.assignee is not None:
        return TakenError(review.assignee.get_username())
    if review.state in (TriageState.RESOLVED, TriageState.DISMISSED):
        # How it was closed may be for its second reviewer to find out.
        return ConflictError(_("This bad case is closed."))
    state = TriageState(review.state).label
    return ConflictError(_("This bad case is %(state)s; take it first.") % {"state": state})


def _lost(review: BadCaseReview) -> ConflictError:
    """Why a row no longer stands as `review` says."""
    now = _get(review.pk)
    same_hands = (now.state, now.assignee_id) == (review.state, review.assignee_id)
    return StaleTriageError() if same_hands and now.version != review.version else _refusal(now)


def _move(
    review: BadCaseReview, action: str, target: TriageState, actor: AbstractBaseUser | None, reason: str, **columns: Any
) -> None:
    """The conditional UPDATE: from the state and the holder that the caller saw."""
    source = review.state
    movable = _unmoved(review).filter(state__in=rules.TRIAGE_SOURCES[action])
    if not movable.update(state=target, updated_at=timezone.now(), **columns):
        raise _lost(review)
    review.refresh_from_db()
    note_new_text(review.session_id)
    _log(review, action, source, actor, reason)


def _log(review: BadCaseReview, action: str, source: str, actor: AbstractBaseUser | None, reason: str) -> None:
    transition = new_row(
        BadCaseTransition,
        review_id=review.pk,
        action=action,
        from_state=source,
        to_state=review.state,
        actor_id=actor.pk if actor else None,
        reason=reason,
    )
    insert(BadCaseTransition, [transition])
