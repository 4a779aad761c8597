"""What is being recorded: sessions, agents, model calls, tool calls. Each is one span, started and ended once.

Names of spans and attributes follow the GenAI semantic conventions of OpenTelemetry; what they have no word for is
under `diagnosis.`. Content attributes hold JSON.
"""

from __future__ import annotations

import contextlib
import uuid
from collections.abc import Iterable, Iterator, Mapping
from contextvars import ContextVar
from dataclasses import dataclass
from types import TracebackType
from typing import TYPE_CHECKING, Any, NamedTuple

from opentelemetry.context import Context, attach, get_current
from opentelemetry.trace import INVALID_SPAN, Span, SpanKind, Status, StatusCode, Tracer, set_span_in_context

from diagnosis_client import _content as content
from diagnosis_client._guard import guarded, warn_once

if TYPE_CHECKING:
    from typing_extensions import Self

MAX_ERROR_CHARS = 2_000
MAX_TITLES = 100

OPERATION = "gen_ai.operation.name"
INPUT, OUTPUT = "gen_ai.input.messages", "gen_ai.output.messages"


@dataclass(frozen=True)
class Core:
    """What all blocks of one recorder share."""

    tracer: Tracer
    limit: int  # characters of one content attribute
    agent_id: str | None
    is_global: bool  # spans of other libraries hang under ours


@dataclass(frozen=True)
class Scope:
    """A place in a session: what is recorded there hangs from `block`."""

    core: Core
    session: Session
    block: Block
    agent_name: str
    context: Context


class _Place(NamedTuple):
    """Where the code runs. Recorders nest in any order, so the way out is not the way up."""

    scope: Scope
    outer: _Place | None


_current: ContextVar[_Place | None] = ContextVar("diagnosis_place", default=None)


def current_scope(core: Core) -> Scope | None:
    """The innermost scope of this recorder, in this task or thread."""
    place = _current.get()
    while place is not None and place.scope.core is not core:
        place = place.outer
    return place.scope if place else None


@contextlib.contextmanager
def inside(scope: Scope | None) -> Iterator[None]:
    """Run code in a scope. Leaves nothing behind when it ends in another context than it began in."""
    if scope is None:
        yield
        return
    place = _Place(scope, _current.get())
    ambient = get_current()
    _current.set(place)
    if scope.core.is_global:
        attach(set_span_in_context(scope.block.span))
    try:
        yield
    finally:
        if _current.get() is place:
            outer = place.outer
            while outer is not None and outer.scope.session.is_over:  # ended meanwhile, by another generator
                outer = outer.outer
            _current.set(outer)
            if scope.core.is_global:
                attach(ambient)


class Block:
    """One span. Used with `with` or `async with`; an exception marks it as failed and goes on."""

    def __init__(self, core: Core) -> None:
        self._core = core
        self.scope: Scope | None = None
        self._inside: contextlib.AbstractContextManager[None] | None = None
        self.is_over = False
        self.span: Span = INVALID_SPAN

    def __enter__(self) -> Self:
        self.open()
        self._inside = inside(self.scope)
        self._inside.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._inside is not None:
            self._inside.__exit__(None, None, None)
            self._inside = None
        self.end(error)

    async def __aenter__(self) -> Self:
        return self.__enter__()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.__exit__(kind, error, trace)

    def active(self) -> contextlib.AbstractContextManager[None]:
        """Come back to this block, as a generator does that runs in other contexts than the one that opened it."""
        return inside(self.scope)

    @guarded
    def open(self, scope: Scope | None = None) -> None:
        """Start the span under `scope`, else where the code runs."""
        scope = scope or current_scope(self._core)
        if scope is None:
            warn_once("no session", "Something was to be recorded outside of `with recorder.session(…)`; it is not.")
            return
        self._start(scope)

    def _start(self, scope: Scope) -> None:
        raise NotImplementedError

    def _begin(
        self, scope: Scope, name: str, attributes: Mapping[str, Any], kind: SpanKind = SpanKind.INTERNAL
    ) -> None:
        # On every span: what arrives before the session has ended, or without its end, is known by its own name.
        said = {"diagnosis.session.id": scope.session.session_id}
        said |= {key: value for key, value in attributes.items() if value is not None}
        self.span = self._core.tracer.start_span(content.name(name), context=scope.context, kind=kind, attributes=said)
        agent_name = said.get("gen_ai.agent.name", scope.agent_name)
        self.scope = Scope(self._core, scope.session, self, agent_name, set_span_in_context(self.span, Context()))

    @guarded
    def fail(self, error: BaseException | str) -> None:
        """Say that this failed, without raising anything."""
        if isinstance(error, BaseException):
            kind = type(error)
            name = kind.__qualname__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__qualname__}"
        else:
            name = "_OTHER"
        self.span.set_attribute("error.type", content.name(name))
        self.span.set_status(Status(StatusCode.ERROR, content.clip(_words(error), MAX_ERROR_CHARS)))

    @guarded
    def end(self, error: BaseException | None = None) -> None:
        """End the span; the second time does nothing."""
        if self.is_over:
            return
        self.is_over = True
        if error is not None and not isinstance(error, GeneratorExit):  # a consumer that had enough is no failure
            self.fail(error)
        self.span.end()

    @guarded
    def detail(self, attributes: Mapping[str, Any]) -> None:
        """Say more in the words of the conventions; None says nothing."""
        for key, value in attributes.items():
            self._set(key, value)

    def _set(self, key: str, value: Any) -> None:
        if value is not None:
            self.span.set_attribute(key, value)


class Agent(Block):
    """An agent at work inside a session."""

    def __init__(self, core: Core, agent_name: str, query: object = None) -> None:
        super().__init__(core)
        self.agent_name = content.name(agent_name)
        self._query = query

    def _start(self, scope: Scope) -> None:
        self._begin(scope, f"invoke_agent {self.agent_name}", self._attributes())

    def _attributes(self) -> dict[str, Any]:
        asked = None if self._query is None else content.input_messages(self._query, self._core.limit)
        return {
            OPERATION: "invoke_agent",
            "gen_ai.agent.name": self.agent_name,
            "gen_ai.agent.id": self._core.agent_id,
            INPUT: asked,
        }

    @guarded
    def answer(self, text: object) -> None:
        """Say what came out; the last word counts."""
        self._set(OUTPUT, content.output_messages(text, None, self._core.limit))


class Session(Agent):
    """One question and its answer."""

    def __init__(
        self, core: Core, agent_name: str, query: object, session_id: str | None, said: Mapping[str, Any]
    ) -> None:
        super().__init__(core, agent_name, query)
        self.session_id = uuid.uuid4().hex if session_id is None else content.safe_id(session_id, "session_id")
        self._said = said
        self._evaluation: dict[str, Any] = {}
        self._unfinished: dict[Block, None] = {}

    @guarded
    def open(self, scope: Scope | None = None) -> None:
        """Start the session: a trace of its own, whatever else is traced around it."""
        self._start(Scope(self._core, self, self, self.agent_name, Context()))

    def _attributes(self) -> dict[str, Any]:
        limit = self._core.limit
        conversation, metadata = self._said["conversation_id"], self._said["metadata"]
        return {
            **super()._attributes(),
            "gen_ai.conversation.id": None
            if conversation is None
            else content.safe_id(conversation, "conversation_id"),
            "diagnosis.agent_flow": content.name(self._said["agent_flow"]),
            "diagnosis.user_ref": None if self._said["user_ref"] is None else content.name(self._said["user_ref"]),
            "diagnosis.consent": bool(self._said["consent"]),
            "diagnosis.metadata": None if metadata is None else content.to_json(metadata, limit),
        }

    @guarded
    def evaluate(
        self,
        *,
        confidence: float | None = None,
        reasoning: str | None = None,
        evidence_count: int | None = None,
        tools_proposed: object = None,
        tools_accepted: object = None,
    ) -> None:
        """Say what the agent thinks of its own answer; `confidence` is 0-100. What is said again is replaced."""
        said = {
            "confidence": confidence,
            "reasoning": reasoning,
            "evidence_count": evidence_count,
            "tools_proposed": tools_proposed,
            "tools_accepted": tools_accepted,
        }
        self._evaluation |= {key: value for key, value in said.items() if value is not None}
        self._set("diagnosis.self_evaluation", content.to_json(self._evaluation, self._core.limit))

    def watch(self, block: Block) -> None:
        """End `block` with the session, should nobody else end it."""
        self._unfinished[block] = None

    def unwatch(self, block: Block) -> None:
        """`block` has ended by itself."""
        self._unfinished.pop(block, None)

    @guarded
    def end(self, error: BaseException | None = None) -> None:
        """End the session, and first the model calls that nobody ended."""
        for block in list(self._unfinished):
            block.end(error)
        super().end(error)


class ModelCall(Block):
    """One call of a model: a step of its agent."""

    def __init__(
        self,
        core: Core,
        agent_name: str | None,
        messages: object,
        model: str | None,
        provider: str | None = None,
        request: Mapping[str, Any] | None = None,
    ) -> None:
        super().__init__(core)
        self._agent_name = agent_name
        self._messages = messages
        self._model = model
        self._provider = provider
        self._request = request or {}

    def _start(self, scope: Scope) -> None:
        model = None if self._model is None else content.name(self._model)
        attributes = {
            OPERATION: "chat",
            "gen_ai.provider.name": content.name(self._provider),
            "gen_ai.request.model": model,
            "gen_ai.agent.name": content.name(self._agent_name or scope.agent_name),
            INPUT: None if self._messages is None else content.input_messages(self._messages, self._core.limit),
            **self._request,
        }
        self._messages = None  # not ours to keep alive
        self._begin(scope, f"chat {model}" if model else "chat", attributes, SpanKind.CLIENT)
        scope.session.watch(self)

    @guarded
    def output(
        self,
        output: object = None,
        *,
        input_tokens: int | None = None,
        output_tokens: int | None = None,
        thought: str | None = None,
        tool_calls: Iterable[object] | None = None,
        model: str | None = None,
    ) -> None:
        """Say what the model gave: text or a message, its tokens, its thought, the tools it wants called.

        `model` is the one that answered, where it is another than the one asked.
        """
        if output is not None or tool_calls:
            self._set(OUTPUT, content.output_messages(output, tool_calls, self._core.limit))
        self._set("gen_ai.usage.input_tokens", _count(input_tokens))
        self._set("gen_ai.usage.output_tokens", _count(output_tokens))
        self._set("gen_ai.response.model", None if model is None else content.name(model))
        self._set("diagnosis.step.thought", None if thought is None else content.clip(str(thought), self._core.limit))

    @guarded
    def end(self, error: BaseException | None = None) -> None:
        """End the step."""
        if self.scope is not None:
            self.scope.session.unwatch(self)
        super().end(error)


class ToolCall(Block):
    """One call of a tool."""

    def __init__(self, core: Core, tool_name: str, arguments: object = None, call_id: str | None = None) -> None:
        super().__init__(core)
        self._tool_name = content.name(tool_name)
        self._arguments = arguments
        self._call_id = call_id

    def _start(self, scope: Scope) -> None:
        arguments = None if self._arguments is None else content.to_json(self._arguments, self._core.limit)
        attributes = {
            OPERATION: "execute_tool",
            "gen_ai.tool.name": self._tool_name,
            "gen_ai.tool.call.id": None if self._call_id is None else content.name(self._call_id),
            "gen_ai.tool.call.arguments": arguments,
        }
        self._arguments = None
        self._begin(scope, f"execute_tool {self._tool_name}", attributes)

    @guarded
    def result(self, value: object) -> None:
        """Say what the tool gave."""
        self._set("gen_ai.tool.call.result", content.to_json(value, self._core.limit))

    @guarded
    def hits(
        self,
        l0: Iterable[str] | None = None,
        l1: Iterable[tuple[str, float | None] | str] | None = None,
        *,
        truncated: bool = False,
    ) -> None:
        """Say what a retrieval found: titles by exact key (`l0`), titles and scores by meaning (`l1`).

        A layer that was not asked is None; one that found nothing is an empty list.
        """
        exact = None if l0 is None else [str(title) for title in l0]
        close = None if l1 is None else [(item, None) if isinstance(item, str) else item for item in l1]
        layers = {"L0": exact, "L1": close}
        asked = [layer for layer, found in layers.items() if found is not None]
        details = {
            "l0_titles": (exact or [])[:MAX_TITLES],
            "l1_titles": [title for title, _ in (close or [])[:MAX_TITLES]],
            "l1_scores": [None if score is None else float(score) for _, score in (close or [])[:MAX_TITLES]],
        }
        self._set("diagnosis.retrieval.layer", "+".join([name for name in asked if layers[name]] or asked) or None)
        self._set("diagnosis.retrieval.l0_match_count", None if exact is None else len(exact))
        self._set("diagnosis.retrieval.l1_match_count", None if close is None else len(close))
        self._set("diagnosis.retrieval.truncated", bool(truncated))
        self._set("diagnosis.retrieval.details", content.to_json(details, self._core.limit))


def _words(error: BaseException | str) -> str:
    if not isinstance(error, BaseException):
        return str(error)
    try:
        return f"{type(error).__name__}: {error}"
    except Exception:  # noqa: BLE001 - a failure that cannot say what it is stays one
        return type(error).__name__


def _count(value: object) -> int | None:
    """A number of tokens, where it is one."""
    is_count = isinstance(value, (int, float)) and not isinstance(value, bool) and 0 <= value < content.MAX_INTEGER
    return int(value) if is_count else None  # type: ignore[call-overload]  # narrowed one line above
