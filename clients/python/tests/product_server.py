"""A real HTTP server in place of the product's: decodes OTLP and feedback, and can be told to misbehave."""

from __future__ import annotations

import contextlib
import gzip
import json
import threading
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTraceServiceRequest,
    ExportTraceServiceResponse,
)

KINDS = {1: "INTERNAL", 2: "SERVER", 3: "CLIENT"}


@dataclass
class Span:
    """A span as it arrived."""

    name: str
    kind: str
    trace_id: str
    span_id: str
    parent_id: str
    attributes: dict[str, Any]
    is_error: bool
    message: str
    start: int
    end: int

    def json(self, key: str) -> Any:
        return json.loads(self.attributes[key])

    def text(self, key: str) -> str:
        """All text of a messages attribute."""
        return "".join(
            part["content"] for message in self.json(key) for part in message["parts"] if part["type"] == "text"
        )


@dataclass
class Misbehaviour:
    """One answer out of the ordinary."""

    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    body: bytes = b""
    delay_seconds: float = 0.0


class ProductServer:
    """What the client speaks with. `misbehave` queues answers; `stop` and `start` keep the port."""

    def __init__(self) -> None:
        self.spans: list[Span] = []
        self.events: list[dict[str, Any]] = []
        self.requests: list[tuple[str, dict[str, str], int]] = []  # path, headers, length
        self.request_times: list[float] = []
        self.misbehaviours: deque[Misbehaviour] = deque()
        self.always: Misbehaviour | None = None
        self.max_body = 32 * 1024 * 1024
        self.unknown_sessions: set[str] = set()
        self.knows_only_recorded = False
        self._server: ThreadingHTTPServer | None = None
        self.port = 0
        self.start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def start(self) -> None:
        handler = type("Handler", (_Handler,), {"product": self})
        self._server = ThreadingHTTPServer(("127.0.0.1", self.port), handler)
        self._server.daemon_threads = True
        self.port = self._server.server_address[1]
        threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()

    def stop(self) -> None:
        if self._server is not None:
            self._server.shutdown()
            self._server.server_close()
            self._server = None

    def misbehave(self, status: int, times: int = 1, **more: Any) -> None:
        self.misbehaviours.extend(Misbehaviour(status, **more) for _ in range(times))

    def named(self, prefix: str) -> list[Span]:
        return sorted((span for span in self.spans if span.name.startswith(prefix)), key=lambda span: span.start)

    def one(self, prefix: str) -> Span:
        found = self.named(prefix)
        assert len(found) == 1, [span.name for span in self.spans]
        return found[0]


def wait_until(is_so: Callable[[], bool], seconds: float = 5.0) -> None:
    """Fail when something does not come to pass."""
    deadline = time.monotonic() + seconds
    while not is_so():
        assert time.monotonic() < deadline, "it did not come to pass"
        time.sleep(0.01)


class _Handler(BaseHTTPRequestHandler):
    product: ProductServer
    protocol_version = "HTTP/1.1"

    def log_message(self, *args: Any) -> None:
        pass

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        headers = {key.lower(): value for key, value in self.headers.items()}
        product = self.product
        product.requests.append((self.path, headers, len(body)))
        product.request_times.append(time.monotonic())
        wrong = product.misbehaviours.popleft() if product.misbehaviours else product.always or Misbehaviour()
        time.sleep(wrong.delay_seconds)
        if wrong.status != 200 or wrong.body:
            self.answer(wrong.status, wrong.body, wrong.headers)
            return
        if headers.get("content-encoding") == "gzip":
            body = gzip.decompress(body)
        if len(body) > product.max_body:
            self.answer(413, b'{"success": false, "code": "too_large"}', {"Content-Type": "application/json"})
        elif self.path == "/v1/traces":
            assert headers["content-type"] == "application/x-protobuf"
            product.spans.extend(_spans(body))
            self.answer(200, ExportTraceServiceResponse().SerializeToString())
        elif self.path == "/api/feedback/events":
            self.take_events(json.loads(body))
        else:
            self.answer(404)

    def take_events(self, events: list[dict[str, Any]]) -> None:
        product = self.product
        rejected = []
        for index, event in enumerate(events):
            recorded = {span.attributes["diagnosis.session.id"] for span in product.spans}
            is_new = product.knows_only_recorded and event["sessionId"] not in recorded
            if is_new or event["sessionId"] in product.unknown_sessions:
                rejected.append({"index": index, "errors": {"sessionId": ["There is no such session."]}})
            elif event["type"] == "star" and event["value"] not in range(1, 6):
                rejected.append({"index": index, "errors": {"value": ["Expected 1 to 5."]}})
            else:
                product.events.append(event)
        answer = {"accepted": len(events) - len(rejected), "rejected": rejected}
        self.answer(200, json.dumps(answer).encode(), {"Content-Type": "application/json"})

    def answer(self, status: int, body: bytes = b"", headers: dict[str, str] | None = None) -> None:
        with contextlib.suppress(OSError):  # a client that was too impatient
            self.send_response(status)
            for key, value in (headers or {}).items():
                self.send_header(key, value)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)


def _spans(body: bytes) -> list[Span]:
    request = ExportTraceServiceRequest()
    request.ParseFromString(body)
    return [
        Span(
            name=span.name,
            kind=KINDS[span.kind],
            trace_id=span.trace_id.hex(),
            span_id=span.span_id.hex(),
            parent_id=span.parent_span_id.hex(),
            attributes={item.key: _value(item.value) for item in span.attributes},
            is_error=span.status.code == 2,
            message=span.status.message,
            start=span.start_time_unix_nano,
            end=span.end_time_unix_nano,
        )
        for resource in request.resource_spans
        for scope in resource.scope_spans
        for span in scope.spans
    ]


def _value(value: Any) -> Any:
    kind = value.WhichOneof("value")
    if kind == "array_value":
        return [_value(item) for item in value.array_value.values]
    return getattr(value, kind)
