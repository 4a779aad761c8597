"""Redis or the worker fails: readers and agents notice nothing, and every score comes in the end."""

from __future__ import annotations

import time
from contextlib import contextmanager

import pytest

from tests.services.conftest import whole_session
from tests.stack import MAX_ATTEMPTS, wait_until

pytestmark = pytest.mark.services

ANSWER_SECONDS = 2
SCORED_SECONDS = 60


def record_many(stack, ids):
    for start in range(0, len(ids), 500):
        batch = [whole_session(session_id) for session_id in ids[start : start + 500]]
        assert stack.send("POST", "/api/sessions/batch", batch).body == {"accepted": len(batch), "rejected": []}


def use(stack, ids):
    """Open, finish and rate each session; fails when an answer is no 2xx or comes late."""
    for session_id in ids:
        for method, path, body in (
            ("POST", "/api/sessions", {"sessionId": session_id, "query": "why?"}),
            ("POST", f"/api/sessions/{session_id}/tool-invocations", {"toolName": "x", "invocationId": "1"}),
            ("PATCH", f"/api/sessions/{session_id}", {"status": "SUCCESS", "answer": "so."}),
            ("POST", "/api/feedback", {"sessionId": session_id, "feedback": "useful"}),
        ):
            answer = stack.send(method, path, body)
            assert answer.status in (200, 201), (path, answer)
            assert answer.seconds < ANSWER_SECONDS, (path, answer)


def assert_whole_and_single(stack, ids, score):
    """Each session stands once, with its invocations once, scored as it should be, and owes nothing."""
    rows = stack.sql(
        "SELECT s.session_id, s.evidence_score, s.evaluation_attempts, s.evaluation_error, s.tool_call_count,"
        "  (SELECT COUNT(*) FROM tool_invocation i WHERE i.session_id = s.session_id)"
        " FROM diagnosis_session s WHERE s.session_id IN %s",
        ids,
    )
    assert len(rows) == len(ids)
    assert {row[1:4] for row in rows} == {(score, 0, "")}
    assert all(said == stored for *_, said, stored in rows)


@contextmanager
def trigger(stack, body):
    """Something that the database does at each change of a session: the product knows nothing of it."""
    stack.sql(f"CREATE TRIGGER trouble BEFORE UPDATE ON diagnosis_session FOR EACH ROW {body}")
    try:
        yield
    finally:
        stack.sql("DROP TRIGGER trouble")


@pytest.mark.parametrize("trouble", ["stopped", "frozen"])
def test_without_redis_every_answer_comes_in_time_and_every_score_later(stack, new_ids, trouble):
    ids = new_ids(12)
    (stack.stop_redis if trouble == "stopped" else stack.pause_redis)()

    use(stack, ids)
    assert stack.send("GET", "/healthz", key="").status == 200

    (stack.start_redis if trouble == "stopped" else stack.resume_redis)()
    stack.wait_scored(ids, SCORED_SECONDS)
    assert_whole_and_single(stack, ids, score=30)


@pytest.mark.parametrize("trouble", ["stopped", "frozen"])
def test_the_worker_outlives_a_redis_that_fails_while_it_scores(stack, new_ids, trouble):
    # One of its processes is held up, so a message is not acknowledged; the other is idle, so it listens for more.
    ids = new_ids(5)
    with trigger(stack, f"IF NEW.session_id = '{ids[0]}' AND NEW.evidence_score IS NOT NULL THEN DO SLEEP(3); END IF"):
        record_many(stack, ids)
        claimed = "SELECT 1 FROM diagnosis_session WHERE session_id = %s AND evaluation_claimed_until IS NOT NULL"
        wait_until(lambda: stack.sql(claimed, ids[0]), 10, "scoring did not begin")
        (stack.stop_redis if trouble == "stopped" else stack.pause_redis)()
        time.sleep(3)  # longer than the worker's time-outs
    (stack.start_redis if trouble == "stopped" else stack.resume_redis)()

    stack.wait_scored(ids, SCORED_SECONDS)
    assert_whole_and_single(stack, ids, score=65)
    later = new_ids(3)
    record_many(stack, later)
    stack.wait_scored(later, seconds=30)
    assert stack.worker.is_running
    assert "Unrecoverable error" not in stack.worker.log()


def test_a_flushed_redis_loses_no_score(stack, new_ids):
    stack.worker.stop()
    ids = new_ids(200)
    record_many(stack, ids)
    stack.flush_redis()
    assert stack.unscored(ids) == len(ids)

    stack.start_worker()

    stack.wait_scored(ids, SCORED_SECONDS)
    assert_whole_and_single(stack, ids, score=65)


def test_a_flush_under_a_running_worker_leaves_it_working(stack, new_ids):
    for ids in (new_ids(5), new_ids(5)):
        stack.flush_redis()
        record_many(stack, ids)
        stack.wait_scored(ids, SCORED_SECONDS)
        assert_whole_and_single(stack, ids, score=65)


def test_a_worker_killed_in_the_middle_loses_and_doubles_nothing(stack, new_ids):
    stack.worker.stop()
    ids = new_ids(1500)
    record_many(stack, ids)

    stack.start_worker()
    wait_until(lambda: stack.unscored(ids) < len(ids) - 50, 30, "scoring did not begin")
    stack.kill_worker()
    left = stack.unscored(ids)
    assert 0 < left < len(ids), "the worker was not killed in the middle"

    stack.start_worker()
    took = stack.wait_scored(ids, SCORED_SECONDS)
    print(f"{left} of {len(ids)} were left at the kill; scored {took:.0f} s after the restart")
    assert_whole_and_single(stack, ids, score=65)


def test_readiness_names_the_part_that_is_down(stack):
    stack.kill_worker()
    wait_until(lambda: stack.ready()[0] == 503, 20, "a dead worker was not noticed")
    status, parts = stack.ready()
    assert (parts["database"], parts["broker"]) == ("ok", "ok")
    assert parts["worker"].startswith("silent for")
    assert stack.send("GET", "/healthz", key="").status == 200
    stack.start_worker()
    wait_until(lambda: stack.ready()[0] == 200, 30, lambda: f"not ready again: {stack.ready()}")

    stack.stop_redis()
    status, parts = stack.ready()
    assert status == 503
    assert parts["database"] == "ok"
    assert parts["broker"] != "ok"
    assert stack.send("GET", "/healthz", key="").status == 200
    stack.start_redis()
    wait_until(lambda: stack.ready()[0] == 200, 30, lambda: f"not ready again: {stack.ready()}")

    stack.pause_redis()
    answer = stack.send("GET", "/readyz", key="")
    assert answer.body["parts"]["broker"] != "ok"
    assert answer.seconds < 5
    stack.resume_redis()
    wait_until(lambda: stack.ready()[0] == 200, 30, lambda: f"not ready again: {stack.ready()}")


def test_a_session_that_cannot_be_scored_is_given_up_with_its_reason(stack, new_ids):
    bad, *good = new_ids(4)
    refusal = "SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = 'no score for this one'"
    with trigger(stack, f"IF NEW.session_id = '{bad}' AND NEW.evidence_score IS NOT NULL THEN {refusal}; END IF"):
        record_many(stack, [bad, *good])
        stack.wait_scored(good, seconds=30)

        def row():
            return stack.sql(
                "SELECT evaluation_due_at, evaluation_attempts, evaluation_error, evidence_score"
                " FROM diagnosis_session WHERE session_id = %s",
                bad,
            )[0]

        wait_until(lambda: row()[0] is None, 45, lambda: f"not given up: {row()}")
        _, attempts, error, score = row()
        assert (attempts, score) == (MAX_ATTEMPTS, None)
        assert "no score for this one" in error
        assert stack.worker.log().count(f'"session_id": "{bad}", "attempt"') == MAX_ATTEMPTS
        shown = stack.send("GET", f"/api/sessions/{bad}").body
        assert (shown["isEvaluationPending"], shown["evidenceScore"]) == (False, None)
        assert "no score for this one" in shown["evaluationError"]

    late = {"toolName": "lookup_knowledge", "l0MatchCount": 1, "invocationId": "late"}
    assert stack.send("POST", f"/api/sessions/{bad}/tool-invocations", late).status == 200
    stack.wait_scored([bad], seconds=10)
    assert stack.send("GET", f"/api/sessions/{bad}").body["evaluationError"] == ""
