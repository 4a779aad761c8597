"""One span in one plain form, whatever wire it came over. Knows nothing of agents."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

MAX_ATTRIBUTE_DEPTH = 24
MAX_ATTRIBUTES = 2_000
TRACE_DIGITS, SPAN_DIGITS = 32, 16
LATEST_NS = 2**63 - 1
STATUS: dict[int | str, str] = {1: "OK", 2: "ERROR", "STATUS_CODE_OK": "OK", "STATUS_CODE_ERROR": "ERROR"}


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


@dataclass(frozen=True, slots=True)
class Origin:
    """What a span has from around it: the service, the instrumentation, and our own attributes of its resource.

    `diagnosis.*` on a resource counts as if it stood on each of its spans, so that a team can set it by
    OTEL_RESOURCE_ATTRIBUTES, without a line of code.
    """

    service: str = ""
    own: dict[str, Any] = field(default_factory=dict)
    scope: str = ""

    @classmethod
    def of(cls, attributes: dict[str, Any]) -> Origin:
        """From a resource's attributes."""
        own = {name: value for name, value in attributes.items() if name.startswith("diagnosis.")}
        return cls(str(attributes.get("service.name", "")), own)


def checked(span: Span) -> Span:
    """The span. Raises ValueError for one without ids, or with times outside of what 64 bits hold."""
    if len(span.trace_id) != TRACE_DIGITS or not int(span.trace_id, 16):
        raise ValueError("A span needs a trace id of 16 bytes, not all zero.")
    if len(span.span_id) != SPAN_DIGITS or not int(span.span_id, 16):
        raise ValueError("A span needs a span id of 8 bytes, not all zero.")
    if not 0 <= span.start_ns <= LATEST_NS or not 0 <= span.end_ns <= LATEST_NS:
        raise ValueError("A span's times must be nanoseconds since 1970.")
    if not span.parent_id.strip("0"):
        span.parent_id = ""
    return span


def finite(value: Any) -> Any:
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
