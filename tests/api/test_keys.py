"""Every route and method, asked with every kind of credential. A route that is new needs a line in the table here."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import pytest
from django.apps import apps
from django.test import Client
from django.urls import get_resolver

from sessions_app.models import ApiKey
from sessions_app.services.keys import create_key, revoke_key
from sessions_app.services.recording import record_sessions
from sessions_app.services.tokens import feedback_token
from tests.conftest import LOGIN_BACKEND, OWN_APPS
from tests.factories import CaseFactory

METHODS = ("GET", "HEAD", "OPTIONS", "POST", "PUT", "PATCH", "DELETE", "TRACE")

INGEST, READ, FEEDBACK, NOBODY = "ingest", "read", "feedback", "nobody"

SESSION = {"sessionId": "s1", "query": "Why?"}
EVENT = {"sessionId": "s1", "type": "star", "value": 4}


class Door(NamedTuple):
    """What one method of one route asks for, a body that it takes, and what it then answers."""

    scope: str
    status: int = 200
    body: Any = None


GET = {"GET": Door(READ), "HEAD": Door(READ)}
PAGE = {"GET": Door("anybody"), "HEAD": Door("anybody")}

API: Mapping[str, Mapping[str, Door]] = {
    "api/sessions": {**GET, "POST": Door(INGEST, 200, SESSION)},
    "api/sessions/batch": {
        "POST": Door(INGEST, 207, [SESSION]),
        "GET": Door(READ, 404),
        "HEAD": Door(READ, 404),
        "PATCH": Door(INGEST, 404),
    },
    "api/sessions/<id:session_id>": {**GET, "PATCH": Door(INGEST, 200, {"answer": "So."})},
    "api/sessions/<id:session_id>/steps": {"POST": Door(INGEST, 200, [{"agentName": "a", "stepIndex": 0}])},
    "api/sessions/<id:session_id>/tool-invocations": {
        "POST": Door(INGEST, 200, [{"toolName": "t", "invocationId": "i1"}])
    },
    "api/metrics": GET,
    "v1/traces": {"POST": Door(INGEST, 200, {"resourceSpans": []})},
    "api/feedback": {"POST": Door(FEEDBACK, 200, {"sessionId": "s1", "feedback": "useful"})},
    "api/feedback/events": {"POST": Door(FEEDBACK, 200, [EVENT])},
    "api/feedback/summary": GET,
    "api/cases": GET,
    "api/cases/<uuid:case_id>": GET,
    "api/schema": PAGE,
    "api/docs": PAGE,
}

OPEN = {"": 302, "healthz": 200, "readyz": 503, "widget.js": 200, "demo": 404}
"""Beside the API and the admin: what anybody sees, with whatever key."""

CREDENTIALS = (
    "nothing",
    "feedback",
    "ingest",
    "read",
    "revoked",
    "session token",
    "admin cookie",
    "key in the address",
)


def routes() -> Iterator[str]:
    """All there are."""

    def walk(patterns: Any, prefix: str) -> Iterator[str]:
        for pattern in patterns:
            route = prefix + str(pattern.pattern)
            if hasattr(pattern, "url_patterns"):
                yield from walk(pattern.url_patterns, route)
            else:
                yield route

    yield from walk(get_resolver().url_patterns, "")


ROUTES = sorted(set(routes()))


@pytest.fixture
def world(db: None, settings: Any) -> dict[str, str]:
    """A session and a case; values for the parameters of routes."""
    settings.FEEDBACK_RATES = dict.fromkeys(settings.FEEDBACK_RATES, (10**6, 60))
    record_sessions([{"session_id": "s1", "status": "SUCCESS", "answer": "The cache."}])
    case = CaseFactory(published=True)
    return {"session_id": "s1", "case_id": str(case.case_id)}


@pytest.fixture
def enter(world: dict[str, str], admin_user: Any) -> Any:
    """`enter("feedback")` gives a client and its headers; cookies do not spare it the check against forgery."""

    def make(credential: str) -> tuple[Client, dict[str, str], str]:
        client = Client(enforce_csrf_checks=True)
        if credential == "admin cookie":
            client.force_login(admin_user, backend=LOGIN_BACKEND)
            return client, {}, ""
        if credential == "session token":
            return client, {"X-Feedback-Token": feedback_token("s1")}, ""
        if credential == "key in the address":
            secret = create_key(name="all", scopes=("ingest", "read", "feedback"))[1]
            return client, {}, f"?key={secret}&api_key={secret}&token={secret}&authorization=Bearer%20{secret}"
        if credential == "nothing":
            return client, {}, ""
        scopes = ("ingest", "read", "feedback") if credential == "revoked" else (credential,)
        key, secret = create_key(name=credential, scopes=scopes)
        if credential == "revoked":
            revoke_key(key_id=key.pk)
        return client, {"Authorization": f"Bearer {secret}"}, ""

    return make


def path_of(route: str, world: Mapping[str, str]) -> str:
    """An address of the route."""
    path = re.sub(r"\(\?P<(\w+)>[^)]*\)|<(?:\w+:)?(\w+)>", lambda m: world.get(m[1] or m[2], "1"), route)
    return "/" + path.replace("^", "").replace("$", "")


def ask(client: Client, method: str, path: str, headers: Mapping[str, str], body: Any = None) -> Any:
    """One request. Bodies are JSON."""
    data = json.dumps({} if body is None else body) if method in ("POST", "PUT", "PATCH", "DELETE") else ""
    return client.generic(method, path, data, content_type="application/json", headers=headers)


def all_rows() -> dict[str, Any]:
    """Whatever the tables of the product hold, but for when a key was last used."""
    rows: dict[str, Any] = {}
    for app in OWN_APPS:
        for model in apps.get_app_config(app).get_models():
            columns = [field.attname for field in model._meta.concrete_fields if field.attname != "last_used_at"]
            rows[model.__name__] = list(model._default_manager.order_by("pk").values_list(*columns))
    return rows


def expected(doors: Mapping[str, Door], method: str, credential: str) -> set[int]:
    """The statuses that are right."""
    door = doors.get(method)
    if door and door.scope == "anybody":
        return {door.status}
    if credential == "revoked":
        return {200, 401, 405} if not door and PAGE.items() <= doors.items() else {401}
    if door is None:
        # Whether it is told that there is no such method, or that it may not ask, is all one. OPTIONS tells of the
        # route, what the published document tells too.
        return {200, 401, 403, 405} if method == "OPTIONS" else {401, 403, 405}
    has_key = credential in ("feedback", "ingest", "read")
    speaks = {FEEDBACK: credential != "read", INGEST: credential == "ingest", READ: credential == "read"}
    if speaks[door.scope]:
        return {door.status}
    return {403 if has_key else 401}


@pytest.mark.parametrize("credential", CREDENTIALS)
def test_the_api_does_for_each_credential_what_the_table_says(enter, world, credential):
    client, headers, query = enter(credential)
    wrong, before = [], all_rows()
    for route, doors in API.items():
        for method in METHODS:
            door = doors.get(method)
            answer = ask(client, method, path_of(route, world) + query, headers, door.body if door else None)
            right = expected(doors, method, credential)
            if answer.status_code not in right:
                wrong.append((method, route, answer.status_code, right))
            is_feedback = door is not None and door.scope == FEEDBACK and answer.status_code == 200
            if credential != "ingest" and not is_feedback and (now := all_rows()) != before:
                wrong.append((method, route, "wrote", [name for name in now if now[name] != before[name]]))
            before = all_rows()
    assert wrong == []


def test_every_route_has_its_line_in_the_table():
    known = {*API, *OPEN, "i18n/setlang/"}
    assert [route for route in ROUTES if route not in known and not route.startswith("admin/")] == []
    assert [route for route in known if route not in ROUTES] == []


@pytest.mark.parametrize("credential", [name for name in CREDENTIALS if name != "admin cookie"])
def test_no_key_or_token_opens_the_admin(enter, world, credential):
    client, headers, query = enter(credential)
    wrong, before = [], all_rows()
    for route in (route for route in ROUTES if route.startswith("admin/")):
        for method in ("GET", "POST", "DELETE"):
            answer = ask(client, method, path_of(route, world) + query, headers)
            is_login = route in ("admin/login/", "admin/jsi18n/") and method == "GET"
            is_out = answer.status_code in (302, 301) and "/admin/" in answer["Location"]
            if not (is_login or is_out or answer.status_code in (403, 404, 405)):
                wrong.append((method, route, answer.status_code))
    assert wrong == []
    assert all_rows() == before


def test_an_admins_cookie_alone_changes_nothing(enter, world):
    """Without the token against forgery, which another site does not know."""
    client, headers, _query = enter("admin cookie")
    before = all_rows()
    for route in ROUTES:
        if route.startswith(("api/", "v1/")):
            continue
        for method in ("POST", "PUT", "PATCH", "DELETE"):
            answer = ask(client, method, path_of(route, world), headers)
            assert answer.status_code in (301, 302, 403, 405), (method, route, answer.status_code)
    assert all_rows() == before
    assert client.get("/admin/").status_code == 200


@pytest.mark.parametrize("credential", CREDENTIALS)
def test_open_routes_are_the_same_for_everybody_and_read_only(enter, world, credential):
    client, headers, query = enter(credential)
    before = all_rows()
    for route, status in OPEN.items():
        assert ask(client, "GET", path_of(route, world) + query, headers).status_code == status, route
    assert ask(client, "POST", "/i18n/setlang/", headers).status_code == 403
    assert all_rows() == before


def test_a_key_works_in_either_header_and_in_no_other_place(enter, world):
    secret = create_key(name="r", scopes=("read",))[1]
    client = Client()
    assert client.get("/api/metrics", headers={"Authorization": f"Bearer {secret}"}).status_code == 200
    assert client.get("/api/metrics", headers={"X-Api-Key": secret}).status_code == 200
    for headers in ({"Authorization": f"Basic {secret}"}, {"Authorization": secret}, {"X-Feedback-Token": secret}):
        assert client.get("/api/metrics", headers=headers).status_code == 401
    client.cookies["key"] = secret
    assert client.get("/api/metrics").status_code == 401
    assert secret not in str(list(ApiKey.objects.values_list()))


def test_where_tokens_are_demanded_a_feedback_key_needs_one_too(enter, world, settings):
    settings.FEEDBACK_AUTH = "token"
    body = {"sessionId": "s1", "feedback": "useful"}
    statuses = {}
    for credential in CREDENTIALS:
        client, headers, query = enter(credential)
        statuses[credential] = ask(client, "POST", "/api/feedback" + query, headers, body).status_code
    assert statuses == {
        "nothing": 403, "feedback": 403, "ingest": 200, "read": 403, "revoked": 401, "session token": 200,
        "admin cookie": 403, "key in the address": 403,
    }  # fmt: skip
    client, headers, _query = enter("feedback")
    token = feedback_token("s1")
    assert ask(client, "POST", "/api/feedback", headers, {**body, "token": token}).status_code == 200
    assert ask(client, "POST", "/api/feedback", {**headers, "X-Feedback-Token": token}, body).status_code == 200
