"""`manage.py import_traces`: files of any tool, told apart by their content."""

from __future__ import annotations

import gzip
import json
import random
import struct

import pytest
from django.core.management import CommandError, call_command

from sessions_app.models import AgentStep, DiagnosisSession, OtlpTrace, ToolInvocation
from tests.otlp import TRACE, pairs, protobuf, request, span, with_base64_ids

pytestmark = pytest.mark.django_db


@pytest.fixture
def run(capsys):
    """Import files; returns the last line and what was said to be skipped."""

    def call(*paths):
        call_command("import_traces", *map(str, paths))
        said = capsys.readouterr()
        return said.out.strip().splitlines()[-1], said.err.strip().splitlines()

    return call


@pytest.fixture
def file(tmp_path):
    """A file of these bytes under a name that says nothing."""

    def write(body, name="file"):
        path = tmp_path / name
        path.write_bytes(body if isinstance(body, bytes) else json.dumps(body).encode())
        return path

    return write


RUN = request(
    span(1, "invoke_agent oncall", {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "oncall"}, ms=900),
    span(
        2,
        "chat m",
        {
            "gen_ai.operation.name": "chat",
            "gen_ai.usage.input_tokens": 7,
            "gen_ai.input.messages": json.dumps([{"role": "user", "content": "why?"}]),
            "gen_ai.output.messages": json.dumps([{"role": "assistant", "content": "so."}]),
        },
        parent=1,
    ),
    span(
        3,
        "execute_tool logs",
        {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "logs", "gen_ai.tool.call.result": "empty"},
        parent=1,
        error="timed out",
    ),
)
SPANS = RUN["resourceSpans"][0]["scopeSpans"][0]["spans"]


def one_a_line():
    return b"\n".join(json.dumps(request(each)).encode() for each in SPANS) + b"\n"


def tempo():
    [resource_spans] = with_base64_ids(RUN)["resourceSpans"]
    [scope_spans] = resource_spans.pop("scopeSpans")
    library = {"instrumentationLibrary": scope_spans["scope"], "spans": scope_spans["spans"]}
    return {"batches": [{**resource_spans, "instrumentationLibrarySpans": [library]}]}


def jaeger():
    def tags(each):
        kinds = {"stringValue": "string", "intValue": "int64", "boolValue": "bool"}
        found = []
        for pair in each["attributes"]:
            [(kind, value)] = pair["value"].items()
            found.append(
                {"key": pair["key"], "type": kinds[kind], "value": int(value) if kind == "intValue" else value}
            )
        if each.get("status"):
            found += [
                {"key": "error", "type": "bool", "value": True},
                {"key": "otel.status_description", "type": "string", "value": each["status"]["message"]},
            ]
        return found

    spans = [
        {
            "traceID": TRACE,
            "spanID": each["spanId"].lstrip("0"),
            "operationName": each["name"],
            "references": [{"refType": "FOLLOWS_FROM", "traceID": "ab", "spanID": "cd"}]
            + (
                [{"refType": "CHILD_OF", "traceID": TRACE, "spanID": each["parentSpanId"].lstrip("0")}]
                if "parentSpanId" in each
                else []
            ),
            "startTime": int(each["startTimeUnixNano"]) // 1000,
            "duration": (int(each["endTimeUnixNano"]) - int(each["startTimeUnixNano"])) // 1000,
            "tags": tags(each),
            "logs": [],
            "processID": "p1",
        }
        for each in SPANS
    ]
    trace = {"traceID": TRACE, "spans": spans, "processes": {"p1": {"serviceName": "shop", "tags": []}}}
    return {"data": [trace], "total": 0, "errors": None}


FORMS = {
    "otlp-json": json.dumps(RUN).encode(),
    "otlp-json-of-many-lines": json.dumps(RUN, indent=2).encode(),
    "otlp-json-with-bom": b"\xef\xbb\xbf" + json.dumps(RUN).encode(),
    "otlp-json-lines": one_a_line(),
    "otlp-json-list": json.dumps([request(each) for each in SPANS]).encode(),
    "otlp-protobuf": protobuf(RUN),
    "otlp-protobuf-behind-lengths": b"".join(
        struct.pack(">I", len(body)) + body for body in (protobuf(request(each)) for each in SPANS)
    ),
    "tempo": json.dumps(tempo()).encode(),
    "tempo-of-many-lines": json.dumps(tempo(), indent=1).encode(),
    "tempo-api-2": json.dumps({"trace": with_base64_ids(RUN)}).encode(),
    "jaeger": json.dumps(jaeger()).encode(),
    "jaeger-of-many-lines": json.dumps(jaeger(), indent=4).encode(),
}


@pytest.mark.parametrize("is_gzip", [False, True], ids=["plain", "gzip"])
@pytest.mark.parametrize("form", FORMS)
def test_every_form_of_a_trace_is_told_by_its_content(run, file, form, is_gzip):
    body = gzip.compress(FORMS[form]) if is_gzip else FORMS[form]
    assert run(file(body)) == ("3 spans and 0 whole sessions imported, 0 skipped.", [])
    session = DiagnosisSession.objects.get()
    assert (session.session_id, session.query, session.answer) == (TRACE, "why?", "so.")
    assert (session.status, session.total_duration_ms, session.total_token_count) == ("SUCCESS", 900, 7)
    assert AgentStep.objects.get().agent_name == "oncall"
    tool = ToolInvocation.objects.get()
    assert (tool.tool_name, tool.success, tool.error_message, tool.step) == (
        "logs",
        False,
        "timed out",
        AgentStep.objects.get(),
    )


def test_a_file_imported_again_changes_nothing(run, file):
    run(file(FORMS["jaeger"]))
    before = OtlpTrace.objects.values().get()
    run(file(FORMS["tempo"]), file(FORMS["otlp-protobuf"], "other"))
    assert OtlpTrace.objects.values().get() == before
    assert AgentStep.objects.count() == ToolInvocation.objects.count() == 1


def test_whole_sessions_are_taken_by_line_and_a_bad_one_is_named(run, file):
    lines = [
        {"sessionId": "a", "query": "why?", "status": "SUCCESS", "answer": "so."},
        {"sessionId": "not an id", "query": "why?"},
        {"sessionId": "b", "query": "why?", "steps": [{"agentName": "x", "stepIndex": 0}]},
    ]
    body = b"\n".join(json.dumps(line).encode() for line in lines) + b"\n{broken\n"
    last, skipped = run(file(body))
    assert last == "0 spans and 2 whole sessions imported, 2 skipped."
    assert [line.split(":")[:2] for line in skipped] == [["file", "4"], ["file", "2"]]
    assert "sessionId" in skipped[1]
    assert sorted(DiagnosisSession.objects.values_list("session_id", flat=True)) == ["a", "b"]


def test_one_bad_span_is_named_and_the_others_are_taken(run, file):
    bad = {**SPANS[1], "spanId": "zz"}
    last, skipped = run(file(request(SPANS[0], bad, SPANS[2])))
    assert last == "2 spans and 0 whole sessions imported, 1 skipped."
    assert skipped == ["file:1: An id must be hexadecimal digits or base64."]


def test_reasons_are_bounded_and_harmless_to_a_terminal(run, file):
    lines = "\n".join(json.dumps({f"\x1b[2J{number}": 1}) for number in range(200))
    last, skipped = run(file(lines.encode()), file(FORMS["otlp-json"], "good"))
    assert last == "3 spans and 0 whole sessions imported, 200 skipped."
    assert len(skipped) == 51
    assert skipped[-1] == "… and 150 more."
    assert not any("\x1b" in line for line in skipped)


NOTHING = {
    "empty": b"",
    "text": b"hello, world",
    "a-json-of-another-kind": b'{"hello": 1}',
    "a-json-that-ends-early": json.dumps(RUN).encode()[:-5],
    "a-protobuf-that-ends-early": protobuf(RUN)[:-5],
    "a-gzip-that-ends-early": gzip.compress(b"hello, world")[:-9],
    "no-spans": b'{"resourceSpans": []}',
    "deep": b"[" * 100_000,
    "deep-and-whole": b"[" * 500 + b"]" * 500,
}


@pytest.mark.parametrize("kind", NOTHING)
def test_where_nothing_can_be_read_the_command_fails_and_says_why(run, file, capsys, kind):
    with pytest.raises(CommandError, match="Nothing was imported"):
        run(file(NOTHING[kind]))
    said = capsys.readouterr()
    if kind != "no-spans":
        assert said.err.startswith("file:")
    assert not DiagnosisSession.objects.exists()


def test_a_file_that_cannot_be_opened_stops_no_other(run, file, tmp_path):
    last, skipped = run(tmp_path / "absent", tmp_path, file(FORMS["otlp-json"]))
    assert last == "3 spans and 0 whole sessions imported, 2 skipped."
    assert "No such file" in skipped[0]


def test_what_came_before_a_break_is_kept(run, file):
    chance = random.Random(1)
    spans = (span(number, "GET", {"body": chance.randbytes(500).hex()}) for number in range(1, 401))
    body = gzip.compress(b"".join(json.dumps(request(each)).encode() + b"\n" for each in spans))
    last, skipped = run(file(body[: len(body) // 2]))
    assert skipped == ["file: The gzip is damaged or ends too early."]
    assert 100 < int(last.split()[0]) < 200


def test_the_real_run_is_imported_as_it_is_received(run, shared_data):
    last, _ = run(shared_data / "otlp" / "kagent_helm.json")
    assert last == "96 spans and 0 whole sessions imported, 0 skipped."
    session = DiagnosisSession.objects.get()
    assert (session.query, session.step_count, session.total_token_count) == ("list all Helm releases", 2, 3906)


def test_tags_and_logs_of_jaeger_keep_their_types(file, run):
    tags = [
        {"key": "gen_ai.operation.name", "type": "string", "value": "chat"},
        {"key": "gen_ai.usage.input_tokens", "type": "int64", "value": "12"},
        {"key": "diagnosis.consent", "type": "bool", "value": "false"},
        {"key": "otel.status_code", "type": "string", "value": "ERROR"},
    ]
    log = [{"key": "event", "value": "exception"}, {"key": "exception.message", "type": "string", "value": "it broke"}]
    own = {
        "traceID": "1f",
        "spanID": "2",
        "operationName": "chat",
        "startTime": 1_790_000_000_000_000,
        "duration": 5000,
        "tags": tags,
        "logs": [{"timestamp": 1_790_000_000_000_000, "fields": log}],
        "process": {"serviceName": "shop", "tags": pairs({})},
    }
    run(file({"traceID": "1f", "spans": [own], "processes": None}))
    session = DiagnosisSession.objects.get()
    assert session.session_id == "1f".rjust(32, "0")
    assert (session.consent, session.status, session.metadata) == (False, "FAILED", {"error": "it broke"})
    assert AgentStep.objects.get().input_tokens == 12
