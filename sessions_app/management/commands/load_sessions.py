"""`manage.py load_sessions FILE.jsonl`: whole sessions through the writer that the API uses."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser
from rest_framework.serializers import ValidationError
from tqdm import tqdm

from sessions_app.api.serializers import session_data
from sessions_app.records import SessionData
from sessions_app.services.recording import BATCH_SESSIONS, Refused, record_batch
from sessions_app.wire.parsers import BadLine, parse_line
from sessions_app.wire.serializers import BODY, flatten_errors


class Command(BaseCommand):
    """Load whole sessions from JSON lines."""

    help = "Load whole sessions, one JSON object a line (see the README). Loading a file again changes nothing."

    def add_arguments(self, parser: CommandParser) -> None:
        """Files."""
        parser.add_argument("files", nargs="+", type=Path, metavar="FILE.jsonl")

    def handle(self, *args: Any, **options: Any) -> None:
        """Load file after file; at the end, fail if any line was refused."""
        loaded, refused = 0, 0
        for path in options["files"]:
            try:
                size = path.stat().st_size
                with (
                    path.open("rb") as lines,
                    tqdm(total=size, unit="B", unit_scale=True, desc=path.name, disable=not sys.stderr.isatty()) as bar,
                ):
                    for number, reason in self._load(_numbered(lines, bar)):
                        if reason is None:
                            loaded += 1
                        else:
                            refused += 1
                            self.stderr.write(f"{path.name}:{number}: {reason}")
            except OSError as error:
                raise CommandError(f"Cannot read {path}: {error.strerror}.") from error
        self.stdout.write(f"{loaded} sessions loaded, {refused} refused.")
        if refused:
            raise CommandError(f"{refused} of {loaded + refused} lines were refused; the others are stored.")

    def _load(self, lines: Iterator[tuple[int, bytes]]) -> Iterator[tuple[int, str | None]]:
        """Yield each line's number with None, or with why it was refused."""
        batch: list[tuple[int, SessionData]] = []
        for number, line in lines:
            try:
                document = parse_line(line)
                if isinstance(document, BadLine):
                    raise ValidationError(document.reason)
                batch.append((number, session_data(document)))
            except ValidationError as error:
                field, messages = next(iter(flatten_errors(error.detail).items()), (BODY, [""]))
                yield number, f"{field}: {messages[0]}"
            if len(batch) == BATCH_SESSIONS:
                yield from _write(batch)
                batch = []
        yield from _write(batch)


def _numbered(lines: Any, bar: Any) -> Iterator[tuple[int, bytes]]:
    for number, line in enumerate(lines, start=1):
        bar.update(len(line))
        if line.strip():
            yield number, line


def _write(batch: list[tuple[int, SessionData]]) -> Iterator[tuple[int, str | None]]:
    for (number, _), outcome in zip(batch, record_batch([item for _, item in batch]), strict=True):
        yield number, outcome.reason if isinstance(outcome, Refused) else None
