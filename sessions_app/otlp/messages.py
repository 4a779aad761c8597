"""Messages to and from models, out of whatever an SDK put into a span: one attribute, many, or events.

Forms known: OpenAI (chat and responses), Anthropic, GenAI parts, Google ADK, LangChain (messages, constructors,
results), arguments of a decorated function, plain text; of any other JSON its text.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any, NotRequired, TypedDict

import msgspec

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

DETAILS_EVENT = "gen_ai.client.inference.operation.details"
"""The event that carries `gen_ai.input.messages` and `gen_ai.output.messages` where they are no attributes."""

ROLES: Mapping[str, str] = {
    "user": "user", "human": "user", "HumanMessage": "user", "HumanMessageChunk": "user",
    "assistant": "assistant", "ai": "assistant", "model": "assistant", "AIMessage": "assistant",
    "AIMessageChunk": "assistant", "system": "system", "SystemMessage": "system", "developer": "system",
    "tool": "tool", "ToolMessage": "tool", "function": "tool", "FunctionMessage": "tool",
}  # fmt: skip
"""What SDKs call who speaks."""

QUESTION_KEYS = ("question", "query", "input", "prompt", "user_input", "message", "text", "content", "task")
ANSWER_KEYS = ("answer", "final_answer", "output", "result", "response", "text", "content", "message")
WRAPPERS = ("inputs", "outputs", "kwargs", "args", "data", "state")
"""Keys under which an object that is no message carries one, and those of objects around it."""

TOOL_ROLE_PARTS = ("tool_result", "tool_call_response", "function_call_output")
MAX_DEPTH = 8
MAX_CALLS = 30
CALL_CHARS = 4_000
CALL_DEPTH = 20
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
    thought: NotRequired[str]  # the model's reasoning, where it shows it


def messages_of(value: Any, role: str, depth: int = 0) -> Iterator[Message]:
    """The messages in a value; `role` is of those that name none."""
    if value is None or value == "":
        return
    if isinstance(value, list) and depth <= MAX_DEPTH:
        yield from _of_list(value, role, depth)
    elif isinstance(value, dict) and depth <= MAX_DEPTH:
        yield from _of_object(value, role, depth)
    else:
        yield _plain(role, text_of(value))


def _of_list(value: list[Any], role: str, depth: int) -> Iterator[Message]:
    if not value:
        return
    if all(_is_message(item) or _is_pair(item) or isinstance(item, list) for item in value):
        for item in value:
            if _is_pair(item):
                yield _plain(ROLES[item[0]], item[1])
            else:
                yield from messages_of(item, role, depth + 1)
    elif all(isinstance(item, str) for item in value):
        yield _plain(role, "\n".join(value))
    elif len(value) == 1:
        yield from messages_of(value[0], role, depth + 1)
    else:
        yield _plain(role, text_of(value))


def _of_object(value: dict[str, Any], role: str, depth: int) -> Iterator[Message]:
    kind = _kind(value)
    if not kind and "role" in value and isinstance(value.get("parts"), list):  # the conventions' own form
        yield _text_message(value) or _message(value, value["parts"], role)
    elif kind == "constructor" and isinstance(value.get("kwargs"), dict):  # LangChain's serialised classes
        names = value.get("id")
        name = names[-1] if isinstance(names, list) and names else ""
        yield from messages_of({"type": name, **value["kwargs"]}, role, depth + 1)
    elif kind in ROLES and isinstance(value.get("data"), dict):  # LangChain's message_to_dict
        yield from messages_of({**value["data"], "type": kind}, role, depth + 1)
    elif kind == "function_call" and "name" in value:  # an item of OpenAI's responses
        call = _call(value.get("call_id") or value.get("id"), value.get("name"), value.get("arguments"))
        yield {"role": "assistant", "content": "", "tool_calls": [call]}
    elif kind == "function_call_output":
        yield _plain("tool", text_of(value.get("output")))
    elif isinstance(inner := _messages_inside(value, role), list):
        yield from messages_of(inner, role, depth + 1)
    elif isinstance(value.get("content"), dict) and "parts" in value["content"]:  # ADK's response
        yield _message(value["content"], value["content"]["parts"], role)
    elif isinstance(value.get("parts"), list):
        yield _message(value, value["parts"], role)
    elif _is_message(value):
        yield _message(value, value.get("content"), role)
    else:
        yield from _of_wrapper(value, role, depth)


def _messages_inside(value: dict[str, Any], role: str) -> list[Any] | None:
    """The list of messages of a request or a response; None where there is none."""
    for key in ("messages", "choices", "candidates", "generations"):
        found = value.get(key)
        if isinstance(found, list) and found:
            return found if key == "messages" else [_chosen(item) for item in found]
    if isinstance(value.get("contents"), list):  # ADK's request
        config = value.get("config")
        instruction = config.get("system_instruction") if isinstance(config, dict) else None
        system = [{"role": "system", "content": result_text(instruction)}] if instruction else []
        return [*system, *value["contents"]]
    output = value.get("output")
    if role != "user" and isinstance(output, list) and output and all(_is_message(item) for item in output):
        return output  # OpenAI's responses
    return None


def _chosen(choice: Any) -> Any:
    """The message of one choice, candidate or generation."""
    if isinstance(choice, list):
        return [_chosen(item) for item in choice]
    if isinstance(choice, dict):
        for key in ("message", "content", "text"):
            if choice.get(key):
                return choice[key]
    return choice


def _of_wrapper(value: dict[str, Any], role: str, depth: int) -> Iterator[Message]:
    """What an object that is no message says: under the keys that usually say it, or its only text, or its JSON."""
    for key in (*(QUESTION_KEYS if role == "user" else ANSWER_KEYS), *WRAPPERS):
        inner = parsed(value.get(key))
        if inner and isinstance(inner, str | dict | list):
            yield from messages_of(inner, role, depth + 1)
            return
    values = list(value.values())
    only_text = values[0] if len(values) == 1 and isinstance(values[0], str) else None
    yield _plain(role, only_text or text_of(value))


def _is_message(value: Any) -> bool:
    if not isinstance(value, dict):
        return False
    kind = _kind(value)
    return (
        "role" in value
        or "parts" in value
        or (kind in ROLES and ("content" in value or "data" in value))
        or kind in ("constructor", "function_call", "function_call_output", "message", "reasoning")
        or ("content" in value and len(value) <= 4)  # noqa: PLR2004
    )


def _kind(value: Mapping[str, Any]) -> str:
    kind = value.get("type")
    return kind if isinstance(kind, str) else ""


def _is_pair(value: Any) -> bool:
    """LangChain's short form: `["user", "…"]`."""
    return isinstance(value, list) and len(value) == 2 and all(isinstance(v, str) for v in value) and value[0] in ROLES  # noqa: PLR2004


def _plain(role: str, text: str) -> Message:
    return {"role": role, "content": text}


def _message(value: Mapping[str, Any], content: Any, role: str) -> Message:
    """One message: who speaks, its content (text or parts), and the calls beside it."""
    said = _Said()
    parts = content if isinstance(content, list) else [content]
    for part in parts:
        said.add(part)
    if _kind(value) == "reasoning":  # an item of OpenAI's responses: a summary of parts, and no content
        summary = value.get("summary")
        for part in summary if isinstance(summary, list) else ():
            said.add(part)
        said.thoughts, said.texts = [*said.thoughts, *said.texts], []
    thought = value.get("reasoning_content")
    if isinstance(thought, str):
        said.thoughts.append(thought)
    calls = parsed(value.get("tool_calls"))
    if isinstance(calls, list):
        said.calls += [_call_of(call) for call in calls if isinstance(call, dict)]
    named = text_of(value.get("role")) or _kind(value)
    spoken = ROLES.get(named, role if named in ("", "message", "reasoning") else named)
    if spoken == "user" and parts and all(_is_tool_result(part) for part in parts):
        spoken = "tool"
    return said.message(spoken)


def _text_message(value: dict[str, Any]) -> Message | None:
    """A message of one text and nothing else, in the conventions' form, as most are; None for any other."""
    role, parts = ROLES.get(value["role"]) if isinstance(value["role"], str) else None, value["parts"]
    if role is None or len(value) != 2 or len(parts) != 1 or not isinstance(part := parts[0], dict):  # noqa: PLR2004
        return None
    text = part.get("content")
    if len(part) != 2 or part.get("type") != "text" or not isinstance(text, str):  # noqa: PLR2004
        return None
    return _plain(role, text)


def _is_tool_result(part: Any) -> bool:
    return isinstance(part, dict) and (part.get("type") in TOOL_ROLE_PARTS or "function_response" in part)


class _Said:
    """What the parts of one message say."""

    def __init__(self) -> None:
        self.texts: list[str] = []
        self.thoughts: list[str] = []
        self.calls: list[ToolCall] = []

    def add(self, part: Any) -> None:
        """Take one part: a text, or any SDK's object."""
        if not isinstance(part, dict):
            self.texts.append(text_of(part))
            return
        kind = part.get("type")
        if kind in ("tool_call", "tool_use"):
            self.calls.append(_call(part.get("id"), part.get("name"), part.get("arguments", part.get("input"))))
        elif isinstance(part.get("function_call"), dict):
            call = part["function_call"]
            self.calls.append(_call(call.get("id"), call.get("name"), call.get("args")))
        elif isinstance(part.get("function_response"), dict):
            self.texts.append(result_text(part["function_response"].get("response")))
        elif kind in ("reasoning", "thinking") or part.get("thought") is True:
            self.thoughts.append(text_of(part.get("thinking", part.get("text", part.get("content")))))
        else:
            for key in ("text", "content", "response", "result", "refusal"):
                if said := part.get(key):
                    self.texts.append(said if isinstance(said, str) else result_text(said))
                    break

    def message(self, role: str) -> Message:
        """All of it as one message."""
        message: Message = {"role": role, "content": "\n".join(text for text in self.texts if text)}
        if self.calls:
            message["tool_calls"] = self.calls[:MAX_CALLS]
        if thought := "\n".join(text for text in self.thoughts if text):
            message["thought"] = thought
        return message


# -- flattened into attributes ---------------------------------------------------------------------------------------


def indexed(attributes: Mapping[str, Any], prefix: str) -> list[dict[str, Any]]:
    """The attributes `prefix.0.…`, `prefix.1.…`, grouped by number, in order."""
    if not attributes:  # of most spans, which are asked for many prefixes
        return []
    start = len(prefix) + 1
    found: dict[int, dict[str, Any]] = {}
    for key, value in attributes.items():
        if key.startswith(prefix) and key[start - 1 : start] == ".":
            number, _, rest = key[start:].partition(".")
            if number.isascii() and number.isdigit():
                found.setdefault(int(number[:9]), {})[rest] = value
    return [found[number] for number in sorted(found)]


def indexed_message(attributes: Mapping[str, Any], role: str) -> Message:
    """`role`, `content`, `tool_calls.0.name`, each perhaps behind `message.` (OpenInference)."""
    own = {key.removeprefix("message."): value for key, value in attributes.items()}
    said = _Said()
    if own.get("content"):
        said.add(own["content"])
    else:
        for part in indexed(own, "contents"):
            said.add({key.removeprefix("message_content."): value for key, value in part.items()})
    for part in indexed(own, "tool_calls"):
        call = {key.removeprefix("tool_call.").removeprefix("function."): value for key, value in part.items()}
        said.calls.append(_call(call.get("id"), call.get("name"), call.get("arguments")))
    if name := own.get("function_call_name"):
        said.calls.append(_call("", name, own.get("function_call_arguments_json")))
    named = text_of(own.get("role"))
    return said.message(ROLES.get(named, named or role))


def event_messages(attributes: Mapping[str, Any], role: str) -> Iterator[Message]:
    """The message of one event of the older conventions: in an attribute of it, or in its attributes."""
    body = None
    for name in ("message", "content", "gen_ai.prompt", "gen_ai.completion", "gen_ai.event.content", "body"):
        if attributes.get(name):
            body = parsed(attributes[name])
            break
    if isinstance(body, dict) and isinstance(body.get("message"), dict):  # a choice
        body = body["message"]
    if isinstance(body, dict):
        yield from messages_of({"role": role, **body}, role)
    elif body is not None or "tool_calls" in attributes:
        named = text_of(attributes.get("role"))
        yield _message({"role": named or role, "tool_calls": attributes.get("tool_calls")}, body, role)


# -- pieces ----------------------------------------------------------------------------------------------------------


def result_text(value: Any) -> str:
    """A tool's result as text: of MCP's envelope and LangChain's message what they carry, of other JSON its JSON."""
    value = parsed(value)
    if isinstance(value, dict) and "tool_call_id" in value and isinstance(value.get("content"), str):
        return str(value["content"])
    if isinstance(value, dict) and isinstance(value.get("content"), list):
        texts = [part.get("text") for part in value["content"] if isinstance(part, dict)]
        spoken = [text for text in texts if isinstance(text, str)]
        if spoken and len(spoken) == len(texts):
            return "\n".join(spoken)
    return text_of(value)


def _call_of(call: dict[str, Any]) -> ToolCall:
    function = call.get("function")
    inner = function if isinstance(function, dict) else call
    return _call(call.get("id"), inner.get("name"), inner.get("arguments", inner.get("args")))


def _call(call_id: Any, name: Any, arguments: Any) -> ToolCall:
    return {
        "id": text_of(call_id)[:200],
        "name": text_of(name)[:200],
        "arguments": bounded(parsed(arguments), CALL_CHARS, CALL_DEPTH),
    }


def bounded(value: Any, limit: int, levels: int) -> Any:
    """A value as it is; of one that is very large or very deep, the beginning of its text."""
    if isinstance(value, str):
        return cut(value, limit)
    try:
        encoded = msgspec.json.encode(value)
        if len(encoded) <= limit and encoded.count(b"{") + encoded.count(b"[") <= levels:
            return value  # it cannot be nested deeper than it has brackets
    except (ValueError, OverflowError, RecursionError):
        pass
    text = text_of(value)
    return value if len(text) <= limit and not _is_deep(value, levels) else cut(text, limit)


def _is_deep(value: Any, levels: int) -> bool:
    if not isinstance(value, dict | list):
        return False
    inner = value.values() if isinstance(value, dict) else value
    return levels == 0 or any(_is_deep(item, levels - 1) for item in inner)


def parsed(value: Any) -> Any:
    """A JSON text as its value; anything else as it is."""
    if not isinstance(value, str) or value.lstrip()[:1] not in ("{", "[", '"'):
        return value
    try:
        return msgspec.json.decode(value)
    except (ValueError, RecursionError):  # Python's own takes NaN and halves of characters too, and is slower
        pass
    try:
        return json.loads(value)
    except (ValueError, RecursionError):
        return value


def text_of(value: Any) -> str:
    """A text as it is, nothing as "", anything else as JSON."""
    if value is None:
        return ""
    if isinstance(value, str):
        return value
    try:
        return json.dumps(value, ensure_ascii=False)
    except RecursionError:
        return CUT


def size_of(value: Any) -> int:
    """About how long a value is as JSON."""
    try:
        return len(msgspec.json.encode(value))
    except (ValueError, OverflowError, RecursionError):
        return len(text_of(value))


def cut(text: str, limit: int) -> str:
    """A text, or its beginning with a mark."""
    return text if len(text) <= limit else text[: limit - 1] + CUT
