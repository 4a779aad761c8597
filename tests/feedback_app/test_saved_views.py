"""Saved views of the triage queue: own ones, shared ones of Leads, and the one somebody finds the queue in."""

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from feedback_app.models import DefaultView, SavedView
from feedback_app.services import views
from sessions_app.errors import ConflictError, InvalidInputError, UnknownObjectError
from tests.factories import TriageFactory

pytestmark = pytest.mark.django_db

QUEUE = "/admin/feedback_app/badcasereview/"
VIEWS = f"{QUEUE}views/"
SHOWN = "state=OPEN&facts=l0&facts=miss&q=%E8%BF%9E%E6%8E%A5&o=-4"
FILTERS = {"state": ["OPEN"], "facts": ["l0", "miss"], "q": ["连接"], "o": ["-4"]}


@pytest.fixture(autouse=True)
def _english(client):
    client.defaults["HTTP_ACCEPT_LANGUAGE"] = "en"


def press(client, action, **fields):
    return client.post(VIEWS, {"action": action, **fields})


def test_present_filters_are_saved_under_a_name_and_opened_again(client, as_reviewer):
    review = TriageFactory()
    response = press(client, "save", name="  My <b>open</b>  ones ", filters=f"{SHOWN}&p=3&agent=")
    view = SavedView.objects.get()
    assert (view.owner, view.name, view.filters, view.is_shared) == (as_reviewer, "My <b>open</b> ones", FILTERS, False)
    assert response["Location"] == f"{QUEUE}?{SHOWN}"
    page = client.get(response["Location"]).content.decode()
    assert f'href="?{SHOWN.replace("&", "&amp;")}" aria-current="page"' in page
    assert "My &lt;b&gt;open&lt;/b&gt; ones" in page
    assert list(client.get(QUEUE).context["cl"].result_list) == [review]


def test_the_same_name_again_takes_the_new_filters(client, as_reviewer):
    press(client, "save", name="Mine", filters="assignee=mine")
    press(client, "save", name="Mine", filters="assignee=mine&due=overdue")
    assert SavedView.objects.get().filters == {"assignee": ["mine"], "due": ["overdue"]}


def test_rename_and_delete_one_s_own(client, as_reviewer):
    view = views.save_view(owner=as_reviewer, name="One", filters={"state": ["OPEN"]})
    views.save_view(owner=as_reviewer, name="Two", filters={})
    press(client, "rename", view=view.pk, name="Two", filters="")
    view.refresh_from_db()
    assert view.name == "One"
    assert press(client, "rename", view=view.pk, name="Three", filters="state=closed")["Location"].endswith(
        "?state=closed"
    )
    view.refresh_from_db()
    assert view.name == "Three"
    press(client, "delete", view=view.pk)
    assert [view.name for view in SavedView.objects.all()] == ["Two"]


def test_the_default_is_where_somebody_arrives_and_can_be_left(client, as_reviewer, other_reviewer):
    view = views.save_view(owner=as_reviewer, name="One", filters=FILTERS)
    press(client, "default", view=view.pk)
    assert client.get(QUEUE)["Location"] == f"{QUEUE}?{SHOWN}"
    assert client.get(QUEUE, headers={"referer": f"http://testserver{QUEUE}?{SHOWN}"}).status_code == 200
    assert client.get(f"{QUEUE}?state=closed").status_code == 200
    press(client, "no_default", filters="")
    assert client.get(QUEUE).status_code == 200
    press(client, "default", view=view.pk)
    press(client, "delete", view=view.pk)
    assert client.get(QUEUE).status_code == 200
    assert not DefaultView.objects.exists()


def test_leads_share_and_everybody_uses(client, as_lead, reviewer, other_reviewer):
    assert press(client, "save", name="Ours", filters="due=overdue", is_shared="on").status_code == 302
    view = SavedView.objects.get()
    client.force_login(reviewer, backend="django.contrib.auth.backends.ModelBackend")
    assert "Ours" in client.get(QUEUE).content.decode()
    press(client, "default", view=view.pk)
    assert client.get(QUEUE)["Location"] == f"{QUEUE}?due=overdue"
    with pytest.raises(ConflictError):
        views.rename_view(view_id=view.pk, person=reviewer, name="Mine now")
    press(client, "delete", view=view.pk)
    assert SavedView.objects.count() == 1
    assert press(client, "save", name="Theirs", filters="", is_shared="on").status_code == 403
    views.save_view(owner=as_lead, name="Ours", filters={}, is_shared=False)
    assert client.get(QUEUE).status_code == 200  # no longer shared, no longer anybody's default


def test_another_s_own_view_is_not_there(reviewer, other_reviewer, lead):
    view = views.save_view(owner=reviewer, name="One", filters={})
    for person in (other_reviewer, lead):
        for move in (
            lambda person: views.rename_view(view_id=view.pk, person=person, name="Two", is_lead=True),
            lambda person: views.delete_view(view_id=view.pk, person=person, is_lead=True),
            lambda person: views.set_default(person=person, view_id=view.pk),
        ):
            with pytest.raises(UnknownObjectError):
                move(person)


@pytest.mark.parametrize(
    ("name", "filters"),
    [
        pytest.param(" ", {}, id="no-name"),
        pytest.param("x" * 61, {}, id="long-name"),
        pytest.param("x", {"Q; DROP": ["1"]}, id="no-parameter"),
        pytest.param("x", {"q": ["x" * 201]}, id="long-value"),
        pytest.param("x", {"facts": ["l0"] * 31}, id="many-values"),
    ],
)
def test_what_cannot_be_kept_is_refused(name, filters, reviewer):
    with pytest.raises(InvalidInputError):
        views.save_view(owner=reviewer, name=name, filters=filters)
    assert not SavedView.objects.exists()


def test_doors(client, as_reviewer):
    assert client.get(VIEWS).status_code == 405
    assert press(client, "nonsense").status_code == 400
    assert press(client, "delete", view="x").status_code == 400
    assert press(client, "delete", view=10**30, filters="").status_code in (302, 400)
    assert press(client, "delete", filters="a=1\r\nSet-Cookie: x").headers.get("Set-Cookie") is None


def test_many_views_cost_no_more(client, as_reviewer):
    def cost():
        with CaptureQueriesContext(connection) as captured:
            client.get(f"{QUEUE}?state=OPEN")
        return len(captured)

    views.save_view(owner=as_reviewer, name="0", filters={})
    client.get(QUEUE)
    one = cost()
    for number in range(1, 20):
        views.save_view(owner=as_reviewer, name=str(number), filters={})
    assert cost() == one
