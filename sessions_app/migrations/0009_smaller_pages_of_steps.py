"""Steps repeat their agent's prompt and what was said before, so their pages pack to a quarter, not to a half.

On MySQL and MariaDB only, and only where 0006 could make compressed tables. See `benchmarks/README.md`.
"""

from typing import Any

from django.db import migrations


def smaller(apps: Any, schema_editor: Any) -> None:
    _alter(schema_editor, 4)


def as_before(apps: Any, schema_editor: Any) -> None:
    _alter(schema_editor, 8)


def _alter(schema_editor: Any, kilobytes: int) -> None:
    connection = schema_editor.connection
    if connection.vendor != "mysql":
        return
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT row_format FROM information_schema.tables WHERE table_schema = DATABASE() AND table_name = 'agent_step'"
        )
        row = cursor.fetchone()
        if row and row[0].upper() == "COMPRESSED":
            cursor.execute(f"ALTER TABLE agent_step ROW_FORMAT=COMPRESSED KEY_BLOCK_SIZE={kilobytes}")


class Migration(migrations.Migration):
    dependencies = [("sessions_app", "0008_erased_ids")]

    operations = [migrations.RunPython(smaller, as_before)]
