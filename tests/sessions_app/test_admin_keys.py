"""API keys in the admin: shown once, revoked after a question, never edited, never written down."""

from __future__ import annotations

import html
import re

import pytest
from django.contrib.admin.models import LogEntry
from django.contrib.sessions.models import Session

from sessions_app.models import ApiKey
from sessions_app.services.keys import create_key, find_key
from tests.factories import UserFactory

pytestmark = pytest.mark.django_db
LIST = "/admin/sessions_app/apikey/"
ALL = ["sessions_app.view_apikey", "sessions_app.add_apikey", "sessions_app.change_apikey"]


def signed_in(client, *permissions: str):
    person = UserFactory(username="olga", is_staff=True, permissions=permissions)
    client.force_login(person, backend="django.contrib.auth.backends.ModelBackend")
    client.defaults["HTTP_ACCEPT_LANGUAGE"] = "en"
    return client


@pytest.fixture
def operator(client):
    """Somebody who may see, make and revoke keys."""
    return signed_in(client, *ALL)


def secret_in(body: str) -> str:
    found = re.findall(r"dk_[\w-]{43}", body)
    assert len(found) == 1
    return found[0]


def test_a_new_key_works_and_is_shown_once(operator):
    owner = UserFactory(is_staff=True)
    body = {"name": "alerter <b>", "scopes": ["ingest", "read"], "owner": owner.pk}
    response = operator.post(LIST + "add/", body)
    secret = secret_in(response.content.decode())
    assert "no-store" in response.headers["Cache-Control"]
    key = find_key(secret)
    assert (key.name, key.scopes, key.owner) == ("alerter <b>", ["ingest", "read"], owner)
    for url in (LIST, f"{LIST}{key.pk}/change/", f"{LIST}{key.pk}/history/", f"{LIST}{key.pk}/revoke/", "/admin/"):
        assert secret not in operator.get(url).content.decode(), url


def test_a_key_is_written_down_nowhere(operator, capfd, caplog):
    caplog.set_level("DEBUG")
    response = operator.post(LIST + "add/", {"name": "k", "scopes": ["ingest"], "owner": ""})
    secret = secret_in(response.content.decode())
    entry = LogEntry.objects.get()
    assert entry.object_id == str(ApiKey.objects.get().pk)
    written = [entry.object_repr, entry.change_message, *(row.session_data for row in Session.objects.all())]
    written += [str(row.get_decoded()) for row in Session.objects.all()]
    output = capfd.readouterr()
    for text in (*written, output.out, output.err, caplog.text, str(response.cookies)):
        assert secret not in text
        assert secret[10:] not in text


@pytest.mark.parametrize(
    ("body", "missing"),
    [
        ({"name": "", "scopes": ["read"]}, "name"),
        ({"name": "   ", "scopes": ["read"]}, "name"),
        ({"name": "x" * 101, "scopes": ["read"]}, "name"),
        ({"name": "k"}, "scopes"),
        ({"name": "k", "scopes": ["root"]}, "scopes"),
        ({"name": "k", "scopes": ["read"], "owner": "999"}, "owner"),
    ],
)
def test_a_form_that_lacks_something_makes_no_key(operator, body, missing):
    response = operator.post(LIST + "add/", body)
    assert response.status_code == 200
    assert list(response.context["form"].errors) == [missing]
    assert not ApiKey.objects.exists()
    assert "dk_" not in response.content.decode()


def test_revoking_asks_first_and_closes_the_key(operator):
    key, secret = create_key(name="k", scopes=["read"])
    url = f"{LIST}{key.pk}/revoke/"
    assert f'href="{url}"' in operator.get(LIST).content.decode()
    assert "cannot be undone" in operator.get(url).content.decode()
    assert find_key(secret) is not None
    page = html.unescape(operator.post(url, follow=True).content.decode())
    assert f"{key} is revoked" in page
    assert f'href="{url}"' not in page
    assert find_key(secret) is None
    assert LogEntry.objects.get().get_change_message() == "Revoked."
    assert "was revoked before" in operator.post(url, follow=True).content.decode()
    assert LogEntry.objects.count() == 1
    assert operator.get(f"{LIST}999/revoke/").status_code == 404


def test_nobody_edits_or_deletes_a_key(client, admin_user):
    key, secret = create_key(name="k", scopes=["read"])
    client.force_login(admin_user, backend="django.contrib.auth.backends.ModelBackend")
    client.post(f"{LIST}{key.pk}/change/", {"name": "forged", "scopes": '["ingest"]'})
    assert client.post(f"{LIST}{key.pk}/delete/", {"post": "yes"}).status_code == 403
    client.post(LIST, {"action": "delete_selected", "_selected_action": [key.pk], "post": "yes"})
    assert (find_key(secret).name, find_key(secret).scopes) == ("k", ["read"])


def test_each_needs_its_own_permission(client):
    key, secret = create_key(name="k", scopes=["read"])
    viewer = signed_in(client, "sessions_app.view_apikey")
    page = viewer.get(LIST).content.decode()
    assert "revoke/" not in page
    assert viewer.get(LIST + "add/").status_code == 403
    assert viewer.post(LIST + "add/", {"name": "x", "scopes": ["read"]}).status_code == 403
    assert viewer.get(f"{LIST}{key.pk}/revoke/").status_code == 403
    assert viewer.post(f"{LIST}{key.pk}/revoke/").status_code == 403
    assert find_key(secret) is not None
    assert ApiKey.objects.count() == 1


@pytest.mark.parametrize("path", ["", "add/", "{pk}/revoke/", "{pk}/change/"])
def test_reviewers_see_no_keys(client, reviewer, path):
    key, _ = create_key(name="k", scopes=["read"])
    url = LIST + path.format(pk=key.pk)
    assert client.get(url).status_code == 302
    client.force_login(reviewer, backend="django.contrib.auth.backends.ModelBackend")
    assert client.get(url).status_code == 403
