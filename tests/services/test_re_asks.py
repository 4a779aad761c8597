"""Questions asked again are noticed by a real worker, with eight clients writing one conversation at once."""

from __future__ import annotations

from functools import partial
from itertools import pairwise

import pytest

from tests.stack import wait_until

pytestmark = pytest.mark.services


def test_eight_clients_of_one_conversation(stack, new_ids, at_once):
    ids = new_ids(8)

    def ask(number, session_id):
        body = {
            "sessionId": session_id,
            "query": "Why is checkout slow?",
            "conversationId": ids[0],
            "startedAt": f"2026-11-09T12:00:{number:02}Z",
        }
        return [stack.send("POST", "/api/sessions", body).status for _ in range(2)]

    assert at_once([partial(ask, *each) for each in enumerate(ids)]) == [[201, 200]] * 8

    def pairs():
        sql = (
            "SELECT session_id, JSON_UNQUOTE(JSON_EXTRACT(payload, '$.laterSessionId')) FROM agent_feedback"
            " WHERE source = 'system' AND session_id IN %s"
        )
        return stack.sql(sql, ids)

    nearest = set(pairwise(ids))
    wait_until(lambda: nearest <= set(pairs()), 30, lambda: f"only {pairs()}\n{stack.worker.tail()}")
    assert len(pairs()) == len(set(pairs())), "no pair twice"
    judged = "SELECT COUNT(*) FROM diagnosis_session WHERE feedback IS NOT NULL AND session_id IN %s"
    assert stack.sql(judged, ids) == [(0,)]
