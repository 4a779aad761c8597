"""Eight clients at once: no error, one case, one triage, one row of each thing."""

from __future__ import annotations

from functools import partial

import pytest

from tests.services.conftest import CLIENTS, whole_session

pytestmark = pytest.mark.services


def record(stack, ids):
    answer = stack.send("POST", "/api/sessions/batch", [whole_session(session_id) for session_id in ids])
    assert answer.body == {"accepted": len(ids), "rejected": []}


def feedback(stack, session_id, verdict):
    return partial(stack.send, "POST", "/api/feedback", {"sessionId": session_id, "feedback": verdict}, key="")


def counts_by_session(stack, table, column, ids):
    return dict(stack.sql(f"SELECT {column}, COUNT(*) FROM {table} WHERE {column} IN %s GROUP BY {column}", ids))


def test_eight_identical_clicks_make_one_case(stack, new_ids, at_once):
    ids = new_ids(60)
    record(stack, ids)
    cases = {}
    for session_id in ids:
        answers = at_once([feedback(stack, session_id, "useful")] * CLIENTS)
        assert [answer.status for answer in answers] == [200] * CLIENTS
        assert all(answer.body["success"] for answer in answers)
        [cases[session_id]] = {answer.body["caseId"] for answer in answers}
    assert counts_by_session(stack, "case_library", "diagnosis_id", ids) == dict.fromkeys(ids, 1)
    assert len(set(cases.values())) == len(ids)
    assert counts_by_session(stack, "agent_feedback", "session_id", ids) == dict.fromkeys(ids, CLIENTS)
    assert counts_by_session(stack, "bad_case_review", "session_id", ids) == {}


def test_opposite_clicks_end_in_the_state_of_the_last(stack, new_ids, at_once, rng):
    ids = new_ids(40)
    record(stack, ids)
    for session_id in ids:
        verdicts = ["useful", "not_useful"] * (CLIENTS // 2)
        rng.shuffle(verdicts)
        answers = at_once([feedback(stack, session_id, verdict) for verdict in verdicts])
        assert [answer.status for answer in answers] == [200] * CLIENTS
    # Writers hold the session's lock, so the time of the last event says which of them was last.
    rows = stack.sql(
        "SELECT s.session_id, s.feedback, s.status, c.status, c.retired_by_verdict, t.state,"
        "  (SELECT value FROM agent_feedback e WHERE e.session_id = s.session_id ORDER BY created_at DESC LIMIT 1)"
        " FROM diagnosis_session s LEFT JOIN case_library c ON c.diagnosis_id = s.session_id"
        " LEFT JOIN bad_case_review t ON t.session_id = s.session_id WHERE s.session_id IN %s",
        ids,
    )
    assert len(rows) == len(ids)  # at most one case and one triage each
    for _, verdict, status, case, retired, triage, last in rows:
        assert status == "SUCCESS"
        assert verdict == ("useful" if last > 0 else "not_useful")
        if verdict == "useful":
            assert (case, retired) == ("DRAFT", 0)
            assert triage == "DISMISSED"
        else:
            assert (case, retired) == ("RETIRED", 1)
            assert triage == "OPEN"


def test_eight_clients_open_and_finish_one_session(stack, new_ids, at_once):
    ids = new_ids(20)

    def open_and_finish(session_id):
        opened = stack.send("POST", "/api/sessions", {"sessionId": session_id, "query": "why?"})
        finished = stack.send("PATCH", f"/api/sessions/{session_id}", {"status": "SUCCESS", "answer": "so."})
        return opened.status, finished.status

    for session_id in ids:
        answers = at_once([partial(open_and_finish, session_id)] * CLIENTS)
        assert sorted(opened for opened, _ in answers) == [200] * (CLIENTS - 1) + [201]
        assert {finished for _, finished in answers} == {200}
    assert counts_by_session(stack, "diagnosis_session", "session_id", ids) == dict.fromkeys(ids, 1)
    stack.wait_scored(ids, seconds=30)


@pytest.mark.parametrize("alone", [False, True], ids=["as-lists", "one-by-one"])
def test_eight_clients_send_the_same_steps_in_any_order(stack, new_ids, at_once, rng, alone):
    steps = [
        {
            "agentName": f"agent-{number % 3}",
            "stepIndex": number,
            "thought": f"thought {number}",
            "tokenCount": 1,
            "parentStep": {"agentName": f"agent-{(number + 1) % 100 % 3}", "stepIndex": (number + 1) % 100},
            "toolInvocations": [{"toolName": "lookup_knowledge", "l0MatchCount": number % 2}],
        }
        for number in range(100)
    ]
    for session_id in new_ids(1 if alone else 8):
        stack.send("POST", "/api/sessions", {"sessionId": session_id})

        def send_all(order, session_id=session_id):
            bodies = order if alone else [order]
            return {stack.send("POST", f"/api/sessions/{session_id}/steps", body).status for body in bodies}

        answers = at_once([partial(send_all, rng.sample(steps, len(steps))) for _ in range(CLIENTS)])
        assert answers == [{200}] * CLIENTS
        for table in ("agent_step", "tool_invocation"):
            assert stack.sql(f"SELECT COUNT(*) FROM {table} WHERE session_id = %s", session_id) == [(100,)]
        shown = stack.send("GET", f"/api/sessions/{session_id}").body
        assert (shown["stepCount"], shown["toolCallCount"], shown["totalTokenCount"]) == (100, 100, 100)
        assert {step["thought"] for step in shown["steps"]} == {step["thought"] for step in steps}
        assert all(len(step["toolInvocations"]) == 1 and step["parentStep"] for step in shown["steps"])
