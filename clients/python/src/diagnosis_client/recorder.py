"""The recorder: an agent's door to the product."""

from __future__ import annotations

import asyncio
import functools
import inspect
import os
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import Executor, Future
from typing import Any, ParamSpec, TypeVar, cast, overload

from opentelemetry import trace
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import SpanLimits, TracerProvider
from opentelemetry.sdk.trace.sampling import ALWAYS_ON

from diagnosis_client import _content as content
from diagnosis_client._blocks import Agent, Core, ModelCall, Session, ToolCall, current_scope, inside
from diagnosis_client._http import Server
from diagnosis_client._openai import wrap
from diagnosis_client._outbox import Limits
from diagnosis_client._spans import SpanOutbox
from diagnosis_client._tools import F, recorded_tool
from diagnosis_client._version import __version__

C = TypeVar("C")
P = ParamSpec("P")
R = TypeVar("R")


class Recorder:
    """Records what an agent does and sends it, in the background, to `{endpoint}/v1/traces`.

    Make one for each process. It never blocks the agent and never raises into it: when the server is away, up to
    `max_queue_spans` spans wait (the oldest make room, `dropped` counts them), and `logging` is told once.
    Only the constructor raises: ValueError for an endpoint that is no address, or a key that no header can carry.
    """

    def __init__(
        self,
        endpoint: str = "http://127.0.0.1:8000",
        api_key: str | None = None,
        agent_id: str | None = None,
        *,
        max_content_chars: int = 65_536,
        max_queue_spans: int = 2_048,
        flush_seconds: float = 2.0,
        timeout_seconds: float = 10.0,
        exit_seconds: float = 3.0,
        set_global: bool = False,
    ) -> None:
        self._outbox = SpanOutbox(
            Server(endpoint, api_key), Limits(max_queue_spans, 200, flush_seconds, timeout_seconds, exit_seconds)
        )
        identity = None if agent_id is None else content.safe_id(agent_id, "agent_id")
        # All is said here, so that nothing meant for another tracing (sampling, limits) reaches ours.
        provider = TracerProvider(
            sampler=ALWAYS_ON,
            resource=Resource.create({"service.name": os.environ.get("OTEL_SERVICE_NAME") or identity or "agent"}),
            shutdown_on_exit=False,
            span_limits=SpanLimits(
                max_span_attributes=SpanLimits.UNSET,
                max_attribute_length=SpanLimits.UNSET,
                max_span_attribute_length=SpanLimits.UNSET,
            ),
        )
        provider.add_span_processor(self._outbox)
        if set_global:
            trace.set_tracer_provider(provider)
        tracer = provider.get_tracer("diagnosis_client", __version__)
        self._core = Core(tracer, max_content_chars, identity, set_global)

    # -- sessions and agents -------------------------------------------------------------------------------------------

    def session(
        self,
        query: object,
        session_id: str | None = None,
        agent_flow: str = "CHAT",
        agent_name: str = "intelligent_assistant",
        conversation_id: str | None = None,
        user_ref: str | None = None,
        consent: bool = True,  # noqa: FBT001, FBT002 - wanted in this place
        metadata: Mapping[str, Any] | None = None,
    ) -> Session:
        """One question: `with recorder.session("…") as session: …; session.answer("…")`. Also `async with`.

        `user_ref` is a pseudonym, never a name. An exception marks the session as failed and goes on.
        """
        said = {
            "agent_flow": agent_flow,
            "conversation_id": conversation_id,
            "user_ref": user_ref,
            "consent": consent,
            "metadata": metadata,
        }
        return Session(self._core, agent_name, query, session_id, said)

    @property
    def current_session(self) -> Session | None:
        """The session that the code runs in."""
        scope = current_scope(self._core)
        return scope.session if scope else None

    def agent(self, agent_name: str, query: object = None) -> Agent:
        """A sub-agent at work: `with recorder.agent("executor") as agent: …`."""
        return Agent(self._core, agent_name, query)

    # -- model calls ---------------------------------------------------------------------------------------------------

    def before_model(
        self,
        agent_name: str | None = None,
        messages: object = None,
        model: str | None = None,
        provider: str | None = None,
    ) -> ModelCall:
        """A model is about to be called. Give the step to `after_model`; the session's end ends a forgotten one."""
        step = ModelCall(self._core, agent_name, messages, model, provider)
        step.open()
        return step

    def after_model(
        self,
        step: ModelCall,
        output: object = None,
        *,
        input_tokens: int | None = None,
        output_tokens: int | None = None,
        thought: str | None = None,
        tool_calls: Iterable[object] | None = None,
        model: str | None = None,
        error: BaseException | None = None,
    ) -> None:
        """The model has answered, or failed with `error`."""
        step.output(
            output,
            input_tokens=input_tokens,
            output_tokens=output_tokens,
            thought=thought,
            tool_calls=tool_calls,
            model=model,
        )
        step.end(error)

    def model_call(
        self,
        agent_name: str | None = None,
        *,
        model: str | None = None,
        messages: object = None,
        provider: str | None = None,
    ) -> ModelCall:
        """The same as a block: `with recorder.model_call(…) as call: …; call.output("…", input_tokens=…)`."""
        return ModelCall(self._core, agent_name, messages, model, provider)

    # -- tools ---------------------------------------------------------------------------------------------------------

    @overload
    def tool(self, function: F, /) -> F: ...
    @overload
    def tool(self, tool_name: str | None = None, /) -> Callable[[F], F]: ...

    def tool(self, function: F | str | None = None, /) -> F | Callable[[F], F]:
        """Record each call of a function: `@recorder.tool` or `@recorder.tool("name")`."""
        if function is None or isinstance(function, str):
            tool_name = function
            return lambda function: recorded_tool(self._core, function, tool_name)
        return recorded_tool(self._core, function, None)

    def tool_call(self, tool_name: str, arguments: object = None, call_id: str | None = None) -> ToolCall:
        """One call as a block: `with recorder.tool_call("grep", {"pattern": "…"}) as call: …; call.result(…)`."""
        return ToolCall(self._core, tool_name, arguments, call_id)

    def lookup(self, tool_name: str, query: object, call_id: str | None = None) -> ToolCall:
        """A retrieval as a block: `with recorder.lookup("lookup_knowledge", query) as lookup: …; lookup.hits(…)`."""
        return ToolCall(self._core, tool_name, {"query": query}, call_id)

    def hits(
        self,
        l0: Iterable[str] | None = None,
        l1: Iterable[tuple[str, float | None] | str] | None = None,
        *,
        truncated: bool = False,
    ) -> None:
        """Say inside a recorded tool what its retrieval found; see `ToolCall.hits`."""
        scope = current_scope(self._core)
        if scope and isinstance(scope.block, ToolCall):
            scope.block.hits(l0, l1, truncated=truncated)

    # -- libraries -----------------------------------------------------------------------------------------------------

    def wrap_openai(self, client: C, *, agent_name: str | None = None, ask_usage: bool = False) -> C:
        """Record the calls of an OpenAI client, sync or async; gives the same client back.

        Chat completions and responses, streamed or not. A stream tells its tokens only when it is asked to
        (`stream_options={"include_usage": True}`); else they are estimated and marked so. `ask_usage=True` asks in
        the agent's stead and hides the extra chunk; not every server that imitates OpenAI's knows the option.
        """
        wrap(self._core, client, agent_name=agent_name, ask_usage=ask_usage)
        return client

    # -- threads -------------------------------------------------------------------------------------------------------

    def bind(self, function: Callable[P, R]) -> Callable[P, R]:
        """`function`, which will run in the session of now, in whatever thread. asyncio's tasks need no help."""
        scope = current_scope(self._core)

        @functools.wraps(function)
        def bound(*args: P.args, **kwargs: P.kwargs) -> R:
            with inside(scope):
                return function(*args, **kwargs)

        @functools.wraps(function)
        async def bound_coroutine(*args: P.args, **kwargs: P.kwargs) -> Any:
            with inside(scope):
                return await cast("Any", function(*args, **kwargs))

        return cast("Callable[P, R]", bound_coroutine) if inspect.iscoroutinefunction(function) else bound

    def executor(self, executor: Executor) -> Executor:
        """A pool of threads whose work runs in the session of whoever submits it."""
        return _BoundExecutor(self, executor)

    # -- sending -------------------------------------------------------------------------------------------------------

    @property
    def dropped(self) -> int:
        """Spans that never reached the server: no room, or refused."""
        return self._outbox.dropped

    def flush(self, timeout_seconds: float = 5.0) -> bool:
        """Send what has ended, now. True when nothing is left to send, False when the time was not enough."""
        return self._outbox.force_flush(int(timeout_seconds * 1000))

    async def aflush(self, timeout_seconds: float = 5.0) -> bool:
        """The same without holding the event loop."""
        return await asyncio.to_thread(self.flush, timeout_seconds)

    def close(self, timeout_seconds: float | None = None) -> bool:
        """Send what has ended, then stop for good; happens by itself when the process ends."""
        return self._outbox.close(timeout_seconds)


class _BoundExecutor(Executor):
    def __init__(self, recorder: Recorder, executor: Executor) -> None:
        self._recorder = recorder
        self._executor = executor

    def submit(self, function: Callable[P, R], /, *args: P.args, **kwargs: P.kwargs) -> Future[R]:
        """Run in the caller's session."""
        return self._executor.submit(self._recorder.bind(function), *args, **kwargs)

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:  # noqa: FBT001, FBT002 - the base's
        """Shut the pool down."""
        self._executor.shutdown(wait, cancel_futures=cancel_futures)
