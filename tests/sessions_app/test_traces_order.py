"""The rows of a trace do not depend on the order, the cutting or the repetition in which its spans arrive."""

from __future__ import annotations

import copy
import random
from typing import Any

import pytest
from django.utils import timezone
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from sessions_app.models import AgentStep, DiagnosisSession, OtlpTrace, ToolInvocation
from sessions_app.otlp.spans import Span, SpanEvent
from sessions_app.services import evaluation
from sessions_app.services.traces import record_spans

pytestmark = pytest.mark.django_db

START_NS = 1_790_000_000_000_000_000
LONG = "资源调度与故障诊断智能体" * 4


def rows() -> Any:
    """Everything stored, scores too, but keys, times of writing and debts."""
    DiagnosisSession.objects.exclude(evaluation_due_at=None).update(evaluation_due_at=timezone.now())
    evaluation.evaluate_due()
    own = {"id", "updated_at", "created_at", "evaluation_due_at", "step", "parent_step"}

    def read(model: Any, *more: str) -> list[Any]:
        columns = [column.name for column in model._meta.concrete_fields if column.name not in own]
        return sorted(model.objects.values(*columns, *more), key=str)

    return (
        read(DiagnosisSession),
        read(AgentStep, "parent_step__agent_name", "parent_step__step_index"),
        read(ToolInvocation, "step__agent_name", "step__step_index"),
    )


def forget() -> None:
    DiagnosisSession.objects.all().delete()
    OtlpTrace.objects.all().delete()


def deliver(spans: list[Span], chance: random.Random, times: int = 1) -> None:
    """Send each span so many times and some again, some first without what is known only at its end; mixed and cut."""
    order = spans * times + chance.choices(spans, k=len(spans) // 3)
    order += [_begun(span) for span in chance.sample(spans, k=len(spans) // 2)]
    chance.shuffle(order)
    while order:
        size = chance.randint(1, max(len(order) // 2, 5))
        outcome = record_spans(order[:size])
        assert outcome.rejected == []
        order = order[size:]


def _begun(span: Span) -> Span:
    begun = copy.copy(span)
    begun.end_ns, begun.status, begun.status_message, begun.events = 0, "", "", []
    begun.attributes = {name: value for name, value in span.attributes.items() if name not in KNOWN_AT_THE_END}
    return begun


KNOWN_AT_THE_END = {
    "gen_ai.output.messages", "gen_ai.tool.call.result", "gen_ai.usage.input_tokens", "gen_ai.usage.output_tokens",
    "gen_ai.retrieval.documents", "diagnosis.self_evaluation",
}  # fmt: skip

KINDS = {
    "agent": {"gen_ai.operation.name": "invoke_agent"},
    "chain": {"gen_ai.operation.name": "invoke_workflow"},
    "model": {"gen_ai.operation.name": "chat", "gen_ai.request.model": "m-1"},
    "tool": {"gen_ai.operation.name": "execute_tool"},
    "retriever": {"gen_ai.operation.name": "retrieval"},
    "noise": {"http.request.method": "POST"},
}
TEXTS = st.sampled_from(["", "why?", "因为连接池已满", "x" * 40, "nul\0"])
CALLS = st.sampled_from(["", "call-1", "call-2"])


@st.composite
def attributes(draw: Any, kind: str) -> dict[str, Any]:
    """What one span of a kind says; now much, now nothing."""
    own: dict[str, Any] = dict(KINDS[kind])

    def maybe(name: str, values: st.SearchStrategy[Any]) -> None:
        value = draw(st.one_of(st.none(), values))
        if value not in (None, ""):
            own[name] = value

    if kind in ("agent", "model"):
        maybe("gen_ai.agent.name", st.sampled_from(["planner", "searcher", LONG, LONG + "2"]))
    if kind in ("agent", "chain", "model"):
        maybe("gen_ai.input.messages", TEXTS.map(lambda text: [{"role": "user", "content": text}]))
        said = st.builds(
            lambda text, call: [
                {"role": "assistant", "content": text, "tool_calls": [{"id": call, "name": "t", "arguments": "{}"}]}
                if call
                else {"role": "assistant", "content": text}
            ],
            TEXTS,
            CALLS,
        )
        maybe("gen_ai.output.messages", said)
    if kind == "model":
        maybe("gen_ai.usage.input_tokens", st.integers(0, 50))
        maybe("gen_ai.usage.output_tokens", st.integers(0, 50))
    if kind in ("tool", "retriever"):
        maybe("gen_ai.tool.name", st.sampled_from(["lookup_knowledge", "query_metrics", LONG * 2]))
        maybe("gen_ai.tool.call.id", CALLS)
        maybe("gen_ai.tool.call.result", st.sampled_from(["ok", '{"success": false}', "y" * 900]))
        maybe("diagnosis.retrieval.l0_match_count", st.integers(0, 2))
    if kind == "retriever":
        maybe("gen_ai.retrieval.documents", st.just('[{"id": "runbook-1", "score": 0.5}]'))
    maybe("gen_ai.conversation.id", st.sampled_from(["c-1", "c-2"]))
    maybe("user.id", st.sampled_from(["ann@example.org", "u-2"]))
    maybe("diagnosis.metadata", st.sampled_from(['{"a": 1}', '{"a": 2, "b": "x"}']))
    maybe("diagnosis.self_evaluation", st.sampled_from(['{"confidence": 80}', '{"reasoning": "so"}']))
    maybe("diagnosis.agent_flow", st.sampled_from(["CHAT", "AI_OPS"]))
    maybe("diagnosis.consent", st.just("false"))
    return own


@st.composite
def traces(draw: Any, number: int = 1, session_ids: tuple[str, ...] = ("s-1", "s-2")) -> list[Span]:
    """A trace of any shape: parents known, unknown or in a circle, agents in agents, several roots or none."""
    names = draw(st.lists(st.sampled_from(sorted(KINDS)), min_size=1, max_size=9))
    spans = []
    for place, kind in enumerate(names):
        own = draw(attributes(kind))
        if draw(st.integers(0, 7)) == 0:
            own["diagnosis.session.id"] = draw(st.sampled_from(session_ids))
        parent = draw(
            st.sampled_from(["", "f" * 16, *(f"{other + 1:016x}" for other in range(min(place + 2, len(names))))])
        )
        start = START_NS + draw(st.integers(0, 40)) * 1_000_000
        spans.append(
            Span(
                trace_id=f"{number:032x}",
                span_id=f"{place + 1:016x}",
                parent_id=parent,
                name=f"{kind} {place}",
                scope="test",
                service=draw(st.sampled_from(["", "shop"])),
                start_ns=start,
                end_ns=draw(st.sampled_from([0, start, start + 7_000_000, start + 90_000_000])),
                status=draw(st.sampled_from(["", "OK", "ERROR"])),
                status_message=draw(st.sampled_from(["", "timed out"])),
                attributes=own,
                events=draw(st.sampled_from([[], [EXCEPTION]])),
            )
        )
    return spans


EXCEPTION = SpanEvent("exception", START_NS, {"exception.message": "it broke"})

OWN = {"deadline": None, "suppress_health_check": list(HealthCheck), "print_blob": True, "database": None}


@settings(max_examples=60, **OWN)
@given(spans=traces(), seed=st.integers(0, 2**32))
def test_any_order_of_any_trace_gives_the_same_rows(spans, seed):
    forget()
    record_spans(spans)
    expected = rows()
    forget()
    deliver(spans, random.Random(seed))
    assert rows() == expected


@settings(max_examples=40, **OWN)
@given(one=traces(1, ("s-1",)), other=traces(2, ("s-1", f"{1:032x}")), seed=st.integers(0, 2**32))
def test_traces_that_share_a_session_give_the_same_rows_in_any_order(one, other, seed):
    spans = one + other
    forget()
    record_spans(spans)
    expected = rows()
    forget()
    deliver(spans, random.Random(seed))
    assert rows() == expected


# -- a whole run -----------------------------------------------------------------------------------------------------


def realistic(number: int) -> list[Span]:
    """An agent's run as instrumentations tell it: HTTP around and beside, calls told twice, sub-agents, retrievers."""
    chance = random.Random(number)
    spans: list[Span] = []

    def add(kind: str, parent: Span | None, name: str = "it", **more: Any) -> Span:
        own = {f"gen_ai.{key.replace('_', '.', 1)}": value for key, value in more.items()}
        start = START_NS + number * 10**9 + len(spans) * 3_000_000
        spans.append(
            Span(
                trace_id=f"{number + 1:032x}",
                span_id=f"{len(spans) + 1:016x}",
                parent_id=parent.span_id if parent else "",
                name=name,
                scope="test",
                service="shop",
                start_ns=start,
                end_ns=start + chance.randint(1, 2_000) * 1_000_000,
                status="ERROR" if chance.random() < 0.1 else "",
                status_message="",
                attributes={**KINDS[kind], **own},
            )
        )
        return spans[-1]

    def words() -> str:
        return " ".join(chance.choices(["pool", "连接池", "timeout", "why", "узел"], k=8))

    def agent(parent: Span | None, name: str, depth: int) -> None:
        run = add("agent", parent, f"invoke_agent {name}", agent_name=name)
        run.attributes["input.value"] = words()
        for step in range(chance.randint(1, 4)):
            call = f"call-{number}-{name}-{step}"
            said = [
                {"role": "assistant", "content": words(), "tool_calls": [{"id": call, "name": "t", "arguments": "{}"}]}
            ]
            tokens = {"usage_input_tokens": chance.randint(1, 900), "usage_output_tokens": chance.randint(1, 90)}
            model = add("model", run, "chat", output_messages=said, **tokens)
            add("noise", add("model", model, "openai.chat", **tokens) if chance.random() < 0.5 else model, "POST")
            kind = chance.choice(["tool", "tool", "retriever"])
            tool = add(kind, chance.choice([run, model]), tool_name="lookup_knowledge", tool_call_id=call)
            tool.attributes["gen_ai.tool.call.result"] = words() * chance.randint(1, 20)
            if depth and chance.random() < 0.3:
                agent(tool, f"{name}-{step}", depth - 1)
        run.attributes["output.value"] = words()

    agent(add("noise", None, "POST /chat"), "oncall", 1)
    if number % 3 == 0:
        chance.choice(spans).attributes["diagnosis.session.id"] = f"session-{number}"
    return spans


def test_fifty_sessions_delivered_twenty_times_mixed_cut_and_late_end_as_delivered_once():
    chance = random.Random(50)
    runs = [realistic(number) for number in range(50)]
    for run in runs:
        record_spans(run)
    expected = rows()
    assert len(expected[0]) == 50
    forget()

    late = [chance.choice(run) for run in runs]  # of each session one span comes when all others have come 20 times
    order = [span for run in runs for span in run if not any(span is other for other in late)] * 20
    order += [_begun(span) for run in runs for span in run]
    chance.shuffle(order)
    while order:
        assert record_spans(order[:500]).rejected == []
        order = order[500:]
    record_spans(late)
    assert rows() == expected
