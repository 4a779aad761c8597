"""`manage.py create_api_key NAME --scope ingest --scope read`: prints the key once, alone on the last line."""

from typing import Any

from django.contrib.auth import get_user_model
from django.core.management.base import BaseCommand, CommandError, CommandParser, no_translations

from sessions_app.errors import InvalidInputError
from sessions_app.models import Scope
from sessions_app.services.keys import create_key


class Command(BaseCommand):
    """Make a key for an agent or a frontend."""

    help = "Make an API key. The key is printed once, alone on the last line; only its hash is stored."

    def add_arguments(self, parser: CommandParser) -> None:
        """Name, scopes, owner."""
        parser.add_argument("name", help="what the key is for")
        parser.add_argument(
            "--scope", action="append", required=True, choices=Scope.values, help="may be given several times"
        )
        parser.add_argument("--owner", help="user name of the person who answers for it")

    @no_translations
    def handle(self, *args: Any, **options: Any) -> None:
        """Make it, print it."""
        owner = None
        if options["owner"]:
            owner = get_user_model().objects.filter(username=options["owner"]).first()
            if owner is None:
                raise CommandError(f"There is no user {options['owner']}.")
        try:
            row, secret = create_key(name=options["name"], scopes=options["scope"], owner=owner)
        except InvalidInputError as error:
            raise CommandError(error.message) from error
        self.stderr.write(f"Key {row.name!r} with {', '.join(row.scopes)}. Keep it: it cannot be shown again.")
        self.stdout.write(secret)
