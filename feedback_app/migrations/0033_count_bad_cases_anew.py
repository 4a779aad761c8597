"""The queue knows more of each bad case now: have the worker count those that are there (`rank_bad_cases`)."""

from typing import Any

from django.db import migrations


def mark(apps: Any, schema_editor: Any) -> None:
    """A row without this key is one that was not counted yet."""
    apps.get_model("feedback_app", "BadCaseReview").objects.update(question_key="")


class Migration(migrations.Migration):
    dependencies = [("feedback_app", "0032_search_terms")]

    operations = [migrations.RunPython(mark, migrations.RunPython.noop, elidable=True)]
