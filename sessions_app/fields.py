"""Model fields that hold the same promise on SQLite and on MySQL/MariaDB."""

from typing import Any

import msgspec
from django.core.serializers.json import DjangoJSONEncoder
from django.db import models
from django.db.backends.base.base import BaseDatabaseWrapper


class ExactCharField(models.CharField[Any, Any]):
    """A string compared byte for byte: `ABC` and `abc`, `é` and `é`, 😀 and 😁 stay apart.

    The usual `utf8mb4_*_ci` collations fold them; `utf8mb4_bin` is the one binary collation in MySQL and MariaDB both.
    It pads with spaces, so what is stored here must not end in one. SQLite compares bytes by itself.
    """

    def db_parameters(self, connection: BaseDatabaseWrapper) -> dict[str, Any]:
        """The column's type, with the binary collation where the database would fold."""
        parameters: dict[str, Any] = super().db_parameters(connection)
        if connection.vendor == "mysql":
            parameters["collation"] = "utf8mb4_bin"
        return parameters


class IdField(ExactCharField):
    """An id given by a caller: 1-64 printable ASCII characters without spaces (`sessions_app.text.is_id`)."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        kwargs.setdefault("max_length", 64)
        super().__init__(*args, **kwargs)


class Utf8JSONEncoder(DjangoJSONEncoder):
    """Writes Chinese as Chinese: half the bytes of escapes, and findable with LIKE."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        kwargs["ensure_ascii"] = False
        super().__init__(*args, **kwargs)


class Utf8JSONField(models.JSONField):
    """JSON stored as readable UTF-8. Values pass `sessions_app.text.clean_json` first: depth, NUL, surrogates."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        kwargs["encoder"] = Utf8JSONEncoder
        super().__init__(*args, **kwargs)

    def deconstruct(self) -> Any:
        """Leave the fixed encoder out of migrations."""
        name, path, args, kwargs = super().deconstruct()
        kwargs.pop("encoder", None)
        return name, path, args, kwargs


def dumps(value: object) -> str:
    """JSON as `Utf8JSONField` stores it, at a tenth of the cost of Django's encoder."""
    return encoded(value).decode()


def encoded(value: object) -> bytes:
    """The same in UTF-8."""
    return msgspec.json.encode(value)
