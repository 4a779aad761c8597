"""Reading whole sessions from JSON lines, for the commands that load them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from rest_framework.serializers import ValidationError

from sessions_app.api.serializers import SessionReader
from sessions_app.records import SessionData
from sessions_app.services.recording import BATCH_SESSIONS, Refused, record_batch
from sessions_app.wire.parsers import BadLine, parse_line
from sessions_app.wire.serializers import BODY, flatten_errors


class Line(NamedTuple):
    """One line of a file and what became of it: a session, or the reason why there is none."""

    number: int
    session: SessionData | None
    reason: str | None = None


def read_sessions(lines: Iterable[bytes]) -> Iterator[Line]:
    """Parse and check each line, blank ones left out."""
    reader = SessionReader()
    for number, text in enumerate(lines, start=1):
        if text.strip():
            yield read_session(reader, number, text)


def store_sessions(lines: Iterable[Line]) -> Iterator[Line]:
    """Write the sessions some at a time; yields every line, with the reason if it was refused."""
    batch: list[Line] = []
    for line in lines:
        batch.append(line)
        if len(batch) == BATCH_SESSIONS:
            yield from _store(batch)
            batch = []
    yield from _store(batch)


def read_session(reader: SessionReader, number: int, text: bytes) -> Line:
    """Parse and check one line."""
    document = parse_line(text)
    if isinstance(document, BadLine):
        return Line(number, None, document.reason)
    try:
        return Line(number, reader.read(document))
    except ValidationError as error:
        field, messages = next(iter(flatten_errors(error.detail).items()), (BODY, [""]))
        return Line(number, None, f"{field}: {messages[0]}")


def _store(batch: list[Line]) -> Iterator[Line]:
    outcomes = record_batch([line.session for line in batch if line.session is not None])
    for line in batch:
        if line.session is None:
            yield line
            continue
        outcome = next(outcomes)
        yield line._replace(reason=outcome.reason) if isinstance(outcome, Refused) else line
