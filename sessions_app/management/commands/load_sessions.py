"""`manage.py load_sessions FILE.jsonl`: whole sessions through the writer that the API uses."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser, no_translations
from tqdm import tqdm

from sessions_app.management.loading import read_sessions, store_sessions


class Command(BaseCommand):
    """Load whole sessions from JSON lines."""

    help = "Load whole sessions, one JSON object a line (see the README). Loading a file again changes nothing."

    def add_arguments(self, parser: CommandParser) -> None:
        """Files."""
        parser.add_argument("files", nargs="+", type=Path, metavar="FILE.jsonl")

    @no_translations
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
                    for line in store_sessions(read_sessions(_shown(lines, bar))):
                        if line.reason is None:
                            loaded += 1
                        else:
                            refused += 1
                            self.stderr.write(f"{path.name}:{line.number}: {line.reason}")
            except OSError as error:
                raise CommandError(f"Cannot read {path}: {error.strerror}.") from error
        self.stdout.write(f"{loaded} sessions loaded, {refused} refused.")
        if refused:
            raise CommandError(f"{refused} of {loaded + refused} lines were refused; the others are stored.")


def _shown(lines: Any, bar: Any) -> Iterator[bytes]:
    for line in lines:
        bar.update(len(line))
        yield line
