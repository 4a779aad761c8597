"""Files of traces and sessions, whatever tool wrote them: told apart by their content, never by their name.

Known are OTLP in JSON and protobuf, the lines and the length-prefixed messages of the collector's file exporter, what
Jaeger and Tempo export, and our own lines of whole sessions; each of them plain or in gzip.

Lines and messages are read one by one. Any other file is one document and is held whole, its spans undecoded.
"""

from __future__ import annotations

import base64
import binascii
import gzip
import io
import re
import zlib
from collections.abc import Iterator
from typing import Any, NamedTuple

import msgspec

from sessions_app.otlp import jaeger, json_form
from sessions_app.otlp.protobuf import decode_protobuf
from sessions_app.otlp.spans import BadSpan, Span, UndecodableError

MAX_DOCUMENT_BYTES = 512 * 1024 * 1024
_GZIP = b"\x1f\x8b"
_BOM = b"\xef\xbb\xbf"
_HEX = re.compile(r"[0-9a-fA-F]+")
_LENGTH_BYTES = 4
_WRAPPERS = ("data", "trace", "traces", "result", "sessions")
"""Fields under which APIs give traces: Jaeger, Tempo, Jaeger's second API."""
_MAX_WRAPPERS = 4

_ANY = msgspec.json.Decoder(msgspec.Raw)
_OBJECT = msgspec.json.Decoder(dict[str, msgspec.Raw])
_LIST = msgspec.json.Decoder(list[msgspec.Raw])
_REQUEST = msgspec.json.Decoder(json_form.TraceRequest)
_JAEGER = msgspec.json.Decoder(jaeger.JaegerTrace)


class UnreadableFileError(Exception):
    """A file holds nothing that we know, or ends before its time; the message says which."""


class WholeSession(NamedTuple):
    """A session in the wire form of contract 3, not parsed yet."""

    text: bytes


class Found(NamedTuple):
    """One thing in a file, and the number of the line or message it stands in."""

    number: int
    what: Span | BadSpan | WholeSession


def read_file(file: io.BufferedReader[Any]) -> Iterator[Found]:
    """All that a file holds, in order. Raises UnreadableFileError, also after a part was read."""
    try:
        yield from _read(_inflated(file))
    except (gzip.BadGzipFile, zlib.error, EOFError) as error:
        raise UnreadableFileError("The gzip is damaged or ends too early.") from error


def _inflated(stream: io.BufferedReader[Any]) -> io.BufferedReader[Any]:
    if stream.peek(2)[:2] == _GZIP:
        return io.BufferedReader(gzip.GzipFile(fileobj=stream))
    return stream


def _read(stream: io.BufferedReader[Any]) -> Iterator[Found]:
    head = stream.peek(64)[:64]
    if not head:
        raise UnreadableFileError("The file is empty.")
    if head[0] == 0:  # the first byte of a length below 16 MB; neither JSON nor protobuf begins so
        yield from _messages(stream)
    elif head.removeprefix(_BOM).lstrip()[:1] in (b"{", b"["):
        yield from _json(stream)
    else:
        yield from _one_message(_rest(stream))


def _rest(stream: io.BufferedReader[Any], begun: bytes = b"") -> bytes:
    body = begun + stream.read(MAX_DOCUMENT_BYTES + 1 - len(begun))
    if len(body) > MAX_DOCUMENT_BYTES:
        raise UnreadableFileError(f"It is one document of more than {MAX_DOCUMENT_BYTES >> 20} MB.")
    return body


# -- protobuf --------------------------------------------------------------------------------------------------------


def _one_message(body: bytes, number: int = 1) -> Iterator[Found]:
    try:
        spans = decode_protobuf(body)
    except UndecodableError as error:
        raise UnreadableFileError("It is no JSON and no protobuf of OTLP.") from error
    if not spans:
        raise UnreadableFileError("It holds no spans.")
    yield from (Found(number, span) for span in spans)


def _messages(stream: io.BufferedReader[Any]) -> Iterator[Found]:
    """The collector's file exporter writes each message behind its length, four bytes, big end first."""
    number = 0
    while length := stream.read(_LENGTH_BYTES):
        number += 1
        size = int.from_bytes(length, "big")
        body = stream.read(size) if size <= MAX_DOCUMENT_BYTES else b""
        if len(body) < size:
            raise UnreadableFileError(f"Message {number} ends too early.")
        try:
            yield from (Found(number, span) for span in decode_protobuf(body))
        except UndecodableError as error:
            if number == 1:
                raise UnreadableFileError("It is no JSON and no protobuf of OTLP.") from error
            yield Found(number, BadSpan(str(error)))


# -- JSON ------------------------------------------------------------------------------------------------------------


def _json(stream: io.BufferedReader[Any]) -> Iterator[Found]:
    """Lines of documents; or one document of many lines, which its first line shows, being none by itself."""
    number, line = 1, stream.readline(MAX_DOCUMENT_BYTES + 1).removeprefix(_BOM)
    while line and not line.strip():
        number, line = number + 1, stream.readline(MAX_DOCUMENT_BYTES + 1)
    if not _is_json(line):
        body = _rest(stream, line)
        if _is_json(body):
            yield from _numbered(number, body)
            return
        if body[:1] == b"\n":  # also the first byte of protobuf
            yield from _one_message(body)
            return
        stream = io.BufferedReader(io.BytesIO(body))
        line = stream.readline()
    while line:
        if len(line) > MAX_DOCUMENT_BYTES:
            raise UnreadableFileError(f"Line {number} is longer than {MAX_DOCUMENT_BYTES >> 20} MB.")
        if line.strip():
            yield from _numbered(number, line)
        number, line = number + 1, stream.readline(MAX_DOCUMENT_BYTES + 1)


def _is_json(text: bytes) -> bool:
    try:
        json_form.decode(text, _ANY)
    except ValueError:
        return False
    return True


def _numbered(number: int, text: bytes) -> Iterator[Found]:
    return (Found(number, each) for each in _document(text))


def _document(text: bytes | msgspec.Raw, depth: int = 0) -> Iterator[Span | BadSpan | WholeSession]:
    """What one JSON document holds, by the names of its fields."""
    try:
        if bytes(memoryview(text)[:64]).lstrip()[:1] == b"[" and depth <= _MAX_WRAPPERS:
            for item in json_form.decode(text, _LIST):
                yield from _document(item, depth + 1)
            return
        fields = json_form.decode(text, _OBJECT)
        inner = next((name for name in _WRAPPERS if name in fields), None)
        if "resourceSpans" in fields or "batches" in fields:
            yield from json_form.spans_of(json_form.decode(text, _REQUEST), any_id)
        elif "spans" in fields and ("traceID" in fields or "processes" in fields):
            yield from jaeger.spans_of(json_form.decode(text, _JAEGER), any_id)
        elif "sessionId" in fields:
            yield WholeSession(bytes(text))
        elif inner and depth <= _MAX_WRAPPERS:
            yield from _document(fields[inner], depth + 1)
        else:
            names = ", ".join(list(fields)[:5]) or "none"
            yield BadSpan(f"It holds neither traces nor a session; its fields: {names[:200]}.")
    except ValueError as error:
        yield BadSpan(f"It is not JSON of a kind we know: {error}")


def any_id(text: str, digits: int) -> str:
    """An id as other tools write it: hex, perhaps without its leading zeros (Jaeger), or base64 (Tempo)."""
    if len(text) <= digits and _HEX.fullmatch(text):
        return text.lower().rjust(digits, "0")
    try:
        return json_form.hex_id(base64.b64decode(text, validate=True).hex().rjust(digits, "0"), digits)
    except binascii.Error as error:
        raise ValueError("An id must be hexadecimal digits or base64.") from error
