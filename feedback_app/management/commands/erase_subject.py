"""`manage.py erase_subject USER_REF`: shows what is stored of a person, asks, and deletes it all."""

import sys
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser, no_translations

from feedback_app.services.erasure import compact_file, erase_subject, preview_erasure

NOT_COMPACT = (
    "The rows are deleted, but the file of the database was busy, so its free pages still hold their text. "
    "Run the command again when nobody writes."
)


class Command(BaseCommand):
    """Erase a person."""

    help = (
        "Delete all that is stored of the person USER_REF: sessions, feedback, triage, cases, traces. "
        "Spans that come later are refused. It cannot be undone; copies of the database made before still hold it."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        """Who; only look; do not ask."""
        parser.add_argument("user_ref", metavar="USER_REF")
        parser.add_argument("--preview", "--dry-run", action="store_true", dest="preview", help="count, delete nothing")
        parser.add_argument("--yes", action="store_true", help="do not ask")

    @no_translations
    def handle(self, *args: Any, **options: Any) -> None:
        """Count, ask, erase, tell the counts."""
        counts = preview_erasure(user_ref=options["user_ref"])
        if not counts:
            self.stdout.write("Nothing is stored of this person.")
            if not options["preview"] and not compact_file():
                raise CommandError(NOT_COMPACT)
            return
        self._tell(counts)
        if options["preview"]:
            return
        if not options["yes"] and not self._is_confirmed():
            raise CommandError("Nothing was erased.")
        erased = erase_subject(user_ref=options["user_ref"])
        self.stdout.write(f"Erased. The record of it is number {erased.erasure.pk}:")
        self._tell(erased.erasure.counts)
        if not erased.is_compact:
            raise CommandError(NOT_COMPACT)

    def _tell(self, counts: dict[str, int]) -> None:
        for table, count in sorted(counts.items()):
            if count:
                self.stdout.write(f"{count:>8}  {table}")

    def _is_confirmed(self) -> bool:
        if not sys.stdin.isatty():
            raise CommandError("Give --yes where nobody can be asked.")
        return input("Erase all of it? It cannot be undone. [yes/no] ").strip().lower() == "yes"
