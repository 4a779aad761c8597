"""Saved views belong to every list now: those of the queue move down, and their powers with them."""

from typing import Any

from django.contrib.auth.management import create_permissions
from django.db import migrations

ROLES: dict[str, tuple[str, ...]] = {"Lead": ("share_savedview",)}
QUEUE = "feedback_app.badcasereview"
VIEW_FIELDS = ("owner_id", "name", "filters", "is_shared", "created_at")


def move_down(apps: Any, schema_editor: Any) -> None:
    """Nothing is there yet of these in the new tables, or all of it: a migration that failed can run again."""
    alias = schema_editor.connection.alias
    old_view, old_default = (apps.get_model("feedback_app", name) for name in ("SavedView", "DefaultView"))
    new_view, new_default = (apps.get_model("sessions_app", name) for name in ("SavedView", "DefaultView"))
    moved = {}
    for row in old_view.objects.using(alias).values("id", *VIEW_FIELDS):
        key = row.pop("id")
        view, _ = new_view.objects.using(alias).get_or_create(
            owner_id=row.pop("owner_id"), listed=QUEUE, name=row.pop("name"), defaults=row
        )
        moved[key] = view.pk
    for user_id, view_id in old_default.objects.using(alias).values_list("user_id", "view_id"):
        new_default.objects.using(alias).get_or_create(
            user_id=user_id, listed=QUEUE, defaults={"view_id": moved[view_id]}
        )


def move_up(apps: Any, schema_editor: Any) -> None:
    """Back: the views of the queue. Those of other lists had no place."""
    alias = schema_editor.connection.alias
    old_view, old_default = (apps.get_model("feedback_app", name) for name in ("SavedView", "DefaultView"))
    new_view, new_default = (apps.get_model("sessions_app", name) for name in ("SavedView", "DefaultView"))
    moved = {}
    for row in new_view.objects.using(alias).filter(listed=QUEUE).values("id", *VIEW_FIELDS):
        key = row.pop("id")
        moved[key] = old_view.objects.using(alias).create(**row).pk
    for user_id, view_id in new_default.objects.using(alias).filter(listed=QUEUE).values_list("user_id", "view_id"):
        old_default.objects.using(alias).create(user_id=user_id, view_id=moved[view_id])


def widen_roles(apps: Any, schema_editor: Any) -> None:
    """Leads share views, and whoever else could: who assigns bad cases."""
    alias = schema_editor.connection.alias
    config = apps.get_app_config("sessions_app")
    config.models_module = True  # Django makes permissions after the last migration, which is too late for us
    create_permissions(config, verbosity=0, using=alias, apps=apps)
    config.models_module = None
    permission_model, group_model = apps.get_model("auth", "Permission"), apps.get_model("auth", "Group")
    permissions = permission_model.objects.using(alias)
    share = permissions.get(content_type__app_label="sessions_app", codename="share_savedview")
    assign = permissions.get(content_type__app_label="feedback_app", codename="assign_badcasereview")
    for name in ROLES:
        group_model.objects.using(alias).get_or_create(name=name)[0].permissions.add(share)
    share.group_set.add(*assign.group_set.all())
    share.user_set.add(*assign.user_set.all())


class Migration(migrations.Migration):
    dependencies = [("feedback_app", "0037_terms_due"), ("sessions_app", "0010_saved_views")]
    operations = [
        migrations.RunPython(move_down, move_up),
        migrations.RunPython(widen_roles, migrations.RunPython.noop),
    ]
