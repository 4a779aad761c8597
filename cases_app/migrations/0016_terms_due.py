"""What is new owes its search terms; what is there has them."""

import django.utils.timezone
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("cases_app", "0015_fill_search_terms")]

    operations = [
        migrations.SeparateDatabaseAndState(
            database_operations=[
                migrations.AddField("caselibrary", "terms_due_at", models.DateTimeField(db_index=True, null=True))
            ],
            state_operations=[
                migrations.AddField(
                    "caselibrary",
                    "terms_due_at",
                    models.DateTimeField(db_index=True, default=django.utils.timezone.now, editable=False, null=True),
                )
            ],
        )
    ]
