import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("cases_app", "0010_bulk_jobs"),
        ("sessions_app", "0008_erased_ids"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.AddField(
            model_name="caselibrary",
            name="merged_into",
            field=models.ForeignKey(
                blank=True,
                editable=False,
                null=True,
                on_delete=django.db.models.deletion.SET_NULL,
                related_name="merged",
                to="cases_app.caselibrary",
                verbose_name="merged into",
            ),
        ),
        migrations.AddConstraint(
            model_name="caselibrary",
            constraint=models.CheckConstraint(
                condition=models.Q(("merged_into", None), ("status", "RETIRED"), _connector="OR"),
                name="case_merged_is_retired",
            ),
        ),
    ]
