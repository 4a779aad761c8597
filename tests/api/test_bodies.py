"""No body may cause a 5xx, be half taken, or cost a neighbour its place: every writing route, every known fault.

The routes come from the URL conf, so that a new one is tested, or named as missing in WELL_FORMED, from its first day.
"""

from __future__ import annotations

import copy
import gzip
import json
import resource
import time

import pytest
from django.conf import settings
from django.db import connection
from django.urls import get_resolver, resolve

from feedback_app.models import AgentFeedback
from sessions_app.models import AgentStep, DiagnosisSession, ToolInvocation
from tests.factories import SessionFactory

pytestmark = pytest.mark.django_db

JSON = "application/json"
SESSION = "body-1"


def writing_routes():
    """(method, route name, path) of everything under /api and /v1 that takes a body."""

    def walk(patterns, prefix=""):
        for entry in patterns:
            route = prefix + str(entry.pattern)
            if hasattr(entry, "url_patterns"):
                yield from walk(entry.url_patterns, route)
            elif route.startswith(("api/", "v1/")):
                yield entry, route

    for entry, route in walk(get_resolver().url_patterns):
        view = entry.callback.view_class
        for method in ("post", "put", "patch", "delete"):
            if hasattr(view, method):
                path = "/" + route.replace("<id:session_id>", SESSION)
                assert resolve(path).func.view_class is view, f"{path} needs a value for its parameters"
                yield method, entry.name, path


def each_route(*, holding=""):
    """Run a test on every route; with `holding`, on those whose well-formed body has a place for such a value."""
    routes = [route for route in writing_routes() if holding in json.dumps(WELL_FORMED.get(route[:2], ""))]
    return pytest.mark.parametrize(
        ("method", "name", "path"), [pytest.param(*route, id=f"{route[0]} {route[2]}") for route in routes]
    )


TEXT, FREE = "TEXT", "FREE"
"""Stand in the bodies below for a text and for a free JSON value."""

WELL_FORMED = {
    ("post", "session-list"): {"sessionId": "body-new", "query": "q", "answer": TEXT, "metadata": {"free": FREE}},
    ("post", "session-batch"): [{"sessionId": "body-new", "answer": TEXT, "selfEvaluation": {"free": FREE}}],
    ("patch", "session-batch"): {"answer": TEXT, "metadata": {"free": FREE}},
    ("patch", "session-detail"): {"answer": TEXT, "metadata": {"free": FREE}},
    ("post", "session-steps"): {"agentName": "a", "stepIndex": 0, "thought": TEXT, "modelOutput": FREE},
    ("post", "session-tool-invocations"): {"toolName": "t", "errorMessage": TEXT, "inputParams": {"free": FREE}},
    ("post", "feedback"): {"sessionId": SESSION, "feedback": "useful", "comment": TEXT},
    ("post", "feedback-events"): {
        "sessionId": SESSION,
        "type": "correction",
        "payload": {"original": "o", "corrected": TEXT},
    },
    ("post", "otlp-traces"): {
        "resourceSpans": [
            {
                "scopeSpans": [
                    {
                        "spans": [
                            {
                                "traceId": "0af7651916cd43dd8448eb211c80319c",
                                "spanId": "b7ad6b7169203331",
                                "name": "invoke_agent",
                                "startTimeUnixNano": "1790000000000000000",
                                "endTimeUnixNano": "1790000001000000000",
                                "attributes": [{"key": "gen_ai.prompt", "value": {"stringValue": TEXT}}],
                            }
                        ]
                    }
                ]
            }
        ]
    },
}


@pytest.fixture(autouse=True)
def _sessions(db):
    for session_id in (SESSION, "batch"):
        SessionFactory(session_id=session_id)


@pytest.fixture
def send(api):
    """Send raw bytes; fails on any 5xx, on a slow answer and on an error in another form."""

    def go(method, path, body, content_type=JSON, **headers):
        start = time.monotonic()
        response = api.generic(method.upper(), path, body, content_type=content_type, headers=headers)
        assert time.monotonic() - start < 5
        assert response.status_code < 500, response.content[:500]
        if response.status_code >= 400:
            assert_error_form(path, response)
        return response

    return go


def assert_error_form(path, response):
    body = strict_json(response)
    if path.startswith("/v1/"):  # OTLP has a form of its own, google.rpc.Status
        assert set(body) == {"code", "message"}
        assert body["message"]
        return
    assert {"success", "code", "message", "errors"} <= set(body)
    assert body["success"] is False
    assert body["code"]
    assert body["message"]
    for field, messages in body["errors"].items():
        assert field
        assert messages
        assert all(isinstance(message, str) for message in messages)


def strict_json(response):
    """JSON as strict parsers read it."""

    def refuse(name):
        raise AssertionError(f"{name} in the answer")

    return json.loads(response.content.decode("utf-8"), parse_constant=refuse)


def well_formed(method, name, text='"t"', free="{}"):
    """The route's body as bytes, with raw JSON in the places of the text and the free value."""
    body = json.dumps(WELL_FORMED[method, name])
    return body.replace(f'"{TEXT}"', text).replace(f'"{FREE}"', free).encode()


def rows():
    models = (DiagnosisSession, AgentStep, ToolInvocation, AgentFeedback)
    return [list(model.objects.order_by("pk").values()) for model in models]


# -- whole bodies ----------------------------------------------------------------------------------------------------


def test_every_writing_route_has_a_well_formed_body_here():
    assert {(method, name) for method, name, _ in writing_routes()} == set(WELL_FORMED)


@each_route()
def test_a_well_formed_body_is_taken_plain_and_compressed(send, method, name, path):
    body = well_formed(method, name)
    for headers in ({}, {"content-encoding": "identity"}):
        assert send(method, path, body, **headers).status_code in (200, 201, 207)
    assert send(method, path, gzip.compress(body), **{"content-encoding": "gzip"}).status_code in (200, 201, 207)


NO_BODY_OF_OURS = {
    "null": b"null",
    "a number": b"1",
    "a string": b'"x"',
    "a list of null": b"[null]",
    "a list of lists": b"[[]]",
    "an unknown field": b'{"sessionId": "body-new", "nope": 1}',
    "NaN": b'{"sessionId": NaN}',
    "-Infinity": b'{"sessionId": -Infinity}',
    "1e999": b'{"sessionId": 1e999}',
    "an integer of 5,000 digits": b'{"sessionId": ' + b"9" * 5000 + b"}",
    "1,000 lists deep": b"[" * 1_000 + b"]" * 1_000,
    "100,000 lists deep": b"[" * 100_000 + b"]" * 100_000,
    "1,000 objects deep": b'{"a":' * 1_000 + b"1" + b"}" * 1_000,
    "100,000 objects deep": b'{"a":' * 100_000 + b"1" + b"}" * 100_000,
    "100,000 opened": b"[" * 100_000,
    "cut off": b'{"sessionId": "body-n',
    "two documents": b'{"sessionId": "body-new"} {}',
    "a raw NUL": b'{"sessionId": "a\x00b"}',
    "not UTF-8": b'{"sessionId": "\xff\xfe"}',
    "UTF-16": '{"sessionId": "body-new"}'.encode("utf-16"),
    "an encoded surrogate": b'{"sessionId": "\xed\xa0\xbd"}',
    "a NUL in an id": b'{"sessionId": "a\\u0000b", "feedback": "useful", "type": "star", "value": 5}',
    "a surrogate in an id": b'{"sessionId": "\\ud83d", "feedback": "useful", "type": "star", "value": 5}',
    "a surrogate as a key": b'{"\\ud83d": 1}',
    "a form": b"sessionId=body-new&feedback=useful",
    "XML": b"<sessionId>body-new</sessionId>",
}


@each_route()
@pytest.mark.parametrize("body", [pytest.param(body, id=what) for what, body in NO_BODY_OF_OURS.items()])
def test_what_is_no_body_of_ours_is_refused_and_changes_nothing(send, method, name, path, body):
    before = rows()
    response = send(method, path, body)
    if response.status_code < 400:
        # OTLP ignores unknown fields, and a batch says of each item that it was refused.
        answer = response.json()
        assert answer.get("rejected") or name == "otlp-traces"
        assert not answer.get("accepted")
    assert rows() == before


@each_route()
def test_an_empty_body_is_refused_or_changes_nothing(send, method, name, path):
    before = rows()
    for body in (b"", b"[]", b"{}"):
        send(method, path, body)
        assert rows() == before


@each_route()
@pytest.mark.parametrize(
    "content_type",
    [
        "application/x-www-form-urlencoded",
        "multipart/form-data; boundary=x",
        "text/csv",
        "application/xml",
        "nonsense",
        "",
    ],
)
def test_another_content_type_is_refused(send, method, name, path, content_type):
    before = rows()
    assert send(method, path, well_formed(method, name), content_type=content_type).status_code == 415
    assert send(method, path, b"sessionId=body-1&feedback=useful", content_type=content_type).status_code == 415
    assert rows() == before


@each_route()
@pytest.mark.parametrize("kind", ["broken", "cut off", "twice", "two in a row", "not at all", "unknown"])
def test_a_damaged_compression_is_refused(send, method, name, path, kind):
    before = rows()
    whole = gzip.compress(well_formed(method, name, text=json.dumps("t" * 5000)))
    body, encoding = {
        "broken": (whole[:30] + bytes(10) + whole[40:], "gzip"),
        "cut off": (whole[:-12], "gzip"),
        "twice": (gzip.compress(whole), "gzip"),
        "two in a row": (whole + whole, "gzip"),
        "not at all": (well_formed(method, name), "gzip"),
        "unknown": (whole, "br"),
    }[kind]
    expected = 415 if kind == "unknown" else 400
    assert send(method, path, body, **{"content-encoding": encoding}).status_code == expected
    assert rows() == before


@pytest.fixture(scope="module")
def bomb():
    """300 MB of zeros in 1 MB."""
    return gzip.compress(bytes(300 * 2**20), compresslevel=1)


@pytest.fixture(scope="module")
def oversize():
    """One byte over the limit."""
    return b'"' + b"x" * (settings.MAX_BODY_BYTES - 1) + b'"'


def test_an_empty_protobuf_request_is_a_good_one(send):
    assert send("post", "/v1/traces", b"", content_type="application/x-protobuf").status_code == 200


@each_route()
def test_a_bomb_is_refused_before_it_goes_off(send, bomb, method, name, path):
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    assert send(method, path, bomb, **{"content-encoding": "gzip"}).status_code == 413
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before  # KB
    assert grown < 150 * 1024, f"grew by {grown // 1024} MB; the limit of a body is 32 MB"


@each_route()
def test_a_body_over_the_limit_is_refused(send, oversize, method, name, path):
    assert settings.MAX_BODY_BYTES == 32 * 2**20
    assert send(method, path, oversize).status_code == 413


# -- hostile values in bodies that are ours ----------------------------------------------------------------------------


def with_values(send, method, name, path, **values):
    """The answer, and whether the body was stored."""
    response = send(method, path, well_formed(method, name, **values))
    accepted = response.status_code < 400 and not (name == "session-batch" and response.json().get("rejected"))
    return response, accepted


@each_route()
def test_ten_megabytes_of_text_are_refused_by_name(send, method, name, path):
    before = rows()
    response, accepted = with_values(send, method, name, path, text=json.dumps("好" * 3_500_000, ensure_ascii=False))
    if name == "otlp-traces":  # a collector cannot send less: it is kept, cut with a mark
        assert response.status_code == 200
        return
    assert not accepted
    assert rows() == before
    answer = response.json()
    errors = answer["rejected"][0]["errors"] if name == "session-batch" and method == "post" else answer["errors"]
    assert {field.split(".")[-1] for field in errors} < {"answer", "thought", "errorMessage", "comment", "payload"}


def test_ten_megabytes_of_output_are_measured_and_their_beginning_kept(send, api):
    output = "好" * 3_500_000
    body = json.dumps({"toolName": "t", "invocationId": "big", "output": output}, ensure_ascii=False).encode()
    assert send("post", f"/api/sessions/{SESSION}/tool-invocations", body).status_code == 200
    row = ToolInvocation.objects.get(invocation_id="big")
    assert (row.output_preview, row.output_length) == (output[:500], len(output))


def test_a_megabyte_of_answer_is_stored_whole(send, api):
    answer = "好😀" * 500_000
    body = json.dumps({"answer": answer}, ensure_ascii=False).encode()
    assert send("patch", f"/api/sessions/{SESSION}", body).status_code == 200
    assert api.get(f"/api/sessions/{SESSION}").json()["answer"] == answer


@each_route()
@pytest.mark.parametrize("raw", [r'"a\u0000b"', r'"a\ud83db"', r'"\ude00\ud83d"'], ids=["NUL", "surrogate", "swapped"])
def test_characters_no_database_holds_become_the_replacement(send, api, method, name, path, raw):
    response, accepted = with_values(send, method, name, path, text=raw, free=raw)
    assert b"\\ud83d" not in api.get("/api/sessions").content
    if name == "otlp-traces":  # refuses what is no Unicode, and puts text where its own tests look for it
        return
    assert accepted, response.content
    session_id = {"session-list": "body-new", "session-batch": "body-new" if method == "post" else "batch"}
    shown = api.get(f"/api/sessions/{session_id.get(name, SESSION)}")
    assert shown.status_code == 200
    stored = json.dumps([strict_json(shown), list(AgentFeedback.objects.values_list("payload", flat=True))])
    assert r"\ufffd" in stored
    assert strict_json(shown)["isSanitised"] or '"sanitised": true' in stored
    assert r"\u0000" not in stored
    assert r"\ud83d" not in stored


@each_route(holding=FREE)
@pytest.mark.parametrize("depth", [10, 28, 29, 30, 31, 32, 99, 101, 900, 5_000])
def test_nested_values_are_stored_or_refused_at_any_depth(send, api, method, name, path, depth):
    before = rows()
    _, accepted = with_values(send, method, name, path, free='{"a":' * depth + "1" + "}" * depth)
    # We take 30 levels, which MariaDB holds; all these values but a step's output stand in an object already.
    assert accepted == (depth <= (30 if name == "session-steps" else 29))
    if accepted:
        assert strict_json(api.get(path if name == "session-detail" else f"/api/sessions/{SESSION}"))
    else:
        assert rows() == before


@each_route(holding=FREE)
@pytest.mark.parametrize("raw", ["1e999", "-1e999", "NaN", "Infinity", "9" * 30, "1" * 5000])
def test_numbers_no_database_holds_are_refused(send, method, name, path, raw):
    before = rows()
    _, accepted = with_values(send, method, name, path, free=f'{{"n": {raw}}}')
    assert not accepted
    assert rows() == before


# -- neighbours --------------------------------------------------------------------------------------------------------

BAD_AT = 37
ITEM_FAULTS = {
    "null": "null",
    "a number": "1",
    "a string": '"x"',
    "a list": "[]",
    "no id": '{"query": "q"}',
    "a number as id": '{"sessionId": 12}',
    "an empty id": '{"sessionId": ""}',
    "a space in an id": '{"sessionId": "a b"}',
    "a long id": f'{{"sessionId": "{"x" * 65}"}}',
    "a NUL in an id": r'{"sessionId": "a\u0000"}',
    "a surrogate in an id": r'{"sessionId": "\ud83d"}',
    "an unknown field": '{"sessionId": "bad", "nope": 1}',
    "an unknown field within": '{"sessionId": "bad", "steps": [{"agentName": "a", "stepIndex": 0, "nope": 1}]}',
    "an unknown status": '{"sessionId": "bad", "status": "DONE"}',
    "a long name": f'{{"sessionId": "bad", "agentFlow": "{"x" * 33}"}}',
    "a number too large": '{"sessionId": "bad", "stepCount": 2147483648}',
    "a number below zero": '{"sessionId": "bad", "stepCount": -1}',
    "a time that is none": '{"sessionId": "bad", "startedAt": "yesterday"}',
    "32 levels": '{"sessionId": "bad", "metadata": ' + '{"a":' * 32 + "1" + "}" * 33,
    "text too long": f'{{"sessionId": "bad", "answer": "{"x" * (2**20 + 1)}"}}',
    "a long integer": '{"sessionId": "bad", "metadata": {"n": ' + "9" * 30 + "}}",
}
PARSE_FAULTS = {
    "NaN": b'{"sessionId": "bad", "metadata": {"n": NaN}}',
    "1e999": b'{"sessionId": "bad", "metadata": {"n": 1e999}}',
    "not UTF-8": b'{"sessionId": "\xff"}',
    "cut off": b'{"sessionId": "bad", ',
    "100,000 levels": b'{"sessionId": "bad", "metadata": ' + b"[" * 100_000 + b"]" * 100_000 + b"}",
}


def neighbours(bad):
    """100 sessions as raw JSON, the 38th of which is `bad`."""
    items = [json.dumps({"sessionId": f"n-{number:03}", "query": "q"}).encode() for number in range(100)]
    items[BAD_AT] = bad
    return items


FORMS = {
    "list": (lambda items: b"[" + b",".join(items) + b"]", JSON),
    "object": (lambda items: b'{"sessions": [' + b",".join(items) + b"]}", JSON),
    "ndjson": (lambda items: b"\n".join(items) + b"\n", "application/x-ndjson"),
}


def stored_neighbours():
    return sorted(DiagnosisSession.objects.filter(session_id__startswith="n-").values_list("session_id", flat=True))


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("bad", [pytest.param(raw, id=what) for what, raw in ITEM_FAULTS.items()])
def test_a_bad_session_in_a_batch_costs_no_neighbour(send, form, bad):
    pack, content_type = FORMS[form]
    response = send("post", "/api/sessions/batch", pack(neighbours(bad.encode())), content_type=content_type)
    assert response.status_code == 207
    answer = strict_json(response)
    assert answer["accepted"] == 99
    [rejected] = answer["rejected"]
    assert rejected["index"] == BAD_AT
    assert rejected["errors"]
    assert stored_neighbours() == [f"n-{number:03}" for number in range(100) if number != BAD_AT]
    assert not DiagnosisSession.objects.filter(session_id="bad").exists()


@pytest.mark.parametrize("bad", [pytest.param(raw, id=what) for what, raw in PARSE_FAULTS.items()])
def test_a_line_that_is_no_json_costs_no_neighbour_and_a_list_is_refused_whole(send, bad):
    pack, content_type = FORMS["list"]
    assert send("post", "/api/sessions/batch", pack(neighbours(bad)), content_type=content_type).status_code == 400
    assert stored_neighbours() == []

    pack, content_type = FORMS["ndjson"]
    response = send("post", "/api/sessions/batch", pack(neighbours(bad)), content_type=content_type)
    assert (response.status_code, response.json()["accepted"]) == (207, 99)
    assert [row["index"] for row in response.json()["rejected"]] == [BAD_AT]
    assert len(stored_neighbours()) == 99


@pytest.mark.django_db(transaction=True)
def test_a_session_that_the_database_refuses_costs_no_neighbour(send):
    refusals = {
        "sqlite": "WHEN NEW.session_id = 'n-037' BEGIN SELECT RAISE(ABORT, 'refused'); END",
        "mysql": "FOR EACH ROW IF NEW.session_id = 'n-037' THEN SIGNAL SQLSTATE '45000'; END IF",
    }
    with connection.cursor() as cursor:
        cursor.execute(f"CREATE TRIGGER refuse BEFORE INSERT ON diagnosis_session {refusals[connection.vendor]}")
    try:
        pack, content_type = FORMS["list"]
        items = neighbours(json.dumps({"sessionId": "n-037"}).encode())
        response = send("post", "/api/sessions/batch", pack(items), content_type=content_type)
    finally:
        with connection.cursor() as cursor:
            cursor.execute("DROP TRIGGER refuse")
    assert (response.status_code, response.json()["accepted"]) == (207, 99)
    [rejected] = response.json()["rejected"]
    assert (rejected["index"], rejected["sessionId"]) == (BAD_AT, "n-037")
    assert len(stored_neighbours()) == 99


EVENT_FAULTS = {
    "null": None,
    "no id": {"type": "star", "value": 5},
    "an unknown session": {"sessionId": "nobody", "type": "star", "value": 5},
    "an unknown type": {"sessionId": SESSION, "type": "clap"},
    "six stars": {"sessionId": SESSION, "type": "star", "value": 6},
    "a star of another type": {"sessionId": SESSION, "type": "star", "value": {}},
    "thumbs sideways": {"sessionId": SESSION, "type": "thumbs", "value": "sideways"},
    "no payload": {"sessionId": SESSION, "type": "edit"},
    "an unknown field": {"sessionId": SESSION, "type": "star", "value": 5, "nope": 1},
    "a long text": {"sessionId": SESSION, "type": "edit", "payload": {"original": "o", "edited": "x" * 20_001}},
}


@pytest.mark.parametrize("bad", [pytest.param(item, id=what) for what, item in EVENT_FAULTS.items()])
def test_a_bad_event_in_a_list_costs_no_neighbour(send, bad):
    events = [{"sessionId": SESSION, "type": "star", "value": 4, "clientEventId": f"e-{n}"} for n in range(100)]
    events[BAD_AT] = copy.deepcopy(bad)
    response = send("post", "/api/feedback/events", json.dumps(events).encode())
    assert (response.status_code, response.json()["accepted"]) == (200, 99)
    [rejected] = response.json()["rejected"]
    assert rejected["index"] == BAD_AT
    assert rejected["errors"]
    assert AgentFeedback.objects.count() == 99


@pytest.mark.parametrize(
    ("route", "good", "bad"),
    [
        ("steps", {"agentName": "a", "stepIndex": 1}, {"agentName": "", "stepIndex": 1}),
        ("tool-invocations", {"toolName": "t"}, {"toolName": "t", "durationMs": "long"}),
    ],
)
def test_a_list_with_a_bad_part_is_refused_whole_and_names_it(send, route, good, bad):
    items = [{**good, **({"stepIndex": n} if route == "steps" else {})} for n in range(100)]
    items[BAD_AT] = bad
    response = send("post", f"/api/sessions/{SESSION}/{route}", json.dumps(items).encode())
    assert response.status_code == 400
    [field] = response.json()["errors"]
    assert field.startswith(f"{BAD_AT}.")
    assert (AgentStep.objects.count(), ToolInvocation.objects.count()) == (0, 0)
