"""`manage.py apply_retention`: what the settings say of old texts and sessions, now and to the end."""

from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandParser, no_translations

from feedback_app.services.retention import Applied, apply_retention, count_due


class Command(BaseCommand):
    """Apply the retention."""

    help = (
        "Take personal data out of texts older than RETENTION_ANONYMISE_DAYS and remove sessions older than "
        "RETENTION_REMOVE_DAYS. Beat does the same a little at a time; it may be stopped at any moment."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        """Only look."""
        parser.add_argument("--preview", "--dry-run", action="store_true", dest="preview", help="count, change nothing")

    @no_translations
    def handle(self, *args: Any, **options: Any) -> None:
        """Count, or do it."""
        self.stdout.write(
            f"Anonymised after {settings.RETENTION_ANONYMISE_DAYS or 'no'} days, "
            f"removed after {settings.RETENTION_REMOVE_DAYS or 'no'} days."
        )
        if options["preview"]:
            due = count_due()
            self.stdout.write(f"Due: {due.anonymised} sessions to anonymise, {due.removed} to remove.")
            return
        done = Applied()
        while not done.is_done:
            step = apply_retention(seconds=5)
            done = Applied(done.anonymised + step.anonymised, done.removed + step.removed, step.is_done)
            self.stderr.write(f"{done.anonymised} anonymised, {done.removed} removed")
            if not (step.anonymised or step.removed):
                break  # what is left is being written just now
        self.stdout.write(f"{done.anonymised} sessions anonymised, {done.removed} removed.")
