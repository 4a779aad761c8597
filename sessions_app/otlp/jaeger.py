"""Traces as Jaeger's interface and API export them, in JSON."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec

from sessions_app.otlp.json_form import IdReader, decode
from sessions_app.otlp.spans import (
    MAX_ATTRIBUTES,
    SPAN_DIGITS,
    TRACE_DIGITS,
    BadSpan,
    Origin,
    Span,
    SpanEvent,
    checked,
    finite,
)


class _Tag(msgspec.Struct):
    key: str = ""
    type: str | None = None
    value: Any = None


class _Log(msgspec.Struct):
    timestamp: int = 0  # µs
    fields: list[_Tag] | None = None


class _Reference(msgspec.Struct):
    refType: str | None = None  # noqa: N815
    traceID: str | None = None  # noqa: N815
    spanID: str | None = None  # noqa: N815


class _Process(msgspec.Struct):
    serviceName: str | None = None  # noqa: N815
    tags: list[_Tag] | None = None


class _Span(msgspec.Struct):
    traceID: str | None = None  # noqa: N815
    spanID: str | None = None  # noqa: N815
    parentSpanID: str | None = None  # noqa: N815
    references: list[_Reference] | None = None
    operationName: str | None = None  # noqa: N815
    startTime: int = 0  # noqa: N815 - µs
    duration: int = 0  # µs
    tags: list[_Tag] | None = None
    logs: list[_Log] | None = None
    processID: str | None = None  # noqa: N815
    process: _Process | None = None


class JaegerTrace(msgspec.Struct):
    """One element of `data`."""

    traceID: str | None = None  # noqa: N815
    spans: list[msgspec.Raw] | None = None
    processes: dict[str, _Process] | None = None


_SPAN = msgspec.json.Decoder(_Span)


def spans_of(trace: JaegerTrace, read_id: IdReader) -> Iterator[Span | BadSpan]:
    """The spans of a trace, each decoded on its own."""
    origins = {name: _origin(process) for name, process in (trace.processes or {}).items()}
    for raw in trace.spans or ():
        yield _span(raw, trace, origins, read_id)


def _origin(process: _Process) -> Origin:
    try:
        return Origin.of(_attributes(process.tags) | {"service.name": process.serviceName or ""})
    except ValueError:
        return Origin(process.serviceName or "")


def _span(raw: msgspec.Raw, trace: JaegerTrace, origins: dict[str, Origin], read_id: IdReader) -> Span | BadSpan:
    try:
        span: _Span = decode(raw, _SPAN)
        attributes = _attributes(span.tags)
        origin = origins.get(span.processID or "") or (_origin(span.process) if span.process else Origin())
        parent = _parent(span)
        return checked(
            Span(
                trace_id=read_id(span.traceID or trace.traceID or "", TRACE_DIGITS),
                span_id=read_id(span.spanID or "", SPAN_DIGITS),
                parent_id=read_id(parent, SPAN_DIGITS) if parent else "",
                name=span.operationName or "",
                scope=str(attributes.get("otel.scope.name", attributes.get("otel.library.name", ""))),
                service=origin.service,
                start_ns=span.startTime * 1000,
                end_ns=(span.startTime + span.duration) * 1000,
                status=_status(attributes),
                status_message=str(attributes.get("otel.status_description", "")),
                attributes=origin.own | attributes,
                events=[_event(log) for log in span.logs or ()],
            )
        )
    except ValueError as error:
        return BadSpan(str(error))


def _parent(span: _Span) -> str:
    """The span that this one is a child of. Links come as references too, of another type or to another trace."""
    for reference in span.references or ():
        is_own = reference.traceID in (None, span.traceID)
        if reference.refType == "CHILD_OF" and is_own and reference.spanID:
            return reference.spanID
    return span.parentSpanID or ""


def _status(attributes: dict[str, Any]) -> str:
    if attributes.get("error") in (True, "true"):
        return "ERROR"
    code = str(attributes.get("otel.status_code", "")).upper()
    return code if code in ("OK", "ERROR") else ""


def _event(log: _Log) -> SpanEvent:
    fields = _attributes(log.fields)
    return SpanEvent(str(fields.pop("event", "")), log.timestamp * 1000, fields)


def _attributes(tags: list[_Tag] | None) -> dict[str, Any]:
    if len(tags or ()) > MAX_ATTRIBUTES:
        raise ValueError(f"More than {MAX_ATTRIBUTES} attributes.")
    return {tag.key: _value(tag) for tag in tags or ()}


def _value(tag: _Tag) -> Any:
    """A tag's value; 64-bit integers and booleans may come as text."""
    if isinstance(tag.value, str):
        if tag.type == "int64":
            return int(tag.value)
        if tag.type == "float64":
            return finite(float(tag.value))
        if tag.type == "bool":
            return tag.value == "true"
    return finite(tag.value)
