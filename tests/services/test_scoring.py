"""Recorded sessions are scored by a real worker, exactly as the rules say."""

from __future__ import annotations

import pytest

pytestmark = pytest.mark.services


def expected_score(session):
    """The design's table, worked out plainly from the wire form."""
    calls = [call for step in session["steps"] for call in step.get("toolInvocations", [])]
    calls += session.get("toolInvocations", [])
    if not calls or session["status"] == "FAILED":
        return 0
    l0 = l1 = retrievals = 0
    for call in calls:
        layer, l0_count, l1_count = (call.get(k) for k in ("retrievalLayer", "l0MatchCount", "l1MatchCount"))
        if layer or l0_count is not None or l1_count is not None or call["toolName"] == "lookup_knowledge":
            retrievals += 1
        l0 += l0_count > 0 if l0_count is not None else layer in ("L0", "L0+L1")
        l1 += l1_count > 0 if l1_count is not None else layer in ("L1", "L0+L1")
    score = 30 if any(call.get("success", True) for call in calls) else -20
    if l0:
        score += 35
    elif l1:
        score += 20
    elif retrievals:
        score -= 10
    return min(100, max(0, score))


def everything(stack):
    """All rows of the recording, without the clock of their last change."""
    return {
        table: stack.sql(f"SELECT {columns} FROM {table} ORDER BY id")
        for table, columns in {
            "diagnosis_session": "session_id, status, query, answer, step_count, tool_call_count, total_token_count,"
            " total_duration_ms, self_evaluation, evidence_score, feedback, created_at",
            "agent_step": "*",
            "tool_invocation": "*",
        }.items()
    }


def test_a_recorded_day_is_stored_and_scored_and_sending_it_again_changes_nothing(stack, dbot_sessions):
    ids = [session["sessionId"] for session in dbot_sessions]

    answer = stack.send("POST", "/api/sessions/batch", dbot_sessions)

    assert (answer.status, answer.body) == (207, {"accepted": 22, "rejected": []})
    stack.wait_scored(ids, seconds=10)
    scores = dict(stack.sql("SELECT session_id, evidence_score FROM diagnosis_session WHERE session_id IN %s", ids))
    assert scores == {session["sessionId"]: expected_score(session) for session in dbot_sessions}
    assert len(set(scores.values())) > 1
    steps = sum(len(session["steps"]) for session in dbot_sessions)
    assert stack.sql("SELECT COUNT(*) FROM agent_step WHERE session_id IN %s", ids) == [(steps,)]

    before = everything(stack)
    again = stack.send("POST", "/api/sessions/batch", dbot_sessions)
    assert (again.status, again.body["accepted"]) == (207, 22)
    stack.wait_scored(ids, seconds=10)
    assert everything(stack) == before
