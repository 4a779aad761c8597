"""The start page of the admin and its page of metrics: what they say, to whom, and where their numbers lead."""

from __future__ import annotations

import html
import json
import re
from datetime import timedelta
from urllib.parse import urlencode

import pytest
from django.utils import timezone

from config.dashboard import start_page
from sessions_app.charts import Line, ceiling
from sessions_app.models import DiagnosisSession
from tests.factories import (
    CaseFactory,
    FeedbackEventFactory,
    InvocationFactory,
    SessionFactory,
    StepFactory,
    TriageFactory,
    UserFactory,
)

pytestmark = pytest.mark.django_db

HOSTILE = '<script>alert("x")</script>'


@pytest.fixture(autouse=True)
def english(settings):
    settings.LANGUAGE_CODE = "en"


@pytest.fixture
def noon():
    """Today at noon, so that no day of a test ends while it runs."""
    return timezone.localtime().replace(hour=12, minute=0, second=0, microsecond=0)


@pytest.fixture
def sign_in(client):
    def go(user):
        client.force_login(user, backend="django.contrib.auth.backends.ModelBackend")
        return client

    return go


def counts(page):
    return {queue.title: queue.count for queue in page.context["queues"]}


# -- the start page --------------------------------------------------------------------------------------------------


@pytest.fixture
def work(reviewer, other_reviewer):
    """Three bad cases (one overdue, one of them the reviewer's), cases, sessions without a score."""
    now = timezone.now()
    TriageFactory(due_at=now - timedelta(hours=1), state="IN_REVIEW", assignee=reviewer)
    TriageFactory(state="IN_REVIEW", assignee=other_reviewer)
    TriageFactory()
    TriageFactory(state="RESOLVED", due_at=now - timedelta(hours=1), assignee=reviewer)
    CaseFactory()
    CaseFactory()
    CaseFactory(enriched=True, flagged_at=now)
    CaseFactory(published=True)
    SessionFactory(evaluation_attempts=5, evaluation_error="The worker died.")
    SessionFactory(owing=True)
    SessionFactory(owing=True, evaluation_attempts=1, evaluation_error="Tried once, and will be again.")


def test_what_waits_is_counted(work, sign_in, reviewer, other_reviewer):
    page = sign_in(reviewer).get("/admin/")
    assert counts(page) == {
        "Bad cases": 3,
        "Overdue": 1,
        "Mine": 1,
        "Cases to enrich": 2,
        "Flagged cases": 1,
        "Scoring failed": 1,
        "Scoring pending": 2,
    }
    assert counts(sign_in(other_reviewer).get("/admin/"))["Mine"] == 1


def test_every_queue_leads_to_the_list_of_what_it_counts(work, sign_in, reviewer):
    client = sign_in(reviewer)
    for queue in client.get("/admin/").context["queues"]:
        shown = client.get(queue.url)
        assert shown.status_code == 200, queue
        assert shown.context["cl"].result_count == queue.count, queue


def test_people_see_what_they_may_see(work, sign_in):
    triager = UserFactory(is_staff=True, permissions=["feedback_app.view_badcasereview"])
    page = sign_in(triager).get("/admin/")
    assert list(counts(page)) == ["Bad cases", "Overdue", "Mine"]
    assert "comparisons" not in page.context
    assert "newest" not in page.context

    page = sign_in(UserFactory(is_staff=True)).get("/admin/")
    assert page.context["queues"] == []
    assert "Ask an administrator" in page.content.decode()


def test_the_last_week_stands_beside_the_week_before(sign_in, reviewer, noon):
    week_ago = noon - timedelta(days=7)
    this_week = [
        SessionFactory(created_at=noon - timedelta(days=6, hours=11), feedback="useful", total_duration_ms=10_000),
        SessionFactory(created_at=noon, feedback="not_useful", total_duration_ms=20_000),
        SessionFactory(created_at=noon, total_duration_ms=None, tools_proposed=4, tools_accepted=3),
    ]
    SessionFactory(created_at=week_ago, feedback="useful", total_duration_ms=20_000)
    SessionFactory(created_at=week_ago - timedelta(days=6, hours=11), feedback="useful", total_duration_ms=None)
    SessionFactory(created_at=week_ago - timedelta(days=7), feedback="not_useful")
    InvocationFactory(step__session=this_week[0], l0_hit=True)
    InvocationFactory(step__session=this_week[1], no_hit=True, is_truncated=True)

    client = sign_in(reviewer)
    rows = {row.title: row for row in client.get("/admin/").context["comparisons"]}
    said = {title: (row.now, row.now_of, row.before, row.change) for title, row in rows.items()}
    assert said == {
        "Sessions": ("3", "", "2", "+50%"),  # (3 - 2) / 2
        "Satisfaction": ("50%", "1 of 2 judged", "100%", "−50 points"),
        "L0 hit rate": ("50%", "1 of 2 retrievals", "–", "–"),
        "Truncation rate": ("50%", "1 of 2 retrievals", "–", "–"),
        "Tool adoption": ("75%", "3 of 4 proposed", "–", "–"),
        "Average duration": ("15.0 s", "of 2 sessions", "20.0 s", "−25%"),  # (10 + 20) / 2; (15 - 20) / 20
        "Average tokens": ("1,500", "of 3 sessions", "1,500", "0%"),
    }
    sessions = rows["Sessions"]
    assert client.get(sessions.now_url).context["cl"].result_count == 3
    assert client.get(sessions.before_url).context["cl"].result_count == 2
    [satisfaction, *_] = client.get(rows["Satisfaction"].now_url).context["figures"]
    assert (satisfaction.title, satisfaction.value, satisfaction.of) == ("Satisfaction", "50%", "1 of 2 judged")


def test_the_newest_sessions_come_first_and_lead_to_their_pages(sign_in, reviewer, noon):
    for hour in range(10):
        SessionFactory(session_id=f"s-{hour}", created_at=noon - timedelta(hours=hour))
    client = sign_in(reviewer)
    page = client.get("/admin/")
    assert [session.session_id for session in page.context["newest"]] == [f"s-{hour}" for hour in range(8)]
    links = re.findall(r'href="(/admin/sessions_app/diagnosissession/\d+/change/)"', page.content.decode())
    assert len(links) == 8
    assert client.get(links[0]).status_code == 200


def test_the_start_page_makes_as_many_queries_for_much_as_for_little(
    work, reviewer, rf, noon, django_assert_num_queries
):
    request = rf.get("/admin/")
    request.user = reviewer
    reviewer.get_all_permissions()
    # triages, cases, scoring failed and pending; the newest; sessions and retrievals of two weeks
    with django_assert_num_queries(4 + 1 + 2 * 2):
        start_page(request, {})
    for _ in range(12):
        step = StepFactory(session=SessionFactory(created_at=noon, scored=True))
        InvocationFactory(step=step, l0_hit=True)
        TriageFactory()
        CaseFactory()
    with django_assert_num_queries(4 + 1 + 2 * 2):
        start_page(request, {})


def test_an_empty_database_says_how_to_record_the_first_session(sign_in, admin_user, api):
    client = sign_in(admin_user)
    page = client.get("/admin/").content.decode()
    assert "comparisons" not in client.get("/admin/").context
    command = html.unescape(re.search(r'id="first-session">(.*?)</pre>', page, re.DOTALL).group(1))
    assert command.startswith("curl http://testserver/api/sessions ")
    body = re.search(r"-d '(.*)'", command, re.DOTALL).group(1)
    assert "'" not in body, "it would end the shell's quotes"
    assert api.post("/api/sessions", json.loads(body), format="json").status_code == 201
    assert DiagnosisSession.objects.get().tool_call_count == 1
    assert client.get("/admin/").context["newest"]


def test_hostile_text_stays_text(sign_in, admin_user, noon):
    session = SessionFactory(
        query=HOSTILE,
        created_at=noon,
        agent_flow=HOSTILE[:32],
        confidence=99.0,
        rejected=True,
        evaluation_error=HOSTILE,
    )
    StepFactory(session=session, agent_name=HOSTILE[:32])
    client = sign_in(admin_user)
    for address in ("/admin/", "/admin/metrics/", f"/admin/metrics/?{urlencode({'flow': HOSTILE, 'first': HOSTILE})}"):
        page = client.get(address).content.decode()
        assert "&lt;script&gt;" in page
        assert "<script>alert" not in page


# -- the page of metrics ---------------------------------------------------------------------------------------------


@pytest.fixture
def four_sessions(noon):
    """Two days ago: one useful, one confident but rejected; today: one of another flow, one without a score."""
    ago = noon - timedelta(days=2)
    useful = SessionFactory(created_at=ago, feedback="useful", scored=True, total_duration_ms=10_000)
    rejected = SessionFactory(
        created_at=ago, rejected=True, confidence=95.0, evidence_score=50, total_duration_ms=30_000
    )
    other = SessionFactory(created_at=noon, agent_flow="AI_OPS", scored=True, total_duration_ms=None)
    SessionFactory(created_at=noon, total_token_count=None)
    InvocationFactory(step=StepFactory(session=useful, duration_ms=500), l0_hit=True, is_truncated=True)
    InvocationFactory(step=StepFactory(session=rejected, duration_ms=1_500), no_hit=True)
    StepFactory(session=other, agent_name="executor", duration_ms=250)


def figures(page):
    return {figure.title: (figure.value, figure.of) for figure in page.context["figures"]}


def bars(page, name):
    return [(bar.title, bar.value, bar.of, bar.width) for bar in page.context[name]]


def test_the_page_of_metrics_says_what_the_selectors_know(four_sessions, sign_in, reviewer):
    page = sign_in(reviewer).get("/admin/metrics/")
    assert page.status_code == 200
    assert figures(page) == {
        "Satisfaction": ("50%", "1 of 2 judged"),
        "L0 hit rate": ("50%", "1 of 2 retrievals"),
        "Truncation rate": ("50%", "1 of 2 retrievals"),
        "Tool adoption": ("–", "0 of 0 proposed"),
        "Average duration": ("17.3 s", "of 3 sessions"),  # (10 + 30 + 12) / 3
        "Average tokens": ("1,500", "of 3 sessions"),
    }
    assert bars(page, "scores") == [
        ("50", "1", "25%", "50.00"),  # as wide as its share of the most frequent
        ("65", "2", "50%", "100.00"),
        ("No score", "1", "25%", "50.00"),
    ]
    assert bars(page, "retrievals")[0] == ("L0 only", "1", "50%", "100.00")
    assert bars(page, "steps") == [
        ("planner", "1.0 s", "of 2 steps", "100.00"),  # (500 + 1 500) / 2
        ("executor", "250 ms", "of 1 step", "25.00"),
    ]
    assert page.context["truncated"] == 1
    assert [session.confidence for session in page.context["confident"]] == [95.0]

    columns = page.context["course"]["columns"]
    assert len(columns) == 30
    assert [(c.figures.sessions, c.unjudged, c.satisfaction) for c in columns[-3:]] == [
        (2, 0, "50%"),
        (0, 0, "–"),
        (2, 2, "–"),
    ]
    assert columns[-3].heights == {"useful": "50.00", "not_useful": "50.00", "unjudged": "0.00"}


def test_scores_lead_to_the_sessions_that_have_them(four_sessions, sign_in, reviewer):
    client = sign_in(reviewer)
    for address in ("/admin/metrics/", "/admin/metrics/?flow=AI_OPS"):
        for bar in client.get(address).context["scores"]:
            if bar.url:
                assert str(client.get(bar.url).context["cl"].result_count) == bar.value
    assert not any(bar.url for bar in client.get("/admin/metrics/?agent=planner").context["scores"])


def test_flow_and_agent_narrow_the_page_and_the_presets_keep_them(four_sessions, sign_in, reviewer):
    client = sign_in(reviewer)
    page = client.get("/admin/metrics/?flow=AI_OPS&agent=executor")
    assert page.context["sessions"] == 1
    assert bars(page, "steps") == [("executor", "250 ms", "of 1 step", "100.00")]
    week = re.search(r'href="(\?[^"]*)"[^>]*>7 days<', page.content.decode()).group(1)
    narrowed = client.get(f"/admin/metrics/{html.unescape(week)}")
    assert narrowed.context["sessions"] == 1
    assert len(narrowed.context["course"]["columns"]) == 7


def test_long_periods_go_week_by_week(four_sessions, sign_in, reviewer, noon):
    first = noon.date() - timedelta(days=92)
    page = sign_in(reviewer).get(f"/admin/metrics/?first={first}&last={noon.date()}")
    assert not page.context["is_daily"]
    assert len(page.context["course"]["columns"]) in (14, 15)
    assert sum(column.figures.sessions for column in page.context["course"]["columns"]) == 4


@pytest.mark.parametrize(
    ("query", "field"),
    [
        pytest.param("first=2026-11-02&last=2026-11-01", "first", id="ends-before-it-begins"),
        pytest.param("first=1970-01-01", "first", id="too-many-weeks"),
        pytest.param("first=0001-01-01", "first", id="too-long-ago"),
        pytest.param("last=9999-12-31", "last", id="too-far-ahead"),
        pytest.param("first=tomorrow", "first", id="no-date"),
        pytest.param("flow=NONE", "flow", id="no-flow"),
        pytest.param("agent=%00", "agent", id="no-agent"),
    ],
)
def test_what_cannot_be_shown_is_said(four_sessions, sign_in, reviewer, query, field):
    page = sign_in(reviewer).get(f"/admin/metrics/?{query}")
    assert page.status_code == 200
    assert list(page.context["form"].errors) == [field]
    assert "figures" not in page.context


def test_a_period_without_sessions_says_so(sign_in, reviewer):
    page = sign_in(reviewer).get("/admin/metrics/")
    assert page.context["sessions"] == 0
    assert set(dict(figures(page).values())) == {"–"}
    assert "No session was created in this period" in page.content.decode()


def test_the_page_of_metrics_makes_as_many_queries_for_much_as_for_little(
    four_sessions, sign_in, noon, django_assert_num_queries
):
    client = sign_in(UserFactory(is_staff=True, permissions=["sessions_app.view_diagnosissession"]))
    # the sign-in and permissions (4); flows, agents; sessions, retrievals, days, scores, steps, the confident
    with django_assert_num_queries(4 + 2 + 6):
        client.get("/admin/metrics/")
    for number in range(25):
        session = SessionFactory(created_at=noon, rejected=True, confidence=99.0, evidence_score=number)
        StepFactory(session=session, agent_name=f"agent-{number}")
    with django_assert_num_queries(4 + 2 + 6):
        page = client.get("/admin/metrics/")
    assert page.context["confident_count"] == 26
    assert len(page.context["confident"]) == 20


def test_the_page_of_metrics_is_for_those_who_may_see_sessions(client, sign_in):
    assert client.get("/admin/metrics/").status_code == 302
    assert sign_in(UserFactory()).get("/admin/metrics/").status_code == 302, "no staff"
    assert sign_in(UserFactory(is_staff=True)).get("/admin/metrics/").status_code == 403
    seer = UserFactory(is_staff=True, permissions=["sessions_app.view_diagnosissession"])
    assert sign_in(seer).get("/admin/metrics/").status_code == 200


# -- drawings --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("values", "top"),
    [([], 1), ([None, 0], 1), ([3, 1], 3), ([7], 8), ([10], 10), ([1_101], 1_500), ([0.2], 0.2), ([46_000.0], 50_000)],
)
def test_an_axis_ends_at_a_round_number(values, top):
    assert ceiling(values) == pytest.approx(top)


def test_a_line_is_broken_where_a_value_is_missing():
    line = Line.through([0, 5, None, 10], 10)
    assert line.path == "M0.5 100.00L1.5 50.00M3.5 0.00"
    assert line.dots == "M0.5 100.00h0M1.5 50.00h0M3.5 0.00h0"


# -- in a browser ----------------------------------------------------------------------------------------------------


@pytest.fixture
def busy_fortnight(reviewer):
    """Fourteen days with something of everything."""
    now = timezone.now()
    for day in range(14):
        for number in range(1 + day % 3):
            session = SessionFactory(
                created_at=now - timedelta(days=day, minutes=number),
                feedback=("useful", "not_useful", None)[(day + number) % 3],
                evidence_score=(0, 20, 50, 65)[day % 4],
                confidence=90.0,
                total_duration_ms=5_000 + 3_000 * day,
            )
            step = StepFactory(session=session, agent_name=("planner", "executor")[day % 2])
            InvocationFactory(step=step, **{("l0_hit", "l1_hit", "no_hit")[day % 3]: True})
            FeedbackEventFactory(session=session)


@pytest.mark.browser
@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("width", [1280, 390])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_both_pages_fit_and_ask_nobody_else(busy_fortnight, signed_in, reviewer, screenshot, width, scheme):
    page = signed_in(reviewer, viewport={"width": width, "height": 900}, color_scheme=scheme)
    for name, address in (("start", "/admin/"), ("metrics", "/admin/metrics/")):
        page.goto(address)
        page.wait_for_load_state("networkidle")
        overflow = page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
        assert overflow == 0
        screenshot(page, f"{name}-{width}-{scheme}")
    shapes = page.locator(".figures-plot__box").evaluate_all(
        "boxes => boxes.map(box => box.getBoundingClientRect().width)"
    )
    assert len(shapes) == 4
    assert min(shapes) > 150


@pytest.mark.browser
@pytest.mark.django_db(transaction=True)
def test_the_page_of_metrics_is_worked_by_keyboard(busy_fortnight, signed_in, reviewer):
    page = signed_in(reviewer)
    page.goto("/admin/metrics/")
    page.locator("#id_agent").focus()
    page.keyboard.type("exec")
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    page.wait_for_url("**agent=executor**")
    assert page.get_by_role("rowheader", name="planner").count() == 0
    page.locator("summary", has_text="The same in figures").focus()
    page.keyboard.press("Enter")
    assert page.get_by_role("columnheader", name="Satisfaction").is_visible()
