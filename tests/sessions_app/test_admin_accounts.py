"""Users and groups in the admin: the pages open, and nobody lifts themselves up."""

from __future__ import annotations

import pytest
from django.contrib.auth.models import Group

from tests.factories import PASSWORD, UserFactory

pytestmark = pytest.mark.django_db
USERS = "/admin/auth/user/"


@pytest.fixture
def clerk(client):
    """Somebody who may manage users but is no superuser."""
    names = ("view_user", "add_user", "change_user", "delete_user")
    person = UserFactory(username="clerk", is_staff=True, permissions=[f"auth.{name}" for name in names])
    client.force_login(person, backend="django.contrib.auth.backends.ModelBackend")
    return client, person


def test_a_superuser_opens_every_page(client, admin_user):
    client.force_login(admin_user, backend="django.contrib.auth.backends.ModelBackend")
    other, group = UserFactory(), Group.objects.first() or Group.objects.create(name="g")
    for url in (
        USERS, USERS + "add/", f"{USERS}{other.pk}/change/", f"{USERS}{other.pk}/password/", f"{USERS}?q=a",
        "/admin/auth/group/", f"/admin/auth/group/{group.pk}/change/", "/admin/password_change/", "/admin/",
    ):  # fmt: skip
        assert client.get(url).status_code == 200, url


def test_login_leads_to_the_start_page(client):
    UserFactory(username="rita", is_staff=True)
    response = client.post("/admin/login/", {"username": "rita", "password": PASSWORD})
    assert response.headers["Location"] == "/admin/"


def test_who_may_change_users_cannot_become_more_than_that(clerk):
    client, person = clerk
    body = {
        "username": "clerk", "first_name": "C", "is_active": "on", "is_staff": "on", "is_superuser": "on",
        "groups": [group.pk for group in Group.objects.all()], "user_permissions": ["1"],
        "date_joined_0": "2026-01-01", "date_joined_1": "00:00:00",
    }  # fmt: skip
    before = set(person.user_permissions.values_list("pk", flat=True))
    response = client.post(f"{USERS}{person.pk}/change/", body)
    assert response.status_code == 302, response.context and response.context["errors"]
    person.refresh_from_db()
    assert (person.first_name, person.is_superuser, person.groups.count()) == ("C", False, 0)
    assert set(person.user_permissions.values_list("pk", flat=True)) == before


def test_nor_change_or_delete_a_superuser(clerk, admin_user):
    client, _ = clerk
    for url, body in (
        (f"{USERS}{admin_user.pk}/change/", {"username": "mine"}),
        (f"{USERS}{admin_user.pk}/password/", {"password1": "Xy8!long-enough", "password2": "Xy8!long-enough"}),
        (f"{USERS}{admin_user.pk}/delete/", {"post": "yes"}),
    ):
        assert client.post(url, body).status_code == 403, url
    client.post(USERS, {"action": "delete_selected", "_selected_action": [admin_user.pk], "post": "yes"})
    admin_user.refresh_from_db()
    assert (admin_user.username, admin_user.check_password(PASSWORD)) == ("admin", True)


@pytest.mark.parametrize("language", ["en", "ru"])
def test_who_is_deleted_is_named_without_rows_that_have_no_name(client, admin_user, lead, language):
    client.force_login(admin_user, backend="django.contrib.auth.backends.ModelBackend")
    client.defaults["HTTP_ACCEPT_LANGUAGE"] = language
    for address in (f"/admin/auth/user/{lead.pk}/delete/", f"/admin/auth/group/{lead.groups.get().pk}/delete/"):
        page = client.get(address)
        assert page.status_code == 200
        for nameless in ("object (", "关系", "relationship"):
            assert nameless not in page.content.decode(), (address, nameless)
        assert page.context["deleted_objects"]
        assert client.post(address, {"post": "yes"}).status_code == 302
    assert not type(lead).objects.filter(pk=lead.pk).exists()
