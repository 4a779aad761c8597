"""Recording an OpenAI client: chat completions and responses, sync or async, streamed or not.

Nothing of the library is imported: whatever looks like its client will do. The client is changed in place, since its
own helpers (`.stream()`, `.with_raw_response`) go through the same methods.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping
from typing import Any, Protocol, cast

from diagnosis_client import _content as content
from diagnosis_client._blocks import Core, ModelCall
from diagnosis_client._guard import guarded, warn_once

MARK = "__diagnosis_recorded__"
RAW_RESPONSE_HEADER = "X-Stainless-Raw-Response"
REQUEST = {
    "temperature": "gen_ai.request.temperature",
    "top_p": "gen_ai.request.top_p",
    "max_tokens": "gen_ai.request.max_tokens",
    "max_completion_tokens": "gen_ai.request.max_tokens",
    "max_output_tokens": "gen_ai.request.max_tokens",
}


class Reader(Protocol):
    """Makes sense of what one API gives back."""

    def read(self, answer: object) -> None:
        """Take a whole answer."""

    def read_chunk(self, chunk: object) -> None:
        """Take the next piece of a streamed one."""

    def tell(self, step: ModelCall) -> None:
        """Write down what was taken."""


class _Call(ModelCall):
    """A step that knows at its end what was read, however it came to its end."""

    reader: Reader

    def end(self, error: BaseException | None = None) -> None:
        if not self.is_over:
            self.reader.tell(self)
        super().end(error)


def wrap(core: Core, client: object, *, agent_name: str | None, ask_usage: bool) -> None:
    """Record the calls of `client` from now on; what does not look like a client is left alone."""
    provider = "azure.ai.openai" if "Azure" in type(client).__name__ else "openai"
    found = False
    for path, reader in ((("chat", "completions"), _ChatReader), (("responses",), _ResponsesReader)):
        resource: object = client
        for part in path:
            resource = getattr(resource, part, None)
        for method in ("create", "parse"):
            original = getattr(resource, method, None)
            if callable(original):
                found = True
                asks = ask_usage and reader is _ChatReader and method == "create"
                new_call = functools.partial(_new_call, core, agent_name, provider, reader)
                _replace(resource, method, _recorded(original, new_call, asks_usage=asks))
    if not found:
        warn_once("no client", f"{type(client).__name__} does not look like an OpenAI client; it is not recorded.")
    for method in ("copy", "with_options"):  # both make another client
        original = getattr(client, method, None)
        if callable(original):
            _replace(client, method, _wrapping(original, core, agent_name=agent_name, ask_usage=ask_usage))


@guarded
def _replace(owner: object, method: str, replacement: Callable[..., Any]) -> None:
    if not hasattr(getattr(owner, method), MARK):
        setattr(replacement, MARK, True)
        setattr(owner, method, replacement)


def _wrapping(
    original: Callable[..., Any], core: Core, *, agent_name: str | None, ask_usage: bool
) -> Callable[..., Any]:
    @functools.wraps(original)
    def make(*args: Any, **kwargs: Any) -> Any:
        client = original(*args, **kwargs)
        wrap(core, client, agent_name=agent_name, ask_usage=ask_usage)
        return client

    return make


def _new_call(
    core: Core, agent_name: str | None, provider: str, reader: Callable[[int], Reader], kwargs: Mapping[str, Any]
) -> _Call:
    messages = kwargs.get("messages", kwargs.get("input"))
    request = {
        attribute: kwargs[key]
        for key, attribute in REQUEST.items()
        if isinstance(kwargs.get(key), (int, float)) and not isinstance(kwargs[key], bool)
    }
    if kwargs.get("stream") is True:
        request["gen_ai.request.stream"] = True
    model = kwargs.get("model")
    call = _Call(core, agent_name, messages, str(model) if model else None, provider, request)
    call.reader = reader(core.limit)
    call.open()
    return call


def _recorded(
    original: Callable[..., Any], new_call: Callable[[Mapping[str, Any]], _Call], *, asks_usage: bool
) -> Callable[..., Any]:
    def before(kwargs: dict[str, Any]) -> tuple[_Call, bool]:
        hides_usage = asks_usage and kwargs.get("stream") is True and not kwargs.get("stream_options")
        if hides_usage:
            kwargs["stream_options"] = {"include_usage": True}
        return new_call(kwargs), hides_usage

    if inspect.iscoroutinefunction(original):

        @functools.wraps(original)
        async def record_async(*args: Any, **kwargs: Any) -> Any:
            call, hides_usage = before(kwargs)
            try:
                answer = await original(*args, **kwargs)
            except BaseException as error:
                call.end(error)
                raise
            return _follow(call, answer, kwargs, hides_usage=hides_usage)

        return record_async

    async def follow_later(call: _Call, pending: Any, kwargs: Mapping[str, Any], *, hides_usage: bool) -> Any:
        try:
            answer = await pending
        except BaseException as error:
            call.end(error)
            raise
        return _follow(call, answer, kwargs, hides_usage=hides_usage)

    @functools.wraps(original)
    def record(*args: Any, **kwargs: Any) -> Any:
        call, hides_usage = before(kwargs)
        try:
            answer = original(*args, **kwargs)
        except BaseException as error:
            call.end(error)
            raise
        if inspect.iscoroutine(answer):  # an async method behind a plain decorator
            return follow_later(call, answer, kwargs, hides_usage=hides_usage)
        return _follow(call, answer, kwargs, hides_usage=hides_usage)

    return record


def _follow(call: _Call, answer: object, kwargs: Mapping[str, Any], *, hides_usage: bool) -> object:
    """What the agent gets: the answer itself, or the stream with us beside it."""
    if kwargs.get("stream") is True:
        if hasattr(answer, "__anext__"):
            return _AsyncStream(answer, call, hides_usage=hides_usage)
        if hasattr(answer, "__next__"):
            return _SyncStream(answer, call, hides_usage=hides_usage)
    else:
        _read(call.reader, answer, kwargs)
    call.end()
    return answer


@guarded
def _read(reader: Reader, answer: Any, kwargs: Mapping[str, Any]) -> None:
    headers = kwargs.get("extra_headers")
    if isinstance(headers, Mapping) and headers.get(RAW_RESPONSE_HEADER) == "true":
        answer = answer.parse()  # of `with_raw_response`; it keeps what it parsed
        if inspect.iscoroutine(answer):
            answer.close()
            return
    reader.read(answer)


class _Stream:
    """The library's stream, passed through; each chunk is looked at on its way.

    The step ends with the stream, when it is closed or forgotten, or with the session, whichever comes first.
    """

    def __init__(self, stream: Any, call: _Call, *, hides_usage: bool) -> None:
        self._stream = stream
        self._call = call
        self._hides_usage = hides_usage

    @property  # type: ignore[misc]
    def __class__(self) -> type:  # isinstance(stream, openai.Stream) stays true
        return type(self._stream)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    def __del__(self) -> None:
        self._call.end()

    def close(self) -> Any:
        """Close the stream; of an async one, a coroutine."""
        self._call.end()
        return self._stream.close()

    def _look(self, chunk: Any) -> bool:
        """Take notice of a chunk; True when the agent is to see it."""
        self._notice(chunk)
        return not (self._hides_usage and not getattr(chunk, "choices", True) and getattr(chunk, "usage", None))

    @guarded
    def _notice(self, chunk: object) -> None:
        if not self._call.is_over:
            self._call.reader.read_chunk(chunk)


class _SyncStream(_Stream):
    def __iter__(self) -> _SyncStream:
        return self

    def __next__(self) -> Any:
        while True:
            try:
                chunk = next(self._stream)
            except StopIteration:
                self._call.end()
                raise
            except BaseException as error:
                self._call.end(error)
                raise
            if self._look(chunk):
                return chunk

    def __enter__(self) -> _SyncStream:
        self._stream.__enter__()
        return self

    def __exit__(self, *error: Any) -> Any:
        self._call.end()
        return self._stream.__exit__(*error)


class _AsyncStream(_Stream):
    def __aiter__(self) -> _AsyncStream:
        return self

    async def __anext__(self) -> Any:
        while True:
            try:
                chunk = await self._stream.__anext__()
            except StopAsyncIteration:
                self._call.end()
                raise
            except BaseException as error:
                self._call.end(error)
                raise
            if self._look(chunk):
                return chunk

    def aclose(self) -> Any:
        """Close the stream."""
        self._call.end()
        return self._stream.aclose()

    async def __aenter__(self) -> _AsyncStream:
        await self._stream.__aenter__()
        return self

    async def __aexit__(self, *error: Any) -> Any:
        self._call.end()
        return await self._stream.__aexit__(*error)


class _Usage:
    """Tokens in the words of either API."""

    def __init__(self) -> None:
        self.said: object = None
        self.pieces = 0  # of a stream; nearly always one token each

    def tell(self, step: ModelCall) -> None:
        said = self.said
        given = content.get(said, "prompt_tokens") if said else None
        taken = content.get(said, "completion_tokens") if said else None
        if said is None and self.pieces:
            step.output(output_tokens=self.pieces)
            step.detail({"diagnosis.usage.is_estimate": True})
            return
        step.output(
            input_tokens=content.get(said, "input_tokens") if given is None else given,
            output_tokens=content.get(said, "output_tokens") if taken is None else taken,
        )
        details_in = content.get(said, "prompt_tokens_details") or content.get(said, "input_tokens_details")
        details_out = content.get(said, "completion_tokens_details") or content.get(said, "output_tokens_details")
        step.detail(
            {
                "gen_ai.usage.cache_read.input_tokens": content.get(details_in, "cached_tokens"),
                "gen_ai.usage.reasoning.output_tokens": content.get(details_out, "reasoning_tokens"),
            }
        )


class _Choice:
    """One choice of a streamed chat completion, put together."""

    def __init__(self, limit: int) -> None:
        self._left = limit
        self._texts: list[str] = []
        self._thoughts: list[str] = []
        self._calls: dict[int, dict[str, Any]] = {}
        self.finish_reason: str | None = None

    def add(self, delta: object) -> bool:
        """Take what is new; True when there was anything."""
        text = content.get(delta, "content") or content.get(delta, "refusal")
        thought = content.get(delta, "reasoning_content") or content.get(delta, "reasoning")
        calls = content.get(delta, "tool_calls") or ()
        for given, kept in ((text, self._texts), (thought, self._thoughts)):
            if isinstance(given, str) and self._left > 0:
                kept.append(given)
                self._left -= len(given)
        for item in calls:
            call = self._calls.setdefault(content.get(item, "index") or 0, {"id": None, "name": "", "arguments": ""})
            function = content.get(item, "function")
            call["id"] = content.get(item, "id") or call["id"]
            call["name"] = content.get(function, "name") or call["name"]
            arguments = content.get(function, "arguments")
            if isinstance(arguments, str) and self._left > 0:
                call["arguments"] += arguments
                self._left -= len(arguments)
        return bool(text or thought or calls)

    @property
    def thought(self) -> str | None:
        return "".join(self._thoughts) or None

    @property
    def message(self) -> dict[str, Any]:
        return {"role": "assistant", "content": "".join(self._texts), "tool_calls": list(self._calls.values())}


class _ChatReader:
    """Chat completions."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._usage = _Usage()
        self._choices: dict[int, _Choice] = {}
        self._messages: list[object] = []
        self._thought: str | None = None
        self._finish_reasons: list[str] = []
        self._id: object = None
        self._model: object = None

    def read(self, answer: object) -> None:
        self._frame(answer)
        for choice in content.get(answer, "choices") or ():
            said = content.get(choice, "message")
            self._messages.append(said)
            self._thought = self._thought or content.get(said, "reasoning_content") or content.get(said, "reasoning")
            self._finish(content.get(choice, "finish_reason"))

    def read_chunk(self, chunk: object) -> None:
        self._frame(chunk)
        for item in content.get(chunk, "choices") or ():
            choice = self._choices.setdefault(content.get(item, "index") or 0, _Choice(self._limit))
            self._usage.pieces += choice.add(content.get(item, "delta"))
            self._finish(content.get(item, "finish_reason"))

    def _frame(self, answer: object) -> None:
        self._usage.said = content.get(answer, "usage") or self._usage.said
        self._id = self._id or content.get(answer, "id")
        self._model = self._model or content.get(answer, "model")

    def _finish(self, reason: object) -> None:
        if reason:
            self._finish_reasons.append(str(reason))

    @guarded
    def tell(self, step: ModelCall) -> None:
        choices = self._choices.values()
        messages = self._messages or [choice.message for choice in choices]
        thought = self._thought or next((choice.thought for choice in choices if choice.thought), None)
        step.output(messages or None, thought=thought, model=_text(self._model))
        step.detail(
            {"gen_ai.response.id": _text(self._id), "gen_ai.response.finish_reasons": self._finish_reasons or None}
        )
        self._usage.tell(step)


class _ResponsesReader:
    """The responses API."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._usage = _Usage()
        self._texts: list[str] = []
        self._answer: object = None

    def read(self, answer: object) -> None:
        self._answer = answer
        self._usage.said = content.get(answer, "usage")

    def read_chunk(self, chunk: object) -> None:
        kind = str(content.get(chunk, "type"))
        delta = content.get(chunk, "delta")
        if kind in {"response.completed", "response.incomplete", "response.failed"}:
            self.read(content.get(chunk, "response"))
        elif kind == "response.created":
            self._answer = content.get(chunk, "response")
        elif kind.endswith(".delta") and isinstance(delta, str):
            self._usage.pieces += 1
            if kind == "response.output_text.delta" and self._limit > 0:
                self._texts.append(delta)
                self._limit -= len(delta)

    @guarded
    def tell(self, step: ModelCall) -> None:
        items = list(content.get(self._answer, "output") or ())
        thoughts = [
            str(content.get(part, "text") or "")
            for item in items
            if content.get(item, "type") == "reasoning"
            for part in content.get(item, "summary") or ()
        ]
        # One answer, in the items of this API: its texts and its calls are parts of one message.
        texts = [part for item in items if content.get(item, "type") == "message" for part in _parts(item)]
        calls = [item for item in items if content.get(item, "type") in {"function_call", "custom_tool_call"}]
        message = {"role": "assistant", "content": texts or "".join(self._texts), "tool_calls": calls}
        step.output(
            message if texts or calls or self._texts else None,
            thought="\n".join(thoughts) or None,
            model=_text(content.get(self._answer, "model")),
        )
        status = _text(content.get(self._answer, "status"))
        step.detail(
            {
                "gen_ai.response.id": _text(content.get(self._answer, "id")),
                "gen_ai.response.finish_reasons": [status] if status in {"completed", "incomplete", "failed"} else None,
            }
        )
        self._usage.tell(step)


def _parts(item: object) -> list[object]:
    parts = content.get(item, "content")
    return list(cast("list[object]", parts)) if isinstance(parts, (list, tuple)) else []


def _text(value: object) -> str | None:
    return value if isinstance(value, str) and value else None
