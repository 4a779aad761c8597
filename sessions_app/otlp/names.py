"""Names and ids out of free text: short enough for their columns, and two that differ stay two."""

import hashlib

from sessions_app.otlp.messages import CUT
from sessions_app.text import is_id

_DIGEST_CHARS = 7


def short_name(name: str, limit: int) -> str:
    """`name`, or its beginning with a mark and a digest."""
    if len(name) <= limit:
        return name
    digest = hashlib.sha256(name.encode("utf-8", "replace")).hexdigest()[:_DIGEST_CHARS]
    return f"{name[: limit - _DIGEST_CHARS - 1]}{CUT}{digest}"


def as_id(prefix: str, value: str) -> str:
    """`value` where it is an id; else a digest of it, since ids are never cut."""
    return value if is_id(value) else hashed(prefix, value)


def hashed(prefix: str, value: str) -> str:
    """A digest of `value` as an id."""
    return f"{prefix}-{hashlib.sha256(value.encode('utf-8', 'replace')).hexdigest()[:24]}"
