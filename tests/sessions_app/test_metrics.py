"""The six metrics of the design, against sessions small enough to work out by hand; and `GET /api/metrics`."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from django.utils import timezone

from sessions_app.errors import InvalidInputError
from sessions_app.rules import Adoption, stated_adoption
from sessions_app.selectors.metrics import (
    SessionFigures,
    evidence_scores,
    figures_by_bucket,
    known_agents,
    known_flows,
    metrics,
)
from sessions_app.selectors.slices import DAY, WEEK, Average, Period, Rate, Slice
from tests.factories import InvocationFactory, SessionFactory, StepFactory

DAY_1 = datetime(2026, 11, 10, tzinfo=UTC)
DAY_2, DAY_3, DAY_4 = (DAY_1 + timedelta(days=n) for n in (1, 2, 3))
PERIOD = Period(DAY_1, DAY_4)


@pytest.fixture
def five_sessions(db):
    """Five sessions in three days, and one just outside on either side.

    |   | day | flow   | ms     | tokens | tools accepted/proposed | verdict    | agents            | retrievals     |
    |---|-----|--------|--------|--------|-------------------------|------------|-------------------|----------------|
    | a | 1   | CHAT   | 10 000 | 1 000  | 3/4                     | useful     | planner           | L0 hit, cut    |
    | b | 1   | CHAT   | 20 000 | 2 000  | 0/0                     | not_useful | planner           | L1 hit         |
    | c | 2   | AI_OPS | 60 000 | –      | –                       | useful     | planner, executor | miss, L0 hit   |
    | d | 3   | AI_OPS | –      | 3 001  | 1/3                     | –          | executor          | –              |
    | e | 3   | –      | 30 000 | –      | –                       | –          | –                 | –              |
    """

    def session(name, created_at, flow, duration_ms, tokens, tools, verdict):
        accepted, proposed = tools or (None, None)
        return SessionFactory(
            session_id=name,
            created_at=created_at,
            agent_flow=flow,
            total_duration_ms=duration_ms,
            total_token_count=tokens,
            tools_accepted=accepted,
            tools_proposed=proposed,
            feedback=verdict,
            evidence_score={"a": 65, "b": 50, "c": 65, "d": 0, "e": None}.get(name),
            confidence=90.0 if name == "b" else 50.0,
        )

    a = session("a", DAY_1, "CHAT", 10_000, 1_000, (3, 4), "useful")
    b = session("b", DAY_2 - timedelta(microseconds=1), "CHAT", 20_000, 2_000, (0, 0), "not_useful")
    c = session("c", DAY_2, "AI_OPS", 60_000, None, None, "useful")
    d = session("d", DAY_3, "AI_OPS", None, 3_001, (1, 3), None)
    session("e", DAY_4 - timedelta(seconds=1), None, 30_000, None, None, None)
    for outside in (DAY_1 - timedelta(microseconds=1), DAY_4):
        before_or_after = session(f"x{outside.day}", outside, "CHAT", 999_999, 9, (9, 9), "not_useful")
        InvocationFactory(step__session=before_or_after, l0_hit=True, is_truncated=True)

    InvocationFactory(step=StepFactory(session=a), l0_hit=True, is_truncated=True)
    InvocationFactory(step=StepFactory(session=b), l1_hit=True)
    InvocationFactory(step=StepFactory(session=c), no_hit=True)
    InvocationFactory(step=StepFactory(session=c, agent_name="executor"), l0_hit=True)
    InvocationFactory(step=StepFactory(session=d, agent_name="executor"))


def test_the_six_metrics(five_sessions, django_assert_num_queries):
    with django_assert_num_queries(2):
        found = metrics(Slice(PERIOD))
    sessions, retrievals = found.of_sessions, found.of_retrievals
    assert sessions.sessions == 5
    # (10 000 + 20 000 + 60 000 + 30 000) / 4 sessions that have a duration
    assert sessions.duration_ms == Average(120_000, 4)
    assert sessions.duration_ms.value == 30_000
    # (1 000 + 2 000 + 3 001) / 3
    assert sessions.tokens == Average(6_001, 3)
    assert sessions.tokens.value == pytest.approx(2000.333, abs=0.001)
    # (3 + 0 + 1) / (4 + 0 + 3), said by three sessions
    assert sessions.tool_adoption == Rate(4, 7)
    assert sessions.adoption_sessions == 3
    # 2 useful of 2 + 1 judged
    assert sessions.satisfaction == Rate(2, 3)
    # b: 90 % sure, rejected
    assert sessions.confident_but_rejected == 1
    # a and c hit L0, of four retrievals; a's was cut off
    assert retrievals.l0_hit_rate == Rate(2, 4)
    assert retrievals.truncation_rate == Rate(1, 4)


def test_filters_narrow_every_metric(five_sessions):
    chat = metrics(Slice(PERIOD, agent_flow="CHAT"))  # a, b
    assert chat.of_sessions.duration_ms == Average(30_000, 2)
    assert chat.of_sessions.satisfaction == Rate(1, 2)
    assert chat.of_retrievals.l0_hit_rate == Rate(1, 2)

    executor = metrics(Slice(PERIOD, agent_name="executor"))  # c, d; all retrievals of c, the planner's too
    assert executor.of_sessions.sessions == 2
    assert executor.of_sessions.tool_adoption == Rate(1, 3)
    assert executor.of_retrievals.l0_hit_rate == Rate(1, 2)

    both = metrics(Slice(PERIOD, agent_flow="CHAT", agent_name="executor"))
    assert both.of_sessions == SessionFigures()
    assert metrics(Slice(PERIOD, agent_flow="chat")).of_sessions.sessions == 0, "flows compare exactly"


def test_nothing_to_divide_is_none_not_zero(db):
    found = metrics(Slice(PERIOD))
    figures = found.of_sessions
    assert figures == SessionFigures()
    for metric in (figures.duration_ms, figures.tokens, figures.tool_adoption, figures.satisfaction):
        assert metric.value is None
    assert found.of_retrievals.l0_hit_rate.value is None


def test_figures_of_each_day_add_up(five_sessions, django_assert_num_queries):
    with django_assert_num_queries(1):
        days = figures_by_bucket(Slice(PERIOD), PERIOD.split(DAY))
    assert [day.sessions for day in days] == [2, 1, 2]
    assert [day.satisfaction for day in days] == [Rate(1, 2), Rate(1, 1), Rate(0, 0)]
    assert [day.duration_ms for day in days] == [Average(30_000, 2), Average(60_000, 1), Average(30_000, 1)]
    assert [day.tokens for day in days] == [Average(3_000, 2), Average(0, 0), Average(3_001, 1)]


def test_days_without_sessions_are_there_too(five_sessions):
    period = Period(DAY_1 - timedelta(days=3), DAY_4 + timedelta(days=40))
    days = figures_by_bucket(Slice(period, agent_flow="AI_OPS"), period.split(DAY))
    assert len(days) == 46
    assert [index for index, day in enumerate(days) if day.sessions] == [4, 5]


def test_one_bucket_is_the_whole_period(five_sessions):
    [whole] = figures_by_bucket(Slice(PERIOD), [PERIOD])
    assert whole == metrics(Slice(PERIOD)).of_sessions
    assert figures_by_bucket(Slice(PERIOD, agent_flow="none"), [PERIOD]) == [SessionFigures()]


def test_scores_are_counted(five_sessions):
    assert list(evidence_scores(Slice(PERIOD)).items()) == [(0, 1), (50, 1), (65, 2), (None, 1)]


def test_choices_name_what_there_is(five_sessions):
    assert known_flows() == ["AI_OPS", "CHAT"]
    assert known_agents() == ["executor", "planner"]


# -- GET /api/metrics ------------------------------------------------------------------------------------------------


@pytest.fixture
def reader(client_with):
    return client_with("read")


def ask(client, **query):
    response = client.get("/api/metrics", {"from": "2026-11-10", "to": "2026-11-13", **query})
    assert response.status_code == 200, response.json()
    return response.json()


def test_the_api_gives_metrics_and_questions(five_sessions, reader):
    assert ask(reader) == {
        "period": {"from": "2026-11-10T00:00:00Z", "to": "2026-11-13T00:00:00Z"},
        "agentFlow": None,
        "agentName": None,
        "sessions": 5,
        "averageDurationMs": {"value": 30_000.0, "count": 4},
        "averageTokens": {"value": 6_001 / 3, "count": 3},
        "toolAdoptionRate": {"value": 4 / 7, "numerator": 4, "denominator": 7, "sessions": 3},
        "l0HitRate": {"value": 0.5, "numerator": 2, "denominator": 4},
        "truncationRate": {"value": 0.25, "numerator": 1, "denominator": 4},
        "satisfactionRate": {"value": 2 / 3, "numerator": 2, "denominator": 3},
        "retrievals": {"total": 4, "l0Only": 2, "l1Only": 1, "both": 0, "miss": 1, "none": 0},
        "stepDurations": [  # the factory's steps take 800 ms: c, d; and a, b, c
            {"agentName": "executor", "averageDurationMs": {"value": 800.0, "count": 2}},
            {"agentName": "planner", "averageDurationMs": {"value": 800.0, "count": 3}},
        ],
        "confidentButRejected": {
            "count": 1,
            "newest": [
                {
                    "sessionId": "b",
                    "confidence": 90.0,
                    "evidenceScore": 50,
                    "createdAt": "2026-11-10T23:59:59.999999Z",
                }
            ],
        },
    }


def test_the_api_narrows_by_flow_and_agent(five_sessions, reader):
    narrowed = ask(reader, agentFlow="AI_OPS", agentName="executor")
    assert (narrowed["agentFlow"], narrowed["agentName"], narrowed["sessions"]) == ("AI_OPS", "executor", 2)
    assert [row["agentName"] for row in narrowed["stepDurations"]] == ["executor"]
    assert narrowed["confidentButRejected"] == {"count": 0, "newest": []}


def test_without_a_period_the_api_takes_the_last_thirty_days(reader):
    SessionFactory(created_at=timezone.now() - timedelta(days=29))
    SessionFactory(created_at=timezone.now() - timedelta(days=31))
    answer = reader.get("/api/metrics").json()
    assert answer["sessions"] == 1
    start, end = (datetime.fromisoformat(answer["period"][side]) for side in ("from", "to"))
    assert end - start == timedelta(days=30)


def test_an_empty_database_answers_null(reader):
    answer = reader.get("/api/metrics").json()
    assert answer["sessions"] == 0
    assert answer["averageDurationMs"] == {"value": None, "count": 0}
    assert answer["satisfactionRate"] == {"value": None, "numerator": 0, "denominator": 0}
    assert answer["stepDurations"] == []


def test_the_number_of_queries_does_not_grow(five_sessions, reader, django_assert_num_queries):
    ask(reader)
    for number in range(30):
        another = SessionFactory(created_at=DAY_2, rejected=True, confidence=99.0)
        StepFactory(session=another, agent_name=f"agent-{number}")
    with django_assert_num_queries(5):  # the key; sessions, retrievals, steps, the newest confident ones
        answer = ask(reader)
    assert answer["confidentButRejected"]["count"] == 31
    assert len(answer["confidentButRejected"]["newest"]) == 20


@pytest.mark.parametrize(
    ("query", "field"),
    [
        pytest.param({"from": "yesterday"}, "from", id="no-moment"),
        pytest.param({"to": "2026-13-01"}, "to", id="no-date"),
        pytest.param({"from": "2026-11-13T00:00:00Z"}, "from", id="an-empty-period"),
        pytest.param({"agentFlow": "x" * 33}, "agentFlow", id="a-flow-too-long"),
        pytest.param({"agentName": "a\x00"}, "agentName", id="nul"),
        pytest.param({"agentflow": "CHAT"}, "agentflow", id="a-misspelt-filter"),
    ],
)
def test_a_bad_filter_is_named(reader, query, field):
    response = reader.get("/api/metrics", {"from": "2026-11-10", "to": "2026-11-13", **query})
    body = response.json()
    assert response.status_code == 400
    assert set(body) == {"success", "code", "message", "errors"}
    assert (body["code"], list(body["errors"])) == ("invalid", [field])


def test_metrics_need_a_reading_key(client_with, anonymous):
    assert anonymous.get("/api/metrics").status_code == 401
    assert client_with("ingest", "feedback").get("/api/metrics").status_code == 403


# -- what the agent said of its tools --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("proposed", "accepted", "expected"),
    [
        pytest.param(4, 3, Adoption(4, 3), id="whole-numbers"),
        pytest.param(4.0, 0, Adoption(4, 0), id="without-a-fraction"),
        pytest.param(0, 0, Adoption(0, 0), id="none-proposed"),
        pytest.param(3, 4, None, id="more-accepted-than-proposed"),
        pytest.param(-1, -1, None, id="negative"),
        pytest.param(2.5, 1, None, id="a-fraction"),
        pytest.param("4", 3, None, id="a-string"),
        pytest.param(True, True, None, id="a-boolean"),
        pytest.param(None, 3, None, id="one-missing"),
        pytest.param([4], {}, None, id="lists"),
        pytest.param(10**12, 1, None, id="no-count-of-tools"),
        pytest.param(float("inf"), 1, None, id="infinite"),
    ],
)
def test_only_sane_counts_of_tools_are_taken(proposed, accepted, expected):
    assert stated_adoption({"tools_proposed": proposed, "tools_accepted": accepted}) == expected


def test_recording_keeps_the_counts_of_tools(api):
    def send(**said):
        body = {"sessionId": "s1", "status": "SUCCESS", "selfEvaluation": said}
        assert api.post("/api/sessions", body, format="json").status_code < 300
        return metrics(Slice()).of_sessions.tool_adoption

    assert send(tools_proposed=4) == Rate(0, 0)
    assert send(tools_accepted=3) == Rate(3, 4), "the two may arrive apart"
    assert send(tools_accepted="three") == Rate(0, 0), "what makes no sense any more counts no more"


# -- periods ---------------------------------------------------------------------------------------------------------


def test_a_period_left_open_is_thirty_days_up_to_now():
    before = timezone.now()
    period = Period.given(None, None)
    assert before <= period.end <= timezone.now()
    assert period.end - period.start == timedelta(days=30)
    assert Period.given(None, DAY_4) == Period(DAY_4 - timedelta(days=30), DAY_4)
    assert Period.given(DAY_1, None).start == DAY_1


def test_a_period_must_begin_before_it_ends():
    with pytest.raises(InvalidInputError) as refused:
        Period.given(DAY_2, DAY_2)
    assert set(refused.value.errors) == {"from"}


def test_days_are_cut_at_local_midnight_and_change_length_with_the_clock():
    with timezone.override(ZoneInfo("Europe/Berlin")):
        spring = Period.of_days(date(2026, 3, 28), date(2026, 3, 30)).split(DAY)
        autumn = Period.of_days(date(2026, 10, 24), date(2026, 10, 26)).split(DAY)
    assert [part.end - part.start for part in spring] == [timedelta(hours=h) for h in (24, 23, 24)]
    assert [part.end - part.start for part in autumn] == [timedelta(hours=h) for h in (24, 25, 24)]
    assert spring[0].start == datetime(2026, 3, 27, 23, tzinfo=UTC)


def test_a_skipped_midnight_and_a_skipped_day_leave_no_gap():
    with timezone.override(ZoneInfo("Africa/Cairo")):  # on 2026-04-24 the clock goes from 00:00 to 01:00
        parts = Period.of_days(date(2026, 4, 23), date(2026, 4, 25)).split(DAY)
    assert [part.end - part.start for part in parts] == [timedelta(hours=h) for h in (24, 23, 24)]
    with timezone.override(ZoneInfo("Pacific/Apia")):  # 2011-12-30 never was
        parts = Period.of_days(date(2011, 12, 29), date(2011, 12, 31)).split(DAY)
    assert [part.end - part.start for part in parts] == [timedelta(hours=24)] * 2
    assert parts[0].end == parts[1].start


def test_the_first_and_last_part_end_where_the_period_does():
    period = Period(DAY_1 + timedelta(hours=7), DAY_3 + timedelta(hours=1))
    assert period.split(DAY) == [
        Period(period.start, DAY_2),
        Period(DAY_2, DAY_3),
        Period(DAY_3, period.end),
    ]


def test_weeks_begin_on_monday():
    period = Period(DAY_1, DAY_1 + timedelta(days=14))  # from a Tuesday
    assert [part.start.date() for part in period.split(WEEK)] == [
        date(2026, 11, 10),
        date(2026, 11, 16),
        date(2026, 11, 23),
    ]


def test_too_many_parts_are_refused():
    period = Period(DAY_1 - timedelta(days=401), DAY_1)
    with pytest.raises(InvalidInputError) as refused:
        period.split(DAY)
    assert set(refused.value.errors) == {"interval"}
    assert len(period.split(WEEK)) == 59  # 58 Mondays, and the Sunday before the first


def test_local_days_count_what_happened_in_them(db):
    with timezone.override(ZoneInfo("Asia/Shanghai")):
        SessionFactory(created_at=datetime(2026, 11, 10, 15, 59, tzinfo=UTC))  # 23:59 on the 10th
        SessionFactory(created_at=datetime(2026, 11, 10, 16, 0, tzinfo=UTC))  # 00:00 on the 11th
        period = Period.of_days(date(2026, 11, 10), date(2026, 11, 11))
        assert [day.sessions for day in figures_by_bucket(Slice(period), period.split(DAY))] == [1, 1]
