"""OTLP traces in JSON, and the older names that files of other tools use.

Ids are hex, 64-bit integers strings or numbers, enums numbers or names, null is a field's default, and unknown fields
are ignored. Spans stay undecoded until each has its turn, so that a bad one is counted and its neighbours are kept.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import msgspec

from sessions_app.otlp.spans import (
    MAX_ATTRIBUTE_DEPTH,
    MAX_ATTRIBUTES,
    SPAN_DIGITS,
    STATUS,
    TRACE_DIGITS,
    BadSpan,
    Origin,
    Span,
    SpanEvent,
    UndecodableError,
    checked,
    finite,
)

IdReader = Callable[[str, int], str]
"""An id's text and its number of hex digits → lower-case hex. Raises ValueError."""

_HEX = re.compile(r"[0-9a-fA-F]+")


def decode_json(body: bytes) -> list[Span | BadSpan]:
    """The spans of an ExportTraceServiceRequest in JSON. Raises UndecodableError."""
    try:
        request = decode(body, _REQUEST)
    except ValueError as error:
        raise UndecodableError(f"The body is not an ExportTraceServiceRequest in JSON: {error}") from error
    return list(spans_of(request))


def decode(body: bytes | msgspec.Raw, decoder: msgspec.json.Decoder[Any]) -> Any:
    """Decode JSON whose escapes may hold half a character, as JavaScript writes a text that it cut. Raises ValueError.

    The half becomes NUL: what no database holds is replaced and marked further on, both in one place.
    """
    try:
        try:
            return decoder.decode(body)
        except msgspec.DecodeError:
            whole = _ESCAPE.sub(_whole_character, bytes(body))
            if whole == bytes(body):
                raise
            return decoder.decode(whole)
    except RecursionError as error:
        raise ValueError("It is nested too deeply.") from error


_ESCAPE = re.compile(
    rb"\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|\\u[dD][89a-fA-F][0-9a-fA-F]{2}|\\.", re.DOTALL
)
_HALF_CHARS = len(rb"\ud83d")


def _whole_character(escape: re.Match[bytes]) -> bytes:
    text = escape.group()
    return rb"\u0000" if len(text) == _HALF_CHARS else text


class _AnyValue(msgspec.Struct):
    stringValue: str | None = None  # noqa: N815
    boolValue: bool | None = None  # noqa: N815
    intValue: int | float | str | None = None  # noqa: N815
    doubleValue: float | str | None = None  # noqa: N815
    bytesValue: str | None = None  # noqa: N815
    arrayValue: _ArrayValue | None = None  # noqa: N815
    kvlistValue: _KeyValueList | None = None  # noqa: N815


class _KeyValue(msgspec.Struct):
    key: str = ""
    value: _AnyValue | None = None


class _ArrayValue(msgspec.Struct):
    values: list[_AnyValue] | None = None


class _KeyValueList(msgspec.Struct):
    values: list[_KeyValue] | None = None


class _Event(msgspec.Struct):
    name: str | None = None
    timeUnixNano: int | float | str | None = None  # noqa: N815
    attributes: list[_KeyValue] | None = None


class _Status(msgspec.Struct):
    code: int | str | None = None
    message: str | None = None


class _Span(msgspec.Struct):
    traceId: str | None = None  # noqa: N815
    spanId: str | None = None  # noqa: N815
    parentSpanId: str | None = None  # noqa: N815
    name: str | None = None
    startTimeUnixNano: int | float | str | None = None  # noqa: N815
    endTimeUnixNano: int | float | str | None = None  # noqa: N815
    attributes: list[_KeyValue] | None = None
    events: list[_Event] | None = None
    status: _Status | None = None


class _Scope(msgspec.Struct):
    name: str | None = None


class _ScopeSpans(msgspec.Struct):
    scope: _Scope | None = None
    instrumentationLibrary: _Scope | None = None  # noqa: N815 - before OTLP 0.19
    spans: list[msgspec.Raw] | None = None


class _Resource(msgspec.Struct):
    attributes: list[_KeyValue] | None = None


class ResourceSpans(msgspec.Struct):
    """The spans of one resource. `instrumentationLibrarySpans` is what `scopeSpans` was called before OTLP 0.19."""

    resource: _Resource | None = None
    scopeSpans: list[_ScopeSpans] | None = None  # noqa: N815
    instrumentationLibrarySpans: list[_ScopeSpans] | None = None  # noqa: N815


class TraceRequest(msgspec.Struct):
    """ExportTraceServiceRequest; `batches` is Tempo's name for `resourceSpans`."""

    resourceSpans: list[ResourceSpans] | None = None  # noqa: N815
    batches: list[ResourceSpans] | None = None


_REQUEST = msgspec.json.Decoder(TraceRequest)
_SPAN = msgspec.json.Decoder(_Span)


def hex_id(text: str, digits: int) -> str:
    """An id as OTLP has it: exactly so many hex digits, in either case."""
    if len(text) != digits or not _HEX.fullmatch(text):
        raise ValueError(f"An id must be {digits} hexadecimal digits.")
    return text.lower()


def spans_of(request: TraceRequest, read_id: IdReader = hex_id) -> Iterator[Span | BadSpan]:
    """The spans of a decoded request, each decoded on its own."""
    for resource_spans in (*(request.resourceSpans or ()), *(request.batches or ())):
        origin = _origin(resource_spans.resource)
        for scope_spans in (*(resource_spans.scopeSpans or ()), *(resource_spans.instrumentationLibrarySpans or ())):
            scope = scope_spans.scope or scope_spans.instrumentationLibrary or _Scope()
            scoped = replace(origin, scope=scope.name or "")
            for raw in scope_spans.spans or ():
                yield _span(raw, scoped, read_id)


def _origin(resource: _Resource | None) -> Origin:
    try:
        return Origin.of(_attributes(resource.attributes if resource else None))
    except ValueError:  # a resource nobody can read says nothing; its spans are still spans
        return Origin()


def _span(raw: msgspec.Raw, origin: Origin, read_id: IdReader) -> Span | BadSpan:
    try:
        span: _Span = decode(raw, _SPAN)
        status = span.status or _Status()
        return checked(
            Span(
                trace_id=read_id(span.traceId or "", TRACE_DIGITS),
                span_id=read_id(span.spanId or "", SPAN_DIGITS),
                parent_id=read_id(span.parentSpanId, SPAN_DIGITS) if span.parentSpanId else "",
                name=span.name or "",
                scope=origin.scope,
                service=origin.service,
                start_ns=_integer(span.startTimeUnixNano),
                end_ns=_integer(span.endTimeUnixNano),
                status=STATUS.get(status.code or 0, ""),
                status_message=status.message or "",
                attributes=origin.own | _attributes(span.attributes),
                events=[
                    SpanEvent(event.name or "", _integer(event.timeUnixNano), _attributes(event.attributes))
                    for event in span.events or ()
                ],
            )
        )
    except ValueError as error:  # msgspec's errors are ValueErrors
        return BadSpan(str(error))


def _attributes(pairs: list[_KeyValue] | None) -> dict[str, Any]:
    if not pairs:
        return {}
    if len(pairs) > MAX_ATTRIBUTES:
        raise ValueError(f"More than {MAX_ATTRIBUTES} attributes.")
    return {pair.key: _value(pair.value, 1) for pair in pairs}


def _value(value: _AnyValue | None, depth: int) -> Any:
    if value is None:
        return None
    if value.stringValue is not None:
        return value.stringValue
    if depth > MAX_ATTRIBUTE_DEPTH:
        raise ValueError(f"An attribute is nested deeper than {MAX_ATTRIBUTE_DEPTH} levels.")
    if value.boolValue is not None:
        return value.boolValue
    if value.intValue is not None:
        return _integer(value.intValue)
    if value.doubleValue is not None:
        return _double(value.doubleValue)
    if value.arrayValue is not None:
        return [_value(item, depth + 1) for item in value.arrayValue.values or ()]
    if value.kvlistValue is not None:
        return {pair.key: _value(pair.value, depth + 1) for pair in value.kvlistValue.values or ()}
    return value.bytesValue


def _integer(value: float | str | None) -> int:
    """A 64-bit integer: a number, or its text."""
    if value is None:
        return 0
    if isinstance(value, float) and not value.is_integer():
        raise ValueError("A whole number has a fraction.")
    return int(value)


def _double(value: float | str) -> Any:
    """A double: a number, its text, or the name of what is no number."""
    if isinstance(value, str):
        try:
            return finite(float(value))
        except ValueError:
            return value
    return finite(value)
