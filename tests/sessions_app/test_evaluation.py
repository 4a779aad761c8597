"""Claiming and scoring: once, bounded, and never against newer facts."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.utils import timezone

from sessions_app.models import DiagnosisSession, Heartbeat, ToolInvocation
from sessions_app.services import evaluation
from sessions_app.services.recording import record_sessions
from sessions_app.tasks import evaluate_sessions, sweep_evaluations

pytestmark = pytest.mark.django_db


@pytest.fixture
def session(db):
    record_sessions([{"session_id": "s1", "status": "SUCCESS", "tool_invocations": [{"tool_name": "t"}]}])
    return DiagnosisSession.objects.get()


@pytest.fixture
def unreadable(session):
    """A session whose row the rules cannot be merged into; nothing of ours writes such a value."""
    DiagnosisSession.objects.update(self_evaluation=["not", "an", "object"])
    return session


def stored() -> DiagnosisSession:
    return DiagnosisSession.objects.get()


def make_due() -> None:
    DiagnosisSession.objects.exclude(evaluation_due_at=None).update(evaluation_due_at=timezone.now())


def test_a_due_session_is_scored_and_owes_nothing_more(session):
    assert evaluation.evaluate_session("s1") is True
    assert stored().evidence_score == 30
    assert stored().self_evaluation["evidence_score"] == 30
    assert (stored().evaluation_due_at, stored().evaluation_claimed_until) == (None, None)


def test_the_second_delivery_of_a_task_does_nothing(session):
    evaluate_sessions(["s1"])
    updated = stored().updated_at
    evaluate_sessions(["s1", "gone"])
    assert stored().updated_at == updated


def test_what_the_agent_said_of_itself_stays(session):
    record_sessions([{"session_id": "s1", "self_evaluation": {"confidence": 90, "evidence_score": 3}}])
    evaluation.evaluate_session("s1")
    record_sessions([{"session_id": "s1", "self_evaluation": {"reasoning": "late", "factors": []}}])
    said = stored().self_evaluation
    assert (said["confidence"], said["reasoning"], said["evidence_score"]) == (90, "late", 30)
    assert len(said["factors"]) == 1
    assert stored().confidence == 90


def test_a_session_that_another_worker_holds_is_left_to_it(session):
    DiagnosisSession.objects.update(evaluation_claimed_until=timezone.now() + timedelta(seconds=10))
    assert evaluation.evaluate_session("s1") is False
    assert stored().evidence_score is None


def test_a_claim_of_a_dead_worker_ends_with_its_lease(session):
    DiagnosisSession.objects.update(
        evaluation_claimed_until=timezone.now() - timedelta(seconds=1), evaluation_attempts=1
    )
    sweep_evaluations()
    assert stored().evidence_score == 30
    assert stored().evaluation_attempts == 0


def test_the_sweep_finds_what_no_message_spoke_of_and_shows_a_sign_of_life(session):
    sweep_evaluations()
    assert stored().evidence_score == 30
    assert timezone.now() - Heartbeat.objects.get(name="worker").seen_at < timedelta(seconds=10)
    sweep_evaluations()
    assert Heartbeat.objects.count() == 1


def test_a_session_that_cannot_be_scored_is_tried_five_times_and_then_says_why(unreadable):
    for attempt in range(1, 6):
        make_due()
        assert evaluation.evaluate_session("s1") is False
        assert stored().evaluation_attempts == attempt
        assert "TypeError" in stored().evaluation_error
    assert stored().evaluation_due_at is None
    assert stored().evidence_score is None
    make_due()
    assert evaluation.evaluate_session("s1") is False
    assert stored().evaluation_attempts == 5


def test_between_tries_it_waits_and_keeps_nobody_else_waiting(unreadable):
    record_sessions([{"session_id": "good", "status": "SUCCESS"}])
    assert evaluation.evaluate_due() == 1
    assert DiagnosisSession.objects.get(session_id="s1").evaluation_due_at > timezone.now()
    assert DiagnosisSession.objects.get(session_id="good").evidence_score == 0


def test_a_session_that_kills_its_worker_ends_with_a_reason(session):
    DiagnosisSession.objects.update(
        evaluation_claimed_until=timezone.now() - timedelta(seconds=1), evaluation_attempts=5
    )
    evaluation.evaluate_due()
    assert stored().evaluation_error == evaluation.DIED
    assert stored().evaluation_due_at is None


def test_a_reviewer_can_ask_for_another_try(unreadable):
    DiagnosisSession.objects.update(evaluation_due_at=None, evaluation_attempts=5, evaluation_error="TypeError")
    DiagnosisSession.objects.update(self_evaluation=None)
    assert evaluation.request_evaluation(session_ids=["s1"]) == 1
    evaluation.evaluate_due()
    assert (stored().evidence_score, stored().evaluation_error) == (30, "")


def test_facts_that_come_while_it_is_claimed_are_scored_too(session):
    assert evaluation.evaluate_session("s1")
    late = {"tool_name": "lookup", "l0_match_count": 2, "invocation_id": "late"}
    record_sessions([{"session_id": "s1", "tool_invocations": [late]}])
    DiagnosisSession.objects.update(evaluation_claimed_until=timezone.now() + timedelta(seconds=5))
    assert evaluation.evaluate_session("s1") is False
    DiagnosisSession.objects.update(evaluation_claimed_until=None)
    assert evaluation.evaluate_session("s1")
    assert stored().evidence_score == 65
    assert ToolInvocation.objects.count() == 2


def test_facts_that_come_while_the_last_attempt_fails_are_scored(session, settings, monkeypatch):
    settings.EVALUATION_MAX_ATTEMPTS = 1

    def fail_while_facts_come(session_id):
        call = {"tool_name": "lookup_knowledge", "l0_match_count": 1}
        record_sessions([{"session_id": session_id, "tool_invocations": [{**call, "invocation_id": "late"}]}])
        raise RuntimeError("out of luck")

    with monkeypatch.context() as patch:
        patch.setattr(evaluation, "_score", fail_while_facts_come)
        assert evaluation.evaluate_session("s1") is False
    assert evaluation.evaluate_due() == 1
    assert stored().evidence_score == 65
