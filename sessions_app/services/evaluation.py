"""Scoring sessions: claim, apply the rules to the rows, write. The rules themselves are `sessions_app.rules`.

A session owes a score while `evaluation_due_at` is set. A worker claims it with one conditional UPDATE that counts the
attempt and sets a lease, so that a redelivered task finds the claim, and a task whose process died is tried again when
the lease ends. Scoring holds the session's lock, as every writer does: it reads the newest facts, so clearing the debt
never hides a later one.
"""

from __future__ import annotations

import time
from collections.abc import Iterable
from datetime import timedelta

import structlog
from django.conf import settings
from django.db.models import F
from django.utils import timezone
from django.utils.translation import gettext_noop

from sessions_app import rules, signals
from sessions_app.db import in_transaction
from sessions_app.models import DiagnosisSession, Heartbeat, ToolInvocation

logger = structlog.get_logger(__name__)

LEASE = timedelta(seconds=30)
"""Above the tasks' hard time limit: while it lasts, the claim's worker is alive or was killed just now."""
SWEEP_LIMIT = 500
SWEEP_SECONDS = 15.0
DIED = gettext_noop("The worker died while scoring, each time it was tried.")


def evaluate_session(session_id: str) -> bool:
    """Score one session if it owes a score. Safe to run twice, also at once. Returns whether it was scored now."""
    attempt = _claim(session_id)
    if attempt is None:
        return False
    try:
        _score(session_id)
    except Exception as error:
        logger.exception("evaluation_failed", session_id=session_id, attempt=attempt)
        _give_back(session_id, attempt, f"{type(error).__name__}: {error}"[:1000])
        return False
    return True


def evaluate_due(*, limit: int = SWEEP_LIMIT, seconds: float = SWEEP_SECONDS) -> int:
    """Score what is owed and nobody holds, oldest debt first; returns how many were scored."""
    deadline = time.monotonic() + seconds
    due = DiagnosisSession.objects.evaluation_owed(timezone.now()).order_by("evaluation_due_at")
    scored = 0
    for session_id in list(due.values_list("session_id", flat=True)[:limit]):
        if time.monotonic() > deadline:
            break
        scored += evaluate_session(session_id)
    return scored


@in_transaction
def request_evaluation(*, session_ids: Iterable[str]) -> int:
    """Owe a score again, with all attempts: for a reviewer who wants another try. Returns for how many."""
    wanted = list(session_ids)
    owed = (
        DiagnosisSession.objects.finished()
        .filter(session_id__in=wanted)
        .update(
            evaluation_due_at=timezone.now(), evaluation_claimed_until=None, evaluation_attempts=0, evaluation_error=""
        )
    )
    signals.facts_changed.send(DiagnosisSession, session_ids=wanted)
    return owed


def _claim(session_id: str) -> int | None:
    """Take the session for the length of a lease; returns the number of this attempt, None when it is not free."""
    now = timezone.now()
    owed = DiagnosisSession.objects.evaluation_owed(now).filter(session_id=session_id)
    taken = owed.filter(evaluation_attempts__lt=settings.EVALUATION_MAX_ATTEMPTS).update(
        evaluation_claimed_until=now + LEASE, evaluation_attempts=F("evaluation_attempts") + 1
    )
    if not taken:
        # The last attempt's lease ran out without an error on record: its process was killed.
        owed.filter(evaluation_attempts__gte=settings.EVALUATION_MAX_ATTEMPTS).update(
            evaluation_due_at=None, evaluation_claimed_until=None, evaluation_error=DIED
        )
        return None
    attempts: int = DiagnosisSession.objects.values_list("evaluation_attempts", flat=True).get(session_id=session_id)
    return attempts


@in_transaction
def _score(session_id: str) -> None:
    session = DiagnosisSession.objects.select_for_update().get(session_id=session_id)
    columns = ("tool_name", "success", "retrieval_layer", "l0_match_count", "l1_match_count")
    rows = ToolInvocation.objects.of(session_id).values_list(*columns)
    facts = rules.SessionFacts.of(
        session.status, (rules.InvocationFacts(*row) for row in rows), settings.RETRIEVAL_TOOLS
    )
    verdict = rules.judge(facts)
    session.self_evaluation = rules.merge_verdict(session.self_evaluation, verdict)
    session.evidence_score = verdict["evidence_score"]
    session.evaluation_due_at = None
    session.evaluation_claimed_until = None
    session.evaluation_attempts = 0
    session.evaluation_error = ""
    session.save(
        update_fields=[
            "self_evaluation",
            "evidence_score",
            "evaluation_due_at",
            "evaluation_claimed_until",
            "evaluation_attempts",
            "evaluation_error",
            "updated_at",
        ]
    )
    signals.session_scored.send(DiagnosisSession, session_id=session_id)


def _give_back(session_id: str, attempt: int, reason: str) -> None:
    """Try again later, later each time; after the last attempt, leave the reason for people to see.

    Facts that came since the claim have set the attempts back: their debt is a new one, and only the claim ends.
    """
    is_last = attempt >= settings.EVALUATION_MAX_ATTEMPTS
    session = DiagnosisSession.objects.filter(session_id=session_id)
    failed = session.filter(evaluation_attempts=attempt).update(
        evaluation_due_at=None if is_last else timezone.now() + timedelta(seconds=2**attempt),
        evaluation_claimed_until=None,
        evaluation_error=reason,
    )
    if not failed:
        session.filter(evaluation_attempts=0).update(evaluation_claimed_until=None)


@in_transaction
def beat(name: str) -> None:
    """Note that the named process has just done its periodic work."""
    now = timezone.now()
    if not Heartbeat.objects.filter(name=name).update(seen_at=now):
        Heartbeat.objects.create(name=name, seen_at=now)
