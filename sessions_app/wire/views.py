"""A view for what comes often."""

from __future__ import annotations

from typing import Any

import msgspec
from django.http import HttpRequest, HttpResponse
from rest_framework import status
from rest_framework.exceptions import UnsupportedMediaType
from rest_framework.views import APIView

JSON = "application/json"


class QuickView(APIView):
    """Does what an APIView does with less around it: the request stays Django's own, and answers are JSON always.

    Who asks, whether they may, and how much, is decided by the classes of a view as everywhere, in the same order;
    `request.auth` is the key. Refusals go through the one handler. `Accept` is not looked at.
    """

    def dispatch(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        """From the request to the answer, whatever happens between them."""
        asked: Any = request
        try:
            asked.auth = self._key_of(asked)
            self.check_permissions(asked)
            self.check_throttles(asked)
            method = (request.method or "").lower()
            known = method in self.http_method_names
            handler = getattr(self, method, None) if known else None
            answer: HttpResponse = (handler or self.http_method_not_allowed)(asked, *args, **kwargs)
        except Exception as error:  # noqa: BLE001 - the one handler has an answer to each
            refusal: Any = self.handle_exception(error)
            answer = answer_json(refusal.data, refusal.status_code)
            for name, value in refusal.headers.items():
                answer.setdefault(name, value)
            if refusal.status_code == status.HTTP_405_METHOD_NOT_ALLOWED:
                answer.headers["Allow"] = ", ".join(self.allowed_methods)
        return answer

    def options(self, request: Any, *args: Any, **kwargs: Any) -> HttpResponse:  # type: ignore[override]
        """Which methods there are."""
        return HttpResponse(headers={"Allow": ", ".join(self.allowed_methods)})

    def read_json(self, request: Any) -> Any:
        """The body, by the parser for its type; an empty one is an empty object. Raises as parsers do."""
        length = request.META.get("CONTENT_LENGTH") or ""
        if not length.isdecimal() or not int(length):
            return {}
        for parser in self.get_parsers():
            if parser.media_type == request.content_type:
                return parser.parse(request, parser.media_type, {"request": request})
        raise UnsupportedMediaType(request.content_type)

    def _key_of(self, request: Any) -> Any:
        for authenticator in self.get_authenticators():
            if found := authenticator.authenticate(request):
                return found[1]
        return None


def answer_json(body: Any, code: int = 200) -> HttpResponse:
    """An answer. Texts that are translated late become text now."""
    return HttpResponse(msgspec.json.encode(body, enc_hook=str), status=code, content_type=JSON)
