"""`GET /api/feedback/summary`: events added up, against a few that can be worked out by hand."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from django.utils import timezone

from feedback_app.rules import confidence_bounds
from feedback_app.selectors.summary import agent_summaries, feedback_report
from sessions_app.selectors.slices import DAY, Period
from tests.factories import FeedbackEventFactory, SessionFactory

pytestmark = pytest.mark.django_db

MONDAY = datetime(2026, 11, 9, tzinfo=UTC)
WEEK = Period(MONDAY, MONDAY + timedelta(days=7))


@pytest.fixture
def reader(client_with):
    return client_with("read")


def ask(client, **query):
    response = client.get("/api/feedback/summary", {"from": "2026-11-09", "to": "2026-11-16", **query})
    assert response.status_code == 200, response.json()
    return response.json()


def event(kind, value, moment=MONDAY, session=None):
    session = session or SessionFactory(created_at=moment)
    return FeedbackEventFactory(type=kind, value=value, created_at=moment, session=session)


@pytest.fixture
def four_records():
    """The example of the design: a thumb up, a thumb down, four stars of five (0.75), an edit of 0.3. One session."""
    session = SessionFactory(created_at=MONDAY)
    for kind, value in (("thumbs", 1.0), ("thumbs", -1.0), ("star", 0.75), ("edit", 0.3)):
        event(kind, value, session=session)
    return session


def test_the_example_of_the_design(four_records, reader):
    answer = ask(reader)
    assert answer == {
        "period": {"from": "2026-11-09T00:00:00Z", "to": "2026-11-16T00:00:00Z"},
        "agentId": None,
        "agentFlow": None,
        "interval": "none",
        "approvalRate": 50.0,
        "approvalConfidence": {"level": 95, "low": 9.4531, "high": 90.5469},
        "avgStar": 4.0,
        "avgEditDistance": 0.3,
        "correctionCount": 0,
        "reAskRate": 0.0,
        "feedbackRate": 100.0,
        "explicitFeedbackRate": 100.0,
        "sessions": 1,
        "sessionsWithFeedback": 1,
        "sessionsWithExplicitFeedback": 1,
        "sessionsAskedAgain": 0,
        "thumbsUp": 1,
        "counts": {"thumbs": 2, "star": 1, "correction": 0, "re_ask": 0, "edit": 1},
        "buckets": [],
    }


def test_stars_and_thumbs_sent_over_the_api_come_out_as_sent(api):
    api.post("/api/sessions", {"sessionId": "s1"}, format="json")
    events = [
        {"sessionId": "s1", "type": "star", "value": 5},
        {"sessionId": "s1", "type": "star", "value": 2},
        {"sessionId": "s1", "type": "thumbs", "value": "down"},
        {"sessionId": "s1", "type": "thumbs", "value": "up"},
        {"sessionId": "s1", "type": "thumbs", "value": "up"},
        {"sessionId": "s1", "type": "correction", "payload": {"original": "a", "corrected": "b"}},
        {"sessionId": "s1", "type": "re_ask", "payload": {"question": "Why?", "previousQuestion": "Why?"}},
    ]
    assert api.post("/api/feedback/events", events, format="json").json()["accepted"] == 7
    answer = api.get("/api/feedback/summary").json()
    assert answer["avgStar"] == 3.5
    assert answer["approvalRate"] == 66.6667, "2 of 3: every event counts, also of somebody who changed their mind"
    assert answer["correctionCount"] == 1
    assert answer["reAskRate"] == 100.0
    assert answer["avgEditDistance"] is None, "a correction is no edit"


def test_re_asks_are_measured_against_the_sessions_of_the_period(reader):
    sessions = SessionFactory.create_batch(8, created_at=MONDAY)
    SessionFactory(created_at=MONDAY - timedelta(seconds=1))
    event("re_ask", 0.9, session=sessions[0])
    event("re_ask", 0.8, session=sessions[1])
    event("re_ask", 0.8, session=sessions[2], moment=WEEK.end)  # after the period
    assert ask(reader)["reAskRate"] == 25.0  # 2 / 8


def test_a_session_asked_again_three_times_is_one_session(reader):
    first, *_ = SessionFactory.create_batch(4, created_at=MONDAY)
    for day in (0, 0, 1):
        event("re_ask", 0.9, session=first, moment=MONDAY + timedelta(days=day))
    answer = ask(reader, interval="day")
    assert (answer["reAskRate"], answer["sessionsAskedAgain"], answer["counts"]["re_ask"]) == (25.0, 1, 3)
    assert [bucket["sessionsAskedAgain"] for bucket in answer["buckets"][:3]] == [1, 1, 0]


@pytest.mark.parametrize(
    ("positive", "total", "low", "high"),
    [
        # Worked out by hand: (p + z²/2n ± z √(p(1−p)/n + z²/4n²)) / (1 + z²/n), z = 1.96.
        pytest.param(0, 10, 0.0, 0.2775, id="none-of-ten"),
        pytest.param(10, 10, 0.7225, 1.0, id="ten-of-ten"),
        pytest.param(1, 2, 0.0945, 0.9055, id="one-of-two"),
        pytest.param(8, 10, 0.4902, 0.9433, id="eight-of-ten"),
        pytest.param(800, 1000, 0.7741, 0.8236, id="eight-hundred-of-a-thousand"),
        pytest.param(1, 1, 0.2065, 1.0, id="one-of-one"),
    ],
)
def test_ten_thumbs_are_not_a_thousand(positive, total, low, high):
    assert confidence_bounds(positive, total) == pytest.approx((low, high), abs=5e-5)


def test_the_share_of_sessions_with_any_feedback(reader):
    """Eight sessions of the week: a thumb and a star, a correction, a re-ask, a late thumb; four with nothing."""
    sessions = SessionFactory.create_batch(8, created_at=MONDAY)
    event("thumbs", 1.0, session=sessions[0])
    event("star", 1.0, session=sessions[0])
    event("correction", 0.1, session=sessions[1])
    event("re_ask", 0.9, session=sessions[2])
    event("thumbs", 1.0, session=sessions[3], moment=WEEK.end + timedelta(days=30))  # said later, yet of this week
    event("thumbs", 1.0, session=SessionFactory(created_at=MONDAY - timedelta(days=1)))  # a session of another week
    answer = ask(reader, interval="day")
    assert (answer["sessions"], answer["sessionsWithFeedback"], answer["feedbackRate"]) == (8, 4, 50.0)
    assert (answer["sessionsWithExplicitFeedback"], answer["explicitFeedbackRate"]) == (3, 37.5)
    assert [bucket["feedbackRate"] for bucket in answer["buckets"][:2]] == [50.0, None]


def test_what_the_system_noticed_is_no_vote(reader):
    event("re_ask", 1.0)
    event("edit", 0.9)
    answer = ask(reader)
    assert (answer["approvalRate"], answer["approvalConfidence"], answer["thumbsUp"]) == (None, None, 0)
    assert (answer["counts"]["thumbs"], answer["avgStar"], answer["explicitFeedbackRate"]) == (0, None, 0.0)


def test_each_agent_by_itself_is_as_asked_for_alone():
    for agent_id, value in (("ops/1", 1.0), ("ops/1", -1.0), ("chat/1", 1.0), (None, 1.0)):
        event("thumbs", value, session=SessionFactory(agent_id=agent_id, created_at=MONDAY))
    SessionFactory(agent_id="silent", created_at=MONDAY)
    event("re_ask", 0.9, session=SessionFactory(agent_id="OPS/1", created_at=MONDAY))
    found = agent_summaries(WEEK)
    assert set(found) == {"ops/1", "OPS/1", "chat/1", "silent"}
    for agent_id, summary in found.items():
        assert summary == feedback_report(WEEK, agent_id=agent_id).whole


def test_the_summary_narrows_by_agent_and_flow(reader):
    for agent_id, flow, value in (("ops/1", "AI_OPS", 1.0), ("ops/1", "CHAT", -1.0), ("chat/1", "CHAT", -1.0)):
        session = SessionFactory(agent_id=agent_id, agent_flow=flow, created_at=MONDAY)
        event("thumbs", value, session=session)

    def rate_and_sessions(**query):
        answer = ask(reader, **query)
        return answer["approvalRate"], answer["sessions"]

    assert rate_and_sessions() == (33.3333, 3)
    assert rate_and_sessions(agentId="ops/1") == (50.0, 2)
    assert rate_and_sessions(agentFlow="CHAT") == (0.0, 2)
    assert rate_and_sessions(agentId="ops/1", agentFlow="AI_OPS") == (100.0, 1)
    assert rate_and_sessions(agentId="OPS/1") == (None, 0)


def test_each_day_has_its_own_figures(four_records, reader):
    wednesday = MONDAY + timedelta(days=2)
    event("thumbs", 1.0, moment=wednesday)
    event("star", 0.25, session=four_records, moment=wednesday + timedelta(hours=23, minutes=59))
    answer = ask(reader, interval="day")
    assert [bucket["period"]["from"][:10] for bucket in answer["buckets"]] == [
        f"2026-11-{day:02}" for day in range(9, 16)
    ]
    monday, tuesday, wednesday = answer["buckets"][:3]
    assert (monday["approvalRate"], monday["avgStar"], monday["sessions"]) == (50.0, 4.0, 1)
    assert (tuesday["approvalRate"], tuesday["avgStar"], tuesday["counts"]["thumbs"]) == (None, None, 0)
    assert (wednesday["approvalRate"], wednesday["avgStar"], wednesday["sessions"]) == (100.0, 2.0, 1)
    assert answer["approvalRate"] == 66.6667
    assert answer["avgStar"] == 3.0  # (0.75 + 0.25) / 2 · 4 + 1
    assert "interval" not in monday


def test_weeks_begin_on_monday_and_end_with_the_period(reader):
    event("star", 1.0, moment=MONDAY)
    event("star", 0.0, moment=MONDAY - timedelta(seconds=1))
    answer = ask(reader, **{"from": "2026-11-07", "to": "2026-11-12", "interval": "week"})
    assert [(b["period"]["from"][:10], b["period"]["to"][:10], b["avgStar"]) for b in answer["buckets"]] == [
        ("2026-11-07", "2026-11-09", 1.0),
        ("2026-11-09", "2026-11-12", 5.0),
    ]


def test_a_day_of_twenty_five_hours_holds_them_all():
    with timezone.override(ZoneInfo("Europe/Berlin")):
        period = Period(datetime(2026, 10, 24, 22, tzinfo=UTC), datetime(2026, 10, 26, 23, tzinfo=UTC))
        for hour in (0, 24, 25):  # 00:00 and 23:00 of the 25th, 00:00 of the 26th
            event("star", 1.0, moment=period.start + timedelta(hours=hour))
        parts = feedback_report(period, period.split(DAY)).parts
    assert [part.counts["star"] for part in parts] == [2, 1]


def test_the_number_of_queries_does_not_grow(reader, django_assert_num_queries):
    for day in range(7):
        event("thumbs", 1.0, moment=MONDAY + timedelta(days=day))
    ask(reader)
    with django_assert_num_queries(4):  # the key, the events, the sessions asked again, the sessions
        assert len(ask(reader, interval="day")["buckets"]) == 7


def test_an_empty_database_answers_null(reader):
    answer = reader.get("/api/feedback/summary", {"interval": "day"}).json()
    rates = ("approvalRate", "approvalConfidence", "avgStar", "avgEditDistance", "reAskRate", "feedbackRate")
    assert [answer[name] for name in rates] == [None] * 6
    assert answer["counts"] == {"thumbs": 0, "star": 0, "correction": 0, "re_ask": 0, "edit": 0}
    assert len(answer["buckets"]) == 31, "thirty days up to now touch thirty-one"


@pytest.mark.parametrize(
    ("query", "field"),
    [
        pytest.param({"interval": "hour"}, "interval", id="no-interval"),
        pytest.param({"interval": "day", "from": "2020-01-01"}, "interval", id="too-many-days"),
        pytest.param({"from": "soon"}, "from", id="no-moment"),
        pytest.param({"from": "2026-12-01"}, "from", id="ends-before-it-begins"),
        pytest.param({"agent_id": "ops/1"}, "agent_id", id="a-misspelt-filter"),
    ],
)
def test_a_bad_filter_is_named(reader, query, field):
    response = reader.get("/api/feedback/summary", {"from": "2026-11-09", "to": "2026-11-16", **query})
    body = response.json()
    assert response.status_code == 400
    assert set(body) == {"success", "code", "message", "errors"}
    assert list(body["errors"]) == [field]


def test_the_summary_needs_a_reading_key(client_with, anonymous):
    assert anonymous.get("/api/feedback/summary").status_code == 401
    assert client_with("feedback").get("/api/feedback/summary").status_code == 403
