"""The sidebar: everybody sees what they may open, and nothing that would answer 403."""

from __future__ import annotations

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils.translation import override

from config import navigation
from config.api import bad_request, server_error
from config.navigation import NAVIGATION, sidebar
from tests.factories import TriageFactory, UserFactory

pytestmark = pytest.mark.django_db


def links(user, rf) -> dict[str, str]:
    request = rf.get("/admin/")
    request.user = user
    return {str(item["title"]): item["link"] for group in sidebar(request) for item in group["items"]}


@pytest.mark.parametrize("person", ["admin_user", "lead", "reviewer"])
def test_every_link_that_is_shown_opens(client, rf, request, person):
    user = request.getfixturevalue(person)
    client.force_login(user, backend="django.contrib.auth.backends.ModelBackend")
    shown = links(user, rf)
    assert shown
    for title, link in shown.items():
        assert client.get(link).status_code == 200, title


def test_a_superuser_is_shown_everything(rf, admin_user):
    assert len(links(admin_user, rf)) == sum(len(group) for _, group in NAVIGATION)


def test_what_is_not_shown_does_not_open(client, rf, reviewer, admin_user):
    client.force_login(reviewer, backend="django.contrib.auth.backends.ModelBackend")
    hidden = set(links(admin_user, rf).values()) - set(links(reviewer, rf).values())
    assert len(hidden) >= 3
    for link in hidden:
        assert client.get(link).status_code == 403, link


def test_who_may_see_nothing_is_shown_the_way_home_only(rf, client):
    nobody = UserFactory(is_staff=True)
    assert list(links(nobody, rf).values()) == ["/admin/"]
    client.force_login(nobody, backend="django.contrib.auth.backends.ModelBackend")
    assert client.get("/admin/").status_code == 200


def test_queues_are_counted_up_to_a_limit_and_for_those_who_see_them(rf, reviewer, monkeypatch):
    request = rf.get("/admin/")
    request.user = reviewer

    def badge() -> str | None:
        return next(
            item["badge"]
            for group in sidebar(request)
            for item in group["items"]
            if "triage" in item["link"] or "badcase" in item["link"]
        )

    assert badge() is None
    for _ in range(3):
        TriageFactory()
    TriageFactory(state="RESOLVED")
    assert badge() == "3"
    monkeypatch.setattr(navigation, "BADGE_LIMIT", 2)
    assert badge() == "2+"
    request.user = UserFactory(is_staff=True, permissions=["sessions_app.view_diagnosissession"])
    request.user.get_all_permissions()
    with CaptureQueriesContext(connection) as queries:
        sidebar(request)
    assert len(queries) == 0


def test_refusals_have_a_page_that_leads_home(client, reviewer, rf):
    client.defaults["HTTP_ACCEPT_LANGUAGE"] = "en"
    client.force_login(reviewer, backend="django.contrib.auth.backends.ModelBackend")
    for url, code, words in (
        ("/admin/auth/user/", 403, "This is not allowed."),
        ("/nowhere", 404, "There is nothing here."),
    ):
        response = client.get(url)
        assert response.status_code == code
        assert words in response.content.decode()
        assert 'href="/admin/"' in response.content.decode()
    with override("en"):
        assert "Something went wrong here." in server_error(rf.get("/admin/x")).content.decode()
        assert "cannot be read" in bad_request(rf.get("/admin/x"), ValueError("<b>")).content.decode()
