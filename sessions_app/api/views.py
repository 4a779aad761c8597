"""Recording and reading sessions (contract 3). Each view parses, calls the one writer or a selector, renders."""

from __future__ import annotations

from typing import Any

from django.utils.translation import gettext as _
from drf_spectacular.utils import OpenApiParameter, OpenApiResponse, extend_schema, extend_schema_view
from rest_framework import generics, serializers, status
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from sessions_app.access.permissions import CanIngest, CanRead, IngestOrRead
from sessions_app.api import serializers as wire
from sessions_app.api.filters import MetricsFilter, SessionFilter
from sessions_app.models import DiagnosisSession
from sessions_app.records import SessionData, new_invocation_id
from sessions_app.selectors.chain import session_with_chain
from sessions_app.selectors.metrics import metrics
from sessions_app.selectors.questions import confident_but_rejected, step_durations
from sessions_app.selectors.slices import Slice
from sessions_app.services.recording import Refused, record_batch, record_sessions
from sessions_app.services.tokens import feedback_token
from sessions_app.wire.filters import REPORT_PARAMETERS
from sessions_app.wire.parsers import BadLine, NDJSONParser, StrictJSONParser
from sessions_app.wire.serializers import BODY, flatten_errors, shown

MAX_BATCH = 500
NEWEST = 20
"""How many sessions a report names."""


class SessionListView(generics.ListAPIView[DiagnosisSession]):
    """The list of sessions, newest first; opening one."""

    permission_classes = [IngestOrRead]
    queryset = DiagnosisSession.objects.defer("answer", "metadata")
    serializer_class = wire.SessionRowSerializer
    filterset_class = SessionFilter

    @extend_schema(
        request=wire.SessionInputSerializer,
        responses={201: wire.OpenedSerializer, 200: OpenApiResponse(wire.OpenedSerializer, "It was open already.")},
    )
    def post(self, request: Request) -> Response:
        """Open a session (RUNNING unless it says otherwise); the same id again changes nothing it does not say."""
        data = wire.SessionReader().read(request.data)
        return _opened(data, is_patch=False)


class SessionDetailView(APIView):
    """One session."""

    permission_classes = [IngestOrRead]

    @extend_schema(responses=wire.SessionSerializer)
    def get(self, request: Request, session_id: str) -> Response:
        """Every column, with the steps in order and the tool invocations of each."""
        return Response(wire.SessionSerializer(session_with_chain(session_id)).data)

    @extend_schema(request=wire.SessionFieldsSerializer, responses=wire.OpenedSerializer)
    def patch(self, request: Request, session_id: str) -> Response:
        """Finish a session, or add to what it says."""
        return _opened(wire.session_fields(session_id, request.data), is_patch=True)


def _opened(data: SessionData, *, is_patch: bool) -> Response:
    data["is_live"] = True
    [recorded] = record_sessions([data], must_exist=is_patch)
    session = DiagnosisSession.objects.only("session_id", "status").get(session_id=recorded.session_id)
    session.feedback_token = feedback_token(session.session_id)  # type: ignore[attr-defined]
    code = status.HTTP_201_CREATED if recorded.is_new else status.HTTP_200_OK
    return Response(wire.OpenedSerializer(session).data, status=code)


class StepsView(APIView):
    """Steps of a session."""

    permission_classes = [CanIngest]

    @extend_schema(request=wire.StepInputSerializer, responses=wire.StoredSerializer)
    def post(self, request: Request, session_id: str) -> Response:
        """One step or a list; the same (agentName, stepIndex) again updates it."""
        steps, is_sanitised = wire.child_data(wire.StepInputSerializer, request.data)
        record_sessions([{"session_id": session_id, "steps": steps, "is_sanitised": is_sanitised}], must_exist=True)
        return Response({"accepted": len(steps)})


class ToolInvocationsView(APIView):
    """Tool invocations of a session."""

    permission_classes = [CanIngest]

    @extend_schema(request=wire.LooseInvocationInputSerializer, responses=wire.StoredSerializer)
    def post(self, request: Request, session_id: str) -> Response:
        """One invocation or a list; the same invocationId again updates it, none makes a new one each time."""
        rows, is_sanitised = wire.child_data(wire.LooseInvocationInputSerializer, request.data)
        for row in rows:
            row["invocation_id"] = row.get("invocation_id") or new_invocation_id()
        record_sessions(
            [{"session_id": session_id, "tool_invocations": rows, "is_sanitised": is_sanitised}], must_exist=True
        )
        return Response({"accepted": len(rows), "invocationIds": [row["invocation_id"] for row in rows]})


@extend_schema_view(get=extend_schema(exclude=True), patch=extend_schema(exclude=True))
class SessionBatchView(SessionDetailView):
    """Whole sessions, many at once. GET and PATCH speak of a session whose id is "batch"."""

    parser_classes = [StrictJSONParser, NDJSONParser]

    @extend_schema(request=wire.SessionInputSerializer(many=True), responses={207: wire.BatchSerializer})
    def post(self, request: Request, session_id: str) -> Response:
        """Up to 500 whole sessions, as a JSON list, {"sessions": […]} or NDJSON; a bad one never sinks the others."""
        items = _batch_items(request.data)
        good: dict[int, SessionData] = {}
        rejected: list[dict[str, Any]] = []
        reader = wire.SessionReader()
        for index, item in enumerate(items):
            try:
                if isinstance(item, BadLine):
                    raise serializers.ValidationError(item.reason)
                good[index] = reader.read(item)
            except serializers.ValidationError as error:
                rejected.append(_rejection(index, item, flatten_errors(error.detail)))
        accepted = 0
        for index, outcome in zip(good, record_batch(list(good.values())), strict=True):
            if isinstance(outcome, Refused):
                rejected.append(_rejection(index, items[index], {BODY: [outcome.reason]}))
            else:
                accepted += 1
        rejected.sort(key=lambda row: row["index"])
        return Response({"accepted": accepted, "rejected": rejected}, status=status.HTTP_207_MULTI_STATUS)


def _batch_items(body: Any) -> list[Any]:
    if isinstance(body, dict) and set(body) == {"sessions"}:
        body = body["sessions"]
    if not isinstance(body, list):
        raise serializers.ValidationError(_('Expected a JSON list of sessions, {"sessions": […]} or NDJSON.'))
    if not 0 < len(body) <= MAX_BATCH:
        message = _("A batch holds 1 to %(most)s sessions; this one holds %(count)s.")
        raise serializers.ValidationError(message % {"most": MAX_BATCH, "count": len(body)})
    return body


def _rejection(index: int, item: Any, errors: Any) -> dict[str, Any]:
    session_id = item.get("sessionId") if isinstance(item, dict) else None
    return {
        "index": index,
        "sessionId": shown(session_id[:64]) if isinstance(session_id, str) else None,
        "errors": errors,
    }


class MetricsView(APIView):
    """How well the agents do."""

    permission_classes = [CanRead]

    @extend_schema(
        parameters=[
            *REPORT_PARAMETERS,
            OpenApiParameter("agentName", str, description="Sessions in which this agent took a step."),
        ],
        responses=wire.MetricsSerializer,
    )
    def get(self, request: Request) -> Response:
        """The six metrics and the aggregate questions, over the sessions created in a period."""
        asked = MetricsFilter.read(request)
        of = Slice(asked.pop("period"), asked["agentFlow"], asked["agentName"])
        found = metrics(of)
        report = {
            **asked,
            "period": of.period,
            "figures": found.of_sessions,
            "retrievals": found.of_retrievals,
            "step_durations": step_durations(of),
            "confident_but_rejected": {
                "count": found.of_sessions.confident_but_rejected,
                "newest": confident_but_rejected(of)[:NEWEST],
            },
        }
        return Response(wire.MetricsSerializer(report).data)
