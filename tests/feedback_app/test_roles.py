"""The groups that the migration makes."""

from importlib import import_module
from types import SimpleNamespace

import pytest
from django.contrib.auth.models import Group, Permission
from django.core.management import call_command
from django.db import connection
from django.db.migrations.executor import MigrationExecutor

roles = import_module("feedback_app.migrations.0002_roles")
MIGRATION = ("feedback_app", "0002_roles")
LATER = [
    import_module(f"feedback_app.migrations.{name}").ROLES
    for name in ("0006_erasure_roles", "0031_alert_roles", "0035_seed_failure_modes", "0038_views_of_all_lists")
]
"""What later migrations added."""

pytestmark = pytest.mark.django_db


def run_again():
    """As `migrate` runs it: with the apps as they were then."""
    apps = MigrationExecutor(connection).loader.project_state(MIGRATION).apps
    roles.make_roles(apps, SimpleNamespace(connection=connection))


def held_by(name):
    return set(Permission.objects.filter(group__name=name).values_list("codename", flat=True))


def promised(name):
    return {codename for each in (roles.ROLES, *LATER) for codename in each.get(name, ())}


@pytest.mark.parametrize("name", roles.ROLES)
def test_each_role_has_what_the_tables_say(name):
    assert held_by(name) == promised(name)


def test_it_can_run_again():
    before = {name: held_by(name) for name in roles.ROLES}
    count = Permission.objects.count()
    run_again()
    assert {name: held_by(name) for name in roles.ROLES} == before
    assert Group.objects.count() == len(roles.ROLES)
    assert Permission.objects.count() == count


def test_it_makes_the_permissions_that_a_fresh_database_lacks():
    Group.objects.all().delete()
    Permission.objects.filter(content_type__app_label__in=roles.APPS).delete()
    run_again()
    assert held_by("Lead") == set(roles.ROLES["Lead"])
    call_command("migrate", verbosity=0)  # Django's own turn afterwards makes none twice
    assert Permission.objects.filter(codename="triage_badcasereview").count() == 1


def test_it_takes_nothing_away():
    Group.objects.get(name="Reviewer").permissions.add(Permission.objects.get(codename="view_apikey"))
    run_again()
    assert held_by("Reviewer") == {*promised("Reviewer"), "view_apikey"}


def test_nobody_may_change_or_delete_the_record():
    forbidden = {
        f"{verb}_{model}"
        for verb in ("add", "change", "delete")
        for model in ("agentstep", "toolinvocation", "agentfeedback", "badcasereview", "badcasetransition")
    } | {"add_diagnosissession", "delete_diagnosissession"}
    for name in roles.ROLES:
        assert not held_by(name) & forbidden
