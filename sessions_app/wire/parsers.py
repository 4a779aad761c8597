"""Reading request bodies: bounded before and after inflating, strict JSON, clear refusals."""

from __future__ import annotations

import zlib
from collections.abc import Mapping
from typing import IO, Any

from django.conf import settings
from django.utils.translation import gettext as _
from rest_framework import status
from rest_framework.exceptions import APIException, ParseError, UnsupportedMediaType
from rest_framework.parsers import BaseParser

from sessions_app.text import loads_strict

_CHUNK = 64 * 1024


class BodyTooLargeError(APIException):
    """413: the body, inflated, is larger than MAX_BODY_BYTES."""

    status_code = status.HTTP_413_REQUEST_ENTITY_TOO_LARGE
    default_code = "too_large"

    def __init__(self) -> None:
        message = _("The body is larger than %(count)s bytes; send fewer items a request.")
        super().__init__(message % {"count": settings.MAX_BODY_BYTES})


def read_body(stream: IO[bytes], headers: Mapping[str, str]) -> bytes:
    """The request's body, inflated. Never holds more than MAX_BODY_BYTES plus one chunk.

    Raises BodyTooLargeError, ParseError for damaged gzip, UnsupportedMediaType for other encodings.
    """
    limit: int = settings.MAX_BODY_BYTES
    declared = headers.get("Content-Length") or ""
    if declared.isdigit() and int(declared) > limit:
        raise BodyTooLargeError
    encoding = (headers.get("Content-Encoding") or "identity").strip().lower()
    if encoding == "identity":
        body = stream.read(limit + 1)
        if len(body) > limit:
            raise BodyTooLargeError
        return body
    if encoding not in {"gzip", "deflate"}:
        message = _("Content-Encoding %(encoding)s is not known; use gzip or none.") % {"encoding": encoding}
        raise UnsupportedMediaType(encoding, detail=message)
    return _inflate(stream, limit)


def _inflate(stream: IO[bytes], limit: int) -> bytes:
    """Inflate gzip or zlib, told apart by their headers; stops at the limit, before the bytes exist.

    What follows the compressed stream, be it another one, is refused: to leave it out would lose it in silence.
    """
    inflater = zlib.decompressobj(wbits=zlib.MAX_WBITS | 32)
    parts: list[bytes] = []
    size = 0
    try:
        while (chunk := inflater.unconsumed_tail or stream.read(_CHUNK)) and not inflater.eof:
            part = inflater.decompress(chunk, _CHUNK)
            size += len(part)
            if size > limit:
                raise BodyTooLargeError
            parts.append(part)
        parts.append(inflater.flush())  # at most one window: the loop took all that was bounded
    except zlib.error as error:
        raise ParseError(_("The body is not valid gzip or deflate.")) from error
    if not inflater.eof:
        raise ParseError(_("The compressed body ends too early."))
    if inflater.unused_data or stream.read(1):
        raise ParseError(_("The body is not valid gzip or deflate."))
    return b"".join(parts)


class StrictJSONParser(BaseParser):
    """One JSON document: UTF-8, finite numbers, bounded depth and size."""

    media_type = "application/json"

    def parse(self, stream: Any, media_type: str | None = None, parser_context: Any = None) -> Any:
        """The parsed document; ParseError says what is wrong with it."""
        try:
            return loads_strict(read_body(stream, parser_context["request"].headers))
        except ValueError as error:
            raise ParseError(str(error)) from error


class BeaconJSONParser(StrictJSONParser):
    """The same JSON under `text/plain`, which is what `navigator.sendBeacon` may send without a preflight."""

    media_type = "text/plain"


class NDJSONParser(BaseParser):
    """One JSON document a line. A line that cannot be parsed becomes a `BadLine`, so that its neighbours are kept."""

    media_type = "application/x-ndjson"

    def parse(self, stream: Any, media_type: str | None = None, parser_context: Any = None) -> Any:
        """The documents in order, blank lines left out."""
        return parse_lines(read_body(stream, parser_context["request"].headers))


class BadLine:
    """Stands where a line could not be parsed, and says why."""

    def __init__(self, reason: str) -> None:
        self.reason = reason


def parse_lines(body: bytes) -> list[Any]:
    """The documents of an NDJSON body; `BadLine` where a line is not JSON."""
    return [parse_line(line) for line in body.splitlines() if line.strip()]


def parse_line(line: bytes) -> Any:
    """One document of an NDJSON body, or a `BadLine`."""
    try:
        return loads_strict(line)
    except ValueError as error:
        return BadLine(str(error))
