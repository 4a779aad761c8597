"""`manage.py import_traces FILE…`: traces and sessions that other tools wrote into files."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser, no_translations
from tqdm import tqdm

from sessions_app.api.serializers import SessionReader
from sessions_app.management.loading import Line, read_session, store_sessions
from sessions_app.otlp.files import Found, UnreadableFileError, WholeSession, read_file
from sessions_app.otlp.spans import BadSpan, Span
from sessions_app.services.recording import BATCH_SESSIONS
from sessions_app.services.traces import record_spans

BATCH_SPANS = 2_000
BATCH_CHARS = 16 * 1024 * 1024
MAX_REASONS = 50


class Command(BaseCommand):
    """Import OTLP, Jaeger, Tempo and session files."""

    help = (
        "Import traces in OTLP (JSON, protobuf, the collector's files), Jaeger's or Tempo's JSON, and lines of whole "
        "sessions, each plain or in gzip. What a file holds is seen from its content. Importing again changes nothing."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        """Files."""
        parser.add_argument("files", nargs="+", type=Path, metavar="FILE")

    @no_translations
    def handle(self, *args: Any, **options: Any) -> None:
        """Import file after file and say what was skipped; fail only if there was nothing to take."""
        report = _Report()
        for path in options["files"]:
            try:
                with (
                    path.open("rb") as file,
                    tqdm(
                        total=path.stat().st_size,
                        unit="B",
                        unit_scale=True,
                        desc=path.name,
                        disable=not sys.stderr.isatty(),
                    ) as bar,
                ):
                    _Import(path.name, report).take(_shown(read_file(file), file, bar))
            except OSError as error:
                report.skip(f"{path}: Cannot be read: {error.strerror or error}.")
        for reason in report.reasons:
            self.stderr.write(reason)
        if report.skipped > len(report.reasons):
            self.stderr.write(f"… and {report.skipped - len(report.reasons):,} more.")
        self.stdout.write(
            f"{report.spans:,} spans and {report.sessions:,} whole sessions imported, {report.skipped:,} skipped."
        )
        if not report.spans and not report.sessions:
            raise CommandError("Nothing was imported.")


@dataclass
class _Report:
    """What was taken and what was not."""

    spans: int = 0
    sessions: int = 0
    skipped: int = 0
    reasons: list[str] = field(default_factory=list)  # the first ones

    def skip(self, reason: str) -> None:
        """Count something that was not taken. Reasons quote files, and a terminal obeys what it is shown."""
        self.skipped += 1
        if len(self.reasons) < MAX_REASONS:
            self.reasons.append("".join(char if char.isprintable() else "\ufffd" for char in reason[:500]))


class _Import:
    """One file on its way into the tables, some spans or sessions at a time."""

    def __init__(self, name: str, report: _Report) -> None:
        self.name, self.report = name, report
        self.reader = SessionReader()
        self.spans: list[Span] = []
        self.chars = 0
        self.lines: list[Line] = []

    def take(self, found: Iterator[Found]) -> None:
        """Store all that is found, also when the file breaks off."""
        try:
            for number, what in found:
                match what:
                    case Span():
                        self._take_span(what)
                    case WholeSession():
                        self._take_session(number, what)
                    case BadSpan():
                        self.report.skip(f"{self.name}:{number}: {what.reason}")
        except UnreadableFileError as error:
            self.report.skip(f"{self.name}: {error}")
        self._store_spans()
        self._store_sessions()

    def _take_span(self, span: Span) -> None:
        self.spans.append(span)
        self.chars += sum(len(value) for value in span.attributes.values() if isinstance(value, str))
        if len(self.spans) >= BATCH_SPANS or self.chars > BATCH_CHARS:
            self._store_spans()

    def _store_spans(self) -> None:
        outcome = record_spans(self.spans)
        self.report.spans += outcome.accepted
        for reason in outcome.rejected:
            self.report.skip(f"{self.name}: {reason}")
        self.spans, self.chars = [], 0

    def _take_session(self, number: int, session: WholeSession) -> None:
        self.lines.append(read_session(self.reader, number, session.text))
        if len(self.lines) >= BATCH_SESSIONS:
            self._store_sessions()

    def _store_sessions(self) -> None:
        for line in store_sessions(self.lines):
            if line.reason is None:
                self.report.sessions += 1
            else:
                self.report.skip(f"{self.name}:{line.number}: {line.reason}")
        self.lines = []


def _shown(found: Iterator[Found], file: Any, bar: Any) -> Iterator[Found]:
    """The same, with progress in bytes of the file."""
    for each in found:
        bar.update(file.tell() - bar.n)
        yield each
