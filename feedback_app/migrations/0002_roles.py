"""The three roles as groups. Here, because this app stands on top and sees the tables of all. `docs/roles.md` has the table."""

from typing import Any

from django.contrib.auth.management import create_permissions
from django.db import migrations

APPS = ("sessions_app", "cases_app", "feedback_app")

VIEW_WORK = (
    "view_diagnosissession", "view_agentstep", "view_toolinvocation",
    "view_caselibrary", "view_casetransition", "view_faultcategory",
    "view_agentfeedback", "view_badcasereview", "view_badcasetransition",
)  # fmt: skip
REVIEW = (*VIEW_WORK, "triage_badcasereview", "enrich_caselibrary", "publish_caselibrary")
ROLES: dict[str, tuple[str, ...]] = {
    "Reviewer": REVIEW,
    "Lead": (
        *REVIEW,
        "assign_badcasereview",
        "add_faultcategory", "change_faultcategory",
        "change_diagnosissession",
    ),
    "Operator": (
        *VIEW_WORK,
        "view_heartbeat",
        "view_apikey", "add_apikey", "change_apikey",
        "change_diagnosissession",
    ),
}  # fmt: skip


def make_roles(apps: Any, schema_editor: Any) -> None:
    """Make the groups that are missing; a group that is there keeps what it has and gets what it lacks."""
    alias = schema_editor.connection.alias
    for label in APPS:
        config = apps.get_app_config(label)
        config.models_module = True  # Django makes permissions after the last migration, which is too late for us
        create_permissions(config, verbosity=0, using=alias, apps=apps)
        config.models_module = None
    group_model, permission_model = apps.get_model("auth", "Group"), apps.get_model("auth", "Permission")
    for name, codenames in ROLES.items():
        group, _ = group_model.objects.using(alias).get_or_create(name=name)
        permissions = permission_model.objects.using(alias).filter(
            content_type__app_label__in=APPS, codename__in=codenames
        )
        group.permissions.add(*permissions)


class Migration(migrations.Migration):
    """Data only. Going back leaves the groups: people are in them."""

    dependencies = [
        ("auth", "0012_alter_user_first_name_max_length"),
        ("contenttypes", "0002_remove_content_type_name"),
        ("sessions_app", "0001_initial"),
        ("cases_app", "0002_seed_fault_categories"),
        ("feedback_app", "0001_initial"),
    ]
    operations = [migrations.RunPython(make_roles, migrations.RunPython.noop)]
