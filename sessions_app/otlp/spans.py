"""Decoding OTLP traces, protobuf and JSON, into one plain form. Knows nothing of agents.

Source: OTLP specification 1.x (opentelemetry-proto `docs/specification.md`). In JSON ids are hex, 64-bit integers are
strings or numbers, enums numbers or names, and unknown fields are ignored. Spans are decoded one by one, so that a bad
one is counted and its neighbours are kept.
"""

from __future__ import annotations

import base64
import math
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

import msgspec
from google.protobuf.message import DecodeError
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

MAX_ATTRIBUTE_DEPTH = 24
MAX_ATTRIBUTES = 2_000
_HEX = re.compile(r"[0-9a-fA-F]+")


@dataclass(slots=True)
class SpanEvent:
    """One event of a span."""

    name: str
    time_ns: int
    attributes: dict[str, Any]


@dataclass(slots=True)
class Span:
    """One span: ids in lower-case hex, times in nanoseconds since 1970 (0: not said)."""

    trace_id: str
    span_id: str
    parent_id: str  # "" for none
    name: str
    scope: str
    service: str
    start_ns: int
    end_ns: int
    status: str  # "", "OK", "ERROR"
    status_message: str
    attributes: dict[str, Any]
    events: list[SpanEvent] = field(default_factory=list)


@dataclass(slots=True)
class BadSpan:
    """A span that cannot be used, and why."""

    reason: str


class UndecodableError(ValueError):
    """The body is no OTLP trace request; the message says why."""


def decode_protobuf(body: bytes) -> list[Span | BadSpan]:
    """The spans of an ExportTraceServiceRequest. Raises UndecodableError."""
    try:
        request = ExportTraceServiceRequest.FromString(body)
    except DecodeError as error:
        raise UndecodableError("The body is not an ExportTraceServiceRequest in protobuf.") from error
    return list(_protobuf_spans(request))


def decode_json(body: bytes) -> list[Span | BadSpan]:
    """The spans of an ExportTraceServiceRequest in JSON. Raises UndecodableError."""
    try:
        return list(json_spans(_REQUEST.decode(body)))
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise UndecodableError(f"The body is not an ExportTraceServiceRequest in JSON: {error}") from error


# -- protobuf --------------------------------------------------------------------------------------------------------


def _protobuf_spans(request: Any) -> Iterator[Span | BadSpan]:
    for resource_spans in request.resource_spans:
        service = str(_protobuf_attributes(resource_spans.resource.attributes).get("service.name", ""))
        for scope_spans in resource_spans.scope_spans:
            scope = scope_spans.scope.name
            for span in scope_spans.spans:
                try:
                    yield _checked(
                        trace_id=span.trace_id.hex(),
                        span_id=span.span_id.hex(),
                        parent_id=span.parent_span_id.hex(),
                        name=span.name,
                        scope=scope,
                        service=service,
                        start_ns=span.start_time_unix_nano,
                        end_ns=span.end_time_unix_nano,
                        status=_STATUS.get(span.status.code, ""),
                        status_message=span.status.message,
                        attributes=_protobuf_attributes(span.attributes),
                        events=[
                            SpanEvent(event.name, event.time_unix_nano, _protobuf_attributes(event.attributes))
                            for event in span.events
                        ],
                    )
                except ValueError as error:
                    yield BadSpan(str(error))


def _protobuf_attributes(pairs: Any) -> dict[str, Any]:
    if len(pairs) > MAX_ATTRIBUTES:
        raise ValueError(f"More than {MAX_ATTRIBUTES} attributes.")
    return {pair.key: _protobuf_value(pair.value, 1) for pair in pairs}


def _protobuf_value(value: Any, depth: int) -> Any:
    kind = value.WhichOneof("value")
    if kind == "string_value":
        return value.string_value
    if kind is None:
        return None
    if depth > MAX_ATTRIBUTE_DEPTH:
        raise ValueError(f"An attribute is nested deeper than {MAX_ATTRIBUTE_DEPTH} levels.")
    if kind == "array_value":
        return [_protobuf_value(item, depth + 1) for item in value.array_value.values]
    if kind == "kvlist_value":
        return {pair.key: _protobuf_value(pair.value, depth + 1) for pair in value.kvlist_value.values}
    if kind == "bytes_value":
        return base64.b64encode(value.bytes_value).decode()
    return _finite(getattr(value, kind))


# -- JSON ------------------------------------------------------------------------------------------------------------


class _AnyValue(msgspec.Struct):
    stringValue: str | None = None  # noqa: N815
    boolValue: bool | None = None  # noqa: N815
    intValue: int | str | None = None  # noqa: N815
    doubleValue: float | str | None = None  # noqa: N815
    bytesValue: str | None = None  # noqa: N815
    arrayValue: _ArrayValue | None = None  # noqa: N815
    kvlistValue: _KeyValueList | None = None  # noqa: N815


class _KeyValue(msgspec.Struct):
    key: str = ""
    value: _AnyValue | None = None


class _ArrayValue(msgspec.Struct):
    values: list[_AnyValue] = []


class _KeyValueList(msgspec.Struct):
    values: list[_KeyValue] = []


class _Event(msgspec.Struct):
    name: str = ""
    timeUnixNano: int | str = 0  # noqa: N815
    attributes: list[_KeyValue] = []


class _Status(msgspec.Struct):
    code: int | str = 0
    message: str = ""


class _Span(msgspec.Struct):
    traceId: str = ""  # noqa: N815
    spanId: str = ""  # noqa: N815
    parentSpanId: str = ""  # noqa: N815
    name: str = ""
    startTimeUnixNano: int | str = 0  # noqa: N815
    endTimeUnixNano: int | str = 0  # noqa: N815
    attributes: list[_KeyValue] = []
    events: list[_Event] = []
    status: _Status | None = None


class _Scope(msgspec.Struct):
    name: str = ""


class _ScopeSpans(msgspec.Struct):
    scope: _Scope | None = None
    instrumentationLibrary: _Scope | None = None  # noqa: N815 - before OTLP 0.19
    spans: list[msgspec.Raw] = []


class _Resource(msgspec.Struct):
    attributes: list[_KeyValue] = []


class _ResourceSpans(msgspec.Struct):
    resource: _Resource | None = None
    scopeSpans: list[_ScopeSpans] = []  # noqa: N815
    instrumentationLibrarySpans: list[_ScopeSpans] = []  # noqa: N815 - before OTLP 0.19


class TraceRequest(msgspec.Struct):
    """ExportTraceServiceRequest; `batches` is Tempo's name for `resourceSpans`."""

    resourceSpans: list[_ResourceSpans] = []  # noqa: N815
    batches: list[_ResourceSpans] = []


_REQUEST = msgspec.json.Decoder(TraceRequest)
_SPAN = msgspec.json.Decoder(_Span)


def json_spans(request: TraceRequest) -> Iterator[Span | BadSpan]:
    """The spans of a decoded JSON request, each decoded on its own."""
    for resource_spans in (*request.resourceSpans, *request.batches):
        resource = resource_spans.resource or _Resource()
        try:
            service = str(_json_attributes(resource.attributes).get("service.name", ""))
        except ValueError:
            service = ""
        for scope_spans in (*resource_spans.scopeSpans, *resource_spans.instrumentationLibrarySpans):
            scope = (scope_spans.scope or scope_spans.instrumentationLibrary or _Scope()).name
            for raw in scope_spans.spans:
                yield _json_span(raw, scope, service)


def _json_span(raw: msgspec.Raw, scope: str, service: str) -> Span | BadSpan:
    try:
        span = _SPAN.decode(raw)
        status = span.status or _Status()
        return _checked(
            trace_id=_json_id(span.traceId, 32),
            span_id=_json_id(span.spanId, 16),
            parent_id=_json_id(span.parentSpanId, 16) if span.parentSpanId else "",
            name=span.name,
            scope=scope,
            service=service,
            start_ns=_integer(span.startTimeUnixNano),
            end_ns=_integer(span.endTimeUnixNano),
            status=_STATUS.get(status.code, ""),
            status_message=status.message,
            attributes=_json_attributes(span.attributes),
            events=[
                SpanEvent(event.name, _integer(event.timeUnixNano), _json_attributes(event.attributes))
                for event in span.events
            ],
        )
    except (ValueError, RecursionError) as error:  # msgspec's errors are ValueErrors
        return BadSpan(str(error))


def _json_id(text: str, digits: int) -> str:
    """An id in hex, either case; some exporters of other formats leave leading zeros out."""
    if not _HEX.fullmatch(text) or len(text) > digits:
        raise ValueError(f"An id must be {digits} hexadecimal digits.")
    return text.lower().rjust(digits, "0")


def _json_attributes(pairs: list[_KeyValue]) -> dict[str, Any]:
    if len(pairs) > MAX_ATTRIBUTES:
        raise ValueError(f"More than {MAX_ATTRIBUTES} attributes.")
    return {pair.key: _json_value(pair.value, 1) for pair in pairs}


def _json_value(value: _AnyValue | None, depth: int) -> Any:
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
        return _finite(value.doubleValue)
    if value.arrayValue is not None:
        return [_json_value(item, depth + 1) for item in value.arrayValue.values]
    if value.kvlistValue is not None:
        return {pair.key: _json_value(pair.value, depth + 1) for pair in value.kvlistValue.values}
    return value.bytesValue


# -- both ------------------------------------------------------------------------------------------------------------

_STATUS: dict[int | str, str] = {1: "OK", 2: "ERROR", "STATUS_CODE_OK": "OK", "STATUS_CODE_ERROR": "ERROR"}
_LATEST_NS = 2**63 - 1


def _checked(**fields: Any) -> Span:
    span = Span(**fields)
    if len(span.trace_id) != 32 or not int(span.trace_id, 16):  # noqa: PLR2004
        raise ValueError("A span needs a trace id of 16 bytes, not all zero.")
    if len(span.span_id) != 16 or not int(span.span_id, 16):  # noqa: PLR2004
        raise ValueError("A span needs a span id of 8 bytes, not all zero.")
    if not 0 <= span.start_ns <= _LATEST_NS or not 0 <= span.end_ns <= _LATEST_NS:
        raise ValueError("A span's times must be nanoseconds since 1970.")
    if not span.parent_id.strip("0"):
        span.parent_id = ""
    return span


def _integer(value: int | str) -> int:
    return value if isinstance(value, int) else int(value)


def _finite(value: Any) -> Any:
    """A number as it is; NaN and infinities, which no JSON column holds, as their names."""
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    return value


def split(decoded: Iterable[Span | BadSpan]) -> tuple[list[Span], list[str]]:
    """Good spans, and the reasons of the others."""
    good: list[Span] = []
    reasons: list[str] = []
    for each in decoded:
        if isinstance(each, Span):
            good.append(each)
        else:
            reasons.append(each.reason)
    return good, reasons
