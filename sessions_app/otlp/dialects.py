"""What the attributes of a span mean, in every dialect we know: the one table, and how to read it.

`FIELDS` names for each fact the attributes that may carry it, the most specific dialect first; `docs/otlp.md` shows the
same table to people (`sessions_app.otlp.table`). `read` turns a span into a `SpanFacts`: small, JSON, free of dialect.

Sources: OpenTelemetry semantic conventions for generative AI (1.2x to 1.4x), OpenInference, Google ADK
(`gcp.vertex.agent.*`), Traceloop/OpenLLMetry, Langfuse and MLflow, as their SDKs emit them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from operator import itemgetter
from typing import Any, TypedDict

import msgspec

from sessions_app.otlp.messages import (
    DETAILS_EVENT,
    EVENT_MESSAGES,
    INDEXED_MESSAGES,
    Message,
    bounded,
    cut,
    event_messages,
    indexed,
    indexed_message,
    messages_of,
    parsed,
    result_text,
    size_of,
    text_of,
)
from sessions_app.otlp.names import as_id, hashed, short_name
from sessions_app.otlp.spans import Span
from sessions_app.text import MAX_JSON_INTEGER, MAX_TEXT_CHARS, UnstorableJSONError, clean_json, is_id, plainly_encoded

AGENT, CHAIN, MODEL, TOOL, RETRIEVER = "agent", "chain", "model", "tool", "retriever"
"""Kinds of span. A chain is a framework's step around agents and models; it may be the root, never a step."""

KINDS: tuple[tuple[str, Mapping[str, str]], ...] = (
    (
        "openinference.span.kind",
        {
            "AGENT": AGENT, "CHAIN": CHAIN, "LLM": MODEL, "TOOL": TOOL, "RETRIEVER": RETRIEVER, "EMBEDDING": "",
            "RERANKER": "", "GUARDRAIL": "", "EVALUATOR": "", "PROMPT": "", "DECISION": "",
        },
    ),
    (
        "gen_ai.operation.name",
        {
            "invoke_agent": AGENT, "create_agent": "", "invoke_workflow": CHAIN, "chat": MODEL,
            "text_completion": MODEL, "generate_content": MODEL, "execute_tool": TOOL, "retrieval": RETRIEVER,
            "embeddings": "", "fetch_response": "",
        },
    ),
    ("traceloop.span.kind", {"agent": AGENT, "workflow": CHAIN, "task": CHAIN, "tool": TOOL}),
    (
        "langfuse.observation.type",
        {
            "agent": AGENT, "chain": CHAIN, "span": CHAIN, "generation": MODEL, "tool": TOOL, "retriever": RETRIEVER,
            "embedding": "", "event": "", "evaluator": "", "guardrail": "",
        },
    ),
    (
        "mlflow.spanType",
        {
            "AGENT": AGENT, "CHAIN": CHAIN, "WORKFLOW": CHAIN, "TASK": CHAIN, "UNKNOWN": CHAIN, "LLM": MODEL,
            "CHAT_MODEL": MODEL, "TOOL": TOOL, "RETRIEVER": RETRIEVER, "EMBEDDING": "", "RERANKER": "", "PARSER": "",
            "MEMORY": "", "GUARDRAIL": "", "EVALUATOR": "",
        },
    ),
    ("llm.request.type", {"chat": MODEL, "completion": MODEL, "embedding": "", "rerank": ""}),
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

MERGED_TOOLS = "(merged tools)"
"""ADK's span around tools it called at once; each has its own span too."""

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
        "gen_ai.response.model", "gen_ai.request.model", "llm.response.model_name", "llm.model_name",
        "llm.request.model_name", "langfuse.observation.model.name", "mlflow.llm.model",
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
    "tool": ("gen_ai.tool.name", "tool.name", "traceloop.entity.name"),
    "call_id": ("gen_ai.tool.call.id", "tool.id", "tool_call.id"),
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

EVALUATION_EVENT = "gen_ai.evaluation.result"
EVALUATIONS: Mapping[str, tuple[str, ...]] = {
    "name": ("gen_ai.evaluation.name",),
    "score": ("gen_ai.evaluation.score.value",),
    "label": ("gen_ai.evaluation.score.label",),
    "explanation": ("gen_ai.evaluation.explanation",),
    "by": ("diagnosis.annotator.kind", "annotator.kind"),
    "id": ("gen_ai.response.id",),
}
"""What an evaluation event says → its attributes. By `HUMAN` it is a person's judgement, else the agent's own."""

ANNOTATIONS: tuple[tuple[str, str], ...] = tuple(
    (f"{scope}{plural}", singular)
    for plural, singular in (("annotations", "annotation"), ("evaluations", "evaluation"))
    for scope in ("", "trace.", "session.")
)
"""OpenInference's judgements: prefix → the word before `.name`, `.score`, `.label`, `.explanation` and the others."""

DOCUMENT_EVENT = "db.query.result"
"""Traceloop's event for each row that a vector database found."""

MESSAGE_CHARS = 2_000
"""Of each message to a model this much is kept: the design asks for a summary of the input, not the whole of it."""
INPUT_CHARS = 200_000
OUTPUT_CHARS = 300_000
ERROR_CHARS = 2_000
RESULT_CHARS = 500
MAX_MESSAGES = 50
MAX_DOCUMENTS = 50
TITLE_CHARS = 200
NAME_CHARS = 1_000
ARGUMENTS_CHARS = 100_000
ARGUMENTS_DEPTH = 20
MAX_FACTS_CHARS = 4 * MAX_TEXT_CHARS


class SpanFacts(TypedDict, total=False):
    """What one span says, free of dialect. Keys are short: the ledger holds many."""

    p: str  # parent span id
    s: int  # start, ns; 0: not said
    e: int  # end, ns; 0: not ended yet
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
    judgements: list[dict[str, Any]]  # people's annotations: name, score, label, explanation, id, at (ns)
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
    facts: SpanFacts = {"p": span.parent_id, "s": span.start_ns, "e": span.end_ns}
    told = _Told(span.attributes)
    kind = kind_of(span)
    _read_session(facts, told)
    _read_evaluation(facts, span, told)
    if not kind:
        if span.status == "ERROR":
            facts["failed"] = True
        return _cleaned(facts)
    facts["k"] = kind
    facts["name"] = short_name(span.name, NAME_CHARS)
    if span.service and not span.service.startswith("unknown_service"):  # what SDKs say where nobody named it
        facts["service"] = short_name(span.service, NAME_CHARS)
    if agent_id := _text(told, "agent_id"):
        facts["agent_id"] = as_id("a", agent_id)
    _read_outcome(facts, span, told)
    if kind in (TOOL, RETRIEVER):
        _read_tool(facts, span, told)
    else:
        if kind in (AGENT, MODEL) and (agent := _text(told, "agent")):
            facts["agent"] = short_name(agent, NAME_CHARS)
        _read_messages(facts, span, told)
    if kind == MODEL:
        _read_usage(facts, told)
    return _cleaned(facts)


def kind_of(span: Span) -> str:
    """The kind of a span; "" for what is nothing of ours: HTTP, messaging, frameworks."""
    if span.attributes.get("gen_ai.tool.name") == MERGED_TOOLS:
        return ""
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
    return RETRIEVER if any(event.name == DOCUMENT_EVENT for event in span.events) else ""


class _Encoded(dict[str, Any]):
    """Facts with their JSON, which their ledger need not make again. Nobody changes them."""

    __slots__ = ("json",)
    json: bytes


def _cleaned(facts: SpanFacts) -> SpanFacts:
    if (json := plainly_encoded(facts, MAX_FACTS_CHARS)) is not None:
        known: Any = _Encoded(facts)
        known.json = json
        result: SpanFacts = known
        return result
    result, changed = clean_json(facts, max_chars=MAX_FACTS_CHARS)
    if changed:
        result["is_sanitised"] = True
    return result


def encoded(spans: Mapping[str, SpanFacts]) -> bytes:
    """Facts by span id, as JSON."""
    return b"{%b}" % b",".join(
        b'"%b":%b' % (span_id.encode(), getattr(facts, "json", None) or msgspec.json.encode(facts))
        for span_id, facts in spans.items()
    )


class _Told:
    """The attributes of one span by what they mean. A span has few of the many that the table knows."""

    __slots__ = ("_facts", "numbered")

    def __init__(self, attributes: Mapping[str, Any]) -> None:
        self.numbered: dict[str, Any] = {}
        self._facts: dict[str, list[tuple[int, Any]]] = {}
        for name, value in attributes.items():
            if (meanings := _MEANINGS.get(name)) is None:
                if _NUMBERED.search(name):
                    self.numbered[name] = value
            elif value is not None and value != "":
                for fact, rank in meanings:
                    self._facts.setdefault(fact, []).append((rank, value))

    def tells_any(self, facts: frozenset[str]) -> bool:
        """Whether any of these facts is told."""
        return not facts.isdisjoint(self._facts)

    def get(self, fact: str) -> Any:
        """The first attribute of the table that is there and not empty."""
        found = self._facts.get(fact)
        if found is None:
            return None
        return found[0][1] if len(found) == 1 else min(found, key=_rank_of)[1]

    def all(self, fact: str) -> list[Any]:
        """All attributes of the table that are there and not empty, the most specific first."""
        found = self._facts.get(fact)
        return [value for _, value in sorted(found, key=_rank_of)] if found else []


_rank_of = itemgetter(0)
_NUMBERED = re.compile(r"\.[0-9]+\.")
_MEANINGS: dict[str, list[tuple[str, int]]] = {}
for _fact, _names in FIELDS.items():
    for _rank, _name in enumerate(_names):
        _MEANINGS.setdefault(_name, []).append((_fact, _rank))


# -- parts of a span -------------------------------------------------------------------------------------------------


def _read_session(facts: SpanFacts, told: _Told) -> None:
    """What any span may say of the whole session, an HTTP span too. Most say nothing."""
    if not told.tells_any(_OF_SESSIONS):
        return
    if session_id := _text(told, "session_id"):
        if not is_id(session_id):
            raise BadFactError("diagnosis.session.id must be 1 to 64 printable ASCII characters without spaces.")
        facts["session_id"] = session_id
    if conversation := _text(told, "conversation"):
        facts["conversation"] = as_id("c", conversation)
    if user := _text(told, "user"):
        facts["user"] = as_id("u", user) if "@" not in user else hashed("u", user)
    if flow := _text(told, "agent_flow"):
        facts["agent_flow"] = short_name(flow, 32)
    consent = told.get("consent")
    if consent is not None:
        facts["consent"] = _is_true(consent)
    if metadata := _object(told.get("metadata"), "metadata"):
        facts["metadata"] = metadata


_OF_SESSIONS = frozenset(("session_id", "conversation", "user", "agent_flow", "consent", "metadata"))


def _read_outcome(facts: SpanFacts, span: Span, told: _Told) -> None:
    failed = span.status == "ERROR" or told.get("level") == "ERROR"
    if not failed:
        return
    facts["failed"] = True
    thrown = (event.attributes.get("exception.message") for event in span.events if event.name == "exception")
    error = span.status_message or next((text_of(message) for message in thrown if message), "")
    if error := error or _text(told, "error"):
        facts["error"] = cut(error, ERROR_CHARS)


def _read_tool(facts: SpanFacts, span: Span, told: _Told) -> None:
    facts["tool"] = short_name(_text(told, "tool") or _SPAN_PREFIX.sub("", span.name) or facts["k"], NAME_CHARS)
    if call_id := _text(told, "call_id"):
        facts["call_id"] = call_id[:200]
    arguments = parsed(told.get("arguments"))
    if isinstance(arguments, dict) and arguments.keys() == {"args", "kwargs"} and not arguments["args"]:
        arguments = arguments["kwargs"]  # of a decorated function
    if arguments is not None:
        facts["arguments"] = _storable(arguments, ARGUMENTS_CHARS)
    found = told.get("result")
    result = parsed(found)
    if found is not None:
        text = result_text(result)
        facts["result"], facts["result_length"] = text[:RESULT_CHARS], len(text)
        if says_it_failed(result):
            facts["failed"] = True
            facts.setdefault("error", cut(text, ERROR_CHARS))
    _read_retrieval(facts, span, told, result)


_SPAN_PREFIX = re.compile(r"^(execute_tool|retrieval|tools/call|running tool:?)\s+", re.IGNORECASE)
"""What conventions put before a tool's name to make the name of its span."""


def _read_retrieval(facts: SpanFacts, span: Span, told: _Told, result: Any) -> None:
    layer = _text(told, "layer").upper().replace(" ", "")
    if layer in ("L0", "L1", "L0+L1"):
        facts["layer"] = layer
    for name in ("l0", "l1"):
        count = _count(told.get(name))
        if count is not None:
            facts[name] = count
    truncated = told.get("truncated")
    if truncated is not None:
        facts["truncated"] = _is_true(truncated)
    if details := _object(told.get("retrieval_details"), "details"):
        facts["retrieval_details"] = details
    documents = _documents(span, told, result if facts["k"] == RETRIEVER else None)
    if documents is None:
        return
    shown = documents[:MAX_DOCUMENTS]
    found = {"l1_titles": [title for title, _ in shown], "l1_scores": [score for _, score in shown]}
    facts.setdefault("retrieval_details", found)
    if "layer" not in facts and "l0" not in facts and "l1" not in facts:
        facts["layer"], facts["l1"] = "L1", len(documents)


def _read_messages(facts: SpanFacts, span: Span, told: _Told) -> None:
    """Of a model call its messages; of an agent or chain what was asked last, and what was answered last."""
    asked, said = list(_messages(span, told, "input")), list(_messages(span, told, "output"))
    if facts["k"] == MODEL:
        if asked:
            facts["input"] = _summary(asked)
        if said:
            facts["output"] = _within([_cut(message, OUTPUT_CHARS) for message in said], OUTPUT_CHARS)
        if model := _text(told, "model"):
            facts["model"] = cut(model, 128)
        thought = _text(told, "thought") or "\n".join(message["thought"] for message in said if "thought" in message)
        if thought:
            facts["thought"] = cut(thought, OUTPUT_CHARS)
        for message in (*facts.get("input", ()), *facts.get("output", ())):
            message.pop("thought", None)
        return
    questions = [message for message in asked if message["role"] == "user" and message["content"]]
    answers = [message for message in said if message["content"] and message["role"] in ("assistant", "tool")]
    if questions:
        facts["input"] = [{"role": "user", "content": cut(questions[-1]["content"], MAX_TEXT_CHARS)}]
    for message in answers[-1:] or said[-1:]:
        facts["output"] = [{"role": message["role"], "content": cut(message["content"], MAX_TEXT_CHARS)}]


def _summary(messages: list[Message]) -> list[Message]:
    """The last messages to a model, each cut; the last question even where it stands before them."""
    kept = _within([_cut(message, MESSAGE_CHARS) for message in messages[-MAX_MESSAGES:]], INPUT_CHARS)
    if not any(message["role"] == "user" for message in kept):
        questions = [message for message in messages if message["role"] == "user"]
        kept = [*(_cut(message, MESSAGE_CHARS) for message in questions[-1:]), *kept]
    return kept


def _within(messages: list[Message], limit: int) -> list[Message]:
    """The last messages that have room together, at least one."""
    kept: list[Message] = []
    for message in reversed(messages):
        limit -= len(message["content"])
        if "tool_calls" in message:
            limit -= size_of(message["tool_calls"])
        if kept and limit < 0:
            break
        kept.append(message)
    return kept[::-1]


def _cut(message: Message, limit: int) -> Message:
    if len(message["content"]) <= limit:
        return message
    return {**message, "content": cut(message["content"], limit)}


def _messages(span: Span, told: _Told, direction: str) -> Iterator[Message]:
    """The messages to (`input`) or from (`output`) a model or agent: indexed attributes, one attribute, or events."""
    role = "user" if direction == "input" else "assistant"
    for prefix in INDEXED_MESSAGES[direction]:
        if found := indexed(told.numbered, prefix):
            yield from (indexed_message(own, role) for own in found)
            return
    for told_value in told.all(direction):
        value = parsed(told_value)
        if value not in (None, "", {}, []):  # where it may not tell, ADK says {}
            yield from messages_of(value, role)
            return
    for event in span.events:
        its_direction, role_of_event = EVENT_MESSAGES.get(event.name, ("", ""))
        if its_direction == direction:
            yield from event_messages(event.attributes, role_of_event)
        elif event.name == DETAILS_EVENT:
            yield from messages_of(parsed(event.attributes.get(f"gen_ai.{direction}.messages")), role)


def _read_usage(facts: SpanFacts, told: _Told) -> None:
    usage = parsed(told.get("usage"))
    details = usage if isinstance(usage, dict) else {}
    for name, keys in _USAGE:
        values = (*told.all(name), *(details[key] for key in keys if key in details))
        count = next((count for count in map(_count, values) if count is not None), None)
        if count is not None:
            facts[name] = count  # type: ignore[literal-required]


_USAGE: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("input_tokens", ("input_tokens", "input", "prompt_tokens")),
    ("output_tokens", ("output_tokens", "output", "completion_tokens")),
    ("total_tokens", ("total_tokens", "total")),
)
"""Fact → its keys in an object of usage."""


def _read_evaluation(facts: SpanFacts, span: Span, told: _Told) -> None:
    """The agent's word on itself; people's annotations go their own way, as feedback."""
    stated = told.get("self_evaluation")
    if stated is None and not span.events and not told.numbered:
        return
    said = parsed(stated)
    evaluation: dict[str, Any] = _object(said, "text") if isinstance(said, dict) else {}
    people: list[dict[str, Any]] = []
    for event in span.events:
        if event.name == EVALUATION_EVENT:
            row = {key: _first(event.attributes, names) for key, names in EVALUATIONS.items()}
            _take_evaluation(evaluation, people, row, event.time_ns)
    for prefix, word in ANNOTATIONS if told.numbered else ():
        for row in indexed(told.numbered, prefix):
            own = {name.removeprefix(f"{word}."): value for name, value in row.items()}
            own |= {"by": own.get("annotator_kind"), "id": own.get("identifier")}
            _take_evaluation(evaluation, people, own, facts["e"] or facts["s"])
    if evaluation:
        facts["self_evaluation"] = evaluation
    if people:
        facts["judgements"] = people


def _take_evaluation(evaluation: dict[str, Any], people: list[dict[str, Any]], row: Mapping[str, Any], at: int) -> None:
    name = cut(text_of(row.get("name")), TITLE_CHARS) or "evaluation"
    score = _number(row.get("score"))
    said = {
        "score": score,
        "label": cut(text_of(row.get("label")), TITLE_CHARS),
        "explanation": cut(text_of(row.get("explanation")), OUTPUT_CHARS),
    }
    if text_of(row.get("by")).upper() == "HUMAN":
        people.append({"name": name, **said, "id": cut(text_of(row.get("id")), TITLE_CHARS), "at": at})
    elif name.lower() == "confidence" and score is not None:
        # Conventions leave the scale open: a fraction is of 1, a whole number of 100.
        evaluation["confidence"] = score * 100 if isinstance(score, float) and score <= 1 else score
        if said["explanation"]:
            evaluation["reasoning"] = said["explanation"]
    else:
        evaluation[name] = {key: value for key, value in said.items() if value not in (None, "")}


def says_it_failed(result: Any) -> bool:
    """Whether a result says of itself that the tool failed, though nothing was thrown."""
    if not isinstance(result, dict):
        return False
    if result.get("isError") is True or result.get("is_error") is True or result.get("success") is False:
        return True
    status = result.get("status")
    return isinstance(status, str) and status.upper() in ("ERROR", "FAILED", "FAILURE")


def _documents(span: Span, told: _Told, result: Any) -> list[tuple[str, float | None]] | None:
    """Titles and scores of what a retriever found, in its documents, its events or its result; None: not told."""
    listed = parsed(told.get("documents"))
    if not isinstance(listed, list):
        listed = [
            {name.removeprefix("document."): value for name, value in row.items()}
            for row in indexed(told.numbered, "retrieval.documents")
        ]
    if not listed:
        prefix = f"{DOCUMENT_EVENT}."
        listed = [
            {name.removeprefix(prefix): value for name, value in event.attributes.items()}
            for event in span.events
            if event.name == DOCUMENT_EVENT
        ]
    if not listed:
        inner = result.get("documents", result.get("results")) if isinstance(result, dict) else result
        if not isinstance(inner, list) and "gen_ai.retrieval.documents" not in span.attributes:
            return None
        listed = inner if isinstance(inner, list) else []
    return [_document(item if isinstance(item, dict) else {"content": text_of(item)}) for item in listed]


def _document(row: Mapping[str, Any]) -> tuple[str, float | None]:
    metadata = parsed(row.get("metadata"))
    own = metadata if isinstance(metadata, dict) else {}
    names = (row.get("title"), own.get("title"), row.get("name"), own.get("source"), own.get("doc_uri"), row.get("id"))
    texts = (row.get("content"), row.get("page_content"), row.get("document"), row.get("text"))
    title = next((text_of(name) for name in names if name), "")
    title = title or cut(next((text_of(text) for text in texts if text), ""), 80)
    scores = (_number(score) for score in (row.get("score"), own.get("score")))
    return cut(title, TITLE_CHARS), next((score for score in scores if score is not None), None)


# -- values ----------------------------------------------------------------------------------------------------------


def _first(attributes: Mapping[str, Any], names: tuple[str, ...]) -> Any:
    for name in names:
        if name in attributes:
            value = attributes[name]
            if value is not None and value != "":
                return value
    return None


def _text(told: _Told, fact: str) -> str:
    """The text of a fact; MLflow writes each value as JSON."""
    value = told.get(fact)
    if value is None:
        return ""
    return text_of(parsed(value) if isinstance(value, str) and value.startswith('"') else value)


def _object(value: Any, name: str) -> dict[str, Any]:
    """A JSON object; of what is none, or cannot be stored, the beginning of its text under `name`."""
    value = parsed(value)
    if value is None or value == "":
        return {}
    kept = _storable(value, ARGUMENTS_CHARS)
    return kept if isinstance(kept, dict) else {name: kept}


def _storable(value: Any, limit: int) -> Any:
    """A value as it is; of one that is very large, very deep or that no database holds, the beginning of its text."""
    kept = bounded(value, limit, ARGUMENTS_DEPTH)
    try:
        clean_json(kept)
    except UnstorableJSONError:
        return cut(text_of(value), limit)
    return kept


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
    """A number that JSON and every database holds; a whole one stays whole."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not abs(value) <= MAX_JSON_INTEGER:
        return None
    return value


def _is_true(value: Any) -> bool:
    return value is True or (isinstance(value, str) and value.strip().lower() in ("true", "1", "yes"))
