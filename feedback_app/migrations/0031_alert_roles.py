"""Leads keep the alerts, Operators see them. Groups that are there keep what they have and get what they lack."""

from typing import Any

from django.contrib.auth.management import create_permissions
from django.db import migrations

ROLES: dict[str, tuple[str, ...]] = {
    "Lead": ("view_alertrule", "add_alertrule", "change_alertrule"),
    "Operator": ("view_alertrule",),
}


def widen_roles(apps: Any, schema_editor: Any) -> None:
    alias = schema_editor.connection.alias
    config = apps.get_app_config("feedback_app")
    config.models_module = True  # Django makes permissions after the last migration, which is too late for us
    create_permissions(config, verbosity=0, using=alias, apps=apps)
    config.models_module = None
    group_model, permission_model = apps.get_model("auth", "Group"), apps.get_model("auth", "Permission")
    for name, codenames in ROLES.items():
        group, _ = group_model.objects.using(alias).get_or_create(name=name)
        permissions = permission_model.objects.using(alias).filter(
            content_type__app_label="feedback_app", codename__in=codenames
        )
        group.permissions.add(*permissions)


class Migration(migrations.Migration):
    """Data only. Going back leaves the groups: people are in them."""

    dependencies = [("feedback_app", "0030_alerts")]
    operations = [migrations.RunPython(widen_roles, migrations.RunPython.noop)]
