"""The official OpenTelemetry SDK and two instrumentations of the real OpenAI SDK, against a local stub of its API."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest
from openai import APIConnectionError, OpenAI
from openinference.instrumentation.openai import OpenAIInstrumentor as OpenInferenceInstrumentor
from opentelemetry.exporter.otlp.proto.http import Compression
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.instrumentation.genai.openai import OpenAIInstrumentor as GenAIInstrumentor
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from opentelemetry.util.genai.handler import TelemetryHandler

from sessions_app.models import AgentStep, DiagnosisSession, OtlpTrace, ToolInvocation

pytestmark = pytest.mark.django_db(transaction=True)

QUESTION, ANSWER = "Why is checkout slow?", "The pool of connections is exhausted."
TOOL, ARGUMENTS, RESULT = "query_metrics", {"metric": "pool_active"}, "pool_active 50"
MODEL = "gpt-4.1-mini-2025-04-14"
CALL = {"id": "call_7", "type": "function", "function": {"name": TOOL, "arguments": json.dumps(ARGUMENTS)}}


# -- the stub --------------------------------------------------------------------------------------------------------


class _OpenAI(BaseHTTPRequestHandler):
    """Asks for the tool; when the question comes again with its result, answers."""

    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        answer = self._chat(body) if self.path.endswith("/chat/completions") else self._responses(body)
        if body.get("stream"):
            data = (
                b"".join(b"data: " + json.dumps(chunk).encode() + b"\n\n" for chunk in _chunks(answer))
                + b"data: [DONE]\n\n"
            )
            self._send(data, "text/event-stream")
        else:
            self._send(json.dumps(answer).encode(), "application/json")

    def _chat(self, body: dict[str, Any]) -> dict[str, Any]:
        has_result = any(message["role"] == "tool" for message in body["messages"])
        said = {"content": ANSWER} if has_result else {"content": None, "tool_calls": [CALL]}
        return {
            "id": "chatcmpl-1",
            "object": "chat.completion",
            "created": 1_790_000_000,
            "model": MODEL,
            "choices": [
                {
                    "index": 0,
                    "finish_reason": "stop" if has_result else "tool_calls",
                    "message": {"role": "assistant", **said},
                }
            ],
            "usage": _usage("prompt_tokens", "completion_tokens", has_result),
        }

    def _responses(self, body: dict[str, Any]) -> dict[str, Any]:
        has_result = any(item.get("type") == "function_call_output" for item in body["input"])
        text = {"type": "output_text", "text": ANSWER, "annotations": []}
        message = {"type": "message", "id": "msg_1", "role": "assistant", "status": "completed", "content": [text]}
        call = {"type": "function_call", "id": "fc_1", "call_id": "call_7", "name": TOOL, "status": "completed"}
        return {
            "id": "resp_1",
            "object": "response",
            "created_at": 1_790_000_000,
            "model": MODEL,
            "status": "completed",
            "output": [message if has_result else {**call, "arguments": json.dumps(ARGUMENTS)}],
            "parallel_tool_calls": True,
            "tool_choice": "auto",
            "tools": [],
            "usage": _usage("input_tokens", "output_tokens", has_result)
            | {"input_tokens_details": {"cached_tokens": 0}, "output_tokens_details": {"reasoning_tokens": 0}},
        }

    def _send(self, data: bytes, content_type: str) -> None:
        self.send_response(200)
        self.send_header("Content-Type", content_type)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *_: Any) -> None:
        pass


def _usage(asked: str, said: str, is_last: bool) -> dict[str, Any]:
    tokens = (300, 40) if is_last else (120, 15)
    return {asked: tokens[0], said: tokens[1], "total_tokens": sum(tokens)}


def _chunks(answer: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """An answer of the chat API as the chunks of a stream."""
    [choice] = answer["choices"]
    message = choice["message"]
    head = {**{key: answer[key] for key in ("id", "created", "model")}, "object": "chat.completion.chunk"}

    def chunk(delta: dict[str, Any], finish: str | None = None, usage: Any = None) -> dict[str, Any]:
        choices = [{"index": 0, "delta": delta, "finish_reason": finish}] if usage is None else []
        return {**head, "choices": choices, "usage": usage}

    yield chunk({"role": "assistant", "content": ""})
    for word in (message["content"] or "").split(" ") if message["content"] else ():
        yield chunk({"content": word if word == ANSWER.split(" ", maxsplit=1)[0] else f" {word}"})
    for call in message.get("tool_calls", ()):
        yield chunk({"tool_calls": [{"index": 0, **call, "function": {"name": TOOL, "arguments": ""}}]})
        yield chunk({"tool_calls": [{"index": 0, "function": {"arguments": call["function"]["arguments"]}}]})
    yield chunk({}, choice["finish_reason"])
    yield chunk({}, usage=answer["usage"])


@pytest.fixture(scope="module")
def openai_url() -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), _OpenAI)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}/v1"
    server.shutdown()
    server.server_close()


@pytest.fixture
def client(openai_url) -> Iterator[OpenAI]:
    with OpenAI(base_url=openai_url, api_key="none", max_retries=0) as client:
        yield client


# -- the SDK ---------------------------------------------------------------------------------------------------------


@pytest.fixture(params=["bearer", "x-api-key"])
def provider(request, live_server, new_key) -> Iterator[TracerProvider]:
    """OpenTelemetry as a team sets it up: a batch processor and the OTLP/HTTP exporter."""
    key = new_key("ingest")
    headers = {"authorization": f"Bearer {key}"} if request.param == "bearer" else {"x-api-key": key}
    exporter = OTLPSpanExporter(
        f"{live_server.url}/v1/traces",
        headers=headers,
        compression=Compression.Gzip if request.param == "bearer" else Compression.NoCompression,
    )
    provider = TracerProvider(resource=Resource.create({"service.name": "shop", "diagnosis.agent_flow": "CHAT"}))
    provider.add_span_processor(BatchSpanProcessor(exporter, schedule_delay_millis=60_000))
    yield provider
    provider.shutdown()


Ask = Callable[[OpenAI, list[Any]], tuple[str | None, list[Any]]]
"""One call of the model: what it said, and the messages with its own behind them."""

TOOLS: Any = [{"type": "function", "function": {"name": TOOL, "parameters": {"type": "object", "properties": {}}}}]


def chat(client: OpenAI, messages: list[Any]) -> tuple[str | None, list[Any]]:
    message = client.chat.completions.create(model="gpt-4.1-mini", messages=messages, tools=TOOLS).choices[0].message
    return message.content, [*messages, message.model_dump(exclude_none=True)]


def streamed_chat(client: OpenAI, messages: list[Any]) -> tuple[str | None, list[Any]]:
    stream = client.chat.completions.create(
        model="gpt-4.1-mini", messages=messages, tools=TOOLS, stream=True, stream_options={"include_usage": True}
    )
    text, calls = "", []
    for chunk in stream:
        for choice in chunk.choices:
            text += choice.delta.content or ""
            calls += [call for call in choice.delta.tool_calls or () if call.id]
    said = {"role": "assistant", "tool_calls": [CALL]} if calls else {"role": "assistant", "content": text}
    return text or None, [*messages, said]


def responses(client: OpenAI, messages: list[Any]) -> tuple[str | None, list[Any]]:
    answer = client.responses.create(model="gpt-4.1-mini", input=messages)
    return answer.output_text or None, [*messages, *(item.model_dump(exclude_none=True) for item in answer.output)]


def result_message(ask: Ask) -> dict[str, Any]:
    if ask is responses:
        return {"type": "function_call_output", "call_id": "call_7", "output": RESULT}
    return {"role": "tool", "tool_call_id": "call_7", "content": RESULT}


def run_openinference(provider: TracerProvider, client: OpenAI, ask: Ask) -> None:
    """An agent's loop with spans of its own for the agent and its tool."""
    tracer = provider.get_tracer("agent")
    kind = "openinference.span.kind"
    own = {kind: "AGENT", "agent.name": "oncall", "input.value": QUESTION, "session.id": "c-1"}
    used = {kind: "TOOL", "tool.name": TOOL, "input.value": json.dumps(ARGUMENTS), "output.value": RESULT}
    with (
        tracer.start_as_current_span("POST /chat"),
        tracer.start_as_current_span("oncall", attributes=own) as agent,
    ):
        messages: list[Any] = [{"role": "user", "content": QUESTION}]
        while (told := ask(client, messages))[0] is None:
            with tracer.start_as_current_span(TOOL, attributes=used):
                messages = [*told[1], result_message(ask)]
        agent.set_attribute("output.value", told[0] or "")


def run_genai(provider: TracerProvider, client: OpenAI, ask: Ask) -> None:
    """The same with OpenTelemetry's own helper for agents and tools; the agent's span carries no texts."""
    handler = TelemetryHandler(tracer_provider=provider)
    with (
        provider.get_tracer("web").start_as_current_span("POST /chat"),
        handler.invoke_local_agent(agent_name="oncall") as agent,
    ):
        agent.conversation_id = "c-1"
        messages: list[Any] = [{"role": "user", "content": QUESTION}]
        while (told := ask(client, messages))[0] is None:
            with handler.tool(TOOL) as tool:
                tool.tool_call_id = "call_7"
                tool.arguments, tool.tool_result = ARGUMENTS, RESULT
            messages = [*told[1], result_message(ask)]


@pytest.fixture(
    params=[(OpenInferenceInstrumentor, run_openinference), (GenAIInstrumentor, run_genai)],
    ids=["openinference", "genai"],
)
def run(request, provider, client, monkeypatch) -> Iterator[Callable[[Ask], None]]:
    monkeypatch.setenv("OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT", "span_only")
    instrumentor, loop = request.param[0](), request.param[1]
    instrumentor.instrument(tracer_provider=provider, skip_dep_check=True)
    try:
        yield lambda ask: loop(provider, client, ask)
    finally:
        instrumentor.uninstrument()


@pytest.mark.parametrize("ask", [chat, streamed_chat, responses], ids=["chat", "stream", "responses"])
def test_an_agents_loop_is_a_session_with_its_steps_tools_and_tokens(run, provider, ask, score_due):
    run(ask)
    assert provider.force_flush(10_000)

    session = DiagnosisSession.objects.get()
    assert (session.query, session.answer, session.status) == (QUESTION, ANSWER, "SUCCESS")
    assert (session.agent_flow, session.conversation_id) == ("CHAT", "c-1")
    assert (session.step_count, session.tool_call_count, session.total_token_count) == (2, 1, 475)
    assert session.session_id == OtlpTrace.objects.get().trace_id

    first, second = AgentStep.objects.order_by("step_index")
    assert [(step.agent_name, step.step_index, step.model_name) for step in (first, second)] == [
        ("oncall", 0, MODEL),
        ("oncall", 1, MODEL),
    ]
    assert [(step.input_tokens, step.output_tokens) for step in (first, second)] == [(120, 15), (300, 40)]
    assert first.model_output == {"text": "", "tool_calls": [{"id": "call_7", "name": TOOL, "arguments": ARGUMENTS}]}
    assert second.model_output == {"text": ANSWER}
    assert [message["role"] for message in second.model_input] == ["user", "assistant", "tool"]

    tool = ToolInvocation.objects.get()
    assert (tool.tool_name, tool.input_params, tool.output_preview, tool.success) == (TOOL, ARGUMENTS, RESULT, True)
    assert tool.step == first
    score_due()
    session.refresh_from_db()
    assert session.evidence_score == 30


def test_a_failing_call_fails_the_run(run, provider):
    with pytest.raises(APIConnectionError):
        run(lambda client, messages: chat(client.with_options(base_url="http://127.0.0.1:9/v1"), messages))
    assert provider.force_flush(10_000)
    session = DiagnosisSession.objects.get()
    assert (session.status, session.query, session.step_count) == ("FAILED", QUESTION, 1)
