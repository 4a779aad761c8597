"""Choosing a language: Django's view, after which mails to the one who chose speak it too."""

from __future__ import annotations

from typing import Any

from django.http import HttpRequest, HttpResponseBase
from django.views import i18n

from feedback_app.services.reports import remember_language


def set_language(request: HttpRequest) -> HttpResponseBase:
    """Set the cookie, and remember the choice of somebody who is signed in."""
    response = i18n.set_language(request)
    user: Any = request.user
    if request.method == "POST" and user.is_authenticated:
        remember_language(user.pk, request.POST.get("language", ""))
    return response
