"""From finished spans to `/v1/traces`: OTLP over HTTP, protobuf, gzip.

The encoding is OpenTelemetry's own. The sending is ours, because its exporter keeps the server's reason to itself,
takes headers meant for other collectors from the environment, and loses a whole batch for one span that is too large.
"""

from __future__ import annotations

import gzip
import logging
from collections.abc import Sequence

from opentelemetry.context import Context
from opentelemetry.exporter.otlp.proto.common.trace_encoder import encode_spans
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceResponse
from opentelemetry.sdk.trace import ReadableSpan, Span, SpanProcessor

from diagnosis_client._http import Reply, Server
from diagnosis_client._outbox import Limits, Outbox, Outcome

logger = logging.getLogger("diagnosis_client")

PATH = "/v1/traces"
MAX_WARNINGS = 50
HTTP_TOO_LARGE = 413
HEADERS = {"Content-Type": "application/x-protobuf", "Content-Encoding": "gzip"}


class SpanOutbox(SpanProcessor):
    """Takes each finished span and sends it when it suits."""

    def __init__(self, server: Server, limits: Limits) -> None:
        self._server = server
        self._outbox = Outbox(self._send, what="spans", limits=limits, weigh=_characters)
        self._said: set[str] = set()

    @property
    def dropped(self) -> int:
        """Spans that never reached the server."""
        return self._outbox.dropped

    def on_start(self, span: Span, parent_context: Context | None = None) -> None:
        """Nothing: a span travels when it has ended."""

    def on_end(self, span: ReadableSpan) -> None:
        """Take the span."""
        self._outbox.put(span)

    def force_flush(self, timeout_millis: int = 30_000) -> bool:
        """Send what waits, within the time."""
        return self._outbox.flush(timeout_millis / 1000)

    def shutdown(self) -> None:
        """Send what waits, then stop."""
        self.close()

    def close(self, timeout_seconds: float | None = None) -> bool:
        """Send what waits, then stop. True when nothing was left behind."""
        is_empty = self._outbox.close(timeout_seconds)
        if is_empty:  # else the thread may still hold the connection
            self._server.close()
        return is_empty

    def _send(self, spans: Sequence[ReadableSpan], seconds: float) -> Outcome[ReadableSpan]:
        body = self._encode(spans)
        if body is None:
            return self._halve(spans, seconds, "it cannot be encoded")
        reply = self._server.post(PATH, gzip.compress(body, compresslevel=1), HEADERS, seconds)
        if reply.is_success:
            self._server.say_delivered()
            return Outcome(lost=self._rejected(reply))
        if reply.may_try_again:
            self._server.say_waiting(reply)
            return Outcome(again=spans, wait_seconds=reply.wait_seconds)
        if reply.status == HTTP_TOO_LARGE:
            return self._halve(spans, seconds, "it is too large for the server")
        # Everything else must not be sent again: opentelemetry.io/docs/specs/otlp, "Failures".
        self._say_once(
            str(reply.status), f"{self._server.endpoint}{PATH} refuses spans; they are dropped. It says: {reply}"
        )
        return Outcome(lost=len(spans))

    def _encode(self, spans: Sequence[ReadableSpan]) -> bytes | None:
        try:
            body: bytes = encode_spans(spans).SerializeToString()
        except Exception:  # noqa: BLE001 - foreign spans of a global provider may hold anything
            return None
        return body

    def _halve(self, spans: Sequence[ReadableSpan], seconds: float, reason: str) -> Outcome[ReadableSpan]:
        """Send each half on its own, so that one bad span takes no other with it."""
        if len(spans) == 1:
            self._say_once(reason, f"The span {spans[0].name!r} is dropped: {reason}.")
            return Outcome(lost=1)
        middle = len(spans) // 2
        first = self._send(spans[:middle], seconds)
        second = self._send(spans[middle:], seconds)
        waits = [wait for wait in (first.wait_seconds, second.wait_seconds) if wait is not None]
        return Outcome([*first.again, *second.again], first.lost + second.lost, max(waits, default=None))

    def _rejected(self, reply: Reply) -> int:
        """How many spans the server took the batch without."""
        answer = ExportTraceServiceResponse()
        try:
            answer.ParseFromString(reply.body)
        except Exception:  # noqa: BLE001 - an answer we cannot read is still a 2xx
            return 0
        part = answer.partial_success
        if part.rejected_spans or part.error_message:
            said = part.error_message[:500]
            self._say_once(said, f"The server left out {part.rejected_spans} spans of a batch. It says: {said}")
        return int(part.rejected_spans)

    def _say_once(self, key: str, text: str) -> None:
        if key not in self._said and len(self._said) < MAX_WARNINGS:
            self._said.add(key)
            logger.warning("%s", text)


def _characters(span: ReadableSpan) -> int:
    return 200 + sum(len(value) for value in (span.attributes or {}).values() if isinstance(value, str))
