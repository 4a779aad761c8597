"""What the attributes of a span mean, in every dialect we know: the one table, and how to read it.

`FIELDS` names for each fact the attributes that may carry it, the most specific dialect first; `docs/otlp.md` shows the
same table to people. `read` turns a span into a `SpanFacts`: small, JSON, free of dialect.

Sources: OpenTelemetry semantic conventions for generative AI (1.2x to 1.4x), OpenInference, Google ADK
(`gcp.vertex.agent.*`), Traceloop/OpenLLMetry, Langfuse and MLflow, as their SDKs emit them.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator, Mapping
from typing import Any, NotRequired, TypedDict

from sessions_app.otlp.spans import Span
from sessions_app.text import UnstorableJSONError, clean_json, is_id

AGENT, CHAIN, MODEL, TOOL, RETRIEVER = "agent", "chain", "model", "tool", "retriever"
"""Kinds of span. A chain is a framework's step around agents and models; it may be the root, never a step."""

KINDS: tuple[tuple[str, Mapping[str, str]], ...] = (
    (
        "openinference.span.kind",
        {"AGENT": AGENT, "CHAIN": CHAIN, "LLM": MODEL, "TOOL": TOOL, "RETRIEVER": RETRIEVER},
    ),
    (
        "gen_ai.operation.name",
        {
            "invoke_agent": AGENT, "create_agent": "", "invoke_workflow": CHAIN, "chat": MODEL,
            "text_completion": MODEL, "generate_content": MODEL, "execute_tool": TOOL, "retrieval": RETRIEVER,
            "embeddings": "",
        },
    ),
    ("traceloop.span.kind", {"agent": AGENT, "workflow": CHAIN, "task": CHAIN, "tool": TOOL}),
    (
        "langfuse.observation.type",
        {
            "agent": AGENT, "chain": CHAIN, "generation": MODEL, "tool": TOOL, "retriever": RETRIEVER,
            "embedding": "", "event": "",
        },
    ),
    (
        "mlflow.spanType",
        {"AGENT": AGENT, "CHAIN": CHAIN, "LLM": MODEL, "CHAT_MODEL": MODEL, "TOOL": TOOL, "RETRIEVER": RETRIEVER},
    ),
    ("llm.request.type", {"chat": MODEL, "completion": MODEL}),
)  # fmt: skip
"""Attribute → its values → kind. An unknown value says nothing; "" says that the span is nothing of ours."""

NAMED_KINDS: tuple[tuple[re.Pattern[str], str], ...] = (
    (re.compile(r"invoke_agent\b|agent_run \["), AGENT),
    (re.compile(r"call_llm\b"), MODEL),
    (re.compile(r"execute_tool\b"), TOOL),
)
"""Google ADK names its spans rather than marking them. Asked only of spans of its own scope."""

TELLING: tuple[tuple[str, str], ...] = (
    ("gen_ai.tool.name", TOOL),
    ("gen_ai.usage.input_tokens", MODEL),
    ("gen_ai.usage.prompt_tokens", MODEL),
    ("llm.model_name", MODEL),
    ("gen_ai.request.model", MODEL),
    ("retrieval.documents.0.document.content", RETRIEVER),
)
"""Attributes that give a span away which nothing else marks."""

FIELDS: Mapping[str, tuple[str, ...]] = {
    "session_id": ("diagnosis.session.id",),
    "agent_flow": ("diagnosis.agent_flow",),
    "consent": ("diagnosis.consent",),
    "metadata": ("diagnosis.metadata",),
    "self_evaluation": ("diagnosis.self_evaluation",),
    "user": (
        "diagnosis.user_ref", "user.id", "langfuse.user.id", "mlflow.trace.user", "enduser.id",
        "traceloop.association.properties.user_id", "kagent.user_id",
    ),
    "conversation": (
        "gen_ai.conversation.id", "session.id", "langfuse.session.id", "mlflow.trace.session",
        "gcp.vertex.agent.session_id", "traceloop.association.properties.session_id",
    ),
    "agent_id": ("gen_ai.agent.id",),
    "agent": ("gen_ai.agent.name", "agent.name", "graph.node.name", "graph.node.id", "traceloop.entity.name"),
    "model": (
        "gen_ai.response.model", "gen_ai.request.model", "llm.model_name", "langfuse.observation.model.name",
        "mlflow.llm.model",
    ),
    "input_tokens": (
        "gen_ai.usage.input_tokens", "gen_ai.usage.prompt_tokens", "llm.token_count.prompt", "llm.usage.prompt_tokens",
    ),
    "output_tokens": (
        "gen_ai.usage.output_tokens", "gen_ai.usage.completion_tokens", "llm.token_count.completion",
        "llm.usage.completion_tokens",
    ),
    "total_tokens": ("llm.token_count.total", "llm.usage.total_tokens", "gen_ai.usage.total_tokens"),
    "usage": ("langfuse.observation.usage_details", "mlflow.chat.tokenUsage"),
    "thought": ("diagnosis.step.thought",),
    "tool": ("gen_ai.tool.name", "tool.name", "traceloop.entity.name", "langfuse.observation.name"),
    "call_id": ("gen_ai.tool.call.id", "tool_call.id"),
    "arguments": (
        "gen_ai.tool.call.arguments", "gcp.vertex.agent.tool_call_args", "tool.parameters", "input.value",
        "gen_ai.retrieval.query.text", "traceloop.entity.input", "langfuse.observation.input", "mlflow.spanInputs",
    ),
    "result": (
        "gen_ai.tool.call.result", "gcp.vertex.agent.tool_response", "output.value", "traceloop.entity.output",
        "langfuse.observation.output", "mlflow.spanOutputs",
    ),
    "input": (
        "gcp.vertex.agent.llm_request", "gen_ai.input.messages", "input.value", "langfuse.trace.input",
        "langfuse.observation.input", "mlflow.spanInputs", "traceloop.entity.input", "gen_ai.prompt",
    ),
    "output": (
        "gcp.vertex.agent.llm_response", "gen_ai.output.messages", "output.value", "langfuse.trace.output",
        "langfuse.observation.output", "mlflow.spanOutputs", "traceloop.entity.output", "gen_ai.completion",
    ),
    "documents": ("gen_ai.retrieval.documents",),
    "layer": ("diagnosis.retrieval.layer",),
    "l0": ("diagnosis.retrieval.l0_match_count",),
    "l1": ("diagnosis.retrieval.l1_match_count",),
    "truncated": ("diagnosis.retrieval.truncated",),
    "retrieval_details": ("diagnosis.retrieval.details",),
    "level": ("langfuse.observation.level",),
    "error": ("error.message", "exception.message", "langfuse.observation.status_message", "error.type"),
}  # fmt: skip
"""Fact → the attributes that may carry it, the most specific first."""

INDEXED_MESSAGES: Mapping[str, tuple[str, ...]] = {
    "input": ("llm.input_messages", "gen_ai.prompt"),
    "output": ("llm.output_messages", "gen_ai.completion"),
}
"""Messages flattened into attributes: `gen_ai.prompt.0.content` (Traceloop), `llm.input_messages.0.message.content`."""

EVENT_MESSAGES: Mapping[str, tuple[str, str]] = {
    "gen_ai.system.message": ("input", "system"),
    "gen_ai.user.message": ("input", "user"),
    "gen_ai.assistant.message": ("input", "assistant"),
    "gen_ai.tool.message": ("input", "tool"),
    "gen_ai.choice": ("output", "assistant"),
    "gen_ai.content.prompt": ("input", "user"),
    "gen_ai.content.completion": ("output", "assistant"),
}
"""Older conventions: messages as span events → direction, role."""

MESSAGE_CHARS = 2_000
"""Of each message this much is kept: the design asks for a summary of the input, not the whole of it."""
ANSWER_CHARS = 200_000
RESULT_CHARS = 500
MAX_MESSAGES = 50
MAX_ANSWERS = 2
ARGUMENTS_CHARS = 100_000
CALL_CHARS = 4_000
ARGUMENTS_DEPTH = 20
CUT = "…"


class ToolCall(TypedDict):
    """A tool that a model asked for."""

    id: str
    name: str
    arguments: Any


class Message(TypedDict):
    """One message to or from a model."""

    role: str
    content: str
    tool_calls: NotRequired[list[ToolCall]]


class SpanFacts(TypedDict, total=False):
    """What one span says, free of dialect. Keys are short: the ledger holds many."""

    p: str  # parent span id
    s: int  # start, ns
    e: int  # end, ns
    k: str  # kind; missing: only a link in the chain of parents
    name: str
    service: str
    failed: bool
    error: str
    session_id: str
    agent_flow: str
    consent: bool
    metadata: dict[str, Any]
    self_evaluation: dict[str, Any]
    judgements: list[dict[str, Any]]  # people's annotations
    user: str
    conversation: str
    agent_id: str
    agent: str
    model: str
    input_tokens: int
    output_tokens: int
    total_tokens: int
    thought: str
    tool: str
    call_id: str
    arguments: Any
    result: str
    result_length: int
    input: list[Message]
    output: list[Message]
    layer: str
    l0: int
    l1: int
    truncated: bool
    retrieval_details: dict[str, Any]
    is_sanitised: bool


class BadFactError(ValueError):
    """A span says something that may not be stored, such as a session id that is none."""


def read(span: Span) -> SpanFacts:
    """The facts of one span. Raises BadFactError, UnstorableJSONError (a ValueError too)."""
    facts: SpanFacts = {"p": span.parent_id, "s": span.start_ns, "e": max(span.end_ns, span.start_ns)}
    kind = kind_of(span)
    session_id = _text(_pick(span.attributes, "session_id"))
    if session_id:
        if not is_id(session_id):
            raise BadFactError("diagnosis.session.id must be 1 to 64 printable ASCII characters without spaces.")
        facts["session_id"] = session_id
    if conversation := _text(_pick(span.attributes, "conversation")):
        facts["conversation"] = _as_id("c", conversation)
    if not kind:
        if span.status == "ERROR":
            facts["failed"] = True
        return facts
    facts["k"] = kind
    facts["name"] = span.name[:200]
    if span.service:
        facts["service"] = span.service[:200]
    _read_people(facts, span)
    _read_outcome(facts, span)
    if kind in (TOOL, RETRIEVER):
        _read_tool(facts, span)
    else:
        _read_messages(facts, span, kind)
    if kind == MODEL:
        _read_usage(facts, span.attributes)
    if kind != MODEL or _pick(span.attributes, "self_evaluation"):
        _read_evaluation(facts, span)
    try:
        cleaned, changed = clean_json(facts)
    except UnstorableJSONError:
        facts.pop("input", None)  # the whole context of a very long call; its outcome is what counts
        cleaned, changed = clean_json(facts)
    result: SpanFacts = cleaned
    if changed:
        result["is_sanitised"] = True
    return result


def kind_of(span: Span) -> str:
    """The kind of a span; "" for what is nothing of ours: HTTP, messaging, frameworks."""
    for attribute, kinds in KINDS:
        value = span.attributes.get(attribute)
        if isinstance(value, str):
            kind = kinds.get(value.strip('"'))
            if kind is not None:
                return kind
    if span.scope.startswith(("gcp.vertex.agent", "google.adk", "google_adk")):
        for pattern, kind in NAMED_KINDS:
            if pattern.match(span.name):
                return kind
    for attribute, kind in TELLING:
        if attribute in span.attributes:
            return kind
    return ""


# -- parts of a span -------------------------------------------------------------------------------------------------


def _read_people(facts: SpanFacts, span: Span) -> None:
    attributes = span.attributes
    if user := _text(_pick(attributes, "user")):
        facts["user"] = _as_id("u", user) if "@" not in user else _hashed("u", user)
    if agent_id := _text(_pick(attributes, "agent_id")):
        facts["agent_id"] = _as_id("a", agent_id)
    if facts["k"] in (AGENT, MODEL) and (agent := _text(_pick(attributes, "agent"))):
        facts["agent"] = agent[:200]
    if flow := _text(_pick(attributes, "agent_flow")):
        facts["agent_flow"] = flow[:32]
    consent = _pick(attributes, "consent")
    if consent is not None:
        facts["consent"] = _is_true(consent)
    metadata = _json(_pick(attributes, "metadata"))
    if isinstance(metadata, dict):
        facts["metadata"] = metadata


def _read_outcome(facts: SpanFacts, span: Span) -> None:
    failed = span.status == "ERROR" or _pick(span.attributes, "level") == "ERROR"
    error = span.status_message or _text(_pick(span.attributes, "error"))
    for event in span.events:
        if event.name == "exception":
            error = error or _text(event.attributes.get("exception.message"))
    if failed:
        facts["failed"] = True
        if error:
            facts["error"] = _cut(error, MESSAGE_CHARS)


def _read_tool(facts: SpanFacts, span: Span) -> None:
    attributes = span.attributes
    facts["tool"] = (_text(_pick(attributes, "tool")) or _last_word(span.name) or facts["k"])[:200]
    if call_id := _text(_pick(attributes, "call_id")):
        facts["call_id"] = call_id[:200]
    arguments = _json(_pick(attributes, "arguments"))
    if arguments is not None:
        facts["arguments"] = _bounded(arguments, ARGUMENTS_CHARS)
    result = _pick(attributes, "result")
    if result is not None:
        text = result_text(result)
        facts["result"], facts["result_length"] = text[:RESULT_CHARS], len(text)
        if says_it_failed(_json(result)):
            facts["failed"] = True
            facts.setdefault("error", _cut(text, MESSAGE_CHARS))
    _read_retrieval(facts, span)


def _read_retrieval(facts: SpanFacts, span: Span) -> None:
    attributes = span.attributes
    layer = _text(_pick(attributes, "layer")).upper().replace(" ", "")
    if layer in ("L0", "L1", "L0+L1"):
        facts["layer"] = layer
    for name in ("l0", "l1"):
        count = _count(_pick(attributes, name))
        if count is not None:
            facts[name] = count
    truncated = _pick(attributes, "truncated")
    if truncated is not None:
        facts["truncated"] = _is_true(truncated)
    details = _json(_pick(attributes, "retrieval_details"))
    if isinstance(details, dict):
        facts["retrieval_details"] = details
    documents = list(_documents(attributes))
    if documents or (facts["k"] == RETRIEVER and "gen_ai.retrieval.documents" in attributes):
        facts.setdefault(
            "retrieval_details",
            {
                "l1_titles": [document["title"] for document in documents],
                "l1_scores": [document["score"] for document in documents],
            },
        )
        if "layer" not in facts and "l0" not in facts and "l1" not in facts:
            facts["layer"], facts["l1"] = "L1", len(documents)


def _read_messages(facts: SpanFacts, span: Span, kind: str) -> None:
    for direction in ("input", "output"):
        found = list(_messages(span, direction))
        if found:
            is_summary = kind == MODEL and direction == "input"
            count, limit = (MAX_MESSAGES, MESSAGE_CHARS) if is_summary else (MAX_ANSWERS, ANSWER_CHARS)
            facts[direction] = [_cut_message(message, limit) for message in found[-count:]]
    if thought := _text(_pick(span.attributes, "thought")):
        facts["thought"] = _cut(thought, ANSWER_CHARS)
    if kind == MODEL and (model := _text(_pick(span.attributes, "model"))):
        facts["model"] = model[:128]


def _read_usage(facts: SpanFacts, attributes: Mapping[str, Any]) -> None:
    usage = _json(_pick(attributes, "usage"))
    details = usage if isinstance(usage, dict) else {}
    for name, keys in (
        ("input_tokens", ("input_tokens", "input", "prompt_tokens")),
        ("output_tokens", ("output_tokens", "output", "completion_tokens")),
        ("total_tokens", ("total_tokens", "total")),
    ):
        counts = (_count(value) for value in (_pick(attributes, name), *(details.get(key) for key in keys)))
        count = next((value for value in counts if value is not None), None)
        if count is not None:
            facts[name] = count  # type: ignore[literal-required]


def _read_evaluation(facts: SpanFacts, span: Span) -> None:
    """The agent's word on itself; people's annotations go their own way, as feedback."""
    said = _json(_pick(span.attributes, "self_evaluation"))
    evaluation: dict[str, Any] = said if isinstance(said, dict) else {}
    people: list[dict[str, Any]] = []
    for event in span.events:
        if event.name == "gen_ai.evaluation.result":
            _take_evaluation(evaluation, people, event.attributes)
    for index in _indexes(span.attributes, "annotations"):
        prefix = f"annotations.{index}.annotation."
        row = {key[len(prefix) :]: value for key, value in span.attributes.items() if key.startswith(prefix)}
        _take_evaluation(
            evaluation,
            people,
            {
                "gen_ai.evaluation.name": row.get("name"),
                "gen_ai.evaluation.score.value": row.get("score"),
                "gen_ai.evaluation.score.label": row.get("label"),
                "gen_ai.evaluation.explanation": row.get("explanation"),
                "annotator.kind": row.get("annotator_kind"),
            },
        )
    if evaluation:
        facts["self_evaluation"] = evaluation
    if people:
        facts["judgements"] = people


def _take_evaluation(evaluation: dict[str, Any], people: list[dict[str, Any]], attributes: Mapping[str, Any]) -> None:
    name = _text(attributes.get("gen_ai.evaluation.name")) or "evaluation"
    score, label = attributes.get("gen_ai.evaluation.score.value"), attributes.get("gen_ai.evaluation.score.label")
    explanation = _text(attributes.get("gen_ai.evaluation.explanation"))
    if str(attributes.get("annotator.kind", "")).upper() == "HUMAN":
        people.append({"name": name, "score": score, "label": label, "explanation": explanation})
    elif name.lower() == "confidence" and isinstance(score, int | float) and not isinstance(score, bool):
        evaluation["confidence"] = score * 100 if isinstance(score, float) and score <= 1 else score
        if explanation:
            evaluation["reasoning"] = explanation
    else:
        result = {"score": score, "label": label, "explanation": explanation}
        evaluation[name] = {key: value for key, value in result.items() if value not in (None, "")}


# -- messages --------------------------------------------------------------------------------------------------------


def _messages(span: Span, direction: str) -> Iterator[Message]:
    """The messages to (`input`) or from (`output`) a model or agent: indexed attributes, one attribute, or events."""
    for prefix in INDEXED_MESSAGES[direction]:
        indexes = _indexes(span.attributes, prefix)
        if indexes:
            for index in indexes:
                yield _indexed_message(span.attributes, f"{prefix}.{index}.", direction)
            return
    raw = _pick(span.attributes, direction)
    if raw is not None:
        yield from messages_of(_json(raw), "user" if direction == "input" else "assistant")
        return
    for event in span.events:
        found = EVENT_MESSAGES.get(event.name)
        if found and found[0] == direction:
            yield from _event_messages(event.attributes, found[1])
        elif event.name == "gen_ai.client.inference.operation.details":
            value = event.attributes.get(f"gen_ai.{direction}.messages")
            if value is not None:
                yield from messages_of(_json(value), "user" if direction == "input" else "assistant")


def _indexed_message(attributes: Mapping[str, Any], prefix: str, direction: str) -> Message:
    """`….role`, `….content`, `….tool_calls.0.name`, each perhaps behind `message.` (OpenInference)."""
    own = {
        key[len(prefix) :].removeprefix("message."): value
        for key, value in attributes.items()
        if key.startswith(prefix)
    }
    content = _text(own.get("content"))
    if not content:
        parts = [own[key] for key in sorted(own) if key.startswith("contents.") and key.endswith(".text")]
        content = "\n".join(_text(part) for part in parts)
    message: Message = {
        "role": _text(own.get("role")) or ("user" if direction == "input" else "assistant"),
        "content": content,
    }
    calls: list[ToolCall] = []
    for index in _indexes(own, "tool_calls"):
        base = f"tool_calls.{index}."
        call = {
            key[len(base) :].removeprefix("tool_call.").removeprefix("function."): value
            for key, value in own.items()
            if key.startswith(base)
        }
        calls.append(_call(call.get("id"), call.get("name"), call.get("arguments")))
    if calls:
        message["tool_calls"] = calls
    return message


def _event_messages(attributes: Mapping[str, Any], role: str) -> Iterator[Message]:
    body = attributes.get("message", attributes.get("content", attributes.get("gen_ai.prompt")))
    if body is None:
        body = attributes.get("gen_ai.completion", attributes.get("gen_ai.event.content"))
    value = _json(body)
    if isinstance(value, dict):
        yield from messages_of({"role": role, **value}, role)
    else:
        message: Message = {"role": _text(attributes.get("role")) or role, "content": _text(value)}
        calls = _json(attributes.get("tool_calls"))
        if isinstance(calls, list):
            message["tool_calls"] = [_call_of(call) for call in calls if isinstance(call, dict)]
        yield message


def messages_of(value: Any, role: str) -> Iterator[Message]:
    """Messages out of whatever an SDK put there: OpenAI, GenAI parts, ADK contents, plain text, any other JSON."""
    if isinstance(value, str):
        yield {"role": role, "content": value}
    elif isinstance(value, list):
        if value and all(isinstance(item, dict) and _is_message(item) for item in value):
            for item in value:
                yield from messages_of(item, role)
        elif value:
            yield {"role": role, "content": result_text(value)}
    elif isinstance(value, dict):
        yield from _messages_of_object(value, role)
    elif value is not None:
        yield {"role": role, "content": str(value)}


def _messages_of_object(value: dict[str, Any], role: str) -> Iterator[Message]:
    if isinstance(value.get("messages"), list):
        yield from messages_of(value["messages"], role)
    elif isinstance(value.get("contents"), list):  # ADK's request
        config = value.get("config")
        if isinstance(config, dict) and config.get("system_instruction"):
            yield {"role": "system", "content": result_text(config["system_instruction"])}
        yield from messages_of(value["contents"], role)
    elif isinstance(value.get("content"), dict) and "parts" in value["content"]:  # ADK's response
        yield _parts_message(value["content"], role)
    elif isinstance(value.get("choices"), list):  # OpenAI's response
        choices = [choice.get("message") for choice in value["choices"] if isinstance(choice, dict)]
        yield from messages_of([choice for choice in choices if isinstance(choice, dict)], role)
    elif isinstance(value.get("parts"), list):
        yield _parts_message(value, role)
    elif _is_message(value):
        message: Message = {"role": _text(value.get("role")) or role, "content": _content(value.get("content"))}
        calls = value.get("tool_calls")
        if isinstance(calls, list):
            message["tool_calls"] = [_call_of(call) for call in calls if isinstance(call, dict)]
        yield message
    else:
        for key in ("output", "answer", "text", "result", "input", "query", "question"):
            if isinstance(value.get(key), str):
                yield {"role": role, "content": value[key]}
                return
        yield {"role": role, "content": result_text(value)}


def _is_message(value: dict[str, Any]) -> bool:
    return "role" in value or "parts" in value or ("content" in value and len(value) <= 4)  # noqa: PLR2004


def _parts_message(value: dict[str, Any], role: str) -> Message:
    """GenAI's and ADK's parts: text, tool calls, tool results."""
    texts: list[str] = []
    calls: list[ToolCall] = []
    for part in value["parts"]:
        if not isinstance(part, dict):
            texts.append(_text(part))
        elif part.get("type") == "tool_call":
            calls.append(_call(part.get("id"), part.get("name"), part.get("arguments")))
        elif isinstance(part.get("function_call"), dict):
            call = part["function_call"]
            calls.append(_call(call.get("id"), call.get("name"), call.get("args")))
        elif isinstance(part.get("function_response"), dict):
            texts.append(result_text(part["function_response"].get("response")))
        else:
            texts.append(_text(part.get("text", part.get("content", part.get("response", part.get("result"))))))
    spoken = {"model": "assistant"}.get(_text(value.get("role")), _text(value.get("role"))) or role
    message: Message = {"role": spoken, "content": "\n".join(text for text in texts if text)}
    if calls:
        message["tool_calls"] = calls
    return message


def _content(value: Any) -> str:
    """A message's content: text, or OpenAI's list of parts."""
    if isinstance(value, list):
        parts = (part.get("text") if isinstance(part, dict) else part for part in value)
        return "\n".join(_text(part) for part in parts if part)
    return result_text(value) if isinstance(value, dict) else _text(value)


def _call_of(call: dict[str, Any]) -> ToolCall:
    function = call.get("function")
    inner = function if isinstance(function, dict) else call
    return _call(call.get("id"), inner.get("name"), inner.get("arguments", inner.get("args")))


def _call(call_id: Any, name: Any, arguments: Any) -> ToolCall:
    return {"id": _text(call_id)[:200], "name": _text(name)[:200], "arguments": _bounded(_json(arguments), CALL_CHARS)}


def _cut_message(message: Message, limit: int) -> Message:
    return {**message, "content": _cut(message["content"], limit)}


# -- values ----------------------------------------------------------------------------------------------------------


def result_text(value: Any) -> str:
    """A tool's result as text: of MCP's envelope its texts, of other JSON its JSON."""
    value = _json(value)
    if isinstance(value, dict) and isinstance(value.get("content"), list):
        texts = [part.get("text") for part in value["content"] if isinstance(part, dict)]
        spoken = [text for text in texts if isinstance(text, str)]
        if spoken and len(spoken) == len(texts):
            return "\n".join(spoken)
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def says_it_failed(result: Any) -> bool:
    """Whether a result says of itself that the tool failed, though nothing was thrown."""
    if not isinstance(result, dict):
        return False
    if result.get("isError") is True or result.get("is_error") is True or result.get("success") is False:
        return True
    status = result.get("status")
    return isinstance(status, str) and status.upper() in ("ERROR", "FAILED", "FAILURE")


def _documents(attributes: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Titles and scores of what a retriever found."""
    listed = _json(_pick(attributes, "documents"))
    if isinstance(listed, list):
        for item in listed[:MAX_MESSAGES]:
            if isinstance(item, dict):
                title = item.get("title") or item.get("id") or _cut(_text(item.get("content")), 80)
                yield {"title": _text(title), "score": _number(item.get("score"))}
        return
    for index in _indexes(attributes, "retrieval.documents")[:MAX_MESSAGES]:
        base = f"retrieval.documents.{index}.document."
        metadata = _json(attributes.get(f"{base}metadata"))
        title = metadata.get("title") if isinstance(metadata, dict) else None
        title = title or attributes.get(f"{base}id") or _cut(_text(attributes.get(f"{base}content")), 80)
        yield {"title": _text(title), "score": _number(attributes.get(f"{base}score"))}


def _pick(attributes: Mapping[str, Any], fact: str) -> Any:
    """The first attribute of the table that is there and not empty."""
    for name in FIELDS[fact]:
        value = attributes.get(name)
        if value is not None and value != "":
            return value
    return None


def _indexes(attributes: Mapping[str, Any], prefix: str) -> list[int]:
    """The numbers of `prefix.0.…`, `prefix.1.…` that are there, in order."""
    start = len(prefix) + 1
    found = {key[start:].split(".", 1)[0] for key in attributes if key.startswith(f"{prefix}.")}
    return sorted(int(number) for number in found if number.isascii() and number.isdigit())


def _json(value: Any) -> Any:
    """A JSON text as its value; anything else as it is."""
    if isinstance(value, str) and value[:1] in ("{", "[", '"'):
        try:
            return json.loads(value)
        except (ValueError, RecursionError):
            return value
    return value


def _bounded(value: Any, limit: int) -> Any:
    """A tool's input; of one that is very large or very deep, the beginning of its text."""
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return value if len(text) <= limit and not _is_deep(value, ARGUMENTS_DEPTH) else _cut(text, limit)


def _is_deep(value: Any, levels: int) -> bool:
    if not isinstance(value, dict | list):
        return False
    inner = value.values() if isinstance(value, dict) else value
    return levels == 0 or any(_is_deep(item, levels - 1) for item in inner)


def _text(value: Any) -> str:
    if value is None:
        return ""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _cut(text: str, limit: int) -> str:
    return text if len(text) <= limit else text[: limit - 1] + CUT


def _count(value: Any) -> int | None:
    """A whole number of 0 to 2,147,483,647; anything else is no count."""
    if isinstance(value, str) and value.isascii() and value.isdigit():
        value = int(value[:20])
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < 2**31:
        return None
    return value


def _number(value: Any) -> float | None:
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None


def _is_true(value: Any) -> bool:
    return value is True or (isinstance(value, str) and value.strip().lower() in ("true", "1", "yes"))


def _last_word(name: str) -> str:
    return name.rsplit(maxsplit=1)[-1] if name.split() else ""


def _as_id(prefix: str, value: str) -> str:
    """`value` where it is an id; else a digest of it, since ids are never cut."""
    return value if is_id(value) else _hashed(prefix, value)


def _hashed(prefix: str, value: str) -> str:
    return f"{prefix}-{hashlib.sha256(value.encode('utf-8', 'replace')).hexdigest()[:24]}"
