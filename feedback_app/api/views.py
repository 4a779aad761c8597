"""Doors for feedback. Each parses, checks who speaks, calls one service, renders."""

from __future__ import annotations

from typing import Any, cast

from django.conf import settings
from django.http import HttpResponse
from django.utils.translation import gettext, override
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import serializers, status
from rest_framework.exceptions import PermissionDenied
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from feedback_app.api.filters import INTERVALS, NO_INTERVAL, SummaryFilter
from feedback_app.api.serializers import (
    EventInputSerializer,
    EventsOutcomeSerializer,
    FeedbackReportSerializer,
    SummarySerializer,
    VerdictInputSerializer,
    VerdictOutcomeSerializer,
)
from feedback_app.selectors.summary import feedback_report
from feedback_app.services.submission import EventData, record_event, submit_verdict
from sessions_app.access.limits import RoomLeft, charge
from sessions_app.access.permissions import CanRead, NoKeyOrOneOfFeedback, scope_of
from sessions_app.errors import DomainError, FieldErrors
from sessions_app.models import Scope
from sessions_app.services.tokens import is_feedback_token
from sessions_app.wire.filters import REPORT_PARAMETERS
from sessions_app.wire.parsers import BeaconJSONParser, StrictJSONParser
from sessions_app.wire.serializers import flatten_errors, invalid_body
from sessions_app.wire.views import QuickView, answer_json

MAX_EVENTS = 500


def check_may_speak(request: Request, session_id: str, token: str) -> None:
    """Anyone who knows the session's id, by default; with FEEDBACK_AUTH=token whoever holds its token.

    A recording agent (`ingest`) may always speak. Raises PermissionDenied.
    """
    if settings.FEEDBACK_AUTH == "anonymous" or scope_of(request, Scope.INGEST):
        return
    if not is_feedback_token(token or request.headers.get("X-Feedback-Token", ""), session_id):
        raise PermissionDenied(gettext("This needs the session's feedback token, as X-Feedback-Token or `token`."))


class FeedbackView(QuickView):
    """Useful or not."""

    permission_classes = [NoKeyOrOneOfFeedback]
    throttle_classes = [RoomLeft]
    parser_classes = [StrictJSONParser, BeaconJSONParser]

    @extend_schema(request=VerdictInputSerializer, responses=VerdictOutcomeSerializer)
    def post(self, request: Request) -> HttpResponse:
        """Record the verdict; the answer carries the id of the case that a useful session became."""
        data, is_sanitised = VerdictInputSerializer.read(self.read_json(request))
        check_may_speak(request, data["session_id"], data.get("token", ""))
        charge(request, events=1, session_ids=[data["session_id"]])
        outcome = submit_verdict(
            session_id=data["session_id"],
            verdict=data["verdict"],
            comment=data.get("comment") or "",
            is_sanitised=is_sanitised,
        )
        return answer_json({"success": True, "message": _recorded(request), "caseId": outcome.case_id})


def _recorded(request: Request) -> str:
    """In the caller's language; in Chinese when it names none (contract 1)."""
    if request.headers.get("Accept-Language"):
        return gettext("Feedback recorded")
    with override("zh-hans"):
        return gettext("Feedback recorded")


class FeedbackEventsView(QuickView):
    """Every other form of feedback."""

    permission_classes = [NoKeyOrOneOfFeedback]
    throttle_classes = [RoomLeft]
    parser_classes = [StrictJSONParser, BeaconJSONParser]

    @extend_schema(request=EventInputSerializer(many=True), responses=EventsOutcomeSerializer)
    def post(self, request: Request) -> HttpResponse:
        """One event or a list of up to 500; says which were accepted, and of the others why not.

        A single event that is refused is also an error of the request: 400, in the one error form.
        """
        body = self.read_json(request)
        is_single = isinstance(body, dict)
        items: Any = [body] if is_single else body
        if not isinstance(items, list) or not 0 < len(items) <= MAX_EVENTS:
            message = gettext("Expected one event, or a list of 1 to %(most)s.")
            raise serializers.ValidationError(message % {"most": MAX_EVENTS})
        read = [_read_event(request, item) for item in items]
        # Before any is stored: of a list that is refused, nothing is.
        charge(request, events=len(items), session_ids=[data["session_id"] for data, _errors in read if data])
        rejected: list[dict[str, Any]] = []
        for index, (data, errors) in enumerate(read):
            if refusal := _store(data) if data else errors:
                rejected.append({"index": index, "errors": refusal})
        answer = {"accepted": len(items) - len(rejected), "rejected": rejected}
        if is_single and rejected:
            return answer_json({**invalid_body(rejected[0]["errors"]), **answer}, status.HTTP_400_BAD_REQUEST)
        return answer_json(answer)


def _read_event(request: Request, item: object) -> tuple[EventData | None, FieldErrors]:
    """The event as the service takes it, or None and what is wrong with it."""
    try:
        data, is_sanitised = EventInputSerializer.read(item)
        check_may_speak(request, data["session_id"], data.pop("token", ""))
    except serializers.ValidationError as error:
        return None, flatten_errors(error.detail)
    except PermissionDenied as error:
        return None, {"sessionId": [str(error.detail)]}
    return cast("EventData", {**data, "is_sanitised": is_sanitised}), {}


def _store(data: EventData) -> FieldErrors:
    """Record it; what is wrong with it where the domain refuses it."""
    try:
        record_event(data)
    except DomainError as error:
        return error.errors or {"sessionId": [error.message]}
    return {}


class FeedbackSummaryView(APIView):
    """What people thought, in figures."""

    permission_classes = [CanRead]

    @extend_schema(
        parameters=[
            *REPORT_PARAMETERS,
            OpenApiParameter("agentId", str),
            OpenApiParameter(
                "interval", str, enum=[*INTERVALS, NO_INTERVAL], default=NO_INTERVAL, description="The same per bucket."
            ),
        ],
        responses=FeedbackReportSerializer,
    )
    def get(self, request: Request) -> Response:
        """The feedback events of a period added up; by day or week too, cut at midnight in the server's time zone."""
        asked = SummaryFilter.read(request)
        period, interval = asked["period"], asked["interval"] or NO_INTERVAL
        buckets = period.split(INTERVALS[interval]) if interval in INTERVALS else []
        report = feedback_report(period, buckets, agent_id=asked["agentId"], agent_flow=asked["agentFlow"])
        answer = {
            **SummarySerializer(report.whole).data,
            "agentId": asked["agentId"],
            "agentFlow": asked["agentFlow"],
            "interval": interval,
            "buckets": SummarySerializer(report.parts, many=True).data,
        }
        return Response(answer)
