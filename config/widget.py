"""The browser widget under its short address, and a page that shows it at work."""

from __future__ import annotations

import json
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Any, NamedTuple

from csp.constants import NONE, SELF
from csp.decorators import csp
from django.conf import settings
from django.http import Http404, HttpRequest, HttpResponse
from django.template.response import TemplateResponse
from django.utils.translation import get_language
from django.views.decorators.cache import never_cache
from django.views.decorators.gzip import gzip_page
from django.views.decorators.http import condition, require_safe

from sessions_app.models import DiagnosisSession
from sessions_app.services.tokens import feedback_token

SCRIPT = settings.BASE_DIR / "static" / "widget" / "diagnosis-feedback.js"
SAMPLES = settings.BASE_DIR / "samples" / "sessions.jsonl"

FRESH_SECONDS = 3600
STALE_SECONDS = 7 * 24 * 3600

DEMO_POLICY = {
    "default-src": [NONE],
    "script-src": [SELF],
    "style-src": [SELF],
    "img-src": [SELF],
    "connect-src": [SELF],
    "form-action": [SELF],
    "base-uri": [NONE],
    "frame-ancestors": [NONE],
    "require-trusted-types-for": ["'script'"],
}
"""About the strictest a site may have: the demo shows that the widget asks for no more."""


# -- the script ------------------------------------------------------------------------------------------------------


def _etag(request: HttpRequest) -> str:
    return f'"{sha256(SCRIPT.read_bytes()).hexdigest()[:20]}"'


@require_safe
@gzip_page
@condition(etag_func=_etag)
def script(request: HttpRequest) -> HttpResponse:
    """The widget. Any site may load it; a browser asks for a newer one after an hour, without waiting for it."""
    response = HttpResponse(SCRIPT.read_bytes(), content_type="text/javascript; charset=utf-8")
    response["Cache-Control"] = f"public, max-age={FRESH_SECONDS}, stale-while-revalidate={STALE_SECONDS}"
    response["Access-Control-Allow-Origin"] = "*"  # for <script type="module">, crossorigin and integrity
    response["Cross-Origin-Resource-Policy"] = "cross-origin"  # for pages that isolate themselves
    return response


# -- the demo --------------------------------------------------------------------------------------------------------


class Sample(NamedTuple):
    """One of the sessions that come with the product."""

    session_id: str
    query: str
    answer: str

    @property
    def language(self) -> str:
        """By the letters of its question."""
        if any("\u4e00" <= letter <= "\u9fff" for letter in self.query):
            return "zh-hans"
        return "ru" if any("а" <= letter <= "я" for letter in self.query.lower()) else "en"


@never_cache
@require_safe
@csp(DEMO_POLICY)  # type: ignore[untyped-decorator]
def demo(request: HttpRequest) -> HttpResponse:
    """The newest sample in the reader's language, with the widget below it.

    Anybody may open it, so its texts come from the file of samples: of the database it learns only which of those
    sessions are there. Without DEMO there is no such page.
    """
    if not settings.DEMO:
        raise Http404
    session = _newest_sample(get_language() or settings.LANGUAGE_CODE)
    token = feedback_token(session.session_id) if session and settings.FEEDBACK_AUTH == "token" else ""
    context = {
        "session": session,
        "token": token,
        "languages": settings.LANGUAGES,
        "origin": f"{request.scheme}://{request.get_host()}",
    }
    return TemplateResponse(request, "demo.html", context)


def _newest_sample(language: str) -> Sample | None:
    samples = _samples(SAMPLES)
    present = DiagnosisSession.objects.finished().filter(session_id__in=samples).order_by("-created_at", "-pk")
    found = [samples[session_id] for session_id in present.values_list("session_id", flat=True)]
    return next((sample for sample in found if sample.language == language), found[0] if found else None)


@cache
def _samples(path: Path) -> dict[str, Sample]:
    with path.open(encoding="utf-8") as lines:
        told: list[dict[str, Any]] = [json.loads(line) for line in lines if line.strip()]
    samples = (Sample(each["sessionId"], each["query"], each.get("answer") or "") for each in told)
    return {sample.session_id: sample for sample in samples if sample.answer}
