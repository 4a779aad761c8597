"""Saved views of lists: own ones, shared ones of Leads, and the one somebody finds a list in."""

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from sessions_app.errors import ConflictError, InvalidInputError, UnknownObjectError
from sessions_app.models import DefaultView, SavedView
from sessions_app.services import views
from tests.factories import CaseFactory, FeedbackEventFactory, SessionFactory, TriageFactory, UserFactory

pytestmark = pytest.mark.django_db

QUEUE = "/admin/feedback_app/badcasereview/"
VIEWS = f"{QUEUE}views/"
OF_QUEUE = "feedback_app.badcasereview"
SHOWN = "state=OPEN&facts=l0&facts=miss&q=%E8%BF%9E%E6%8E%A5&o=-4"
FILTERS = {"state": ["OPEN"], "facts": ["l0", "miss"], "q": ["连接"], "o": ["-4"]}


@pytest.fixture(autouse=True)
def _english(client):
    client.defaults["HTTP_ACCEPT_LANGUAGE"] = "en"


def press(client, action, address=VIEWS, **fields):
    return client.post(address, {"action": action, **fields})


LISTS = {
    "/admin/sessions_app/diagnosissession/": (
        "sessions_app.diagnosissession",
        {"feedback": ["not_useful"]},
        SessionFactory,
    ),
    "/admin/cases_app/caselibrary/": ("cases_app.caselibrary", {"queue": ["all"]}, CaseFactory),
    "/admin/feedback_app/agentfeedback/": ("feedback_app.agentfeedback", {"type": ["thumbs"]}, FeedbackEventFactory),
    QUEUE: (OF_QUEUE, {"state": ["OPEN"]}, TriageFactory),
}


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
    view = views.save_view(owner=as_reviewer, listed=OF_QUEUE, name="One", filters={"state": ["OPEN"]})
    views.save_view(owner=as_reviewer, listed=OF_QUEUE, name="Two", filters={})
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
    view = views.save_view(owner=as_reviewer, listed=OF_QUEUE, name="One", filters=FILTERS)
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
        views.rename_view(view_id=view.pk, listed=OF_QUEUE, person=reviewer, name="Mine now")
    press(client, "delete", view=view.pk)
    assert SavedView.objects.count() == 1
    assert press(client, "save", name="Theirs", filters="", is_shared="on").status_code == 403
    views.save_view(owner=as_lead, listed=OF_QUEUE, name="Ours", filters={}, is_shared=False)
    assert client.get(QUEUE).status_code == 200  # no longer shared, no longer anybody's default


def test_another_s_own_view_is_not_there(reviewer, other_reviewer, lead):
    view = views.save_view(owner=reviewer, listed=OF_QUEUE, name="One", filters={})
    for person in (other_reviewer, lead):
        for move in (
            lambda person: views.rename_view(
                view_id=view.pk, listed=OF_QUEUE, person=person, name="Two", may_share=True
            ),
            lambda person: views.delete_view(view_id=view.pk, listed=OF_QUEUE, person=person, may_share=True),
            lambda person: views.set_default(person=person, listed=OF_QUEUE, view_id=view.pk),
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
        views.save_view(owner=reviewer, listed=OF_QUEUE, name=name, filters=filters)
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

    views.save_view(owner=as_reviewer, listed=OF_QUEUE, name="0", filters={})
    client.get(QUEUE)
    one = cost()
    for number in range(1, 20):
        views.save_view(owner=as_reviewer, listed=OF_QUEUE, name=str(number), filters={})
    assert cost() == one


@pytest.mark.parametrize("address", LISTS)
def test_every_list_has_views_of_its_own(address, client, as_reviewer):
    listed, filters, factory = LISTS[address]
    factory()
    elsewhere = {other: named for other, named in LISTS.items() if other != address}
    for other, kept, _factory in elsewhere.values():
        views.save_view(owner=as_reviewer, listed=other, name="Mine", filters=kept)
    [(name, [value])] = filters.items()
    shown = f"{name}={value}"
    assert press(client, "save", f"{address}views/", name="Mine", filters=shown)["Location"] == f"{address}?{shown}"
    view = SavedView.objects.get(listed=listed)
    assert (view.owner, view.name, view.filters) == (as_reviewer, "Mine", filters)
    press(client, "default", f"{address}views/", view=view.pk)
    assert client.get(address)["Location"] == f"{address}?{shown}"
    for other in elsewhere:
        assert client.get(other).status_code == 200  # a default is that of one list
    page = client.get(f"{address}?{shown}").content.decode()
    assert page.count('aria-current="page"><bdi>Mine</bdi>') == 1
    assert page.count("<bdi>Mine</bdi>") == 1
    assert 'data-key="v"' in page
    assert "js/keys.js" in page


def test_a_button_of_one_list_reaches_no_view_of_another(client, as_lead):
    view = views.save_view(owner=as_lead, listed="cases_app.caselibrary", name="One", filters={"queue": ["all"]})
    for action in ("rename", "delete", "default"):
        assert press(client, action, view=view.pk, name="Two", filters="").status_code == 302
    view.refresh_from_db()
    assert view.name == "One"
    assert not DefaultView.objects.exists()


def test_views_are_for_who_sees_the_list(client, db):
    operator = UserFactory(is_staff=True, permissions=["cases_app.view_caselibrary"])
    client.force_login(operator, backend="django.contrib.auth.backends.ModelBackend")
    assert press(client, "save", name="Mine", filters="").status_code == 403
    assert press(client, "save", "/admin/cases_app/caselibrary/views/", name="Mine", filters="").status_code == 302
    assert [view.listed for view in SavedView.objects.all()] == ["cases_app.caselibrary"]
