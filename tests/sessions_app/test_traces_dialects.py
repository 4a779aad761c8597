"""One small run in every dialect: each gives the same session."""

from __future__ import annotations

import json
from typing import Any

import pytest

from sessions_app.models import AgentStep, DiagnosisSession, ToolInvocation
from sessions_app.otlp import dialects
from sessions_app.otlp.json_form import decode_json
from sessions_app.otlp.spans import Span, split
from sessions_app.otlp.table import BECOMES, markdown
from sessions_app.services.traces import record_spans
from tests.otlp import request, span
from tests.stack import ROOT

pytestmark = pytest.mark.django_db

QUESTION, ANSWER = "Why is checkout slow?", "The pool of connections is exhausted."
CALL, TOOL, ARGUMENTS, RESULT = "call_1", "query_metrics", {"metric": "pool_active"}, "pool_active 50"
TITLE, SCORE = "Pool runbook", 0.83
MODEL = "gpt-4.1-mini"


def dumps(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


def spans_of(body: dict[str, Any]) -> list[Span]:
    good, bad = split(decode_json(json.dumps(body).encode()))
    assert bad == []
    return good


# -- the run, in each dialect ----------------------------------------------------------------------------------------

OPENAI_ASKED = [{"role": "system", "content": "You diagnose."}, {"role": "user", "content": QUESTION}]
OPENAI_CALL = {"id": CALL, "type": "function", "function": {"name": TOOL, "arguments": dumps(ARGUMENTS)}}
OPENAI_SAID = {"role": "assistant", "content": None, "tool_calls": [OPENAI_CALL]}
OPENAI_ASKED_AGAIN = [*OPENAI_ASKED, OPENAI_SAID, {"role": "tool", "tool_call_id": CALL, "content": RESULT}]
OPENAI_ANSWERED = {"role": "assistant", "content": ANSWER}


def genai() -> dict[str, Any]:
    """OpenTelemetry's conventions of 2025 and 2026, as its util writes them."""

    def text(words: str) -> dict[str, Any]:
        return {"type": "text", "content": words}

    def said(role: str, *parts: dict[str, Any]) -> dict[str, Any]:
        return {"role": role, "parts": list(parts)}

    call = {"type": "tool_call", "id": CALL, "name": TOOL, "arguments": ARGUMENTS}
    asked = said("user", text(QUESTION))
    chat = {
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": "openai",
        "gen_ai.request.model": "gpt-4.1",
        "gen_ai.response.model": MODEL,
    }
    return request(
        span(1, "POST /chat", {"http.request.method": "POST"}, ms=900),
        span(
            2,
            "invoke_agent oncall",
            {
                "gen_ai.operation.name": "invoke_agent",
                "gen_ai.agent.name": "oncall",
                "gen_ai.input.messages": dumps([asked]),
                "gen_ai.output.messages": dumps([{**said("assistant", text(ANSWER)), "finish_reason": "stop"}]),
                "gen_ai.usage.input_tokens": 420,
                "gen_ai.usage.output_tokens": 55,
            },
            parent=1,
            ms=800,
        ),
        span(
            3,
            "chat gpt-4.1",
            {
                **chat,
                "gen_ai.usage.input_tokens": 120,
                "gen_ai.usage.output_tokens": 15,
                "gen_ai.input.messages": dumps([asked]),
                "gen_ai.output.messages": dumps([said("assistant", call)]),
            },
            parent=2,
        ),
        span(4, "POST", {"http.request.method": "POST", "server.address": "api.openai.com"}, parent=3),
        span(
            5,
            f"execute_tool {TOOL}",
            {
                "gen_ai.operation.name": "execute_tool",
                "gen_ai.tool.name": TOOL,
                "gen_ai.tool.call.id": CALL,
                "gen_ai.tool.call.arguments": dumps(ARGUMENTS),
                "gen_ai.tool.call.result": RESULT,
            },
            parent=2,
        ),
        span(
            6,
            "retrieval runbooks",
            {
                "gen_ai.operation.name": "retrieval",
                "gen_ai.data_source.id": "runbooks",
                "gen_ai.request.model": "embedding-1",
                "gen_ai.retrieval.query.text": QUESTION,
                "gen_ai.retrieval.documents": dumps([{"id": TITLE, "score": SCORE}]),
            },
            parent=2,
        ),
        span(
            7,
            "chat gpt-4.1",
            {
                **chat,
                "gen_ai.usage.input_tokens": 300,
                "gen_ai.usage.output_tokens": 40,
                "gen_ai.input.messages": dumps(
                    [
                        asked,
                        said("assistant", call),
                        said("user", {"type": "tool_call_response", "id": CALL, "response": RESULT}),
                    ]
                ),
                "gen_ai.output.messages": dumps(
                    [said("assistant", {"type": "reasoning", "content": "50 of 50."}, text(ANSWER))]
                ),
            },
            parent=2,
        ),
    )


def genai_events() -> dict[str, Any]:
    """The conventions of 2024: messages as events, tokens of prompt and completion, no texts on the agent's span."""
    chat = {"gen_ai.operation.name": "chat", "gen_ai.system": "openai", "gen_ai.request.model": MODEL}
    asked = [("gen_ai.system.message", {"content": "You diagnose."}), ("gen_ai.user.message", {"content": QUESTION})]
    return request(
        span(
            2, "invoke_agent oncall", {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "oncall"}, ms=800
        ),
        span(
            3,
            f"chat {MODEL}",
            {**chat, "gen_ai.usage.prompt_tokens": 120, "gen_ai.usage.completion_tokens": 15},
            parent=2,
            events=[
                *asked,
                ("gen_ai.choice", {"index": 0, "finish_reason": "tool_calls", "message": dumps(OPENAI_SAID)}),
            ],
        ),
        *tool_and_retrieval_of_genai(),
        span(
            7,
            f"chat {MODEL}",
            {**chat, "gen_ai.usage.prompt_tokens": 300, "gen_ai.usage.completion_tokens": 40},
            parent=2,
            events=[
                *asked,
                ("gen_ai.assistant.message", {"tool_calls": dumps([OPENAI_CALL])}),
                ("gen_ai.tool.message", {"content": RESULT, "id": CALL}),
                ("gen_ai.choice", {"gen_ai.event.content": dumps({"index": 0, "message": OPENAI_ANSWERED})}),
            ],
        ),
    )


def genai_details() -> dict[str, Any]:
    """The conventions of 2025 with one event a call, its messages as OTLP values."""
    chat = {"gen_ai.operation.name": "chat", "gen_ai.request.model": MODEL}

    def details(asked: str, said: dict[str, Any]) -> list[tuple[str, dict[str, Any]]]:
        own = {
            "gen_ai.input.messages": [{"role": "user", "parts": [{"type": "text", "content": asked}]}],
            "gen_ai.output.messages": [{"role": "assistant", "parts": [said]}],
        }
        return [("gen_ai.client.inference.operation.details", own)]

    call = {"type": "tool_call", "id": CALL, "name": TOOL, "arguments": ARGUMENTS}
    return request(
        span(2, "invoke_agent oncall", {"gen_ai.operation.name": "invoke_agent"}, ms=800),
        span(
            3,
            "chat",
            {**chat, "gen_ai.usage.input_tokens": 120, "gen_ai.usage.output_tokens": 15},
            parent=2,
            events=details(QUESTION, call),
        ),
        *tool_and_retrieval_of_genai(),
        span(
            7,
            "chat",
            {**chat, "gen_ai.usage.input_tokens": 300, "gen_ai.usage.output_tokens": 40},
            parent=2,
            events=details(QUESTION, {"type": "text", "content": ANSWER}),
        ),
    )


def tool_and_retrieval_of_genai() -> list[dict[str, Any]]:
    tool = {
        "gen_ai.tool.name": TOOL,
        "gen_ai.tool.call.id": CALL,
        "gen_ai.tool.call.arguments": dumps(ARGUMENTS),
        "gen_ai.tool.call.result": RESULT,
    }
    found = {"gen_ai.retrieval.documents": dumps([{"id": TITLE, "score": SCORE}])}
    return [
        span(5, f"execute_tool {TOOL}", {"gen_ai.operation.name": "execute_tool", **tool}, parent=2),
        span(6, "retrieval", {"gen_ai.operation.name": "retrieval", **found}, parent=2),
    ]


def flat(prefix: str, messages: list[dict[str, Any]], inner: str = "message.") -> dict[str, Any]:
    """OpenAI's messages as OpenInference (`message.`) or Traceloop flatten them."""
    found: dict[str, Any] = {}
    for number, message in enumerate(messages):
        base = f"{prefix}.{number}.{inner}"
        found[f"{base}role"] = message["role"]
        if message.get("content"):
            found[f"{base}content"] = message["content"]
        for place, call in enumerate(message.get("tool_calls", ())):
            own = f"{base}tool_calls.{place}." + ("tool_call." if inner else "")
            function = f"{own}function." if inner else own
            found |= {f"{own}id": call["id"], f"{function}name": call["function"]["name"]}
            found[f"{function}arguments"] = call["function"]["arguments"]
    return found


def llm(asked: list[dict[str, Any]], said: dict[str, Any], tokens: tuple[int, int]) -> dict[str, Any]:
    return {
        "openinference.span.kind": "LLM",
        "llm.model_name": MODEL,
        "llm.token_count.prompt": tokens[0],
        "llm.token_count.completion": tokens[1],
        "llm.token_count.total": sum(tokens),
        "input.value": dumps({"messages": asked, "model": MODEL}),
        "input.mime_type": "application/json",
        "output.value": dumps({"id": "chatcmpl-1", "choices": [{"index": 0, "message": said}]}),
        **flat("llm.input_messages", asked),
        **flat("llm.output_messages", [said]),
    }


RETRIEVED = {
    "openinference.span.kind": "RETRIEVER",
    "input.value": QUESTION,
    "retrieval.documents.0.document.id": "doc-17",
    "retrieval.documents.0.document.content": "When the pool is exhausted …",
    "retrieval.documents.0.document.score": SCORE,
    "retrieval.documents.0.document.metadata": dumps({"title": TITLE, "source": "runbooks/pool.md"}),
}


def openinference() -> dict[str, Any]:
    return request(
        span(
            2,
            "oncall",
            {
                "openinference.span.kind": "AGENT",
                "agent.name": "oncall",
                "input.value": QUESTION,
                "output.value": ANSWER,
            },
            ms=800,
        ),
        span(3, "ChatCompletion", llm(OPENAI_ASKED, OPENAI_SAID, (120, 15)), parent=2),
        span(
            5,
            TOOL,
            {
                "openinference.span.kind": "TOOL",
                "tool.name": TOOL,
                "tool.id": CALL,
                "tool.parameters": dumps(ARGUMENTS),
                "input.value": dumps(ARGUMENTS),
                "output.value": RESULT,
            },
            parent=2,
        ),
        span(6, "VectorStoreRetriever", RETRIEVED, parent=2),
        span(7, "ChatCompletion", llm(OPENAI_ASKED_AGAIN, OPENAI_ANSWERED, (300, 40)), parent=2),
    )


def langgraph() -> dict[str, Any]:
    """OpenInference of LangChain: a CHAIN at the root, a node of the graph an AGENT each time it is visited."""
    human = {"content": QUESTION, "additional_kwargs": {}, "response_metadata": {}, "type": "human", "id": "1"}
    asks = {
        "content": "",
        "additional_kwargs": {},
        "response_metadata": {},
        "type": "ai",
        "id": "2",
        "tool_calls": [{"name": TOOL, "args": ARGUMENTS, "id": CALL, "type": "tool_call"}],
        "invalid_tool_calls": [],
    }
    result = {"content": RESULT, "type": "tool", "name": TOOL, "tool_call_id": CALL, "status": "success", "id": "3"}
    answer = {"content": ANSWER, "additional_kwargs": {}, "response_metadata": {}, "type": "ai", "id": "4"}
    chain = {"openinference.span.kind": "CHAIN"}
    node = {"openinference.span.kind": "AGENT", "graph.node.id": "oncall"}

    def constructed(name: str, words: str) -> dict[str, Any]:
        names = ["langchain", "schema", "messages", name]
        return {"lc": 1, "type": "constructor", "id": names, "kwargs": {"content": words, "type": "human"}}

    lc_input = {"input.value": dumps({"messages": [[constructed("HumanMessage", QUESTION)]]})}
    return request(
        span(
            2,
            "LangGraph",
            {
                **chain,
                "input.value": dumps({"messages": [["user", QUESTION]]}),
                "output.value": dumps({"messages": [human, asks, result, answer]}),
            },
            ms=800,
        ),
        span(
            3,
            "oncall",
            {**node, "input.value": dumps({"messages": [human]}), "output.value": dumps({"messages": [asks]})},
            parent=2,
            ms=5,
        ),
        span(4, "RunnableSequence", chain, parent=3, ms=4),
        span(5, "ChatOpenAI", llm(OPENAI_ASKED, OPENAI_SAID, (120, 15)) | lc_input, parent=4, ms=3),
        span(6, "ChatCompletion", llm(OPENAI_ASKED, OPENAI_SAID, (120, 15)), parent=5, ms=2),
        span(20, "tools", {**chain, "graph.node.id": "tools"}, parent=2, ms=20),
        span(
            21,
            TOOL,
            {
                "openinference.span.kind": "TOOL",
                "tool.name": TOOL,
                "input.value": dumps(ARGUMENTS),
                "output.value": dumps(result),
            },
            parent=20,
        ),
        span(22, "VectorStoreRetriever", RETRIEVED, parent=20),
        span(50, "oncall", {**node, "output.value": dumps({"messages": [answer]})}, parent=2, ms=50),
        span(51, "ChatOpenAI", llm(OPENAI_ASKED_AGAIN, OPENAI_ANSWERED, (300, 40)), parent=50),
    )


def adk() -> dict[str, Any]:
    """Google's ADK, with OpenAI's instrumentation inside of it: two spans a call."""
    asked = {"role": "user", "parts": [{"text": QUESTION}]}
    call = {"role": "model", "parts": [{"function_call": {"id": CALL, "args": ARGUMENTS, "name": TOOL}}]}
    response = {"function_response": {"id": CALL, "name": TOOL, "response": {"result": RESULT}}}
    system = {"system_instruction": "You diagnose."}

    def call_llm(contents: list[Any], said: dict[str, Any], tokens: tuple[int, int]) -> dict[str, Any]:
        return {
            "gen_ai.system": "gcp.vertex.agent",
            "gen_ai.request.model": MODEL,
            "gcp.vertex.agent.session_id": "c-1",
            "gcp.vertex.agent.llm_request": dumps({"model": MODEL, "config": system, "contents": contents}),
            "gcp.vertex.agent.llm_response": dumps({"content": said, "usage_metadata": {}}),
            "gen_ai.usage.input_tokens": tokens[0],
            "gen_ai.usage.output_tokens": tokens[1],
        }

    def tool(name: str, result: Any, **more: Any) -> dict[str, Any]:
        return {
            "gen_ai.system": "gcp.vertex.agent",
            "gen_ai.tool.name": name,
            "gcp.vertex.agent.llm_request": "{}",
            "gcp.vertex.agent.llm_response": "{}",
            "gcp.vertex.agent.tool_call_args": dumps(ARGUMENTS if name == TOOL else {}),
            "gcp.vertex.agent.tool_response": dumps(result),
            **more,
        }

    inner = {"llm.request.type": "chat", "gen_ai.system": "openai", "gen_ai.request.model": MODEL}
    lookup = {
        "diagnosis.retrieval.layer": "L1",
        "diagnosis.retrieval.l1_match_count": 1,
        "diagnosis.retrieval.details": dumps({"l1_titles": [TITLE], "l1_scores": [SCORE]}),
    }
    envelope = {"content": [{"type": "text", "text": RESULT}], "isError": False}
    return request(
        span(1, "invocation", {}, ms=900),
        span(2, "agent_run [oncall]", {}, parent=1, ms=800),
        span(3, "call_llm", call_llm([asked], call, (120, 15)), parent=2, ms=20),
        span(
            4,
            "openai.chat",
            {
                **inner,
                "gen_ai.usage.prompt_tokens": 120,
                "gen_ai.usage.completion_tokens": 15,
                **flat("gen_ai.prompt", OPENAI_ASKED, ""),
            },
            parent=3,
            ms=10,
        ),
        span(25, f"execute_tool {TOOL}", tool(TOOL, envelope, **{"gen_ai.tool.call.id": CALL}), parent=3, ms=5),
        span(26, "execute_tool (merged)", tool("(merged tools)", {}), parent=3, ms=5),
        span(27, "execute_tool search_runbooks", tool("search_runbooks", {}, **lookup), parent=3, ms=5),
        span(
            50,
            "call_llm",
            call_llm(
                [asked, call, {"role": "user", "parts": [response]}],
                {"role": "model", "parts": [{"text": ANSWER}]},
                (300, 40),
            ),
            parent=2,
        ),
        span(
            51,
            "openai.chat",
            {**inner, "gen_ai.usage.prompt_tokens": 300, "gen_ai.usage.completion_tokens": 40},
            parent=50,
        ),
        scope="gcp.vertex.agent",
    )


def traceloop() -> dict[str, Any]:
    def chat(asked: list[dict[str, Any]], said: dict[str, Any], tokens: tuple[int, int]) -> dict[str, Any]:
        return {
            "llm.request.type": "chat",
            "gen_ai.system": "OpenAI",
            "gen_ai.request.model": "gpt-4.1",
            "gen_ai.response.model": MODEL,
            "gen_ai.usage.prompt_tokens": tokens[0],
            "gen_ai.usage.completion_tokens": tokens[1],
            "llm.usage.total_tokens": sum(tokens),
            "traceloop.workflow.name": "diagnose",
            **flat("gen_ai.prompt", asked, ""),
            **flat("gen_ai.completion", [said], ""),
        }

    def entity(kind: str, name: str, given: Any, returned: Any) -> dict[str, Any]:
        return {
            "traceloop.span.kind": kind,
            "traceloop.entity.name": name,
            "traceloop.entity.input": dumps({"args": [], "kwargs": given}),
            "traceloop.entity.output": dumps(returned),
        }

    row = {"db.query.result.id": TITLE, "db.query.result.score": SCORE, "db.query.result.document": "When the pool …"}
    return request(
        span(1, "diagnose.workflow", entity("workflow", "diagnose", {"question": QUESTION}, ANSWER), ms=900),
        span(2, "oncall.agent", entity("agent", "oncall", {"question": QUESTION}, ANSWER), parent=1, ms=800),
        span(3, "openai.chat", chat(OPENAI_ASKED, OPENAI_SAID, (120, 15)), parent=2),
        span(5, f"{TOOL}.tool", entity("tool", TOOL, ARGUMENTS, RESULT), parent=2),
        span(6, "chroma.query", {"db.system": "chroma"}, parent=2, events=[("db.query.result", row)]),
        span(7, "openai.chat", chat(OPENAI_ASKED_AGAIN, OPENAI_ANSWERED, (300, 40)), parent=2),
    )


def langfuse() -> dict[str, Any]:
    def seen(kind: str, given: Any, returned: Any, **more: Any) -> dict[str, Any]:
        return {
            "langfuse.observation.type": kind,
            "langfuse.observation.input": given if isinstance(given, str) else dumps(given),
            "langfuse.observation.output": returned if isinstance(returned, str) else dumps(returned),
            **more,
        }

    def usage(given: int, returned: int) -> dict[str, Any]:
        return {
            "langfuse.observation.model.name": MODEL,
            "langfuse.observation.usage_details": dumps(
                {"input": given, "output": returned, "total": given + returned}
            ),
        }

    found = [{"page_content": "When the pool …", "metadata": {"title": TITLE, "score": SCORE}}]
    traced = {"langfuse.trace.name": "diagnose", "user.id": "u-1", "session.id": "c-1"}
    return request(
        span(1, "diagnose", seen("span", {"question": QUESTION}, {"answer": ANSWER}, **traced), ms=900),
        span(2, "oncall", seen("agent", {"question": QUESTION}, {"answer": ANSWER}), parent=1, ms=800),
        span(3, "plan", seen("generation", OPENAI_ASKED, OPENAI_SAID, **usage(120, 15)), parent=2),
        span(5, TOOL, seen("tool", ARGUMENTS, RESULT), parent=2),
        span(6, "search runbooks", seen("retriever", {"query": QUESTION}, found), parent=2),
        span(7, "answer", seen("generation", OPENAI_ASKED_AGAIN, OPENAI_ANSWERED, **usage(300, 40)), parent=2),
        scope="langfuse-sdk",
    )


def mlflow() -> dict[str, Any]:
    """MLflow writes every value as JSON."""

    def traced(kind: str, given: Any, returned: Any, **more: Any) -> dict[str, Any]:
        own = {"mlflow.spanType": kind, "mlflow.spanInputs": given, "mlflow.spanOutputs": returned, **more}
        return {name: dumps(value) for name, value in own.items()}

    def usage(given: int, returned: int) -> dict[str, Any]:
        tokens = {"input_tokens": given, "output_tokens": returned, "total_tokens": given + returned}
        return {"mlflow.chat.tokenUsage": tokens, "mlflow.llm.model": MODEL}

    def choice(message: dict[str, Any]) -> dict[str, Any]:
        return {"id": "chatcmpl-1", "object": "chat.completion", "choices": [{"index": 0, "message": message}]}

    found = [{"page_content": "When the pool …", "metadata": {"doc_uri": TITLE, "score": SCORE}, "id": "doc-17"}]
    asked, asked_again = {"messages": OPENAI_ASKED, "model": MODEL}, {"messages": OPENAI_ASKED_AGAIN, "model": MODEL}
    return request(
        span(
            1, "predict", traced("UNKNOWN", {"question": QUESTION}, ANSWER, **{"mlflow.trace.session": "c-1"}), ms=900
        ),
        span(2, "oncall", traced("AGENT", {"question": QUESTION}, ANSWER), parent=1, ms=800),
        span(3, "Completions", traced("CHAT_MODEL", asked, choice(OPENAI_SAID), **usage(120, 15)), parent=2),
        span(5, TOOL, traced("TOOL", ARGUMENTS, RESULT), parent=2),
        span(6, "search runbooks", traced("RETRIEVER", {"query": QUESTION}, found), parent=2),
        span(7, "Completions", traced("CHAT_MODEL", asked_again, choice(OPENAI_ANSWERED), **usage(300, 40)), parent=2),
    )


DIALECTS = (genai, genai_events, genai_details, openinference, langgraph, adk, traceloop, langfuse, mlflow)


@pytest.mark.parametrize("dialect", DIALECTS, ids=lambda dialect: dialect.__name__)
def test_every_dialect_tells_the_same_session(dialect):
    record_spans(spans_of(dialect()))

    session = DiagnosisSession.objects.get()
    assert (session.query, session.answer, session.status) == (QUESTION, ANSWER, "SUCCESS")
    assert (session.step_count, session.tool_call_count, session.total_token_count) == (2, 2, 475)
    assert session.total_duration_ms == 800

    first, second = AgentStep.objects.order_by("step_index")
    assert [(step.agent_name, step.step_index, step.model_name) for step in (first, second)] == [
        ("oncall", 0, MODEL),
        ("oncall", 1, MODEL),
    ]
    assert [(step.input_tokens, step.output_tokens) for step in (first, second)] == [(120, 15), (300, 40)]
    assert (first.has_tool_call, second.has_tool_call) == (True, False)
    assert second.model_output == {"text": ANSWER}
    assert first.model_output["tool_calls"] == [{"id": CALL, "name": TOOL, "arguments": ARGUMENTS}]
    assert QUESTION in [message["content"] for message in first.model_input]

    tool, retrieval = ToolInvocation.objects.order_by("started_at")
    assert (tool.tool_name, tool.success, tool.step) == (TOOL, True, first)
    assert (tool.input_params, tool.output_preview) == (ARGUMENTS, RESULT)
    assert (retrieval.retrieval_layer, retrieval.l1_match_count, retrieval.step) == ("L1", 1, first)
    assert retrieval.retrieval_details == {"l1_titles": [TITLE], "l1_scores": [SCORE]}


def test_the_page_of_the_mapping_is_the_tables_of_the_code():
    page = (ROOT / "docs" / "otlp.md").read_text("utf-8")
    assert markdown() in page, "python -m sessions_app.otlp.table"
    assert list(BECOMES) == list(dialects.FIELDS)


# -- pieces of dialects ----------------------------------------------------------------------------------------------


def record(*spans: dict[str, Any], **more: Any) -> DiagnosisSession:
    outcome = record_spans(spans_of(request(*spans, **more)))
    assert outcome.rejected == []
    return DiagnosisSession.objects.get()


AGENT = {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "lead"}
CHAT = {"gen_ai.operation.name": "chat"}
EXECUTE = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "logs"}


def test_sub_agents_are_steps_under_the_step_that_called_them():
    asks = dumps(
        [{"role": "assistant", "content": "", "tool_calls": [{"id": "c-9", "name": "searcher", "arguments": "{}"}]}]
    )
    record(
        span(1, "lead", AGENT, ms=900),
        span(2, "chat", {**CHAT, "gen_ai.output.messages": asks}, parent=1, ms=5),
        span(9, "chat", CHAT, parent=1, ms=5),
        span(
            20,
            "execute_tool searcher",
            {**EXECUTE, "gen_ai.tool.name": "searcher", "gen_ai.tool.call.id": "c-9"},
            parent=1,
            ms=90,
        ),
        span(21, "searcher", {**AGENT, "gen_ai.agent.name": "searcher"}, parent=20, ms=80),
        span(22, "chat", CHAT, parent=21, ms=5),
        span(30, "execute_tool logs", EXECUTE, parent=21, ms=5),
        span(40, "writer", {**AGENT, "gen_ai.agent.name": "writer"}, parent=1, at_ms=400),
        span(41, "chat", CHAT, parent=40, at_ms=401),
    )
    steps = {(step.agent_name, step.step_index): step for step in AgentStep.objects.select_related("parent_step")}
    assert sorted(steps) == [("lead", 0), ("lead", 1), ("searcher", 0), ("writer", 0)]
    assert steps["lead", 0].parent_step is None
    assert steps["searcher", 0].parent_step == steps["lead", 0], (
        "by the id of the call, though a later step came between"
    )
    assert steps["writer", 0].parent_step == steps["lead", 1], "the last step before it began"
    logs = ToolInvocation.objects.get(tool_name="logs")
    assert logs.step == steps["searcher", 0]
    assert ToolInvocation.objects.get(tool_name="searcher").step == steps["lead", 0]


@pytest.mark.parametrize(
    "result",
    [
        {"isError": True, "content": [{"type": "text", "text": "no such pod"}]},
        {"is_error": True, "content": "no such pod"},
        {"success": False, "error": "no such pod"},
        {"status": "error", "content": "no such pod"},
        {"status": "FAILED", "reason": "no such pod"},
    ],
)
def test_a_tool_whose_result_says_that_it_failed_has_failed(result):
    record(span(1, "execute_tool logs", {**EXECUTE, "gen_ai.tool.call.result": dumps(result)}))
    tool = ToolInvocation.objects.get()
    assert not tool.success
    assert "no such pod" in tool.error_message


@pytest.mark.parametrize("result", ['{"success": true}', '{"status": "ok"}', '{"isError": false}', "error", "[false]"])
def test_a_tool_whose_result_does_not_say_so_has_not_failed(result):
    record(span(1, "execute_tool logs", {**EXECUTE, "gen_ai.tool.call.result": result}))
    assert ToolInvocation.objects.get().success


def test_an_exception_says_why_a_tool_failed():
    thrown = [("exception", {"exception.type": "TimeoutError", "exception.message": "30 s are over"})]
    record(span(1, "execute_tool logs", EXECUTE, error="", events=thrown))
    assert ToolInvocation.objects.get().error_message == "30 s are over"


def test_a_tool_told_by_two_instrumentations_is_one_invocation_and_keeps_the_failure_of_either():
    inner = {**EXECUTE, "mcp.method.name": "tools/call", "gen_ai.tool.call.result": '{"isError": true}'}
    record(
        span(1, "lead", AGENT),
        span(2, "execute_tool logs", EXECUTE, parent=1),
        span(3, "tools/call logs", inner, parent=2),
    )
    tool = ToolInvocation.objects.get()
    assert (tool.invocation_id, tool.success, tool.output_preview) == (f"{2:016x}", False, '{"isError": true}')


def test_a_retriever_inside_a_tool_is_an_invocation_of_its_own():
    record(span(1, "lead", AGENT), span(2, "lookup", EXECUTE, parent=1), span(3, "search", RETRIEVED, parent=2))
    assert ToolInvocation.objects.count() == 2


def test_a_retriever_that_found_nothing_says_so():
    record(span(1, "search", {"openinference.span.kind": "RETRIEVER", "output.value": "[]"}))
    retrieval = ToolInvocation.objects.get()
    assert (retrieval.retrieval_layer, retrieval.l1_match_count) == ("L1", 0)


def test_own_attributes_say_what_each_layer_found_and_documents_do_not_overrule_them():
    own = {
        "diagnosis.retrieval.layer": "l0 + l1",
        "diagnosis.retrieval.l0_match_count": 0,
        "diagnosis.retrieval.l1_match_count": "2",
        "diagnosis.retrieval.truncated": "true",
        "diagnosis.retrieval.details": dumps({"l0_titles": [], "has_supplement": True}),
    }
    record(span(1, "search", {**RETRIEVED, **own}))
    retrieval = ToolInvocation.objects.get()
    assert (retrieval.retrieval_layer, retrieval.l0_match_count, retrieval.l1_match_count) == ("L0+L1", 0, 2)
    assert retrieval.is_truncated
    assert retrieval.retrieval_details == {"l0_titles": [], "has_supplement": True}


def test_own_attributes_on_a_resource_hold_for_each_of_its_spans():
    own = {"service.name": "oncall", "diagnosis.agent_flow": "AI_OPS", "diagnosis.metadata": '{"cluster": "eu-1"}'}
    session = record(span(1, "chat", CHAT), resource=own)
    assert (session.agent_flow, session.metadata) == ("AI_OPS", {"cluster": "eu-1"})
    assert AgentStep.objects.get().agent_name == "oncall"


def test_spans_of_embeddings_and_guards_are_nothing():
    record_spans(
        spans_of(
            request(
                span(1, "embed", {"openinference.span.kind": "EMBEDDING", "gen_ai.request.model": "e"}),
                span(2, "embeddings e", {"gen_ai.operation.name": "embeddings", "gen_ai.usage.input_tokens": 9}),
                span(3, "guard", {"openinference.span.kind": "GUARDRAIL", "llm.model_name": "m"}),
                span(4, "openai.embeddings", {"llm.request.type": "embedding", "gen_ai.request.model": "e"}),
                span(5, "create_agent x", {"gen_ai.operation.name": "create_agent", "gen_ai.request.model": "m"}),
            )
        )
    )
    assert not DiagnosisSession.objects.exists()


def test_agents_side_by_side_ask_and_answer_as_one():
    session = record(
        span(1, "POST /chat", {"http.request.method": "POST"}, ms=900),
        span(2, "plan", {**AGENT, "input.value": "why?", "output.value": "a plan"}, parent=1, ms=20),
        span(50, "act", {**AGENT, "input.value": "a plan", "output.value": "so."}, parent=1, error="cut short"),
    )
    assert (session.query, session.answer, session.status) == ("why?", "so.", "FAILED")
    assert session.total_duration_ms == 148
    assert session.metadata == {"error": "cut short"}


def test_a_model_call_alone_is_a_session():
    session = record(span(1, "chat", {**CHAT, "input.value": "why?", "output.value": "so."}))
    assert (session.query, session.answer, session.status, session.step_count) == ("why?", "so.", "SUCCESS", 1)
    assert AgentStep.objects.get().agent_name == "shop"


def test_reasoning_is_the_steps_thought_and_not_its_answer():
    parts = [{"type": "thinking", "thinking": "Hm."}, {"type": "text", "text": "so."}]
    record(span(1, "chat", {**CHAT, "gen_ai.output.messages": dumps([{"role": "assistant", "content": parts}])}))
    step = AgentStep.objects.get()
    assert (step.thought, step.model_output) == ("Hm.", {"text": "so."})


FORMS_OF_OUTPUT = {
    "anthropic": {
        "role": "assistant",
        "content": [
            {"type": "text", "text": "I look."},
            {"type": "tool_use", "id": CALL, "name": TOOL, "input": ARGUMENTS},
        ],
    },
    "openai-responses": {
        "object": "response",
        "output": [
            {"type": "reasoning", "summary": []},
            {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "I look."}]},
            {"type": "function_call", "call_id": CALL, "name": TOOL, "arguments": dumps(ARGUMENTS)},
        ],
    },
    "langchain-result": {
        "generations": [
            [
                {
                    "text": "I look.",
                    "message": {
                        "lc": 1,
                        "type": "constructor",
                        "id": ["AIMessage"],
                        "kwargs": {"content": "I look.", "tool_calls": [{"name": TOOL, "args": ARGUMENTS, "id": CALL}]},
                    },
                }
            ]
        ],
        "llm_output": {},
    },
    "gemini": {
        "candidates": [
            {
                "content": {
                    "role": "model",
                    "parts": [{"text": "I look."}, {"function_call": {"id": CALL, "name": TOOL, "args": ARGUMENTS}}],
                }
            }
        ]
    },
}


@pytest.mark.parametrize("form", FORMS_OF_OUTPUT)
def test_what_a_model_said_and_asked_for_is_read_from_every_form(form):
    record(span(1, "chat", {**CHAT, "output.value": dumps(FORMS_OF_OUTPUT[form])}))
    call = {"id": CALL, "name": TOOL, "arguments": ARGUMENTS}
    assert AgentStep.objects.get().model_output == {"text": "I look.", "tool_calls": [call]}


QUESTIONS = {
    "text": QUESTION,
    "a-key": dumps({"question": QUESTION, "language": "en"}),
    "an-unknown-key-alone": dumps({"ticket": QUESTION}),
    "arguments-of-a-function": dumps({"args": [QUESTION], "kwargs": {}}),
    "langchain-inputs": dumps({"inputs": {"input": QUESTION, "chat_history": []}, "tags": [], "metadata": {}}),
    "messages": dumps(
        {"messages": [{"role": "user", "content": [{"type": "text", "text": QUESTION}, {"type": "image_url"}]}]}
    ),
    "pairs": dumps({"messages": [["system", "You diagnose."], ["human", QUESTION]]}),
    "anthropic-with-a-tools-result-behind-it": dumps(
        {
            "messages": [
                {"role": "user", "content": QUESTION},
                {"role": "user", "content": [{"type": "tool_result", "content": "50"}]},
            ]
        }
    ),
    "openai-responses": dumps(
        [{"type": "message", "role": "user", "content": [{"type": "input_text", "text": QUESTION}]}]
    ),
}


@pytest.mark.parametrize("form", QUESTIONS)
def test_the_question_is_read_from_every_form(form):
    assert record(span(1, "lead", {**AGENT, "input.value": QUESTIONS[form]})).query == QUESTION
