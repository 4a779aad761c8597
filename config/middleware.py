"""Middlewares of our own."""

from __future__ import annotations

import logging
import time
import uuid
from collections.abc import Callable

import structlog
from csp.middleware import CSPMiddleware
from django.http import HttpRequest, HttpResponseBase
from django.utils.encoding import escape_uri_path

from sessions_app.access.limits import address_of

logger = structlog.get_logger(__name__)

Answering = Callable[[HttpRequest], HttpResponseBase]


class RequestLog:
    """One line for each request, when it is answered; its id stands in every line that is written meanwhile."""

    def __init__(self, get_response: Answering) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        """Answer and tell."""
        begun = time.perf_counter()
        with structlog.contextvars.bound_contextvars(request_id=uuid.uuid4().hex, ip=address_of(request)):
            response = self.get_response(request)
            user = getattr(request, "_cached_user", None)  # of whom the view asked; nobody is looked up for a line
            logger.log(
                _level_of(response.status_code),
                "request_finished",
                request=f"{request.method} {escape_uri_path(request.path)}",  # a query may hold what people wrote
                code=response.status_code,
                milliseconds=round((time.perf_counter() - begun) * 1000, 1),
                **({"user_id": user.pk} if user is not None else {}),
            )
        return response


def _level_of(code: int) -> int:
    """Refusals are warnings, faults of ours are errors."""
    return {4: logging.WARNING, 5: logging.ERROR}.get(code // 100, logging.INFO)


class PagePolicy(CSPMiddleware):
    """The content security policy, for what a browser shows: of mere data it says nothing."""

    def process_response(self, request: HttpRequest, response: HttpResponseBase) -> HttpResponseBase:
        """Put it on whatever is not JSON."""
        if response.headers.get("Content-Type") == "application/json":
            return response
        answered: HttpResponseBase = super().process_response(request, response)
        return answered
