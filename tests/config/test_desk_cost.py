"""What the pages of the desk ask the database for: few statements whatever is filtered, and no count of a whole table.

How long they take with 100,000 sessions: `bin/bench desk`.
"""

import re
from datetime import timedelta
from urllib.parse import quote

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from benchmarks.desk import (
    EVENTS,
    EVENTS_FILTERS,
    LIBRARY,
    LIBRARY_FILTERS,
    OTHERS,
    QUEUE,
    QUEUE_FILTERS,
    SESSIONS,
    SESSIONS_FILTERS,
)
from feedback_app.selectors.weekly import monday_of
from feedback_app.services.reports import store_report
from sessions_app.admin import sessions as sessions_admin
from tests.factories import (
    CaseFactory,
    FeedbackEventFactory,
    InvocationFactory,
    SessionFactory,
    StepFactory,
    TriageFactory,
)

pytestmark = pytest.mark.django_db

MOST_STATEMENTS = 25
OF_ONE_OBJECT = re.compile(r"WHERE .*\b(session_id|diagnosis_id|case_id|review_id|owner_id|user_id)[`\"]? (=|IN) ")


@pytest.fixture
def rows():
    sessions = [SessionFactory(rejected=True, scored=True, conversation_id="c-1", confidence=90) for _ in range(3)]
    events = [
        FeedbackEventFactory(session=session, value=-1.0, payload={"comment": "连接池 wrong"}) for session in sessions
    ]
    for session in sessions:
        InvocationFactory(step__session=session, l0_hit=True)
    return {
        QUEUE: [TriageFactory(session=session) for session in sessions],
        LIBRARY: [CaseFactory() for _ in range(3)],
        SESSIONS: sessions,
        EVENTS: events,
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
        pytest.param(EVENTS, EVENTS_FILTERS, id="events"),
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


@pytest.mark.parametrize("url", OTHERS)
def test_other_pages_of_the_desk_ask_little(url, rows, client, as_lead):
    client.get(QUEUE)
    with CaptureQueriesContext(connection) as captured:
        assert client.get(url).status_code in (200, 302)
    assert len(captured) <= MOST_STATEMENTS


def test_the_button_that_takes_the_next_and_a_weekly_report_ask_little(rows, client, as_lead):
    report = store_report(monday_of(timezone.localdate()) - timedelta(days=7))
    assert len(statements(client, f"/admin/feedback_app/weeklyreport/{report.pk}/change/")) <= MOST_STATEMENTS
    with CaptureQueriesContext(connection) as captured:
        assert client.post(f"{QUEUE}next/").status_code == 302
    assert len(captured) <= MOST_STATEMENTS


def test_a_search_that_looks_as_often_as_it_may_asks_little(rows, client, as_lead, monkeypatch):
    monkeypatch.setattr(sessions_admin, "FIRST_LOOK", 1)
    monkeypatch.setattr(sessions_admin, "LOOK_SECONDS", 60.0)
    SessionFactory.create_batch(2**sessions_admin.LOOKS, query="latency of the pool")
    asked = statements(client, f"{SESSIONS}?q=latency")
    assert len([sql for sql in asked if "LIKE" in sql]) == sessions_admin.LOOKS
    assert len(asked) <= MOST_STATEMENTS


def test_a_long_chain_asks_for_no_more_than_a_short_one(rows, client, as_lead):
    page = f"{QUEUE}{rows[QUEUE][0].pk}/change/"
    client.get(page)
    short = len(statements(client, page))
    for number in range(150):
        StepFactory(session=rows[SESSIONS][0], step_index=100 + number)
    assert len(statements(client, page)) <= short + 1 <= MOST_STATEMENTS


def test_the_rows_of_a_list_cost_no_statement_each(rows, client, as_lead):
    client.get(QUEUE)
    few = {folder: len(statements(client, f"{folder}?")) for folder in (QUEUE, LIBRARY, SESSIONS, EVENTS)}
    for _number in range(10):
        session = SessionFactory(rejected=True, scored=True)
        FeedbackEventFactory(session=session)
        TriageFactory(session=session)
        CaseFactory()
    assert {folder: len(statements(client, f"{folder}?")) for folder in few} == few


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
