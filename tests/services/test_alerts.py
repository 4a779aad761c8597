"""An answer that was stated with confidence and rejected is told by real processes, once, and signed."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json

import pytest

from tests.receiver import receiver
from tests.services.conftest import whole_session
from tests.stack import wait_until

pytestmark = pytest.mark.services

MAKE = """
from feedback_app.services.alert_rules import create_rule
rule, secret = create_rule(
    name="On call", kind="confident_but_rejected", agent_id=None, threshold=None, period_days=None, min_votes=None,
    channel="webhook", url="{url}", recipients=[], language="en", is_active=True,
)
print(secret)
"""
OFF = "from feedback_app.models import AlertRule; AlertRule.objects.update(is_active=False)"


def test_what_was_rejected_is_told_once(stack, new_ids):
    [session_id] = new_ids(1)
    with receiver() as server:
        secret = stack.manage("shell", "-c", MAKE.format(url=server.url)).splitlines()[-1]
        try:
            body = [whole_session(session_id, selfEvaluation={"confidence": 95})]
            assert stack.send("POST", "/api/sessions/batch", body).status == 207
            for verdict in ("not_useful", "useful", "not_useful"):
                said = {"sessionId": session_id, "feedback": verdict}
                assert stack.send("POST", "/api/feedback", said, key="").status == 200
            wait_until(lambda: server.requests, 40, lambda: f"nothing was told\n{stack.worker.tail()}")
            states = "SELECT state FROM alert_delivery WHERE session_id = %s"
            wait_until(lambda: stack.sql(states, session_id) == [("sent",)], 10, stack.worker.tail)
        finally:
            stack.manage("shell", "-c", OFF)
    [request] = server.requests
    assert json.loads(request.body)["data"]["sessionId"] == session_id
    signed = f"{request.headers['webhook-id']}.{request.headers['webhook-timestamp']}.".encode() + request.body
    digest = hmac.new(base64.b64decode(secret.removeprefix("whsec_")), signed, hashlib.sha256).digest()
    assert request.headers["webhook-signature"] == f"v1,{base64.b64encode(digest).decode()}"
