"""What agents hold in their hands, as bounded JSON."""

import dataclasses
import json
import uuid
from decimal import Decimal

import pytest

from diagnosis_client import _content as content


@dataclasses.dataclass
class Point:
    x: int
    y: float


class AngryError(Exception):
    def __str__(self):
        raise RuntimeError("no")


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        pytest.param({"a": [1, 2.5, None, True]}, {"a": [1, 2.5, None, True]}, id="json"),
        pytest.param({1: {2}}, {"1": [2]}, id="keys and sets"),
        pytest.param(float("nan"), "nan", id="nan"),
        pytest.param(float("-inf"), "-inf", id="infinity"),
        pytest.param(2**70, str(2**70), id="integer of more than 64 bits"),
        pytest.param(b"\xff bytes", "\ufffd bytes", id="bytes"),
        pytest.param(Point(1, 2.0), {"x": 1, "y": 2.0}, id="dataclass"),
        pytest.param(Decimal("1.10"), "1.10", id="decimal"),
        pytest.param(uuid.UUID(int=1), "00000000-0000-0000-0000-000000000001", id="uuid"),
        pytest.param("\ud83d", "?", id="lone surrogate"),
        pytest.param("中文 🇩🇪", "中文 🇩🇪", id="any script"),
    ],
)
def test_any_value_becomes_json(value, expected):
    assert json.loads(content.to_json(value, 1000)) == expected


def test_long_text_is_cut_with_a_mark():
    cut = json.loads(content.to_json("x" * 1_000, 100))
    assert cut.endswith("… [cut, 1000 characters]")
    assert len(cut) <= 100


def test_a_large_value_is_cut_and_stays_json():
    cut = content.to_json({"rows": [{"n": n, "text": "x" * 50} for n in range(100_000)]}, 2_000)
    assert len(cut) < 6_000
    rows = json.loads(cut)["rows"]
    assert rows[0] == {"n": 0, "text": "x" * 50}
    assert rows[-1] == "… [cut]"


def test_a_value_that_holds_itself_ends():
    loop = []
    loop.append(loop)
    json.loads(content.to_json(loop, 1000))


def test_a_value_that_cannot_be_said_costs_only_itself(recorder, product):
    with recorder.session(AngryError(), metadata={"kept": 1, "lost": AngryError()}) as session:
        with recorder.tool_call("t", {"kept": 1, AngryError(): 2}) as call:
            call.result([1, AngryError()])
        recorder.before_model("a", ["kept", AngryError()])
        session.answer(AngryError())
        session.fail(AngryError())
    assert recorder.flush()
    root, tool, step = (product.one(name) for name in ("invoke_agent", "execute_tool", "chat"))
    assert root.json("diagnosis.metadata") == {"kept": 1, "lost": "<AngryError>"}
    assert root.text("gen_ai.input.messages") == '"<AngryError>"'
    assert root.is_error
    assert tool.json("gen_ai.tool.call.result") == [1, "<AngryError>"]
    assert step.text("gen_ai.input.messages") == 'kept"<AngryError>"'


def test_a_fault_of_ours_does_not_break_the_agent(recorder, product, caplog, monkeypatch):
    monkeypatch.setattr(content, "to_json", None)
    for _ in range(2):
        with recorder.session("q"), recorder.tool_call("t") as call:
            call.result(1)
    assert recorder.flush()
    assert len(product.named("execute_tool")) == 2
    assert sum("the agent goes on" in record.message for record in caplog.records) == 1


class Message:
    """As LangChain's and the OpenAI library's: attributes."""

    def __init__(self, **fields):
        self.__dict__.update(fields)


CALL = {"type": "tool_call", "id": "c1", "name": "grep", "arguments": {"p": "x"}}


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        pytest.param("hello", {"role": "user", "parts": [{"type": "text", "content": "hello"}]}, id="text"),
        pytest.param(
            {
                "role": "assistant",
                "content": "hm",
                "tool_calls": [
                    {"id": "c1", "type": "function", "function": {"name": "grep", "arguments": '{"p": "x"}'}}
                ],
            },
            {"role": "assistant", "parts": [{"type": "text", "content": "hm"}, CALL]},
            id="OpenAI's call",
        ),
        pytest.param(
            {"role": "tool", "tool_call_id": "c1", "content": "3 lines"},
            {"role": "tool", "parts": [{"type": "tool_call_response", "id": "c1", "response": "3 lines"}]},
            id="OpenAI's result",
        ),
        pytest.param(
            {
                "role": "user",
                "content": [{"type": "text", "text": "see"}, {"type": "image_url", "image_url": {"url": "data:AAAA"}}],
            },
            {
                "role": "user",
                "parts": [
                    {"type": "text", "content": "see"},
                    {"type": "uri", "modality": "url", "uri": "data:AAAA… [data left out]"},
                ],
            },
            id="OpenAI's picture",
        ),
        pytest.param(
            {"type": "function_call", "call_id": "c1", "id": "fc_1", "name": "grep", "arguments": '{"p": "x"}'},
            {"role": "assistant", "parts": [CALL]},
            id="a response's call",
        ),
        pytest.param(
            {"type": "function_call_output", "call_id": "c1", "output": "3 lines"},
            {"role": "tool", "parts": [{"type": "tool_call_response", "id": "c1", "response": "3 lines"}]},
            id="a response's result",
        ),
        pytest.param(
            {"role": "assistant", "content": [{"type": "tool_use", "id": "c1", "name": "grep", "input": {"p": "x"}}]},
            {"role": "assistant", "parts": [CALL]},
            id="Anthropic's call",
        ),
        pytest.param(
            {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "c1", "content": "3 lines"}]},
            {"role": "user", "parts": [{"type": "tool_call_response", "id": "c1", "response": "3 lines"}]},
            id="Anthropic's result",
        ),
        pytest.param(
            Message(
                type="ai",
                content=[{"type": "tool_use", "id": "c1", "name": "grep", "input": {"p": "x"}}],
                tool_calls=[{"name": "grep", "args": {"p": "x"}, "id": "c1", "type": "tool_call"}],
            ),
            {"role": "assistant", "parts": [CALL]},
            id="LangChain's call, said twice",
        ),
        pytest.param(
            Message(type="human", content="hi"),
            {"role": "user", "parts": [{"type": "text", "content": "hi"}]},
            id="human",
        ),
        pytest.param(
            {"role": "user", "parts": [{"type": "text", "content": "hi"}]},
            {"role": "user", "parts": [{"type": "text", "content": "hi"}]},
            id="the conventions' own",
        ),
        pytest.param(
            {"answer": 42}, {"role": "user", "parts": [{"type": "text", "content": '{"answer":42}'}]}, id="structured"
        ),
    ],
)
def test_messages_of_every_kind_are_read(given, expected):
    assert json.loads(content.input_messages([given], 1000)) == [expected]


def test_of_a_long_history_the_first_and_the_latest_stay():
    history = [{"role": "user", "content": f"{n} " + "x" * 100} for n in range(1_000)]
    kept = json.loads(content.input_messages(history, 2_000))
    texts = [message["parts"][0]["content"] for message in kept]
    assert texts[0].startswith("0 ")
    assert texts[1] == f"… [cut, {1_000 - len(kept) + 1} messages]"
    assert texts[-1].startswith("999 ")
    assert len(content.input_messages(history, 2_000)) < 3_000


@pytest.mark.parametrize("given", [None, [], ()])
def test_no_messages_are_no_messages(given):
    assert content.input_messages(given, 100) == "[]"


def test_an_id_that_the_server_would_refuse_becomes_the_same_digest_everywhere(
    recorder, new_collector, product, caplog
):
    collector = new_collector()
    with recorder.session("q", session_id="an id with spaces") as session:
        pass
    collector.thumbs("an id with spaces", "up")
    assert recorder.flush()
    assert collector.flush()
    assert session.session_id != "an id with spaces"
    assert product.one("invoke_agent").attributes["diagnosis.session.id"] == session.session_id
    assert product.events[0]["sessionId"] == session.session_id
    assert any("is no id" in record.message for record in caplog.records)


def test_content_is_cut_at_the_setting(new_recorder, product):
    recorder = new_recorder(max_content_chars=1_000)
    with recorder.session("q" * 5_000) as session:
        session.answer("a" * 5_000)
        with recorder.tool_call("t", {"x": "y" * 5_000}) as call:
            call.result("r" * 5_000)
    assert recorder.flush()
    for span in product.spans:
        for key, value in span.attributes.items():
            assert len(str(value)) < 1_200, key
    assert "[cut, 5000 characters]" in product.one("invoke_agent").text("gen_ai.output.messages")
