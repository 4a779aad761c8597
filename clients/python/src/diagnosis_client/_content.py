"""What agents hold in their hands, as bounded JSON: any value, and messages in any of the usual forms.

Work is bounded by the limit, not by the size of what is given: an agent with a history of megabytes pays for the
part that is kept. Messages come out as the GenAI semantic conventions of OpenTelemetry have them.
"""

from __future__ import annotations

import contextlib
import dataclasses
import hashlib
import json
import math
import re
from collections.abc import Iterable, Mapping, Sequence, Set
from itertools import islice
from typing import Any

from diagnosis_client._guard import warn_once

MAX_DEPTH = 20
MAX_INTEGER = 2**63
MAX_NAME_CHARS = 200
_ID = re.compile(r"[!-~]{1,64}")

Json = Any


def clip(text: str, limit: int) -> str:
    """At most `limit` characters that UTF-8 can carry, with a mark where the rest was."""
    if len(text) > limit:
        mark = f"… [cut, {len(text)} characters]"
        text = text[: max(0, limit - len(mark))] + mark
    try:
        text.encode()
    except UnicodeEncodeError:  # lone surrogates
        return text.encode("utf-8", "replace").decode()
    return text


def name(value: object, default: str = "unknown") -> str:
    """A short name for a span or attribute."""
    return clip(str(value), MAX_NAME_CHARS) if value else default


def safe_id(value: object, what: str) -> str:
    """An id as the server takes it: 1-64 printable ASCII characters without spaces.

    Another becomes a digest of itself, always the same one, so that a session and its feedback still meet.
    """
    text = value if isinstance(value, str) else str(value)
    if _ID.fullmatch(text):
        return text
    digest = hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()[:32]
    warn_once(
        f"id {what}", f"{what} {text[:100]!r} is no id of 1-64 printable ASCII characters; it is sent as {digest}."
    )
    return digest


def get(source: object, key: str) -> Any:
    """A field of a mapping or an attribute of an object; None when there is none."""
    if isinstance(source, (dict, Mapping)):  # dict first: asking an abstract class is slow
        return source.get(key)
    return getattr(source, key, None)


def to_json(value: object, limit: int) -> str:
    """JSON of any value, with about `limit` characters of content at most."""
    return dumps(plain(value, limit))


def dumps(value: Json) -> str:
    """Compact JSON; `plain` has made it finite and encodable."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def plain(value: object, limit: int) -> Json:
    """A copy made of JSON's own types."""
    return _Copy(limit).of(value, 1)


class _Copy:
    """Copies one value while the budget of characters lasts."""

    def __init__(self, budget: int) -> None:
        self.left = budget

    def of(self, value: object, depth: int) -> Json:
        try:
            return self.copied(value, depth)
        except Exception:  # noqa: BLE001 - whatever foreign code does when it is asked
            return f"<{type(value).__name__}>"

    def copied(self, value: object, depth: int) -> Json:
        self.left -= 1
        if value is None or isinstance(value, bool):
            return value
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, int):
            return int(value) if abs(value) <= MAX_INTEGER else str(value)[:100]
        if isinstance(value, float):
            return float(value) if math.isfinite(value) else str(value)
        if depth > MAX_DEPTH:
            return self.text(str(value)[:200])
        if isinstance(value, (dict, Mapping)):
            return self.mapping(value.items(), depth)
        if isinstance(value, (list, tuple, Sequence, Set)) and not isinstance(value, (bytes, bytearray, memoryview)):
            return self.items(value, depth)
        return self.other(value, depth)

    def text(self, value: str) -> str:
        cut = clip(value, max(0, self.left))
        self.left -= len(cut)
        return cut

    def mapping(self, items: Iterable[tuple[object, object]], depth: int) -> Json:
        copy = {}
        for key, item in items:
            if self.left <= 0:
                copy["…"] = "[cut]"
                break
            label = self.text(key if isinstance(key, str) else str(key))
            copy[label] = self.of(item, depth + 1)
        return copy

    def items(self, items: Iterable[object], depth: int) -> Json:
        copy = []
        for item in items:
            if self.left <= 0:
                copy.append("… [cut]")
                break
            copy.append(self.of(item, depth + 1))
        return copy

    def other(self, value: object, depth: int) -> Json:
        if isinstance(value, (bytes, bytearray, memoryview)):
            return self.text(bytes(value[: max(0, self.left) + 1]).decode("utf-8", "replace"))
        if dataclasses.is_dataclass(value) and not isinstance(value, type):
            fields = dataclasses.fields(value)
            return self.mapping(((field.name, getattr(value, field.name, None)) for field in fields), depth)
        model_dump = getattr(value, "model_dump", None)  # pydantic
        if callable(model_dump) and not isinstance(value, type):
            return self.of(model_dump(), depth + 1)
        return self.text(str(value))


# -- messages ----------------------------------------------------------------------------------------------------------

_ROLES = {"human": "user", "ai": "assistant", "AIMessageChunk": "assistant", "function": "tool", "developer": "system"}
_PLAIN_KEYS = {"role", "content"}
"""By far the commonest message; read at once."""
_OUTER_CHARS = 60
"""What a message costs beside its content."""


def input_messages(messages: object, limit: int) -> str:
    """`gen_ai.input.messages`. Of a history beyond the limit the first message and the latest stay."""
    if messages is None:
        return "[]"
    if isinstance(messages, (str, bytes, Mapping)) or not isinstance(messages, Iterable):
        messages = [messages]
    given = messages if isinstance(messages, Sequence) else list(messages)
    if not given:
        return "[]"
    first = message(given[0], "user", limit // 2)
    left = limit - _cost(first)
    latest: list[Json] = []
    position = len(given) - 1
    while position > 0 and left > 0:
        latest.append(message(given[position], "user", left))
        left -= _cost(latest[-1])
        position -= 1
    gap = [_text_message("system", f"… [cut, {position} messages]")] if position > 0 else []
    return dumps([first, *gap, *reversed(latest)])


def output_messages(output: object, tool_calls: Iterable[object] | None, limit: int) -> str:
    """`gen_ai.output.messages` of one answer: text, a message, or a list of such, one for each choice."""
    if isinstance(output, (list, tuple)):
        found = [message(item, "assistant", limit // max(1, len(output))) for item in islice(output, 16)]
    elif output is None:
        found = [{"role": "assistant", "parts": []}]
    else:
        found = [message(output, "assistant", limit)]
    if tool_calls:
        found = found or [{"role": "assistant", "parts": []}]
        _add_tool_calls(found[0]["parts"], tool_calls, limit)
    return dumps(found)


def message(source: object, role: str, limit: int) -> Json:
    """One message: text, or what OpenAI, Anthropic, LangChain or the conventions themselves call a message."""
    try:
        return _message(source, role, limit)
    except Exception:  # noqa: BLE001 - one odd message must not cost the others
        return _text_message(role, f"<{type(source).__name__}>")


def _message(source: object, role: str, limit: int) -> Json:
    if isinstance(source, str):
        return _text_message(role, clip(source, limit))
    if isinstance(source, dict) and source.keys() == _PLAIN_KEYS and isinstance(source["content"], str):
        return _text_message(_ROLES.get(source["role"], str(source["role"])), clip(source["content"], limit))
    kind = get(source, "type")
    if kind in {"function_call", "custom_tool_call"}:  # items of OpenAI's responses
        return {"role": "assistant", "parts": [_tool_call(source, limit)]}
    if kind in {"function_call_output", "custom_tool_call_output"}:
        return {"role": "tool", "parts": [_tool_response(get(source, "call_id"), get(source, "output"), limit)]}
    if kind == "reasoning":
        thought = "\n".join(str(get(item, "text") or "") for item in get(source, "summary") or ())
        return {"role": "assistant", "parts": [{"type": "reasoning", "content": clip(thought, limit)}]}
    given_role = get(source, "role") or (
        kind if isinstance(kind, str) and kind in {*_ROLES, "system", "tool"} else None
    )
    content, parts = get(source, "content"), get(source, "parts")
    if given_role is None and content is None and parts is None:
        return _text_message(role, to_json(source, limit))
    said = _ROLES.get(str(given_role), str(given_role)) if given_role else role
    budget = _Copy(limit)
    if isinstance(parts, Sequence) and not isinstance(parts, str):
        return {"role": said, "parts": [budget.of(part, 1) for part in parts if budget.left > 0]}
    call_id = get(source, "tool_call_id")
    if call_id is not None:
        return {"role": "tool", "parts": [_tool_response(call_id, content, limit)]}
    found = _parts(content, budget)
    _add_tool_calls(found, get(source, "tool_calls") or (), max(0, budget.left))
    return {"role": said, "parts": found}


def _add_tool_calls(parts: list[Json], tool_calls: Iterable[object], limit: int) -> None:
    """Add what is not there yet: some messages name a call both in their content and beside it."""
    known = {part["id"] for part in parts if part.get("type") == "tool_call" and part.get("id") is not None}
    parts += [call for call in (_tool_call(item, limit) for item in tool_calls) if call["id"] not in known]


def _text_message(role: str, text: str) -> Json:
    return {"role": role, "parts": [{"type": "text", "content": text}]}


def _parts(content: object, budget: _Copy) -> list[Json]:
    if content is None or content == "":
        return []
    if isinstance(content, str):
        return [{"type": "text", "content": budget.text(content)}]
    if not isinstance(content, Sequence):
        return [{"type": "text", "content": budget.text(to_json(content, max(0, budget.left)))}]
    return [_part(item, budget) for item in content if budget.left > 0]


def _part(item: object, budget: _Copy) -> Json:
    if isinstance(item, str):
        return {"type": "text", "content": budget.text(item)}
    kind = str(get(item, "type") or "text")
    if kind == "tool_use":
        return _tool_call(item, budget.left)
    if kind == "tool_result":
        return _tool_response(get(item, "tool_use_id"), get(item, "content"), budget.left)
    text = get(item, "text") or get(item, "refusal")
    if isinstance(text, str):
        return {"type": "text", "content": budget.text(text)}
    thinking = get(item, "thinking") or get(item, "reasoning")
    if isinstance(thinking, str):
        return {"type": "reasoning", "content": budget.text(thinking)}
    if "image" in kind or "audio" in kind or "file" in kind:
        return {"type": "uri", "modality": kind.rpartition("_")[2], "uri": budget.text(_address(item))}
    return budget.of(item, 2)


def _address(item: object) -> str:
    """Where an image or file lies; its bytes stay out."""
    source = get(item, "image_url") or get(item, "url") or get(item, "file_id") or ""
    url = str(source if isinstance(source, str) else get(source, "url") or "")
    return f"{url[:40]}… [data left out]" if url.startswith("data:") else url[:2000]


def _tool_call(source: object, limit: int) -> Json:
    """One tool call of OpenAI (both APIs), Anthropic, LangChain or the conventions."""
    function = get(source, "function") or get(source, "custom") or source
    arguments: Any = None
    for key in ("arguments", "args", "input"):
        if (arguments := get(function, key)) is not None:
            break
    if isinstance(arguments, str) and len(arguments) <= limit:
        with contextlib.suppress(ValueError, RecursionError):  # then it stays text
            arguments = json.loads(arguments)
    call_id = get(source, "call_id") or get(source, "id")
    return {
        "type": "tool_call",
        "id": None if call_id is None else clip(str(call_id), MAX_NAME_CHARS),
        "name": name(get(function, "name")),
        "arguments": plain(arguments, limit),
    }


def _tool_response(call_id: object, content: object, limit: int) -> Json:
    identity = None if call_id is None else clip(str(call_id), MAX_NAME_CHARS)
    return {"type": "tool_call_response", "id": identity, "response": plain(content, limit)}


def _cost(found: Json) -> int:
    """About how many characters a message takes."""
    return _OUTER_CHARS + sum(
        len(value) if isinstance(value, str) else len(dumps(value))
        for part in found["parts"]
        for value in part.values()
    )
