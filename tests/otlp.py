"""OTLP by hand: spans as plain JSON, and whole requests in both forms."""

from __future__ import annotations

import base64
import json
import math
from typing import Any

from google.protobuf import json_format
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

_NAMES = {"nan": "NaN", "inf": "Infinity", "-inf": "-Infinity"}
START_NS = 1_790_000_000_000_000_000
TRACE = "5b8efff798038103d269b633813fc60c"


def any_value(value: Any) -> dict[str, Any]:
    """A Python value as OTLP's AnyValue."""
    match value:
        case bool():
            return {"boolValue": value}
        case int():
            return {"intValue": str(value)}
        case float():
            return {"doubleValue": value if math.isfinite(value) else _NAMES[str(value)]}
        case list() | tuple():
            return {"arrayValue": {"values": [any_value(item) for item in value]}}
        case dict():
            return {"kvlistValue": {"values": pairs(value)}}
        case None:
            return {}
    return {"stringValue": value}


def pairs(attributes: dict[str, Any]) -> list[dict[str, Any]]:
    """Attributes as OTLP's list of KeyValue."""
    return [{"key": key, "value": any_value(value)} for key, value in attributes.items()]


def span(
    number: int,
    name: str,
    attributes: dict[str, Any] | None = None,
    *,
    parent: int | None = None,
    trace: str = TRACE,
    at_ms: int | None = None,
    ms: int = 100,
    error: str | None = None,
    events: list[tuple[str, dict[str, Any]]] = (),  # type: ignore[assignment]
) -> dict[str, Any]:
    """One span in OTLP's JSON. Starts in the order of its number; lasts 100 ms."""
    start = START_NS + (number if at_ms is None else at_ms) * 1_000_000
    made: dict[str, Any] = {
        "traceId": trace,
        "spanId": f"{number:016x}",
        "name": name,
        "startTimeUnixNano": str(start),
        "endTimeUnixNano": str(start + ms * 1_000_000),
        "attributes": pairs(attributes or {}),
    }
    if parent is not None:
        made["parentSpanId"] = f"{parent:016x}"
    if error is not None:
        made["status"] = {"code": 2, "message": error}
    if events:
        made["events"] = [
            {"name": event, "timeUnixNano": str(start), "attributes": pairs(own)} for event, own in events
        ]
    return made


def request(*spans: Any, scope: str = "tests", resource: dict[str, Any] | None = None) -> dict[str, Any]:
    """An ExportTraceServiceRequest in JSON."""
    return {
        "resourceSpans": [
            {
                "resource": {"attributes": pairs({"service.name": "shop"} if resource is None else resource)},
                "scopeSpans": [{"scope": {"name": scope}, "spans": list(spans)}],
            }
        ]
    }


def protobuf(body: dict[str, Any]) -> bytes:
    """The same request in protobuf."""
    return json_format.ParseDict(with_base64_ids(body), ExportTraceServiceRequest()).SerializeToString()


def with_base64_ids(body: dict[str, Any]) -> dict[str, Any]:
    """Ids as protobuf's own JSON has them, and Tempo's API."""
    body = json.loads(json.dumps(body))  # a copy in which no span stands twice as one
    for resource_spans in body["resourceSpans"]:
        for scope_spans in resource_spans["scopeSpans"]:
            for each in scope_spans["spans"]:
                for name in ("traceId", "spanId", "parentSpanId"):
                    if each.get(name):
                        each[name] = base64.b64encode(bytes.fromhex(each[name])).decode()
    return body
