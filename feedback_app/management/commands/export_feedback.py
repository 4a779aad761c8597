"""`manage.py export_feedback --format dpo --out FILE`: what people's feedback teaches, for training."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import date
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser, no_translations
from tqdm import tqdm

from feedback_app.selectors.training import Selection, TrainingFormat, count_rows, training_lines


class Command(BaseCommand):
    """Write the export, line by line."""

    help = (
        "Write feedback for training as JSON lines, anonymised, without the sessions and events whose people refused. "
        "sft: useful answers (prompt, completion). dpo: corrections (prompt, rejected, chosen). jsonl: every event."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        """What, of when, of whom, where to."""
        parser.add_argument("--format", required=True, choices=TrainingFormat.values)
        parser.add_argument("--from", type=date.fromisoformat, metavar="YYYY-MM-DD", dest="first", help="first day")
        parser.add_argument(
            "--to", type=date.fromisoformat, metavar="YYYY-MM-DD", dest="last", help="last day, included"
        )
        parser.add_argument("--agent", metavar="AGENT_ID", help="of this agent alone")
        parser.add_argument("--out", type=Path, metavar="FILE", help="default: standard output")

    @no_translations
    def handle(self, *args: Any, **options: Any) -> None:
        """Count for the progress bar, then write page by page."""
        selection = Selection(options["first"], options["last"], options["agent"])
        if selection.first and selection.last and selection.first > selection.last:
            raise CommandError("The period must begin before it ends.")
        form = TrainingFormat(options["format"])
        written = 0
        with (
            _target(options["out"], self.stdout) as target,
            tqdm(total=count_rows(form, selection), unit="row", desc=form.value, file=sys.stderr, mininterval=1) as bar,
        ):
            for line in training_lines(form, selection, on_row=bar.update):
                target.write(line)
                written += 1
        self.stderr.write(f"{written} lines.")


@contextmanager
def _target(path: Path | None, stdout: Any) -> Iterator[Any]:
    """Standard output, or a file that takes its name only when it is whole."""
    if path is None:
        yield stdout
        return
    unfinished = path.with_name(f"{path.name}.part")
    try:
        with unfinished.open("w", encoding="utf-8", newline="\n") as file:
            yield file
        unfinished.replace(path)
    except OSError as error:
        raise CommandError(f"Cannot write {path}: {error.strerror}.") from error
    finally:
        unfinished.unlink(missing_ok=True)
