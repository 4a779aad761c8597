"""Pages of other sites: which may post feedback, with what, and that nothing else of ours answers them."""

from __future__ import annotations

import pytest

from feedback_app.models import AgentFeedback
from sessions_app.services.recording import record_sessions

SITE = "https://chat.example.com"
POSTS = ("/api/feedback", "/api/feedback/events")
BODY = {"sessionId": "s1", "type": "thumbs", "value": "up"}


@pytest.fixture(autouse=True)
def _one_site_is_allowed(settings):
    settings.CORS_ALLOWED_ORIGINS = [SITE]


def preflight(client, path, origin=SITE, method="POST", asked="authorization,content-type,x-feedback-token"):
    return client.options(
        path,
        headers={"origin": origin, "access-control-request-method": method, "access-control-request-headers": asked},
    )


@pytest.mark.parametrize("path", POSTS)
def test_a_preflight_lets_the_site_post_with_key_and_token_and_nothing_more(anonymous, path):
    answer = preflight(anonymous, path)
    assert answer.status_code == 200
    assert answer["Access-Control-Allow-Origin"] == SITE
    assert answer["Access-Control-Allow-Methods"] == "POST"
    allowed = answer["Access-Control-Allow-Headers"].split(", ")
    assert {"authorization", "content-type", "x-feedback-token"} <= set(allowed)
    assert "cookie" not in allowed
    assert int(answer["Access-Control-Max-Age"]) >= 600
    assert "Access-Control-Allow-Credentials" not in answer
    assert "origin" in answer["Vary"].lower()


@pytest.mark.parametrize("origin", ["https://evil.example", "null", "http://chat.example.com", f"{SITE}.evil.example"])
def test_another_site_may_not(anonymous, origin):
    assert "Access-Control-Allow-Origin" not in preflight(anonymous, "/api/feedback/events", origin)
    answer = anonymous.post("/api/feedback/events", BODY, format="json", headers={"origin": origin})
    assert "Access-Control-Allow-Origin" not in answer


@pytest.mark.parametrize(
    "path",
    [
        "/api/feedback/summary", "/api/sessions", "/api/sessions/s1", "/api/cases", "/api/metrics", "/api/schema",
        "/v1/traces", "/admin/", "/i18n/setlang/", "/api/feedback-and-more",
    ],
)  # fmt: skip
def test_no_other_route_answers_another_site(client_with, db, path):
    client = client_with("ingest", "read")
    for answer in (preflight(client, path, method="GET"), client.get(path, headers={"origin": SITE})):
        assert not [name for name in answer.headers if name.lower().startswith("access-control-")], path


def test_answers_and_refusals_can_be_read_by_the_site(anonymous, db, settings):
    record_sessions([{"session_id": "s1"}])
    settings.FEEDBACK_RATES = {**settings.FEEDBACK_RATES, "address": (1, 60)}
    bodies = [BODY, BODY, "no json"]
    answers = [anonymous.post("/api/feedback/events", body, format="json", headers={"origin": SITE}) for body in bodies]
    assert [answer.status_code for answer in answers] == [200, 429, 400]
    assert {answer["Access-Control-Allow-Origin"] for answer in answers} == {SITE}
    assert {answer["Access-Control-Expose-Headers"] for answer in answers} == {"Retry-After"}
    assert AgentFeedback.objects.count() == 1


def test_without_the_setting_no_site_may(anonymous, settings):
    settings.CORS_ALLOWED_ORIGINS = []
    assert "Access-Control-Allow-Origin" not in preflight(anonymous, "/api/feedback")
