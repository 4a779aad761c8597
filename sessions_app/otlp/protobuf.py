"""OTLP traces in protobuf. Source: opentelemetry-proto `opentelemetry/proto/trace/v1/trace.proto`.

A request decodes as a whole. Where it does not, because one span holds broken UTF-8 or more levels than the decoder
takes, its parts are decoded one by one, so that only that span is lost.
"""

from __future__ import annotations

import base64
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from google.protobuf.message import DecodeError
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.common.v1.common_pb2 import InstrumentationScope
from opentelemetry.proto.resource.v1.resource_pb2 import Resource
from opentelemetry.proto.trace.v1.trace_pb2 import Span as SpanMessage

from sessions_app.otlp.spans import (
    MAX_ATTRIBUTE_DEPTH,
    MAX_ATTRIBUTES,
    STATUS,
    BadSpan,
    Origin,
    Span,
    SpanEvent,
    UndecodableError,
    checked,
    finite,
)


def decode_protobuf(body: bytes) -> list[Span | BadSpan]:
    """The spans of an ExportTraceServiceRequest, which is also a TracesData. Raises UndecodableError."""
    try:
        return list(_spans(ExportTraceServiceRequest.FromString(body)))
    except DecodeError as error:
        decoded = list(_spans_one_by_one(memoryview(body)))
        if not any(isinstance(each, Span) for each in decoded):
            raise UndecodableError("The body is not an ExportTraceServiceRequest in protobuf.") from error
        return decoded


def _spans(request: Any) -> Iterator[Span | BadSpan]:
    for resource_spans in request.resource_spans:
        origin = _origin(resource_spans.resource)
        for scope_spans in resource_spans.scope_spans:
            scoped = replace(origin, scope=scope_spans.scope.name)
            for span in scope_spans.spans:
                yield _span(span, scoped)


def _origin(resource: Any) -> Origin:
    try:
        return Origin.of(_attributes(resource.attributes))
    except ValueError:  # a resource nobody can read says nothing; its spans are still spans
        return Origin()


def _span(span: Any, origin: Origin) -> Span | BadSpan:
    try:
        return checked(
            Span(
                trace_id=span.trace_id.hex(),
                span_id=span.span_id.hex(),
                parent_id=span.parent_span_id.hex(),
                name=span.name,
                scope=origin.scope,
                service=origin.service,
                start_ns=span.start_time_unix_nano,
                end_ns=span.end_time_unix_nano,
                status=STATUS.get(span.status.code, ""),
                status_message=span.status.message,
                attributes=origin.own | _attributes(span.attributes),
                events=[
                    SpanEvent(event.name, event.time_unix_nano, _attributes(event.attributes)) for event in span.events
                ],
            )
        )
    except ValueError as error:
        return BadSpan(str(error))


def _attributes(pairs: Any) -> dict[str, Any]:
    if len(pairs) > MAX_ATTRIBUTES:
        raise ValueError(f"More than {MAX_ATTRIBUTES} attributes.")
    return {pair.key: _value(pair.value, 1) for pair in pairs}


def _value(value: Any, depth: int) -> Any:
    if text := value.string_value:  # most are; asking which it is takes twice as long
        return text
    kind = value.WhichOneof("value")
    if kind == "string_value":
        return ""
    if kind is None:
        return None
    if depth > MAX_ATTRIBUTE_DEPTH:
        raise ValueError(f"An attribute is nested deeper than {MAX_ATTRIBUTE_DEPTH} levels.")
    if kind == "array_value":
        return [_value(item, depth + 1) for item in value.array_value.values]
    if kind == "kvlist_value":
        return {pair.key: _value(pair.value, depth + 1) for pair in value.kvlist_value.values}
    if kind == "bytes_value":
        return base64.b64encode(value.bytes_value).decode()
    return finite(getattr(value, kind))


# -- one by one ------------------------------------------------------------------------------------------------------

# Numbers of the fields on the way from a request to its spans.
_RESOURCE_SPANS = _RESOURCE = _SCOPE = 1
_SCOPE_SPANS = _SPANS = 2


def _spans_one_by_one(body: memoryview) -> Iterator[Span | BadSpan]:
    for resource_spans in _parts(body, _RESOURCE_SPANS):
        origin = Origin()
        for part in _parts(resource_spans, _RESOURCE):
            origin = _origin(_decoded(Resource, part) or Resource())
        for scope_spans in _parts(resource_spans, _SCOPE_SPANS):
            for part in _parts(scope_spans, _SCOPE):
                scope = _decoded(InstrumentationScope, part)
                origin = replace(origin, scope=scope.name if scope else "")
            for part in _parts(scope_spans, _SPANS):
                span = _decoded(SpanMessage, part)
                yield _span(span, origin) if span else BadSpan("A span is no protobuf, no UTF-8 or nested too deeply.")


def _decoded(message: Any, part: memoryview) -> Any:
    """The message, or None where it does not decode."""
    try:
        return message.FromString(bytes(part))
    except DecodeError:
        return None


_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5


def _parts(message: memoryview, wanted: int) -> Iterator[memoryview]:
    """The bytes of each field with the number `wanted`. Raises UndecodableError for what is not protobuf."""
    at = 0
    while at < len(message):
        tag, at = _varint(message, at)
        kind = tag & 0b111
        if kind == _VARINT:
            _, at = _varint(message, at)
        elif kind == _BYTES:
            length, at = _varint(message, at)
            if tag >> 3 == wanted:
                yield message[at : at + length]
            at += length
        elif kind in (_FIXED32, _FIXED64):
            at += 4 if kind == _FIXED32 else 8
        else:
            raise UndecodableError("The body is not protobuf.")
    if at > len(message):
        raise UndecodableError("The body ends too early.")


def _varint(message: memoryview, at: int) -> tuple[int, int]:
    """A number of seven bits a byte, and where it ends."""
    value = 0
    for place, byte in enumerate(message[at : at + 10]):
        value |= (byte & 0x7F) << (7 * place)
        if byte < 0x80:  # noqa: PLR2004 - the eighth bit says that more follows
            return value, at + place + 1
    raise UndecodableError("The body is not protobuf, or ends too early.")
