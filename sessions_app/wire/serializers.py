"""Serializers that refuse what they do not know."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from typing import Any

from django.utils.translation import get_language
from django.utils.translation import gettext as _
from rest_framework import serializers
from rest_framework.settings import api_settings

from sessions_app.errors import FieldErrors
from sessions_app.text import clean_text
from sessions_app.wire.fields import SANITISED

_readers = threading.local()
"""Of this thread: (class, language) → the serializer that reads."""

BODY = "body"
"""The name under which errors of the whole body stand."""
MAX_SHOWN_CHARS = 300


class StrictSerializer(serializers.Serializer[Any]):
    """An input body. A field it does not know is an error that names it: a typo must not lose data in silence."""

    def to_internal_value(self, data: Any) -> Any:
        """The validated fields."""
        if isinstance(data, Mapping):
            unknown = [str(key) for key in data if key not in self.fields]
            if unknown:
                raise serializers.ValidationError({key: [_("Unknown field.")] for key in unknown[:20]})
        return super().to_internal_value(data)

    @classmethod
    def read(cls, data: Any) -> tuple[dict[str, Any], bool]:
        """The values of a body by the names of the code, and whether characters in it had to be replaced.

        Making a serializer takes longer than reading with it, so one of each thread does all the reading; one for each
        language, for DRF keeps some messages in the first it is asked for. Raises serializers.ValidationError.
        """
        known: dict[Any, Any] = _readers.__dict__
        key = cls, get_language()
        reader = known.get(key) or known.setdefault(key, cls(context={}))
        reader.context.clear()
        values: dict[str, Any] = dict(reader.run_validation(data))
        return values, SANITISED in reader.context


def flatten_errors(detail: Any, path: str = "") -> FieldErrors:
    """DRF's nested errors as the contract's flat form: `{"steps.0.agentName": ["…"]}`."""
    if isinstance(detail, Mapping):
        flat: dict[str, list[str]] = {}
        for key, value in detail.items():
            own = key == api_settings.NON_FIELD_ERRORS_KEY
            name = (path or BODY) if own else f"{path}.{key}".lstrip(".")
            for field, messages in flatten_errors(value, name).items():
                flat.setdefault(field, []).extend(messages)
        return flat
    if isinstance(detail, list | tuple):
        flat = {}
        for index, value in enumerate(detail):
            nested = isinstance(value, Mapping | list | tuple)
            name = f"{path}.{index}".lstrip(".") if nested else path or BODY
            for field, messages in flatten_errors(value, name).items():
                flat.setdefault(field, []).extend(messages)
        return flat
    return {shown(path) or BODY: [shown(str(detail))]}


def shown(text: str) -> str:
    """A piece of input, fit for an answer: it may hold characters that UTF-8 does not know, and be of any length."""
    cleaned, _changed = clean_text(text)
    return cleaned if len(cleaned) <= MAX_SHOWN_CHARS else f"{cleaned[:MAX_SHOWN_CHARS]}…"


def error_body(code: str, message: str, errors: FieldErrors | None = None) -> dict[str, Any]:
    """The one form of an error."""
    return {"success": False, "code": code, "message": message, "errors": errors or {}}


def invalid_body(errors: FieldErrors) -> dict[str, Any]:
    """The one form of an error for fields; its message names the first."""
    field, messages = next(iter(errors.items()), (BODY, [""]))
    return error_body("invalid", f"{field}: {messages[0]}", errors)
