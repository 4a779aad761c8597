"""What the pages of the desk ask the database for: few statements whatever is filtered, and no count of a whole table.

How long they take with 100,000 sessions: `bin/bench desk`.
"""

import re
from urllib.parse import quote

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from benchmarks.desk import LIBRARY, LIBRARY_FILTERS, QUEUE, QUEUE_FILTERS, SESSIONS, SESSIONS_FILTERS
from tests.factories import CaseFactory, FeedbackEventFactory, InvocationFactory, SessionFactory, TriageFactory

pytestmark = pytest.mark.django_db

MOST_STATEMENTS = 25
OF_ONE_OBJECT = re.compile(r"WHERE .*\b(session_id|diagnosis_id|case_id|review_id|owner_id|user_id)[`\"]? (=|IN) ")


@pytest.fixture
def rows():
    sessions = [SessionFactory(rejected=True, scored=True, conversation_id="c-1", confidence=90) for _ in range(3)]
    for session in sessions:
        FeedbackEventFactory(session=session, value=-1.0, payload={"comment": "连接池 wrong"})
        InvocationFactory(step__session=session, l0_hit=True)
    return {
        QUEUE: [TriageFactory(session=session) for session in sessions],
        LIBRARY: [CaseFactory() for _ in range(3)],
        SESSIONS: sessions,
    }


def statements(client, url):
    with CaptureQueriesContext(connection) as captured:
        assert client.get(url).status_code == 200, url
    return [query["sql"] for query in captured.captured_queries]


def counts_a_table(sql):
    return "COUNT(" in sql and "LIMIT" not in sql and not OF_ONE_OBJECT.search(sql)


@pytest.mark.parametrize(
    ("folder", "queries"),
    [
        pytest.param(QUEUE, QUEUE_FILTERS, id="queue"),
        pytest.param(LIBRARY, LIBRARY_FILTERS, id="library"),
        pytest.param(SESSIONS, SESSIONS_FILTERS, id="sessions"),
    ],
)
def test_lists_and_pages_ask_little_and_count_no_table(folder, queries, rows, client, as_lead):
    client.get(folder)
    pages = [f"{folder}{row.pk}/change/" for row in rows[folder][:1]]
    queries = (*queries, "_facets=True")
    for url in [*(f"{folder}?{query}" for query in queries if not query.startswith("p=")), *pages]:
        asked = statements(client, url)
        assert len(asked) <= MOST_STATEMENTS, (url, len(asked))
        assert [sql for sql in asked if counts_a_table(sql)] == [], url


def test_choices_are_counted_within_what_is_shown(rows, client, as_lead):
    page = client.get(f"{QUEUE}?facts=l0").context["cl"]
    assert page.counts["comment"] == {"yes": "3"}
    assert page.counts["flow"] == {"CHAT": "3"}
    assert page.counts["language"] == {"en": "3"}
    assert "facts" not in page.counts
    assert client.get(f"{QUEUE}?q={quote('没有')}").context["cl"].counts["comment"] == {}


def test_what_is_many_is_counted_to_a_limit(rows, client, as_lead, monkeypatch):
    monkeypatch.setattr("sessions_app.paging.MOST_COUNTED", 2)
    monkeypatch.setattr("feedback_app.admin.triage.MOST_COUNTED", 2)
    monkeypatch.setattr("sessions_app.templatetags.desk.MOST_COUNTED", 2)
    client.defaults["HTTP_ACCEPT_LANGUAGE"] = "en"
    page = client.get(QUEUE)
    assert page.context["cl"].counts["comment"] == {"yes": "2+"}
    assert '<span class="desk-tabs__count">2+</span>' in page.content.decode()
