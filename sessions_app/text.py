"""Hostile text: what may be an id, and what a text or JSON value becomes before the database sees it.

MariaDB refuses JSON nested 32 levels or deeper and lone surrogates (error 4025), and NUL cuts strings short in many
tools. So free JSON is limited in depth, and both characters become U+FFFD; the row that holds them is marked.
"""

import json
import math
import re
from dataclasses import dataclass, field
from typing import Any

import msgspec
from django.utils.translation import gettext as _

MAX_ID_LENGTH = 64
MAX_TEXT_CHARS = 2**20
"""Longest text: at 4 bytes a character a row of them stays under MySQL's and MariaDB's 16 MiB packet."""
MAX_JSON_CHARS = 2**19
"""Most characters in one free JSON value, keys included; escaping may take 2-7 bytes for each."""
MAX_JSON_DEPTH = 30
MAX_JSON_INTEGER = 2**63

REPLACEMENT = "\ufffd"
_ID = re.compile(r"[!-~]{1,64}")
_ALIKE = bytes.maketrans(b"123456789[", b"000000000{")
_LONG_NUMBER = b"0" * 20
_NULL = re.compile(rb"(?:^|[:,\[])null")  # and not the word in a text
_UNSTORABLE = re.compile("[\x00\ud800-\udfff]")


def is_id(value: object) -> bool:
    """Whether `value` is 1-64 printable ASCII characters without spaces. Ids are never trimmed, folded or cut."""
    return isinstance(value, str) and _ID.fullmatch(value) is not None


def clean_text(value: str) -> tuple[str, bool]:
    """`value` with NUL and lone surrogates as U+FFFD, and whether there were any."""
    cleaned, count = _UNSTORABLE.subn(REPLACEMENT, value)
    return cleaned, count > 0


class UnstorableJSONError(ValueError):
    """A JSON value that no database of ours holds; the message says why."""


@dataclass
class _Cleaner:
    """Walks one JSON value, counting what it holds."""

    max_chars: int = MAX_JSON_CHARS
    chars: int = 0
    changed: bool = field(default=False)

    def text(self, value: str) -> str:
        self.chars += len(value)
        if self.chars > self.max_chars:
            raise UnstorableJSONError(_("Holds more than %(count)s characters.") % {"count": self.max_chars})
        cleaned, changed = clean_text(value)
        self.changed |= changed
        return cleaned

    def walk(self, value: Any, depth: int) -> Any:
        if depth > MAX_JSON_DEPTH and isinstance(value, dict | list | tuple):
            raise UnstorableJSONError(_("Nested deeper than %(count)s levels.") % {"count": MAX_JSON_DEPTH})
        match value:
            case str():
                return self.text(value)
            case dict():
                self.chars += len(value)
                return {self.text(str(key)): self.walk(item, depth + 1) for key, item in value.items()}
            case list() | tuple():
                self.chars += len(value)
                return [self.walk(item, depth + 1) for item in value]
            case bool() | None:
                return value
            case int():
                if abs(value) > MAX_JSON_INTEGER:
                    raise UnstorableJSONError(_("Holds an integer of more than 64 bits; send it as a string."))
                return value
            case float():
                if not math.isfinite(value):
                    raise UnstorableJSONError(_("Holds a number that is not finite; send it as a string."))
                return value
        raise UnstorableJSONError(_("Holds a %(type)s, which JSON does not know.") % {"type": type(value).__name__})


def clean_json(value: Any, *, max_chars: int = MAX_JSON_CHARS) -> tuple[Any, bool]:
    """`value` with storable text, and whether any text was changed.

    Raises UnstorableJSONError for more than 30 levels or `max_chars`, infinite numbers or over-long integers.
    """
    if plainly_encoded(value, max_chars) is not None:
        return value, False
    cleaner = _Cleaner(max_chars)
    return cleaner.walk(value, 1), cleaner.changed


def plainly_encoded(value: Any, max_chars: int) -> bytes | None:
    """`value` in JSON where its bytes show that there is nothing to clean: almost always, and ten times faster.

    A value cannot be nested deeper than it has brackets. Infinite numbers are encoded as null: a null needs the walk.
    """
    try:
        encoded = msgspec.json.encode(value)
    except (TypeError, ValueError, OverflowError, RecursionError):
        return None
    alike = encoded.translate(_ALIKE)  # what is looked for in it, a regular expression finds in 15 times the time
    is_plain = (
        len(encoded) <= max_chars
        and alike.count(b"{") <= MAX_JSON_DEPTH
        and _LONG_NUMBER not in alike
        and b"\\u0000" not in encoded
        and (b"null" not in encoded or _NULL.search(encoded) is None)
    )
    return encoded if is_plain else None


def loads_strict(body: bytes) -> Any:
    """Parse one JSON document of RFC 8259: UTF-8, finite numbers.

    Raises ValueError with a sentence for people, also for nesting deeper than the parser's stack.
    """
    try:
        return json.loads(body.decode("utf-8-sig"), parse_constant=_refuse_constant, parse_float=_finite)
    except UnicodeDecodeError as error:
        message = _("The body is not UTF-8: byte %(at)s cannot be decoded.") % {"at": error.start}
        raise ValueError(message) from error
    except json.JSONDecodeError as error:
        place = {"reason": error.msg, "line": error.lineno, "column": error.colno}
        message = _("The body is not JSON: %(reason)s at line %(line)s, column %(column)s.") % place
        raise ValueError(message) from error
    except RecursionError as error:
        raise ValueError(_("The body is nested too deeply.")) from error


def _refuse_constant(name: str) -> Any:
    raise ValueError(_("The body is not JSON: %(name)s is no JSON number.") % {"name": name})


def _finite(digits: str) -> float:
    number = float(digits)
    if not math.isfinite(number):
        raise ValueError(_("The body holds %(number)s, which is too large for a number.") % {"number": digits[:20]})
    return number
