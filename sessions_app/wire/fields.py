"""Field types of the contracts. None of them trims, folds or cuts what it is given."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

from django.utils.translation import gettext_lazy as _
from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from sessions_app.text import MAX_TEXT_CHARS, UnstorableJSONError, clean_json, clean_text, is_id

MAX_COUNT = 2**31 - 1
_EARLIEST = datetime(1970, 1, 1, tzinfo=UTC)
_LATEST = datetime(9998, 1, 1, tzinfo=UTC)

SANITISED = "sanitised"
"""Key in a serializer's context: set when a field had to replace characters that no database holds."""


def _mark_sanitised(field: serializers.Field[Any, Any, Any, Any]) -> None:
    context: Any = field.context
    context[SANITISED] = True


@extend_schema_field({"type": "string", "pattern": "^[!-~]{1,64}$"})
class IdField(serializers.Field[str, Any, str, Any]):
    """1-64 printable ASCII characters without spaces; anything else is an error."""

    default_error_messages = {
        "invalid": _("An id is a string of 1 to 64 printable ASCII characters without spaces."),
    }

    def to_internal_value(self, data: Any) -> str:
        """The id, exactly as given."""
        if not is_id(data):
            self.fail("invalid")
        return str(data)

    def to_representation(self, value: str) -> str:
        """The id, exactly as stored."""
        return value


class TextField(serializers.CharField):
    """Text of up to 1,048,576 characters. NUL and lone surrogates become U+FFFD, which marks the record."""

    def __init__(self, **kwargs: Any) -> None:
        kwargs.setdefault("allow_blank", True)
        kwargs.setdefault("max_length", MAX_TEXT_CHARS)
        super().__init__(trim_whitespace=False, **kwargs)
        # The base class refuses NUL and surrogates; agents' tool outputs do contain them, and we keep the rest.
        self.validators = [v for v in self.validators if hasattr(v, "limit_value")]

    def to_internal_value(self, data: Any) -> str:
        """The storable text."""
        if not isinstance(data, str):
            self.fail("invalid")
        text, changed = clean_text(data)
        if changed:
            _mark_sanitised(self)
        return text


class NameField(TextField):
    """A short name that is part of a key or a grouping: never empty, never cut."""

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(allow_blank=False, **kwargs)

    def to_internal_value(self, data: Any) -> str:
        """The name; leading and trailing white space would not compare exactly, so it is refused."""
        name = super().to_internal_value(data)
        if name != name.strip():
            raise serializers.ValidationError(_("A name must not begin or end with white space."))
        return name


class FreeJSONField(serializers.JSONField):
    """Any JSON value within the limits of `sessions_app.text`; its keys are never renamed."""

    def to_internal_value(self, data: Any) -> Any:
        """The storable value."""
        try:
            value, changed = clean_json(data)
        except UnstorableJSONError as error:
            raise serializers.ValidationError(str(error)) from error
        if changed:
            _mark_sanitised(self)
        return value


class FreeObjectField(FreeJSONField):
    """A JSON object."""

    def to_internal_value(self, data: Any) -> Any:
        """The storable object."""
        if not isinstance(data, dict):
            raise serializers.ValidationError(_("Expected a JSON object."))
        return super().to_internal_value(data)


class OutputField(TextField):
    """A tool's output: text, or JSON that is stored as its text. Of any length: only 500 characters are kept."""

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(max_length=None, **kwargs)

    def to_internal_value(self, data: Any) -> str:
        """The output as text."""
        text = data if isinstance(data, str) else json.dumps(data, ensure_ascii=False)
        return super().to_internal_value(text)


class CountField(serializers.IntegerField):
    """A whole number from 0 to 2,147,483,647."""

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(min_value=0, max_value=MAX_COUNT, **kwargs)


class MomentField(serializers.DateTimeField):
    """ISO 8601. A time without an offset is taken as UTC. Out as UTC with `Z`."""

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(default_timezone=UTC, **kwargs)

    def to_internal_value(self, value: Any) -> Any:
        """The moment, in UTC."""
        if not isinstance(value, str):
            self.fail("invalid", format="ISO 8601")
        moment = super().to_internal_value(value)
        if not _EARLIEST <= moment <= _LATEST:
            raise serializers.ValidationError(_("The time must lie between the years 1970 and 9998."))
        return moment
