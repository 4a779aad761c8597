"""Indexes from which the case library is filtered and put in order, without reading its texts."""

from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("cases_app", "0016_terms_due"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    # New ones first: MySQL keeps an index for the foreign key of the category.
    operations = [
        migrations.AddIndex(
            model_name="caselibrary",
            index=models.Index(
                fields=[
                    "fault_category", "created_at", "case_id", "status", "source_type", "error_code", "updated_at",
                ],
                name="case_to_enrich_order",
            ),
        ),
        migrations.AddIndex(
            model_name="caselibrary",
            index=models.Index(
                fields=["updated_at", "status", "source_type", "fault_category", "reviewed_by", "flagged_at"],
                name="case_last_updated",
            ),
        ),
        migrations.AddIndex(
            model_name="caselibrary",
            index=models.Index(
                fields=[
                    "status", "source_type", "fault_category", "flagged_at", "error_code", "updated_at", "created_at",
                    "reviewed_by",
                ],
                name="case_queue_orders",
            ),
        ),
        migrations.RemoveIndex(model_name="caselibrary", name="case_to_enrich_first"),
        migrations.RemoveIndex(model_name="caselibrary", name="case_updated"),
        migrations.RemoveIndex(model_name="caselibrary", name="case_queues"),
    ]  # fmt: skip
