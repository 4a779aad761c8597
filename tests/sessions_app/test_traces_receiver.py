"""`POST /v1/traces`: what it takes, what it refuses and how it says so, whatever comes over the wire."""

from __future__ import annotations

import gzip
import json
import random
import struct
import tracemalloc
import zlib
from typing import Any

import pytest
from django.db import connection
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTraceServiceRequest,
    ExportTraceServiceResponse,
)

from sessions_app.models import AgentStep, DiagnosisSession, OtlpTrace, ToolInvocation
from sessions_app.services import traces
from tests.otlp import START_NS, TRACE, protobuf, request, span, with_base64_ids

pytestmark = pytest.mark.django_db

PROTOBUF, JSON = "application/x-protobuf", "application/json"
AGENT = {"gen_ai.operation.name": "invoke_agent", "input.value": "why?", "output.value": "so."}
CHAT = {"gen_ai.operation.name": "chat"}
TOOL = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "logs"}


@pytest.fixture
def post(api):
    """Send bytes, or a request in JSON."""

    def send(body: Any, content_type: str = JSON, client: Any = api, **headers: str) -> Any:
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        return client.post("/v1/traces", data, content_type=content_type, headers=headers)

    return send


def rejected(answer) -> int:
    """How many spans an answer says were rejected; it must be a good one."""
    assert answer.status_code == 200, answer.content
    if answer["Content-Type"] == PROTOBUF:
        return ExportTraceServiceResponse.FromString(answer.content).partial_success.rejected_spans
    said = json.loads(answer.content)
    if not said:
        return 0
    assert said["partialSuccess"]["errorMessage"]
    count = said["partialSuccess"]["rejectedSpans"]
    assert isinstance(count, str), "64-bit integers are strings"
    return int(count)


def status(answer) -> tuple[int, str]:
    """Code and message of a `google.rpc.Status`, in the type of the answer."""
    if answer["Content-Type"] == JSON:
        said = json.loads(answer.content)
        return said["code"], said["message"]
    assert answer["Content-Type"] == PROTOBUF
    body = answer.content
    assert (body[0], body[2]) == (0x08, 0x12)
    length, start = (body[3], 4) if body[3] < 0x80 else (body[3] & 0x7F | body[4] << 7, 5)
    assert len(body) == start + length
    return body[1], body[start:].decode()


# -- forms -----------------------------------------------------------------------------------------------------------

RUN = request(span(1, "run", AGENT), span(2, "chat", {**CHAT, "gen_ai.usage.input_tokens": 7}, parent=1))
BODIES = {JSON: json.dumps(RUN).encode(), PROTOBUF: protobuf(RUN)}


@pytest.mark.parametrize("encoding", [None, "gzip", "deflate", "GZIP"])
@pytest.mark.parametrize("content_type", [JSON, PROTOBUF])
def test_both_forms_are_taken_plain_and_compressed(post, content_type, encoding):
    pack = {None: bytes, "gzip": gzip.compress, "GZIP": gzip.compress, "deflate": zlib.compress}[encoding]
    headers = {"content-encoding": encoding} if encoding else {}
    answer = post(pack(BODIES[content_type]), content_type, **headers)
    assert (answer.status_code, answer["Content-Type"]) == (200, content_type)
    assert answer.content == (b"{}" if content_type == JSON else b"")
    session = DiagnosisSession.objects.get()
    assert (session.session_id, session.query, session.answer, session.total_token_count) == (TRACE, "why?", "so.", 7)


@pytest.mark.parametrize("content_type", ["application/json; charset=utf-8", "Application/JSON;x=1"])
def test_parameters_of_the_content_type_do_not_matter(post, content_type):
    answer = post(BODIES[JSON], content_type, accept="text/html")
    assert (answer.status_code, answer["Content-Type"]) == (200, JSON)


@pytest.mark.parametrize(
    ("body", "content_type"),
    [(b"{}", JSON), (b'{"resourceSpans": []}', JSON), (b'{"resourceSpans": null}', JSON), (b"", PROTOBUF)],
)
def test_an_empty_request_is_a_good_one(post, body, content_type):
    assert rejected(post(body, content_type)) == 0
    assert not OtlpTrace.objects.exists()


def test_integers_are_strings_or_numbers_enums_names_or_numbers_ids_of_either_case(post):
    one = span(1, "run", AGENT)
    one |= {"traceId": TRACE.upper(), "spanId": "ABCDEF0123456789", "parentSpanId": "", "status": {"code": 2}}
    two = span(2, "logs", TOOL)
    two |= {
        "parentSpanId": "abcdef0123456789",
        "startTimeUnixNano": START_NS + 2_000_000,
        "endTimeUnixNano": START_NS + 7_000_000,
        "status": {"code": "STATUS_CODE_ERROR", "message": "no"},
        "kind": "SPAN_KIND_CLIENT",
    }
    chat = span(3, "chat", CHAT)
    chat["attributes"] += [
        {"key": "gen_ai.usage.input_tokens", "value": {"intValue": 5}},
        {"key": "gen_ai.usage.output_tokens", "value": {"intValue": "6"}},
    ]
    chat["parentSpanId"] = "0000000000000000"
    assert rejected(post(request(one, two, chat))) == 0
    session = DiagnosisSession.objects.get()
    assert (session.session_id, session.status, session.total_token_count) == (TRACE, "FAILED", 11)
    tool = ToolInvocation.objects.get()
    assert (tool.success, tool.duration_ms, tool.error_message) == (False, 5, "no")


def test_unknown_fields_are_ignored_nulls_are_defaults_and_snake_case_is_not_the_field(post):
    chat = span(1, "chat", {**CHAT, "gen_ai.usage.input_tokens": 5})
    chat |= {"flags": 257, "links": [], "droppedAttributesCount": 1, "novelty": {"deep": [1]}, "parentSpanId": None}
    chat |= {"events": None, "status": None, "traceState": None}
    body = request(chat) | {"novelty": [[]]}
    body["resourceSpans"][0] |= {"schemaUrl": "https://example.org", "novelty": 1}
    assert rejected(post(body)) == 0
    assert AgentStep.objects.get().input_tokens == 5
    snake = json.loads(
        json.dumps(request(span(2, "chat", CHAT, trace="a" * 32))).replace("resourceSpans", "resource_spans")
    )
    assert rejected(post(snake)) == 0
    assert OtlpTrace.objects.count() == 1


def test_json_with_a_byte_order_mark_is_told_what_it_is(post):
    answer = post(b"\xef\xbb\xbf" + BODIES[JSON])
    assert answer.status_code == 400
    assert status(answer)[0] == 3


def test_a_key_may_come_as_x_api_key(post, anonymous, new_key):
    assert rejected(post(RUN, client=anonymous, **{"x-api-key": new_key("ingest")})) == 0


# -- refusals --------------------------------------------------------------------------------------------------------

GARBAGE = {
    "text": (b"hello", JSON),
    "list": (b"[]", JSON),
    "null": (b"null", JSON),
    "number": (b"1", JSON),
    "empty": (b"", JSON),
    "cut": (BODIES[JSON][:-3], JSON),
    "nan": (b'{"resourceSpans": NaN}', JSON),
    "spans-that-are-no-list": (b'{"resourceSpans": [{"scopeSpans": [{"spans": {}}]}]}', JSON),
    "deep": (b'{"resourceSpans": ' + b"[" * 100_000, JSON),
    "deep-and-whole": (b'{"x": ' + b"[" * 100_000 + b"]" * 100_000 + b"}", JSON),
    "protobuf-as-json": (BODIES[PROTOBUF], JSON),
    "json-as-protobuf": (BODIES[JSON], PROTOBUF),
    "protobuf-cut": (BODIES[PROTOBUF][:-3], PROTOBUF),
    "protobuf-of-noise": (random.Random(1).randbytes(999), PROTOBUF),
    "protobuf-with-an-endless-length": (b"\x0a\xff\xff\xff\xff\x0f", PROTOBUF),
    "protobuf-whose-only-span-is-no-utf8": (BODIES[PROTOBUF].replace(b"\x2a\x03run", b"\x2a\x03\xff\xfe\xfd").replace(
        b"\x2a\x04chat", b"\x2a\x04\xff\xff\xff\xff"), PROTOBUF),
}  # fmt: skip


@pytest.mark.parametrize("kind", GARBAGE)
def test_what_cannot_be_decoded_is_a_400_with_a_status_in_its_own_type(post, kind):
    body, content_type = GARBAGE[kind]
    answer = post(body, content_type)
    assert (answer.status_code, answer["Content-Type"]) == (400, content_type)
    code, message = status(answer)
    assert (code, bool(message)) == (3, True)
    assert not OtlpTrace.objects.exists()


@pytest.mark.parametrize("content_type", [JSON, PROTOBUF])
def test_keys_are_asked_for(post, anonymous, client_with, content_type):
    for client, expected, rpc in (
        (anonymous, 401, 16),
        (type(anonymous)(headers={"authorization": "Bearer wrong"}), 401, 16),
        (type(anonymous)(headers={"x-api-key": "wrong"}), 401, 16),
        (client_with("feedback", "read"), 403, 7),
    ):
        answer = post(BODIES[content_type], content_type, client=client)
        assert (answer.status_code, answer["Content-Type"]) == (expected, content_type)
        assert status(answer)[0] == rpc
        assert ("WWW-Authenticate" in answer) == (expected == 401)
    assert not OtlpTrace.objects.exists()


@pytest.mark.parametrize("content_type", ["text/plain", "application/grpc", "application/x-www-form-urlencoded"])
def test_another_type_is_a_415(post, content_type):
    answer = post(BODIES[JSON], content_type)
    assert answer.status_code == 415
    assert status(answer)[0] == 3


@pytest.mark.parametrize("encoding", ["zstd", "br", "gzip, gzip", "snappy"])
def test_another_encoding_is_a_415(post, encoding):
    assert post(BODIES[JSON], JSON, **{"content-encoding": encoding}).status_code == 415


@pytest.mark.parametrize("content_type", [JSON, PROTOBUF])
@pytest.mark.parametrize("body", [b"no gzip", gzip.compress(b"x" * 999)[:-9]], ids=["none", "cut"])
def test_broken_gzip_is_a_400(post, body, content_type):
    assert post(body, content_type, **{"content-encoding": "gzip"}).status_code == 400


@pytest.fixture(scope="module")
def bomb() -> bytes:
    """1 GB of zeros in 1 MB."""
    packer = zlib.compressobj(wbits=31, level=1)
    zeros = bytes(2**24)
    return b"".join(packer.compress(zeros) for _ in range(64)) + packer.flush()


@pytest.mark.parametrize("content_type", [JSON, PROTOBUF])
def test_a_gzip_bomb_is_a_413_within_bounded_memory(post, bomb, content_type):
    forged = bomb[:-4] + struct.pack("<I", 10)  # it says that it holds ten bytes
    tracemalloc.start()
    for body in (bomb, forged):
        answer = post(body, content_type, **{"content-encoding": "gzip"})
        assert (answer.status_code, answer["Content-Type"]) == (413, content_type)
        assert status(answer)[0] == 3
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 64 * 2**20, f"{peak >> 20} MB"


def test_a_bomb_without_a_key_is_not_even_opened(post, anonymous):
    bomb = gzip.compress(bytes(40 * 2**20), 1)
    assert post(bomb, JSON, client=anonymous, **{"content-encoding": "gzip"}).status_code == 401


def test_a_body_over_the_limit_is_a_413(post, settings):
    settings.MAX_BODY_BYTES = 10_000
    assert post(b"{" + b" " * 10_000 + b"}").status_code == 413
    assert rejected(post(b"{" + b" " * 9_000 + b"}")) == 0


@pytest.mark.parametrize("content_type", [JSON, PROTOBUF])
def test_a_body_of_3_mb_is_stored(post, content_type):
    words = "连接池已满 pool exhausted " * 20_000
    body = request(
        span(1, "run", {**AGENT, "output.value": words}),
        span(2, "chat", {**CHAT, "input.value": words, "output.value": words}, parent=1),
        span(3, "logs", {**TOOL, "gen_ai.tool.call.result": words}, parent=1),
        span(4, "GET", {"http.response.body": words * 2}, parent=3),
    )
    data = json.dumps(body, ensure_ascii=False).encode() if content_type == JSON else protobuf(body)
    assert len(data) > 3 * 2**20
    assert rejected(post(data, content_type)) == 0
    assert DiagnosisSession.objects.get().answer == words
    assert ToolInvocation.objects.get().output_length == len(words)


# -- one bad span among a hundred ------------------------------------------------------------------------------------


def bad(**fields: Any) -> dict[str, Any]:
    return {**span(37, "logs", TOOL, parent=1), **fields}


def with_attribute(key: str, value: Any) -> dict[str, Any]:
    return bad(attributes=[{"key": key, "value": value}])


def nested(levels: int) -> dict[str, Any]:
    value: dict[str, Any] = {"intValue": 1}
    for _ in range(levels):
        value = {"arrayValue": {"values": [value]}}
    return value


BAD_SPANS = {
    "a trace id of zeros": bad(traceId="0" * 32),
    "a span id of zeros": bad(spanId="0" * 16),
    "no trace id": bad(traceId=""),
    "no span id": bad(spanId=None),
    "a short trace id": bad(traceId=TRACE[:16]),
    "a short span id": bad(spanId="25"),
    "a long span id": bad(spanId="1" * 18),
    "a short parent id": bad(parentSpanId="1"),
    "an id that is no hex": bad(spanId="zzzzzzzzzzzzzzzz"),
    "an id with a NUL": bad(spanId="\0" * 16),
    "a session id with a space": with_attribute("diagnosis.session.id", {"stringValue": "my session"}),
    "a session id with a NUL": with_attribute("diagnosis.session.id", {"stringValue": "a\0"}),
    "a session id of 65 characters": with_attribute("diagnosis.session.id", {"stringValue": "x" * 65}),
    "a session id in Chinese": with_attribute("diagnosis.session.id", {"stringValue": "会话"}),
    "an attribute of 25 levels": with_attribute("x", nested(25)),
    "an attribute of 90 levels": with_attribute("x", nested(90)),
    "too many attributes": bad(attributes=[{"key": f"k{n}", "value": {"intValue": n}} for n in range(2001)]),
    "a time before 1970": bad(startTimeUnixNano="-1"),
    "a time after 2262": bad(endTimeUnixNano=str(2**63)),
    "a time that is a text": bad(startTimeUnixNano="yesterday"),
    "a time that is a list": bad(startTimeUnixNano=[1]),
    "a name that is a number": bad(name=7),
    "attributes that are an object": bad(attributes={"a": 1}),
    "a value that is bare": bad(attributes=[{"key": "a", "value": "text"}]),
    "an integer that is a text": with_attribute("a", {"intValue": "a lot"}),
    "an integer with a fraction": with_attribute("a", {"intValue": 1.5}),
    "an integer that is a list": with_attribute("a", {"intValue": [1]}),
    "an integer of 5,000 digits": with_attribute("a", {"intValue": "9" * 5000}),
    "a double that is no number": with_attribute("a", {"doubleValue": [1]}),
    "a status that is a text": bad(status="ERROR"),
    "events that are a number": bad(events=1),
    "a span that is a text": "span",
    "a span that is null": None,
    "an empty span": {},
}


@pytest.mark.parametrize("kind", BAD_SPANS)
def test_one_bad_span_among_a_hundred_costs_itself_alone(post, kind):
    spans: list[Any] = [span(1, "run", AGENT, ms=900), *(span(n, "logs", TOOL, parent=1) for n in range(2, 101))]
    spans[36] = BAD_SPANS[kind]
    answer = post(request(*spans))
    assert rejected(answer) == 1
    assert json.loads(answer.content)["partialSuccess"]["rejectedSpans"] == "1"
    assert DiagnosisSession.objects.get().tool_call_count == 98
    assert not ToolInvocation.objects.filter(invocation_id=f"{37:016x}").exists()


def pb_span(**fields: Any) -> bytes:
    """A request with one span in protobuf, whose fields may be what JSON cannot say."""
    body = ExportTraceServiceRequest.FromString(protobuf(request(span(37, "logs", TOOL, parent=1))))
    [made] = body.resource_spans[0].scope_spans[0].spans
    for name, value in fields.items():
        setattr(made, name, value)
    return body.SerializeToString()


def pb_nested(levels: int, *, keyed: bool) -> bytes:
    body = ExportTraceServiceRequest.FromString(pb_span())
    value = body.resource_spans[0].scope_spans[0].spans[0].attributes.add(key="deep").value
    for _ in range(levels):
        value = value.kvlist_value.values.add(key="k").value if keyed else value.array_value.values.add()
    value.int_value = 1
    return body.SerializeToString()


BAD_PROTOBUF = {
    "a trace id of zeros": pb_span(trace_id=bytes(16)),
    "a short trace id": pb_span(trace_id=b"short"),
    "a span id of zeros": pb_span(span_id=bytes(8)),
    "no span id": pb_span(span_id=b""),
    "a long span id": pb_span(span_id=b"123456789"),
    "a time after 2262": pb_span(start_time_unix_nano=2**64 - 1),
    "a name that is no UTF-8": pb_span(name="spin").replace(b"spin", b"sp\xffn"),
    "an overlong encoding": pb_span(name="spin").replace(b"spin", b"sp\xc0\x80"),
    "half a character": pb_span(name="spin").replace(b"spin", b"\xed\xa0\x80n"),
    "lists of 30 levels": pb_nested(30, keyed=False),
    "lists of 60 levels": pb_nested(60, keyed=False),
    "objects of 40 levels": pb_nested(40, keyed=True),
    "lists of 900 levels": pb_nested(900, keyed=False),
}


@pytest.mark.parametrize("kind", BAD_PROTOBUF)
def test_one_bad_span_in_protobuf_costs_itself_alone(post, kind):
    """Messages in protobuf are merged by writing one behind the other."""
    before = [span(1, "run", AGENT, ms=900), *(span(n, "logs", TOOL, parent=1) for n in range(2, 37))]
    behind = [span(n, "logs", TOOL, parent=1) for n in range(38, 101)]
    body = protobuf(request(*before)) + BAD_PROTOBUF[kind] + protobuf(request(*behind))
    answer = post(body, PROTOBUF)
    assert (rejected(answer), answer["Content-Type"]) == (1, PROTOBUF)
    assert DiagnosisSession.objects.get().tool_call_count == 98


def test_ids_in_base64_are_not_ids(post):
    answer = post(with_base64_ids(RUN))
    assert rejected(answer) == 2
    assert not OtlpTrace.objects.exists()


def test_a_resource_that_cannot_be_read_costs_nothing_but_itself(post):
    for resource in ([{"key": "a", "value": nested(40)}], [{"key": str(n)} for n in range(3000)]):
        body = request(span(1, "chat", CHAT))
        body["resourceSpans"][0]["resource"]["attributes"] = resource
        assert rejected(post(body)) == 0
        assert rejected(post(protobuf(body), PROTOBUF)) == 0
    assert AgentStep.objects.get().agent_name == "agent"


def test_reasons_are_few_and_the_count_is_whole(post):
    answer = post(request(*(bad(spanId=str(n)) for n in range(100))))
    assert rejected(answer) == 100
    assert json.loads(answer.content)["partialSuccess"]["errorMessage"].count(";") == 4


def test_a_trace_that_the_database_refuses_costs_itself_alone(post, monkeypatch):
    def refuse(sql, params, execute, *rest):
        if "INSERT" in str(sql) and "poison" in f"{sql!r}{params}":  # one statement may be bytes, with its values
            with connection.cursor() as cursor:
                cursor.db.set_rollback(False)
            raise traces.DatabaseError("Data too long")
        return execute(sql, params, *rest)

    good, poison = (
        span(n, "chat", {**CHAT, "input.value": words}, trace=f"{n:032x}") for n, words in ((1, "ok"), (2, "poison"))
    )
    with connection.execute_wrapper(
        lambda execute, sql, params, many, context: refuse(sql, params, execute, many, context)
    ):
        answer = post(request(good, poison))
    assert rejected(answer) == 1
    assert "DatabaseError" in json.loads(answer.content)["partialSuccess"]["errorMessage"]
    assert AgentStep.objects.get().session_id == f"{1:032x}"


# -- hostile values --------------------------------------------------------------------------------------------------


def test_nul_and_halves_of_characters_become_a_mark_everywhere(post, api):
    odd = "a\0b"
    body = request(
        span(1, odd, {**AGENT, "input.value": odd, "output.value": odd, "gen_ai.agent.name": odd, odd: odd}),
        span(2, "chat", {**CHAT, "diagnosis.step.thought": odd, "gen_ai.output.messages": json.dumps(odd)}, parent=1),
        span(
            3, "logs", {**TOOL, "gen_ai.tool.call.arguments": json.dumps({odd: odd}), "gen_ai.tool.name": odd}, parent=1
        ),
    )
    text = json.dumps(body).replace("\\\\u0000", "\\\\ud83d").replace("b", "b")
    halves = json.dumps(body).replace("a\\u0000b", "a\\ud83db")
    for number, data in enumerate((json.dumps(body), halves, text)):
        trace = f"{number + 1:032x}"
        assert rejected(post(data.replace(TRACE, trace).encode())) == 0
        session = DiagnosisSession.objects.get(session_id=trace)
        assert session.is_sanitised
        assert session.query.startswith("a")
        assert "\0" not in session.query
        assert "�" in session.query
        tool = ToolInvocation.objects.get(session_id=trace)
        assert (tool.tool_name, list(tool.input_params)) == ("a�b", ["a�b"])
        shown = api.get(f"/api/sessions/{trace}")
        assert shown.status_code == 200
        json.loads(shown.content.decode())


def test_characters_of_four_bytes_come_back_as_they_were(post):
    text = "👩‍👩‍👧‍👦 𠮷 🇩🇪 é"
    for content_type, trace in ((JSON, "1" * 32), (PROTOBUF, "2" * 32)):
        attributes = {
            **AGENT,
            "input.value": text,
            "gen_ai.agent.name": text,
            "diagnosis.metadata": json.dumps({text: text}),
        }
        body = request(span(1, "run", attributes, trace=trace), span(2, "chat", CHAT, parent=1, trace=trace))
        assert rejected(post(protobuf(body) if content_type == PROTOBUF else body, content_type)) == 0
        session = DiagnosisSession.objects.get(session_id=trace)
        assert (session.query, session.metadata) == (text, {text: text})
        assert AgentStep.objects.get(session_id=trace).agent_name == text


NUMBERS = {
    "nan": float("nan"),
    "infinity": float("inf"),
    "minus infinity": float("-inf"),
}


@pytest.mark.parametrize("kind", NUMBERS)
def test_numbers_that_are_none_are_kept_as_their_names(post, api, kind):
    attributes = {**TOOL, "gen_ai.tool.call.arguments": {"x": NUMBERS[kind]}}
    assert rejected(post(protobuf(request(span(1, "logs", attributes))), PROTOBUF)) == 0
    assert ToolInvocation.objects.get().input_params == {"x": str(NUMBERS[kind])}
    shown = api.get(f"/api/sessions/{TRACE}").content.decode()
    json.loads(shown, parse_constant=pytest.fail)


@pytest.mark.parametrize("value", ["NaN", "Infinity", "1.5"])
def test_doubles_in_json_may_be_text(post, value):
    pair = {"key": "gen_ai.tool.call.arguments", "value": {"doubleValue": value}}
    one = span(1, "logs", TOOL)
    one["attributes"].append(pair)
    assert rejected(post(request(one))) == 0
    assert ToolInvocation.objects.get().input_params in ("nan", "inf", 1.5)


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        pytest.param(2**31 - 1, 2**31 - 1, id="largest"),
        pytest.param(2**31, None, id="too large"),
        pytest.param(2**63 - 1, None, id="63 bits"),
        pytest.param(-1, None, id="negative"),
        pytest.param("12", 12, id="text"),
        pytest.param("a lot", None, id="words"),
        pytest.param([1], None, id="list"),
        pytest.param(1.5, None, id="fraction"),
        pytest.param(3.0, 3, id="whole double"),
        pytest.param(True, None, id="boolean"),
        pytest.param(None, None, id="null"),
        pytest.param({"n": 1}, None, id="object"),
    ],
)
def test_a_token_count_that_is_none_costs_no_step(post, value, expected):
    chat = span(1, "chat", {**CHAT, "gen_ai.usage.input_tokens": value, "gen_ai.usage.output_tokens": 1})
    assert rejected(post(request(chat))) == 0
    assert AgentStep.objects.get().input_tokens == expected


@pytest.mark.parametrize("length", [300, 10_000])
@pytest.mark.parametrize("char", ["x", "字", "😀"])
def test_long_names_are_shown_by_their_beginning_and_stay_two(post, length, char):
    names = [char * length, char * length + "2"]
    spans = []
    for number, name in enumerate(names):
        agent = {"gen_ai.agent.name": name, "user.id": name, "gen_ai.conversation.id": name}
        spans += [
            span(number * 3 + 1, name, {**AGENT, **agent}),
            span(number * 3 + 2, name, {**CHAT, "gen_ai.request.model": name}, parent=number * 3 + 1),
            span(number * 3 + 3, name, {**TOOL, "gen_ai.tool.name": name}, parent=number * 3 + 1),
        ]
    assert rejected(post(request(*spans))) == 0
    agents = list(AgentStep.objects.order_by("id").values_list("agent_name", flat=True))
    tools = list(ToolInvocation.objects.order_by("id").values_list("tool_name", flat=True))
    for shown, limit in ((agents, 32), (tools, 64)):
        assert len(set(shown)) == 2
        assert all(len(name) == limit and name.startswith(char * 20) and "…" in name for name in shown)
    session = DiagnosisSession.objects.get()
    assert list(session.metadata["agent_names"]) == agents
    details = ToolInvocation.objects.order_by("id").first().retrieval_details
    if length == 300:
        assert (session.metadata["agent_names"][agents[0]], details) == (names[0], {"tool_name": names[0]})
    assert len(session.conversation_id) <= 64


JSON_TEXTS = {
    **{f"{levels} levels": "[" * levels + "]" * levels for levels in (10, 31, 32, 99, 101, 1_000, 100_000)},
    "NaN": '{"x": NaN}',
    "an integer of 30 digits": '{"x": ' + "9" * 30 + "}",
    "half a character": '{"x": "\\ud83d"}',
    "a NUL in a key": '{"\\u0000": 1}',
    "600,000 characters": json.dumps({"x": "y" * 600_000}),
    "not quite JSON": '{"x": ',
    "the same key twice": '{"x": 1, "x": 2}',
}


@pytest.mark.parametrize("where", ["arguments", "result", "metadata", "messages", "details"])
@pytest.mark.parametrize("kind", JSON_TEXTS)
def test_json_inside_of_an_attribute_never_costs_the_span(post, api, score_due, kind, where):
    text = JSON_TEXTS[kind]
    attributes = {
        "arguments": {**TOOL, "gen_ai.tool.call.arguments": text},
        "result": {**TOOL, "gen_ai.tool.call.result": text},
        "metadata": {**AGENT, "diagnosis.metadata": text, "diagnosis.self_evaluation": text},
        "messages": {**CHAT, "gen_ai.input.messages": text, "gen_ai.output.messages": text},
        "details": {**TOOL, "diagnosis.retrieval.details": text, "gen_ai.retrieval.documents": text},
    }[where]
    assert rejected(post(request(span(1, "it", attributes)))) == 0
    assert api.get(f"/api/sessions/{TRACE}").status_code == 200
    score_due()


def test_clocks_that_contradict_give_no_negative_durations(post):
    def timed(number, start, end):
        return {**span(number, "chat", CHAT, parent=1), "startTimeUnixNano": str(start), "endTimeUnixNano": str(end)}

    run = {**span(1, "run", AGENT), "startTimeUnixNano": str(START_NS), "endTimeUnixNano": str(START_NS - 10**9)}
    steps = [
        timed(2, START_NS, START_NS - 5),
        timed(3, START_NS, 0),
        timed(4, 0, START_NS),
        timed(5, 0, 0),
        timed(6, 1, 2**63 - 1),
    ]
    assert rejected(post(request(run, *steps))) == 0
    durations = {step.span_id: step.duration_ms for step in AgentStep.objects.all()}
    assert durations == {
        f"{2:016x}": 0,
        f"{3:016x}": None,
        f"{4:016x}": None,
        f"{5:016x}": None,
        f"{6:016x}": 2**31 - 1,
    }
    assert DiagnosisSession.objects.get().total_duration_ms == 0


# -- shapes ----------------------------------------------------------------------------------------------------------


def test_a_trace_without_its_root_and_with_lost_parents_is_a_session_that_is_scored(post, score_due, settings):
    settings.OTLP_QUIET_SECONDS = 0
    post(
        request(
            span(2, "chat", {**CHAT, "input.value": "why?"}, parent=99),
            span(3, "chat", CHAT, parent=99),
            span(4, "logs", TOOL, parent=98),
        )
    )
    session = DiagnosisSession.objects.get()
    assert (session.status, session.query, session.step_count, session.tool_call_count) == ("RUNNING", "why?", 2, 1)
    score_due()
    session.refresh_from_db()
    assert session.evidence_score == 30


@pytest.mark.parametrize("shape", [{1: 1}, {1: 2, 2: 1}, {1: 2, 2: 3, 3: 1}, {1: 3, 2: 3, 3: 2}])
def test_parents_in_a_circle_are_taken_apart(post, shape):
    assert (
        rejected(
            post(
                request(
                    *(span(n, "run", AGENT, parent=parent) for n, parent in shape.items()),
                    span(9, "chat", CHAT, parent=1),
                )
            )
        )
        == 0
    )
    assert DiagnosisSession.objects.get().step_count == 1


def test_one_span_id_in_two_traces_is_two_spans(post):
    for trace in ("a" * 32, "b" * 32):
        post(request(span(1, "run", AGENT, trace=trace), span(2, "logs", TOOL, parent=1, trace=trace)))
    assert sorted(ToolInvocation.objects.values_list("session_id", "invocation_id")) == [
        ("a" * 32, f"{2:016x}"),
        ("b" * 32, f"{2:016x}"),
    ]


def test_one_span_id_in_two_traces_of_one_session_is_two_invocations(post):
    for trace in ("a" * 32, "b" * 32):
        run = {**AGENT, "diagnosis.session.id": "s-1"}
        post(request(span(1, "run", run, trace=trace), span(2, "logs", TOOL, parent=1, trace=trace)))
    assert DiagnosisSession.objects.get().tool_call_count == 2
    assert ToolInvocation.objects.count() == 2


@pytest.mark.parametrize("order", [(0, 1), (1, 0), (0, 1, 0), (1, 0, 1)])
def test_a_span_that_comes_first_begun_and_then_whole_is_whole_in_either_order(post, order):
    whole = span(1, "chat", {**CHAT, "input.value": "why?", "output.value": "so.", "gen_ai.usage.output_tokens": 3})
    begun = {**span(1, "chat", {**CHAT, "input.value": "why?"}), "endTimeUnixNano": "0"}
    for place in order:
        assert rejected(post(request((begun, whole)[place]))) == 0
    session, step = DiagnosisSession.objects.get(), AgentStep.objects.get()
    assert (session.status, session.answer, session.total_duration_ms) == ("SUCCESS", "so.", 100)
    assert (step.output_tokens, step.duration_ms) == (3, 100)


def test_a_run_that_has_not_ended_is_running(post):
    post(request({**span(1, "run", AGENT), "endTimeUnixNano": "0"}))
    session = DiagnosisSession.objects.get()
    assert (session.status, session.finished_at, session.query) == ("RUNNING", None, "why?")


def test_the_same_batch_five_times_counts_once(post):
    for _ in range(5):
        assert rejected(post(RUN)) == 0
    session = DiagnosisSession.objects.get()
    assert (session.step_count, session.total_token_count) == (1, 7)


def test_facts_that_come_after_the_score_change_it(post, score_due):
    post(request(span(1, "run", AGENT), span(2, "logs", TOOL, parent=1)))
    score_due()
    assert DiagnosisSession.objects.get().evidence_score == 30
    post(request(span(3, "lookup", {**TOOL, "diagnosis.retrieval.l0_match_count": 1}, parent=1)))
    score_due()
    assert DiagnosisSession.objects.get().evidence_score == 65
    post(request({**span(1, "run", AGENT), "status": {"code": 2}}))
    score_due()
    assert DiagnosisSession.objects.get().evidence_score == 0
