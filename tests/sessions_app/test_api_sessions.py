"""Contract 3 and 4: recording and reading over REST."""

from __future__ import annotations

import json
from urllib.parse import quote

import pytest
from rest_framework.test import APIClient

from sessions_app.models import AgentStep, ApiKey, DiagnosisSession, ToolInvocation
from sessions_app.services.keys import create_key, revoke_key

pytestmark = pytest.mark.django_db

WHOLE = {
    "sessionId": "s1",
    "query": "为什么慢？",
    "status": "SUCCESS",
    "answer": "连接池耗尽。",
    "agentFlow": "AI_OPS",
    "agentId": "ops/1",
    "conversationId": "c1",
    "userRef": "u1",
    "startedAt": "2026-11-01T08:00:00+08:00",
    "finishedAt": "2026-11-01T00:00:05Z",
    "selfEvaluation": {"confidence": 88, "evidence_count": 2},
    "metadata": {"snake_case": {"camelCase": 1}},
    "steps": [
        {
            "agentName": "planner",
            "stepIndex": 0,
            "modelInput": [{"role": "user", "content": "?"}],
            "toolInvocations": [{"toolName": "lookup_knowledge", "inputParams": {"q": "x"}, "l1MatchCount": 2}],
        },
        {"agentName": "executor", "stepIndex": 0, "parentStep": {"agentName": "planner", "stepIndex": 0}},
    ],
    "toolInvocations": [{"toolName": "get_current_time", "invocationId": "loose-1"}],
}


def error_of(response, status):
    body = response.json()
    assert response.status_code == status, body
    assert set(body) == {"success", "code", "message", "errors"}
    assert body["success"] is False
    return body


def test_opening_answers_201_and_the_same_id_again_200(api):
    first = api.post("/api/sessions", {"sessionId": "s1", "query": "q"}, format="json")
    assert (first.status_code, first.json()["status"]) == (201, "RUNNING")
    assert first.json()["feedbackToken"]
    again = api.post("/api/sessions", {"sessionId": "s1"}, format="json")
    assert again.status_code == 200
    assert DiagnosisSession.objects.get().query == "q"


def test_finishing_fills_the_totals_and_owes_a_score(api):
    api.post("/api/sessions", {"sessionId": "s1"}, format="json")
    api.post("/api/sessions/s1/steps", {"agentName": "a", "stepIndex": 0, "tokenCount": 7}, format="json")
    api.post("/api/sessions/s1/tool-invocations", [{"toolName": "t"}], format="json")
    response = api.patch("/api/sessions/s1", {"status": "SUCCESS", "answer": "A"}, format="json")
    assert response.status_code == 200
    session = DiagnosisSession.objects.get()
    assert (session.step_count, session.tool_call_count, session.total_token_count) == (1, 1, 7)
    assert session.total_duration_ms is not None
    assert session.evaluation_due_at is not None


def test_the_same_step_and_invocation_again_update_theirs(api):
    api.post("/api/sessions", {"sessionId": "s1"}, format="json")
    for tokens in (1, 2):
        api.post("/api/sessions/s1/steps", {"agentName": "a", "stepIndex": 0, "tokenCount": tokens}, format="json")
        api.post(
            "/api/sessions/s1/tool-invocations",
            {"invocationId": "i", "toolName": "t", "durationMs": tokens, "step": {"agentName": "a", "stepIndex": 0}},
            format="json",
        )
    assert AgentStep.objects.get().token_count == 2
    assert ToolInvocation.objects.get().duration_ms == 2
    assert ToolInvocation.objects.get().step == AgentStep.objects.get()


def test_an_invocation_without_an_id_is_a_new_one_each_time_and_gets_one(api):
    api.post("/api/sessions", {"sessionId": "s1"}, format="json")
    ids = [
        api.post("/api/sessions/s1/tool-invocations", {"toolName": "t"}, format="json").json()["invocationIds"][0]
        for _ in range(2)
    ]
    assert ids[0] != ids[1]
    assert ToolInvocation.objects.count() == 2


@pytest.mark.parametrize(
    "path", ["/api/sessions/nope", "/api/sessions/nope/steps", "/api/sessions/nope/tool-invocations"]
)
def test_an_unknown_session_is_a_404(api, path):
    if path.endswith("nope"):
        error_of(api.get(path), 404)
        error_of(api.patch(path, {"status": "SUCCESS"}, format="json"), 404)
    else:
        body = {"agentName": "a", "stepIndex": 0} if path.endswith("steps") else {"toolName": "t"}
        error_of(api.post(path, body, format="json"), 404)
    assert not DiagnosisSession.objects.exists()


def test_a_session_comes_back_with_every_column_and_its_chain(api, score_due):
    api.post("/api/sessions/batch", [WHOLE], format="json")
    score_due()
    body = api.get("/api/sessions/s1").json()
    assert body["selfEvaluation"]["evidence_score"] == 50
    assert body["selfEvaluation"]["confidence"] == 88
    assert body["metadata"] == {"snake_case": {"camelCase": 1}}
    assert (body["stepCount"], body["toolCallCount"], body["totalDurationMs"]) == (2, 2, 5000)
    assert body["startedAt"] == body["createdAt"] == "2026-11-01T00:00:00Z"
    planner, executor = body["steps"]
    assert executor["parentStep"] == {"agentName": "planner", "stepIndex": 0}
    assert planner["modelInput"] == [{"role": "user", "content": "?"}]
    assert planner["toolInvocations"][0]["inputParams"] == {"q": "x"}
    assert [row["invocationId"] for row in body["toolInvocations"]] == ["loose-1"]
    for name in ("sessionId", "query", "status", "agentFlow", "totalTokenCount", "feedback", "answer", "updatedAt"):
        assert name in body


def test_reading_a_session_costs_the_same_however_many_steps_it_has(api, django_assert_num_queries):
    steps = [{"agentName": "a", "stepIndex": n, "toolInvocations": [{"toolName": "t"}]} for n in range(40)]
    api.post("/api/sessions/batch", [{**WHOLE, "steps": steps}], format="json")
    with django_assert_num_queries(5):  # key, session, steps, invocations, loose invocations
        assert len(api.get("/api/sessions/s1").json()["steps"]) == 40


@pytest.mark.parametrize(
    ("body", "content_type"),
    [
        pytest.param(json.dumps([WHOLE, {**WHOLE, "sessionId": "s2"}]), "application/json", id="list"),
        pytest.param(json.dumps({"sessions": [WHOLE, {**WHOLE, "sessionId": "s2"}]}), "application/json", id="object"),
        pytest.param(
            json.dumps(WHOLE) + "\n\n" + json.dumps({**WHOLE, "sessionId": "s2"}) + "\n",
            "application/x-ndjson",
            id="lines",
        ),
    ],
)
def test_a_batch_takes_three_forms(api, body, content_type):
    response = api.generic("POST", "/api/sessions/batch", body, content_type=content_type)
    assert (response.status_code, response.json()) == (207, {"accepted": 2, "rejected": []})
    assert set(DiagnosisSession.objects.values_list("session_id", flat=True)) == {"s1", "s2"}


def test_a_bad_item_is_named_and_its_neighbours_are_kept(api):
    bad = {"sessionId": "s2", "steps": [{"agentName": "a", "stepIndex": 0, "toolInvocations": [{"toolName": 5}]}]}
    response = api.post("/api/sessions/batch", [WHOLE, bad, {"sessionId": "s3"}, 7], format="json")
    assert response.json()["accepted"] == 2
    first, second = response.json()["rejected"]
    assert (first["index"], first["sessionId"]) == (1, "s2")
    assert list(first["errors"]) == ["steps.0.toolInvocations.0.toolName"]
    assert (second["index"], second["sessionId"]) == (3, None)
    assert set(DiagnosisSession.objects.values_list("session_id", flat=True)) == {"s1", "s3"}


def test_a_batch_of_501_is_refused_whole(api):
    error_of(api.post("/api/sessions/batch", [{"sessionId": f"s{n}"} for n in range(501)], format="json"), 400)
    assert not DiagnosisSession.objects.exists()


@pytest.mark.parametrize("value", ["", " ", "a b", "ab ", "x" * 65, "会话", "a\x00", 12, None, True, ["a"]])
def test_what_is_no_id_is_a_400_that_names_the_field(api, value):
    assert "sessionId" in error_of(api.post("/api/sessions", {"sessionId": value}, format="json"), 400)["errors"]
    other = {"sessionId": "ok", "steps": [{"agentName": "a", "stepIndex": 0, "spanId": value}]}
    if value is not None:
        errors = error_of(api.post("/api/sessions", other, format="json"), 400)["errors"]
        assert list(errors) == ["steps.0.spanId"]
    assert not DiagnosisSession.objects.exists()


@pytest.mark.parametrize("session_id", ["a/b", "100%", "q?x=1#y", "d-bot/GPT4.0", "~!@$&'()*+,;=:", "batch"])
def test_any_id_can_be_reached_by_its_url(api, session_id):
    api.post("/api/sessions", {"sessionId": session_id}, format="json")
    path = f"/api/sessions/{quote(session_id, safe='')}"
    assert api.get(path).json()["sessionId"] == session_id
    assert api.patch(path, {"status": "FAILED"}, format="json").status_code == 200
    assert DiagnosisSession.objects.get().status == "FAILED"


def test_a_field_it_does_not_know_is_an_error_that_names_it(api):
    errors = error_of(api.post("/api/sessions", {"sessionId": "s", "querry": "q"}, format="json"), 400)["errors"]
    assert list(errors) == ["querry"]
    for name in ("feedback", "evidenceScore", "createdAt", "id", "isEvaluationPending"):
        error_of(api.post("/api/sessions", {"sessionId": "s", name: 1}, format="json"), 400)
    assert not DiagnosisSession.objects.exists()


def test_unstorable_characters_in_text_are_replaced_and_the_session_says_so(api):
    body = json.dumps({"sessionId": "s", "query": "a\x00b", "metadata": {"k\x00": "\ud83d"}})
    assert api.generic("POST", "/api/sessions", body, content_type="application/json").status_code == 201
    session = DiagnosisSession.objects.get()
    assert (session.query, session.metadata, session.is_sanitised) == ("a\ufffdb", {"k\ufffd": "\ufffd"}, True)
    assert api.get("/api/sessions/s").json()["isSanitised"] is True


def test_a_time_without_an_offset_is_utc_and_an_impossible_one_is_named(api):
    api.post("/api/sessions", {"sessionId": "s", "startedAt": "2026-03-08T02:30:00"}, format="json")
    assert api.get("/api/sessions/s").json()["startedAt"] == "2026-03-08T02:30:00Z"
    for value in ("0001-01-01T00:00:00+14:00", "yesterday", 5, "2026-02-30T00:00:00Z"):
        response = api.post("/api/sessions", {"sessionId": "t", "finishedAt": value}, format="json")
        assert list(error_of(response, 400)["errors"]) == ["finishedAt"]


def test_the_list_filters_and_pages_without_repeating(api):
    api.post(
        "/api/sessions/batch",
        [{"sessionId": f"s{n}", "status": "SUCCESS" if n % 2 else "FAILED", "agentFlow": "CHAT"} for n in range(7)],
        format="json",
    )
    assert {row["sessionId"] for row in api.get("/api/sessions?status=FAILED").json()["results"]} == {
        "s0",
        "s2",
        "s4",
        "s6",
    }
    seen: list[str] = []
    url = "/api/sessions?limit=3&agentFlow=CHAT"
    while url:
        page = api.get(url).json()
        seen += [row["sessionId"] for row in page["results"]]
        url = page["next"]
    assert sorted(seen) == [f"s{n}" for n in range(7)]
    assert "answer" not in page["results"][0]


def test_the_period_of_the_list_is_from_inclusive_to_exclusive(api):
    days = ["2026-11-01", "2026-11-02", "2026-11-03"]
    api.post("/api/sessions/batch", [{"sessionId": d, "startedAt": f"{d}T00:00:00Z"} for d in days], format="json")
    rows = api.get("/api/sessions?from=2026-11-01T00:00:00Z&to=2026-11-03").json()["results"]
    assert {row["sessionId"] for row in rows} == {"2026-11-01", "2026-11-02"}


@pytest.mark.parametrize("query", ["status=x", "from=yesterday", "minScore=many", "feedback=maybe"])
def test_a_filter_that_cannot_be_read_is_named(api, query):
    assert list(error_of(api.get(f"/api/sessions?{query}"), 400)["errors"]) == [query.split("=")[0]]


def test_keys_open_what_their_scopes_say_and_nothing_else(anonymous):
    keys = {scope: create_key(name=scope, scopes=[scope]) for scope in ("ingest", "read", "feedback")}

    def status(scope, method, path, body=None):
        client = APIClient(headers={"authorization": f"Bearer {keys[scope][1]}"})
        return getattr(client, method)(path, body, format="json").status_code

    opening = {"sessionId": "s"}
    assert status("ingest", "post", "/api/sessions", opening) == 201
    assert status("read", "post", "/api/sessions", opening) == 403
    assert status("feedback", "post", "/api/sessions", opening) == 403
    assert status("read", "get", "/api/sessions/s") == 200
    assert status("ingest", "get", "/api/sessions/s") == 403
    assert status("feedback", "get", "/api/cases") == 403
    verdict = {"sessionId": "s", "feedback": "useful"}
    assert status("feedback", "post", "/api/feedback", verdict) == 200
    assert status("ingest", "post", "/api/feedback", verdict) == 200
    assert status("read", "post", "/api/feedback", verdict) == 403
    refused = anonymous.post("/api/sessions", opening, format="json")
    error_of(refused, 401)
    assert refused["WWW-Authenticate"] == "Bearer"


def test_a_revoked_or_unknown_key_opens_nothing_not_even_what_is_open(anonymous):
    row, secret = create_key(name="k", scopes=["ingest"])
    assert revoke_key(key_id=row.pk)
    assert not revoke_key(key_id=row.pk)
    for header in (f"Bearer {secret}", "Bearer nope", "Bearer", "Basic abc", "Bearer ключ"):
        client = APIClient(headers={"authorization": header.encode().decode("latin-1")})
        error_of(client.post("/api/sessions", {"sessionId": "s"}, format="json"), 401)
        error_of(client.post("/api/feedback", {"sessionId": "s", "feedback": "useful"}, format="json"), 401)


def test_a_key_is_stored_only_as_its_hash():
    row, secret = create_key(name="k", scopes=["read", "read", "ingest"])
    assert row.scopes == ["ingest", "read"]
    values = ApiKey.objects.values_list().get()
    assert secret not in json.dumps([str(value) for value in values])
    assert secret.startswith(row.prefix)


def test_an_unknown_route_answers_in_the_one_form(api):
    error_of(api.get("/api/nothing/here"), 404)
    error_of(api.delete("/api/sessions"), 405)


def test_the_openapi_document_names_every_route(api):
    document = api.get("/api/schema?format=json").json()
    for path in ("/api/sessions", "/api/sessions/batch", "/api/sessions/{session_id}", "/api/feedback", "/api/cases"):
        assert path in document["paths"]
    refusals = document["paths"]["/api/sessions"]["post"]["responses"]
    assert {"201", "400", "401", "403", "413"} <= set(refusals)
    assert refusals["400"]["content"]["application/json"]["schema"]["$ref"].endswith("/Refusal")
    assert set(document["paths"]["/api/sessions/batch"]) == {"post"}
