"""What is kept of traces, for how long, and how sessions find each other: late ids, shared ids, REST beside, ends."""

from __future__ import annotations

import json
import time
from datetime import timedelta

import pytest
from django.utils import timezone

from sessions_app.models import AgentStep, DiagnosisSession, OtlpTrace, ToolInvocation
from sessions_app.otlp.json_form import decode_json
from sessions_app.otlp.spans import split
from sessions_app.services import traces
from sessions_app.services.pruning import prune_quiet_traces
from sessions_app.services.traces import TraceOutcome, record_spans
from tests.otlp import TRACE, request, span

pytestmark = pytest.mark.django_db

AGENT = {"gen_ai.operation.name": "invoke_agent", "input.value": "why?", "output.value": "so."}
CHAT = {"gen_ai.operation.name": "chat"}
TOOL = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "logs"}
NAMED = {"diagnosis.session.id": "s-1"}


def record(*spans) -> TraceOutcome:
    good, bad = split(decode_json(json.dumps(request(*spans)).encode()))
    assert bad == []
    return record_spans(good)


def session_ids() -> list[str]:
    return sorted(DiagnosisSession.objects.values_list("session_id", flat=True))


def age(days: float, **which: str) -> None:
    """Let these traces have been quiet for so long."""
    OtlpTrace.objects.filter(**which).update(updated_at=timezone.now() - timedelta(days=days))


# -- the session's id ------------------------------------------------------------------------------------------------


def test_a_session_whose_id_comes_late_leaves_the_one_that_stood_in():
    record(span(2, "chat", CHAT, parent=1), span(3, "logs", TOOL, parent=1))
    assert session_ids() == [TRACE]
    record(span(1, "run", {**AGENT, **NAMED}))
    assert session_ids() == ["s-1"]
    assert AgentStep.objects.get().session_id == ToolInvocation.objects.get().session_id == "s-1"
    assert OtlpTrace.objects.get().session_id == "s-1"


def test_a_stand_in_that_somebody_spoke_of_stays_with_all_it_had(api):
    record(span(1, "run", AGENT), span(2, "chat", CHAT, parent=1))
    api.post("/api/feedback/events", {"sessionId": TRACE, "type": "star", "value": 4}, format="json")
    record(span(3, "logs", {**TOOL, **NAMED}, parent=1))
    assert session_ids() == [TRACE, "s-1"]
    stood_in = DiagnosisSession.objects.get(session_id=TRACE)
    assert (stood_in.answer, stood_in.step_count, stood_in.feedback_events.count()) == ("so.", 1, 1)
    assert DiagnosisSession.objects.get(session_id="s-1").answer == "so."


def test_a_stand_in_goes_though_a_span_of_another_trace_names_it_that_is_nothing_of_ours():
    record(span(1, "POST", {"http.request.method": "POST", "diagnosis.session.id": TRACE}, trace="b" * 32))
    record(span(2, "chat", CHAT, parent=1))
    assert session_ids() == [TRACE]
    record(span(1, "run", {**AGENT, **NAMED}))
    assert session_ids() == ["s-1"]
    record(span(2, "chat", CHAT, trace="b" * 32))
    assert session_ids() == [TRACE, "s-1"]  # what the other trace said before is not forgotten


def test_a_mark_of_replaced_characters_goes_with_the_span_that_had_them():
    record(span(1, "run", {**AGENT, "input.value": "nul\x00"}))
    assert DiagnosisSession.objects.get().is_sanitised
    record(span(1, "other run", {**AGENT, "diagnosis.session.id": TRACE}, trace="b" * 32))
    record(span(2, "chain", {**AGENT, **NAMED}))
    marks = dict(DiagnosisSession.objects.values_list("session_id", "is_sanitised"))
    assert marks == {TRACE: False, "s-1": True}


@pytest.mark.parametrize("order", [(1, 2), (2, 1)])
def test_where_spans_name_different_sessions_the_earliest_holds_in_any_order(order):
    told = {
        1: span(1, "run", {**AGENT, "diagnosis.session.id": "outer"}),
        2: span(2, "sub", {**AGENT, "diagnosis.session.id": "inner"}, parent=1),
    }
    for number in order:
        record(told[number])
    assert session_ids() == ["outer"]


def test_traces_that_share_an_id_are_one_session():
    for number, trace in enumerate(("a" * 32, "b" * 32), 1):
        run = {**AGENT, **NAMED, "input.value": f"question {number}", "output.value": f"answer {number}"}
        at = number * 1000
        record(
            span(1, "run", run, trace=trace, at_ms=at),
            span(2, "chat", CHAT, parent=1, trace=trace, at_ms=at + 1),
            span(3, "logs", TOOL, parent=1, trace=trace, at_ms=at + 2),
        )
    session = DiagnosisSession.objects.get()
    assert (session.query, session.answer) == ("question 1", "answer 2")
    assert (session.step_count, session.tool_call_count, session.total_duration_ms) == (2, 2, 1100)
    assert list(AgentStep.objects.order_by("step_index").values_list("step_index", flat=True)) == [0, 1]
    assert {tool.step.step_index for tool in ToolInvocation.objects.all()} == {0, 1}


def test_a_trace_may_join_the_session_of_another_traces_id():
    record(span(1, "run", AGENT), span(2, "chat", CHAT, parent=1))
    record(span(7, "chat", {**CHAT, "diagnosis.session.id": TRACE}, trace="b" * 32))
    assert session_ids() == [TRACE]
    assert AgentStep.objects.count() == 2
    record(span(3, "chat", CHAT, parent=1))
    assert AgentStep.objects.count() == 3


# -- REST beside -----------------------------------------------------------------------------------------------------


def test_what_rest_said_of_the_session_stays_where_spans_say_nothing(api):
    said = {"sessionId": "s-1", "query": "asked by REST", "agentFlow": "AI_OPS", "metadata": {"ticket": 7}}
    api.post("/api/sessions", said, format="json")
    record(span(2, "chat", {**CHAT, **NAMED, "diagnosis.metadata": '{"cluster": "eu"}'}, parent=1))
    record(span(1, "run", {**AGENT, "input.value": ""}))
    session = DiagnosisSession.objects.get()
    assert (session.query, session.agent_flow, session.answer) == ("asked by REST", "AI_OPS", "so.")
    assert session.metadata == {"ticket": 7, "cluster": "eu"}


def test_a_session_that_rest_finished_stays_finished_when_spans_come(api):
    api.post("/api/sessions", {"sessionId": "s-1", "query": "why?"}, format="json")
    api.patch("/api/sessions/s-1", {"status": "FAILED", "answer": "by REST"}, format="json")
    record(span(2, "chat", {**CHAT, **NAMED}, parent=1))
    record(span(3, "chat", {**CHAT, **NAMED}, parent=1))
    session = DiagnosisSession.objects.get()
    assert (session.status, session.answer, session.step_count) == ("FAILED", "by REST", 2)


def test_what_rest_corrects_stays_corrected_when_more_spans_come(api):
    record(span(1, "run", {**AGENT, **NAMED, "diagnosis.metadata": '{"cluster": "eu"}'}))
    api.patch("/api/sessions/s-1", {"answer": "corrected", "metadata": {"cluster": "us"}}, format="json")
    record(span(2, "chat", CHAT, parent=1))
    session = DiagnosisSession.objects.get()
    assert (session.answer, session.query, session.metadata) == ("corrected", "why?", {"cluster": "us"})


def test_a_session_of_rest_that_a_trace_left_keeps_what_rest_said(api):
    api.post("/api/sessions", {"sessionId": "inner", "query": "by REST"}, format="json")
    record(span(2, "sub", {**AGENT, "diagnosis.session.id": "inner"}, parent=1))
    record(span(1, "run", {**AGENT, "diagnosis.session.id": "outer"}))
    assert session_ids() == ["outer"] or DiagnosisSession.objects.get(session_id="inner").query == "by REST"


# -- retention -------------------------------------------------------------------------------------------------------


def test_a_quiet_trace_is_closed_and_late_spans_are_refused(settings):
    record(span(1, "run", AGENT), span(2, "chat", {**CHAT, "gen_ai.usage.input_tokens": 5}, parent=1))
    age(settings.OTLP_LEDGER_DAYS + 1)
    assert prune_quiet_traces() == 1
    ledger = OtlpTrace.objects.get()
    assert (ledger.spans, ledger.closed_at is None) == (b"", False)

    outcome = record(span(3, "chat", CHAT, parent=1), span(4, "chat", CHAT, trace="b" * 32))
    assert (outcome.accepted, len(outcome.rejected)) == (1, 1)
    assert "closed" in outcome.rejected[0]
    step = AgentStep.objects.get(session_id=TRACE)
    assert (step.step_index, step.input_tokens) == (0, 5), "a late span would have been the first step"
    assert prune_quiet_traces() == 0


def test_a_new_trace_of_a_closed_session_is_refused(settings):
    record(span(1, "run", {**AGENT, **NAMED}), span(2, "chat", CHAT, parent=1))
    age(settings.OTLP_LEDGER_DAYS + 1)
    prune_quiet_traces()
    outcome = record(span(1, "run", {**AGENT, **NAMED, "output.value": "new"}, trace="b" * 32))
    assert outcome.accepted == 0
    assert DiagnosisSession.objects.get().answer == "so."
    assert OtlpTrace.objects.count() == 1


def test_a_session_is_closed_as_a_whole_and_a_busy_one_is_not(settings):
    for trace in ("a" * 32, "b" * 32):
        record(span(1, "run", {**AGENT, **NAMED}, trace=trace), span(2, "chat", CHAT, parent=1, trace=trace))
    age(settings.OTLP_LEDGER_DAYS + 1, trace_id="a" * 32)
    assert prune_quiet_traces() == 0
    assert not OtlpTrace.objects.exclude(closed_at=None).exists()
    age(settings.OTLP_LEDGER_DAYS + 1)
    assert prune_quiet_traces() == 2


def test_a_quiet_trace_of_no_session_is_forgotten(settings):
    record(span(1, "GET", {"http.request.method": "GET"}))
    assert OtlpTrace.objects.count() == 1
    age(settings.OTLP_LEDGER_DAYS + 1)
    prune_quiet_traces()
    assert not OtlpTrace.objects.exists()


def test_deleting_a_session_forgets_its_spans():
    record(span(1, "run", AGENT))
    record(span(1, "run", AGENT, trace="b" * 32))
    DiagnosisSession.objects.filter(session_id=TRACE).delete()
    assert list(OtlpTrace.objects.values_list("trace_id", flat=True)) == ["b" * 32]


# -- bounds ----------------------------------------------------------------------------------------------------------


def test_a_trace_without_end_is_bounded_and_costs_no_other(monkeypatch):
    monkeypatch.setattr(traces, "MAX_SPANS", 5)
    record(*(span(n, "chat", CHAT) for n in range(1, 6)))
    outcome = record(span(6, "chat", CHAT), span(7, "chat", CHAT), span(1, "chat", CHAT, trace="b" * 32))
    assert (outcome.accepted, len(outcome.rejected)) == (1, 2)
    assert AgentStep.objects.filter(session_id=TRACE).count() == 5
    assert record(span(5, "chat", CHAT)).accepted == 1, "what is known may come again"


def test_a_trace_of_too_many_bytes_is_refused_before_the_database_breaks(monkeypatch):
    monkeypatch.setattr(traces, "MAX_LEDGER_BYTES", 2_000)
    outcome = record(span(1, "run", {**AGENT, "output.value": "".join(map(chr, range(0x4E00, 0x9000)))}))
    assert (outcome.accepted, len(outcome.rejected)) == (0, 1)
    assert not DiagnosisSession.objects.exists()


@pytest.mark.parametrize(
    "shape", ["chain of links", "chain of agents", "chain of models", "flat", "comb", "one circle"]
)
def test_a_large_trace_of_any_shape_is_derived_in_bounded_time(shape):
    count = 4_000
    parents = {
        "chain of links": lambda n: n - 1,
        "chain of agents": lambda n: n - 1,
        "chain of models": lambda n: n - 1,
        "flat": lambda n: min(n, 1),
        "comb": lambda n: n - 2,
        "one circle": lambda n: n - 1 or count,
    }[shape]
    kinds = {
        "chain of links": lambda n: CHAT if n > count / 2 else {},
        "chain of agents": lambda n: CHAT if n % 2 else AGENT,
        "chain of models": lambda n: CHAT if n else {},
        "flat": lambda n: [AGENT, CHAT, TOOL][min(n - 1, n % 2 + 1)],
        "comb": lambda n: CHAT if n % 2 else {"openinference.span.kind": "CHAIN"},
        "one circle": lambda n: TOOL if n % 2 else AGENT,
    }[shape]
    good, _ = split(
        decode_json(
            json.dumps(request(*(span(n, "it", kinds(n), parent=parents(n)) for n in range(1, count + 1)))).encode()
        )
    )
    spans = {each.span_id: traces.dialects.read(each) for each in good}
    before = time.process_time()
    session = traces.project("s", spans)
    assert session is not None
    assert time.process_time() - before < 3
