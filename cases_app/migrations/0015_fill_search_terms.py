"""Let the cases that are there be found by their words."""

from typing import Any

from django.db import migrations

from sessions_app.search import terms_of

ROWS_AT_ONCE = 200


def fill(apps: Any, schema_editor: Any) -> None:
    """Some cases at a time, each anew: what stopped half-way is run again."""
    cases, terms = apps.get_model("cases_app", "CaseLibrary").objects, apps.get_model("cases_app", "CaseTerm").objects
    rows = cases.order_by("pk").values_list("pk", "title", "error_code", "root_cause", "solution", "diagnosis_id")
    last = None
    while page := list((rows.filter(pk__gt=last) if last else rows)[:ROWS_AT_ONCE]):
        terms.filter(owner_id__in=[row[0] for row in page]).delete()
        terms.bulk_create(
            [
                terms.model(owner_id=pk, term=term)
                for pk, *texts in page
                for term in sorted(terms_of(str(pk), *(text or "" for text in texts)))
            ],
            batch_size=5000,
        )
        last = page[-1][0]


class Migration(migrations.Migration):
    """After the table: on MySQL none of it rolls back."""

    atomic = False

    dependencies = [("cases_app", "0014_search_terms")]

    operations = [migrations.RunPython(fill, migrations.RunPython.noop, elidable=True)]
