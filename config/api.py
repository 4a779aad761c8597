"""The one error form and the paging of the API."""

from __future__ import annotations

import uuid
from typing import Any

import structlog
from django.core.exceptions import BadRequest, PermissionDenied, RequestDataTooBig, SuspiciousOperation
from django.db import DatabaseError, InterfaceError, OperationalError
from django.http import Http404, HttpRequest, HttpResponse, JsonResponse
from django.utils.dateparse import parse_datetime
from django.utils.timezone import is_naive
from django.utils.translation import gettext as _
from django.views import defaults
from rest_framework import exceptions, status
from rest_framework.pagination import CursorPagination
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import set_rollback

from sessions_app.errors import ConflictError, DomainError, UnknownObjectError
from sessions_app.wire.serializers import error_body, flatten_errors, invalid_body

logger = structlog.get_logger(__name__)

RETRY_SECONDS = 5
API_PREFIXES = ("/api/", "/v1/")


class NewestFirstPagination(CursorPagination):
    """Keyset paging: no count, no offset, stable while rows arrive."""

    ordering = ("-created_at", "-pk")
    page_size = 50
    page_size_query_param = "limit"
    max_page_size = 200
    offset_cutoff = 1_000_000
    """Rows of one moment that can be paged through; at DRF's 1,000 the same page would come again without end."""

    def decode_cursor(self, request: Request) -> Any:
        """The cursor; one that is not ours is an unknown page, not a fault."""
        cursor: Any = super().decode_cursor(request)
        if cursor is not None and cursor.position is not None:
            try:
                moment = parse_datetime(cursor.position)
            except ValueError:
                moment = None
            if moment is None or is_naive(moment):
                raise exceptions.NotFound(self.invalid_cursor_message)
        return cursor


def handle_exception(error: Exception, context: dict[str, Any]) -> Response | None:
    """DRF's exception handler: every refusal in the one form, with its HTTP status."""
    set_rollback()
    headers: dict[str, str] = {}
    match error:
        case DomainError():
            code, body = _domain_status(error), error_body(error.code, error.message, error.errors)
        case exceptions.ValidationError():
            code, body = 400, invalid_body(flatten_errors(error.detail))
        case exceptions.APIException():
            code, body = error.status_code, error_body(_code(error), str(error.detail))
            if auth_header := getattr(error, "auth_header", None):
                headers["WWW-Authenticate"] = auth_header
            if wait := getattr(error, "wait", None):
                headers["Retry-After"] = str(int(wait) + 1)
        case Http404():
            code, body = 404, error_body("not_found", _("There is nothing here."))
        case PermissionDenied():
            code, body = 403, error_body("permission_denied", _("This is not allowed."))
        case RequestDataTooBig():
            code, body = 413, error_body("too_large", _("The request is too large."))
        case BadRequest() | SuspiciousOperation():
            code, body = 400, error_body("invalid", _("The request cannot be read."))
        case OperationalError() | InterfaceError():
            logger.error("database_away", exc_info=error)
            code, body = 503, error_body("unavailable", _("The database does not answer; try again soon."))
            headers["Retry-After"] = str(RETRY_SECONDS)
        case _:
            code, body = 500, _unexpected(error)
    return Response(body, status=code, headers=headers)


def _domain_status(error: DomainError) -> int:
    match error:
        case UnknownObjectError():
            return status.HTTP_404_NOT_FOUND
        case ConflictError():
            return status.HTTP_409_CONFLICT
    return status.HTTP_400_BAD_REQUEST


def _code(error: exceptions.APIException) -> str:
    codes = error.get_codes()
    return codes if isinstance(codes, str) else "invalid"


def _unexpected(error: Exception | None) -> dict[str, Any]:
    """A fault of ours: an id that stands in the log too, and nothing of the inside."""
    error_id = uuid.uuid4().hex[:12]
    kind = "database" if isinstance(error, DatabaseError) else "internal"
    logger.error("unexpected_error", error_id=error_id, kind=kind, exc_info=error or True)
    message = _("Something went wrong here. The log has it under %(id)s.") % {"id": error_id}
    return error_body("internal", message)


# -- the document of the API -----------------------------------------------------------------------------------------

REFUSALS = {
    "400": "Something in the request is not right; `errors` names the fields.",
    "401": "The key is missing, unknown or revoked.",
    "403": "The key or token does not open this.",
    "404": "What the request speaks of does not exist.",
    "413": "The body is too large.",
    "415": "The body is of a type that is not taken here.",
    "429": "Too much from this address, with this key or for this session; `Retry-After` says for how long.",
    "503": "The database does not answer; send it again after `Retry-After`.",
}


def document_refusals(result: dict[str, Any], **_: Any) -> dict[str, Any]:
    """Add the one form of errors to every operation of the OpenAPI document (a hook of drf-spectacular)."""
    result["components"]["schemas"]["Refusal"] = {
        "type": "object",
        "required": ["success", "code", "message", "errors"],
        "properties": {
            "success": {"type": "boolean", "enum": [False]},
            "code": {"type": "string", "description": "Stable, for programs."},
            "message": {"type": "string", "description": "For people, in the language of `Accept-Language`."},
            "errors": {
                "type": "object",
                "description": "Field → what is wrong with it; nested fields as `steps.0.agentName`.",
                "additionalProperties": {"type": "array", "items": {"type": "string"}},
            },
        },
    }
    content = {"application/json": {"schema": {"$ref": "#/components/schemas/Refusal"}}}
    for path, operations in result["paths"].items():
        if path.startswith("/v1/"):
            continue  # OTLP's own form of errors
        for method, operation in operations.items():
            for code, description in REFUSALS.items():
                if method == "get" and code in ("413", "415"):
                    continue
                operation["responses"].setdefault(code, {"description": description, "content": content})
    return result


# -- errors outside DRF: unknown routes, bad requests, faults in middleware ------------------------------------------


def _is_api(request: HttpRequest) -> bool:
    return request.path.startswith(API_PREFIXES)


def bad_request(request: HttpRequest, exception: Exception) -> HttpResponse:
    """400 outside a view."""
    if not _is_api(request):
        return defaults.bad_request(request, exception)
    return JsonResponse(error_body("invalid", _("The request cannot be read.")), status=400)


def permission_denied(request: HttpRequest, exception: Exception) -> HttpResponse:
    """403 outside a view."""
    if not _is_api(request):
        return defaults.permission_denied(request, exception)
    return JsonResponse(error_body("permission_denied", _("This is not allowed.")), status=403)


def page_not_found(request: HttpRequest, exception: Exception) -> HttpResponse:
    """404 for unknown routes."""
    if not _is_api(request):
        return defaults.page_not_found(request, exception)
    return JsonResponse(error_body("not_found", _("There is nothing here.")), status=404)


def server_error(request: HttpRequest) -> HttpResponse:
    """500 outside a DRF view."""
    if not _is_api(request):
        return defaults.server_error(request)
    return JsonResponse(_unexpected(None), status=500)
