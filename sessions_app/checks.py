"""What must be true of the database for our promises to hold. `migrate` and `check --database default` ask."""

from collections.abc import Sequence
from typing import Any

from django.core.checks import CheckMessage, Error, Tags, register
from django.db import connections


@register(Tags.database)
def check_databases(app_configs: Any = None, databases: Sequence[str] | None = None, **_: Any) -> list[CheckMessage]:
    """MySQL/MariaDB: utf8mb4, READ COMMITTED, strict."""
    found: list[CheckMessage] = []
    for alias in databases or []:
        connection = connections[alias]
        if connection.vendor != "mysql":
            continue
        with connection.cursor() as cursor:
            cursor.execute("SELECT DATABASE(), @@character_set_database, @@sql_mode")
            name, charset, mode = cursor.fetchone()
            # MySQL 8 and MariaDB 11 call it transaction_isolation, older ones tx_isolation.
            cursor.execute("SHOW VARIABLES WHERE Variable_name IN ('transaction_isolation', 'tx_isolation')")
            isolation = cursor.fetchone()[1]
        if charset != "utf8mb4":
            found.append(
                Error(
                    f"The database {name} has the character set {charset}; emoji and rare Chinese would be lost.",
                    hint=f"ALTER DATABASE `{name}` CHARACTER SET utf8mb4 COLLATE utf8mb4_unicode_ci;",
                    id="sessions_app.E001",
                )
            )
        if isolation != "READ-COMMITTED":
            found.append(
                Error(
                    f"Connections run at {isolation}; the loser of a race would not see the winner's row.",
                    hint='Leave OPTIONS["isolation_level"] at "read committed".',
                    id="sessions_app.E002",
                )
            )
        if "STRICT_TRANS_TABLES" not in mode:
            found.append(
                Error(
                    "The database connection is not strict; over-long text would be cut in silence.",
                    hint="Leave sql_mode in the connection's init_command as it is.",
                    id="sessions_app.E003",
                )
            )
    return found
