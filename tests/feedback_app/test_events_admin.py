"""Feedback events in the admin: the list and its filters, one event, and how they stand on a session's page."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from django.utils import timezone

from feedback_app.models import AgentFeedback
from feedback_app.services.re_asks import compare_waiting
from feedback_app.services.submission import record_event
from sessions_app.models import DiagnosisSession
from sessions_app.services.recording import record_sessions
from tests.factories import FeedbackEventFactory, SessionFactory, TriageFactory

pytestmark = pytest.mark.django_db

LIST = "/admin/feedback_app/agentfeedback/"
HOSTILE = "<script>alert(1)</script>"


@pytest.fixture(autouse=True)
def _english(client, as_reviewer):
    client.defaults["HTTP_ACCEPT_LANGUAGE"] = "en"


@pytest.fixture
def events():
    """One of each kind; a user's, but for the question asked again."""
    first = SessionFactory(session_id="first", agent_id="ops/1")
    second = SessionFactory(session_id="second", agent_id="chat/1")
    old = timezone.now() - timedelta(days=40)
    made = {
        "up": {"session": first, "payload": {"comment": "It was DNS."}},
        "stars": {"session": first, "type": "star", "value": 0.75, "payload": {"stars": 4}},
        "correction": {
            "session": second,
            "type": "correction",
            "value": 0.14,
            "payload": {"original": "a", "corrected": "b", "userNote": "not so"},
        },
        "again": {
            "session": second,
            "type": "re_ask",
            "value": 0.857,
            "source": "system",
            "payload": {"question": "Why, please?", "previousQuestion": "Why?"},
        },
        "edit": {"session": first, "type": "edit", "value": 0.5652, "created_at": old, "payload": {}},
    }
    return {name: FeedbackEventFactory(**each) for name, each in made.items()}


@pytest.mark.parametrize(
    ("query", "found"),
    [
        pytest.param({}, {"up", "stars", "correction", "again", "edit"}, id="all"),
        pytest.param({"type": ["star", "edit"]}, {"stars", "edit"}, id="types"),
        pytest.param({"source": "system"}, {"again"}, id="source"),
        pytest.param({"agent": "ops"}, {"up", "stars", "edit"}, id="agent"),
        pytest.param({"comment": "yes"}, {"up", "correction"}, id="with-words"),
        pytest.param({"session": "second"}, {"correction", "again"}, id="session"),
        pytest.param({"session": "sec"}, set(), id="session-whole"),
        pytest.param({"period": "7d"}, {"up", "stars", "correction", "again"}, id="period"),
        pytest.param({"day_to": "2026-01-01"}, set(), id="day"),
        pytest.param({"session": "first", "type": "thumbs", "comment": "yes"}, {"up"}, id="together"),
    ],
)
def test_the_list_is_narrowed(query, found, events, client):
    response = client.get(LIST, query)
    shown = {str(event.pk) for event in response.context["cl"].result_list}
    assert shown == {str(events[name].pk) for name in found}


def test_a_row_says_what_the_number_means(events, client):
    page = client.get(LIST).content.decode()
    for text in ("★★★★", "4/5", "86% alike", "57% changed", "14% changed", "Why, please?", "It was DNS."):
        assert text in page, text


def test_a_row_costs_no_query_of_its_own(client, django_assert_max_num_queries):
    FeedbackEventFactory.create_batch(30, type="star", value=0.5)
    with django_assert_max_num_queries(10):
        client.get(LIST)


def session_page(client, session_id):
    pk = DiagnosisSession.objects.get(session_id=session_id).pk
    return client.get(f"/admin/sessions_app/diagnosissession/{pk}/change/").content.decode()


def test_an_edit_shows_what_was_changed(client):
    SessionFactory(session_id="s1")
    text = {"original": "one\nRestart the pod.\nthree", "edited": f"one\nRaise the limit. {HOSTILE}\nthree"}
    record_event({"session_id": "s1", "type": "edit", "payload": text})
    event = AgentFeedback.objects.get()
    for page in (session_page(client, "s1"), client.get(f"{LIST}{event.pk}/change/").content.decode()):
        assert (
            "<del>Restart the pod.\n</del><ins>Raise the limit. &lt;script&gt;alert(1)&lt;/script&gt;\n</ins>" in page
        )
        assert '<span class="desk-diff__place">@@ -1,3 +1,3 @@\n</span>' in page
        assert "<span>three\n</span>" in page
        assert HOSTILE not in page


def test_a_correction_shows_what_was_changed_too(client):
    SessionFactory(session_id="s1")
    text = {"original": "It is Sydney.", "corrected": "It is Canberra.\n--- \n+++ x", "userNote": "Look at a map."}
    record_event({"session_id": "s1", "type": "correction", "payload": text})
    page = session_page(client, "s1")
    assert "<del>It is Sydney.\n</del><ins>It is Canberra.\n</ins><ins>--- \n</ins><ins>+++ x\n</ins>" in page
    assert "Look at a map." in page


@pytest.fixture
def asked_again():
    noon = datetime(2026, 11, 9, 12, tzinfo=UTC)
    for name, second in (("a", 0), ("b", 30)):
        place = {"conversation_id": "c", "started_at": noon + timedelta(seconds=second)}
        record_sessions([{"session_id": name, "query": "Why is it slow?", **place}])
    compare_waiting()


def test_implicit_signals_stand_apart_and_lead_to_the_later_session(asked_again, client):
    record_event({"session_id": "a", "type": "thumbs", "value": "down", "payload": {"comment": "No."}})
    page = session_page(client, "a")
    said, _heading, noticed = page.partition("Implicit signals")
    assert "No." in said
    assert "100% alike" not in said
    assert "100% alike" in noticed
    later = DiagnosisSession.objects.get(session_id="b")
    assert f"/admin/sessions_app/diagnosissession/{later.pk}/change/" in noticed
    assert "Implicit signals" not in session_page(client, "b")


def test_the_triage_shows_them_apart_too(asked_again, client):
    review = TriageFactory(session=DiagnosisSession.objects.get(session_id="a"))
    page = client.get(f"/admin/feedback_app/badcasereview/{review.pk}/change/").content.decode()
    assert "100% alike" in page.partition("Implicit signals")[2]


def test_a_later_session_that_is_gone_is_named_nowhere(asked_again, client):
    DiagnosisSession.objects.filter(session_id="b").delete()
    assert "100% alike" in session_page(client, "a")


def test_many_signals_hide_no_word(client):
    session = SessionFactory(session_id="s1")
    FeedbackEventFactory(session=session, payload={"comment": "The first word."})
    texts = {"question": "Why?", "previousQuestion": "Why?"}
    FeedbackEventFactory.create_batch(120, session=session, type="re_ask", value=1.0, payload=texts)
    assert "The first word." in session_page(client, "s1")


def test_the_list_offers_no_counts_of_all_events(client):
    FeedbackEventFactory()
    assert "_facets" not in client.get("/admin/feedback_app/agentfeedback/").content.decode()
