"""OTLP/HTTP receiver, `POST /v1/traces`, protobuf and JSON.

Answers as the OTLP specification says: 200 with the response message, which tells how many spans were rejected; an
error with a `google.rpc.Status`; both in the content type of the request. Exporters send again after 429, 502, 503 and
504 only, so whatever is our fault is a 503.
"""

from __future__ import annotations

import json
from typing import Any

from django.http import HttpResponse
from django.utils.translation import override
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import extend_schema
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceResponse
from rest_framework import status
from rest_framework.exceptions import ParseError, UnsupportedMediaType
from rest_framework.negotiation import BaseContentNegotiation
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from sessions_app.access.permissions import CanIngest
from sessions_app.otlp.json_form import decode_json
from sessions_app.otlp.protobuf import decode_protobuf
from sessions_app.otlp.spans import UndecodableError, split
from sessions_app.services.traces import record_spans
from sessions_app.wire.parsers import read_body

PROTOBUF, JSON = "application/x-protobuf", "application/json"
MAX_REASONS = 5
_RPC_CODES = {400: 3, 401: 16, 403: 7, 404: 5, 413: 3, 415: 3, 429: 8, 503: 14}
_INTERNAL = 13


class AsAsked(BaseContentNegotiation):
    """The answer follows the request's own type, so whatever `Accept` says is well."""

    def select_parser(self, request: Request, parsers: Any) -> Any:
        """Never asked: the view reads the body itself."""

    def select_renderer(self, request: Request, renderers: Any, format_suffix: str | None = None) -> Any:
        """Never asked for its rendering: the view answers in bytes."""
        return renderers[0], renderers[0].media_type


class TracesView(APIView):
    """Traces of any OpenTelemetry SDK or collector."""

    permission_classes = [CanIngest]
    content_negotiation_class = AsAsked

    def dispatch(self, request: Any, *args: Any, **kwargs: Any) -> Any:
        """In English, as `google.rpc.Status` wants its messages: they end in an exporter's log, not before a person."""
        with override("en"):
            return super().dispatch(request, *args, **kwargs)

    @extend_schema(
        request={PROTOBUF: OpenApiTypes.BINARY, JSON: OpenApiTypes.OBJECT}, responses={(200, JSON): OpenApiTypes.OBJECT}
    )
    def post(self, request: Request) -> HttpResponse:
        """Take spans in; a bad one is rejected and counted, its neighbours are stored."""
        content_type = _content_type(request)
        if content_type not in (PROTOBUF, JSON):
            raise UnsupportedMediaType(request.content_type)
        is_json = content_type == JSON
        # Not `request.data`: a request stands in a circle of references, and would keep its body until the collector
        # comes, which it does seldom.
        body = read_body(request.stream, request.headers) if request.stream else b""
        try:
            decoded = decode_json(body) if is_json else decode_protobuf(body)
        except UndecodableError as error:
            raise ParseError(str(error)) from error
        good, reasons = split(decoded)
        outcome = record_spans(good)
        return _answer(is_json=is_json, reasons=[*reasons, *outcome.rejected])

    def handle_exception(self, exc: Exception) -> Any:
        """The one handler's refusal, as a `google.rpc.Status`."""
        response: Response = super().handle_exception(exc)
        code = response.status_code
        if code >= status.HTTP_500_INTERNAL_SERVER_ERROR:
            code = status.HTTP_503_SERVICE_UNAVAILABLE
        body: Any = response.data
        rpc_code, message = _RPC_CODES.get(code, _INTERNAL), str(body["message"])
        if _content_type(self.request) == PROTOBUF:
            answer = HttpResponse(_status_message(rpc_code, message), status=code, content_type=PROTOBUF)
        else:
            answer = HttpResponse(json.dumps({"code": rpc_code, "message": message}), status=code, content_type=JSON)
        for name, value in response.headers.items():
            if name in ("Retry-After", "WWW-Authenticate"):
                answer[name] = value
        if code == status.HTTP_503_SERVICE_UNAVAILABLE:
            answer.setdefault("Retry-After", "5")
        return answer


def _answer(*, is_json: bool, reasons: list[str]) -> HttpResponse:
    """ExportTraceServiceResponse: empty, or with the partial success."""
    message = "; ".join(reasons[:MAX_REASONS])
    if is_json:
        # 64-bit integers are strings in OTLP's JSON.
        partial = {"partialSuccess": {"rejectedSpans": str(len(reasons)), "errorMessage": message}} if reasons else {}
        return HttpResponse(json.dumps(partial), content_type=JSON)
    response = ExportTraceServiceResponse()
    if reasons:
        response.partial_success.rejected_spans = len(reasons)
        response.partial_success.error_message = message
    return HttpResponse(response.SerializeToString(), content_type=PROTOBUF)


def _status_message(code: int, message: str) -> bytes:
    """`google.rpc.Status` in protobuf: field 1 varint, field 2 string."""
    text = message.encode()[:1000].decode(errors="ignore").encode()
    length = len(text)
    size = bytes([length]) if length < 128 else bytes([length & 0x7F | 0x80, length >> 7])  # noqa: PLR2004
    return b"\x08" + bytes([code]) + b"\x12" + size + text


def _content_type(request: Request) -> str:
    return (request.content_type or "").split(";")[0].strip().lower()
