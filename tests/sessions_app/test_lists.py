"""Rows of the admin's lists: drawn by us in one go, to look as unfold draws them."""

import re

import pytest
from unfold.templatetags import unfold_list

from sessions_app.lists import DeskChangeList
from tests.factories import CaseFactory, FeedbackEventFactory, SessionFactory, TriageFactory

pytestmark = pytest.mark.django_db

LISTS = {
    "sessions": ("/admin/sessions_app/diagnosissession/?feedback=not_useful", 2),
    "queue": ("/admin/feedback_app/badcasereview/?state=all", 2),
    "library": ("/admin/cases_app/caselibrary/?queue=all&o=3", 2),
    "events": ("/admin/feedback_app/agentfeedback/", 2),
}


@pytest.fixture
def rows():
    for hostile in ('<script>alert("a")</script>', "плохо & 坏"):
        session = SessionFactory(rejected=True, query=hostile)
        TriageFactory(session=session)
        FeedbackEventFactory(session=session, payload={"comment": hostile})
        CaseFactory(title=hostile, error_code=hostile)


@pytest.mark.parametrize(("url", "count"), LISTS.values(), ids=LISTS)
def test_rows_look_as_unfold_draws_them(url, count, rows, client, as_lead):
    response = client.get(url)
    changes = response.context["cl"]
    assert isinstance(changes, DeskChangeList)
    ours = [squeezed("".join(row)) for row in response.context["results"]]
    theirs = list(unfold_list.results(changes))
    assert ours == [squeezed("".join(row)) for row in theirs]
    assert len(ours) == count
    assert "<script>alert" not in response.content.decode()


def squeezed(html):
    return re.sub(r"\s+>", ">", html)


def test_the_page_of_a_row_remembers_how_the_list_was_filtered(rows, client, as_lead):
    changes = client.get("/admin/cases_app/caselibrary/?queue=all&q=script").context["cl"]
    assert [url.partition("?")[2] for url in changes.urls] == ["_changelist_filters=queue%3Dall%26q%3Dscript"]
    assert client.get("/admin/cases_app/caselibrary/?queue=published").context["cl"].urls == []
