"""What is new owes its search terms; what is there has them."""

import django.utils.timezone
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("feedback_app", "0036_saved_views")]

    operations = [
        migrations.SeparateDatabaseAndState(
            database_operations=[
                migrations.AddField("badcasereview", "terms_due_at", models.DateTimeField(db_index=True, null=True))
            ],
            state_operations=[
                migrations.AddField(
                    "badcasereview",
                    "terms_due_at",
                    models.DateTimeField(db_index=True, default=django.utils.timezone.now, editable=False, null=True),
                )
            ],
        )
    ]
