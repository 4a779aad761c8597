"""Whatever stands under the names that we read, a span is taken or refused; nothing breaks."""

from __future__ import annotations

import json
import math
import random
from contextlib import suppress
from functools import reduce
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from sessions_app.models import DiagnosisSession, OtlpTrace
from sessions_app.otlp import dialects
from sessions_app.otlp.messages import EVENT_MESSAGES, INDEXED_MESSAGES
from sessions_app.otlp.projection import project
from sessions_app.otlp.spans import Span, SpanEvent
from sessions_app.services.traces import merge_facts, record_spans
from sessions_app.text import clean_json
from tests.otlp import START_NS

OWN = {"deadline": None, "suppress_health_check": list(HealthCheck), "print_blob": True, "database": None}

WORDS = st.sampled_from(
    [
        "", "user", "assistant", "tool", "constructor", "function_call", "reasoning", "text", "so.", "\0", "\ud83d",
        "😀", "true", "12", '"', "{", "[1]", '{"a": NaN}', '{"x": 1e999}', "x" * 700, "9" * 40,
        "[" * 200 + "]" * 200,
    ]
)  # fmt: skip
NUMBERS = st.sampled_from([0, 1, -1, 0.5, 2**31, 2**63, -(2**63), 2**70, math.nan, math.inf, True, None])
SDK_KEYS = """
    messages content contents parts role type kwargs args id data choices message output input tool_calls function name
    arguments function_call function_response text response generations candidates config system_instruction summary
    documents metadata score title isError success status thought thinking call_id tool_call_id question
"""
KEYS = st.sampled_from(SDK_KEYS.split())
VALUES = st.recursive(
    WORDS | NUMBERS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=4), max_leaves=12
)
JSON_TEXTS = VALUES.map(json.dumps)

NAMES = sorted(
    {name for names in dialects.FIELDS.values() for name in names}
    | {name for name, _ in dialects.TELLING}
    | {
        f"{prefix}.0.{word}.{what}"
        for prefix, word in dialects.ANNOTATIONS
        for what in ("name", "score", "annotator_kind")
    }
    | {
        f"{prefix}.{number}.{what}"
        for prefixes in INDEXED_MESSAGES.values()
        for prefix in prefixes
        for number in ("0", "1", "x", "99999999999")
        for what in (
            "role",
            "content",
            "message.content",
            "tool_calls.0.name",
            "message.contents.0.message_content.type",
        )
    }
    | {f"retrieval.documents.{number}.document.{what}" for number in (0, 1) for what in ("id", "score", "metadata")}
)
KIND_MARKS = [(name, value) for name, kinds in dialects.KINDS for value in kinds]
EVENTS = st.builds(
    SpanEvent,
    st.sampled_from([*EVENT_MESSAGES, dialects.EVALUATION_EVENT, dialects.DOCUMENT_EVENT, "exception", ""]),
    st.integers(0, 2**64),
    st.dictionaries(
        st.sampled_from(
            [
                "message",
                "content",
                "role",
                "tool_calls",
                "gen_ai.event.content",
                "db.query.result.score",
                "annotator.kind",
            ]
            + [name for names in dialects.EVALUATIONS.values() for name in names]
        ),
        VALUES | JSON_TEXTS | st.just("HUMAN"),
        max_size=4,
    ),
)


@st.composite
def spans(draw: Any) -> Span:
    mark = draw(st.sampled_from(KIND_MARKS))
    own = draw(st.dictionaries(st.sampled_from(NAMES), VALUES | JSON_TEXTS, max_size=8))
    number = draw(st.integers(1, 4))
    return Span(
        trace_id="1" * 32,
        span_id=f"{number:016x}",
        parent_id=draw(st.sampled_from(["", *(f"{other:016x}" for other in range(1, 5))])),
        name=draw(WORDS),
        scope=draw(st.sampled_from(["", "gcp.vertex.agent"])),
        service=draw(WORDS),
        start_ns=draw(st.sampled_from([0, START_NS, 2**63 - 1])),
        end_ns=draw(st.sampled_from([0, 1, START_NS + 5_000_000, 2**63 - 1])),
        status=draw(st.sampled_from(["", "OK", "ERROR"])),
        status_message=draw(WORDS),
        attributes={mark[0]: mark[1], **own},
        events=draw(st.lists(EVENTS, max_size=2)),
    )


@settings(max_examples=300, **OWN)
@given(found=st.lists(spans(), min_size=1, max_size=4))
def test_reading_and_deriving_raise_nothing_but_a_refusal(found):
    facts = {}
    for span in found:
        try:
            facts[span.span_id] = dialects.read(span)
        except ValueError:
            continue
        json.loads(json.dumps(facts[span.span_id], allow_nan=False))
    session = project("s-1", facts)
    if session is not None:
        for step in session["steps"]:
            for name in ("model_input", "model_output"):
                assert clean_json(step[name]) == (step[name], False)
            assert len(step["agent_name"]) <= 32
            assert step["agent_name"] == step["agent_name"].strip()
        for tool in [
            *session["tool_invocations"],
            *(tool for step in session["steps"] for tool in step["tool_invocations"]),
        ]:
            assert 0 < len(tool["tool_name"]) <= 64
            for name in ("input_params", "retrieval_details"):
                assert clean_json(tool[name]) == (tool[name], False)


@settings(max_examples=100, **OWN)
@given(found=st.lists(spans(), min_size=2, max_size=4), seed=st.integers(0, 2**32))
def test_accounts_of_one_span_are_merged_alike_in_any_order(found, seed):
    accounts = []
    for span in found:
        with suppress(ValueError):
            accounts.append(dialects.read(span))
    shuffled = random.Random(seed).sample(accounts, k=len(accounts))
    assert reduce(merge_facts, accounts, None) == reduce(merge_facts, [*shuffled, *accounts], None)


@pytest.mark.django_db
@settings(max_examples=60, **OWN)
@given(found=st.lists(spans(), min_size=1, max_size=4))
def test_every_database_takes_what_was_derived(found):
    DiagnosisSession.objects.all().delete()
    OtlpTrace.objects.all().delete()
    outcome = record_spans(found)
    assert outcome.accepted + len(outcome.rejected) == len(found)
    assert not any("database" in reason for reason in outcome.rejected)
