"""The admin's list and page of sessions: what they show, to whom, at what cost, and that nobody edits a fact."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.contrib.admin.models import LogEntry
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.urls import reverse
from django.utils import timezone

from sessions_app import panels
from sessions_app.admin import sessions as sessions_admin
from sessions_app.models import DiagnosisSession
from sessions_app.paging import BoundedPaginator
from sessions_app.panels import Panel
from tests.factories import InvocationFactory, SessionFactory, StepFactory, UserFactory

pytestmark = pytest.mark.django_db
LIST = "/admin/sessions_app/diagnosissession/"
HOSTILE = '"><img src=x onerror=alert(1)><script>alert(1)</script>{{ 7|add:7 }}{% now "Y" %}'


def page_of(session: DiagnosisSession) -> str:
    return reverse("admin:sessions_app_diagnosissession_change", args=[session.pk])


@pytest.fixture
def desk(client, reviewer):
    """The admin as a reviewer sees it, in English."""
    client.force_login(reviewer, backend="django.contrib.auth.backends.ModelBackend")
    client.defaults["HTTP_ACCEPT_LANGUAGE"] = "en"
    return client


def listed(client, **query) -> set[str]:
    """Ids of the sessions that the list shows."""
    response = client.get(LIST, query)
    assert response.status_code == 200, response
    return {session.session_id for session in response.context["cl"].result_list}


# -- who may what ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("path", ["", "{pk}/change/", "{pk}/steps/{step}/", "{pk}/history/"])
def test_who_may_not_see_sessions_is_told_so(client, path):
    step = StepFactory()
    url = LIST + path.format(pk=step.session.pk, step=step.pk)
    assert client.get(url).status_code == 302
    client.force_login(UserFactory(), backend="django.contrib.auth.backends.ModelBackend")
    assert client.get(url).status_code == 302
    blind = UserFactory(is_staff=True, permissions=["sessions_app.change_diagnosissession"])
    client.force_login(blind, backend="django.contrib.auth.backends.ModelBackend")
    assert client.get(url).status_code == 403


def test_nobody_adds_changes_or_deletes_a_session(client, admin_user):
    session = SessionFactory(query="as it was")
    client.force_login(admin_user, backend="django.contrib.auth.backends.ModelBackend")
    assert client.get(LIST + "add/").status_code == 403
    assert client.post(LIST + f"{session.pk}/delete/", {"post": "yes"}).status_code == 403
    client.post(page_of(session), {"query": "forged", "status": "FAILED"})
    client.post(LIST, {"action": "delete_selected", "_selected_action": [session.pk], "post": "yes"})
    session.refresh_from_db()
    assert (session.query, session.status) == ("as it was", "SUCCESS")


@pytest.mark.parametrize("object_id", ["0", "999999", "abc", "1e5", "-1", "٣", "9" * 40, "_2F"])
def test_an_unknown_session_leads_back_to_the_start(desk, object_id):
    response = desk.get(f"{LIST}{object_id}/change/")
    assert response.status_code in {302, 404}


# -- the list --------------------------------------------------------------------------------------------------------


def test_the_list_shows_what_there_is_and_why_there_is_nothing(desk):
    SessionFactory(scored=True, query="Why is it slow?", feedback="useful", step_count=3, tool_call_count=12)
    SessionFactory(owing=True, query="pending one")
    SessionFactory(query="failed one", evaluation_error="KeyError: 'factors'", evaluation_attempts=5)
    SessionFactory(running=True, query="", session_id="no-question", agent_id=None, agent_flow=None)
    html = desk.get(LIST).content.decode()
    for expected in (
        "Why is it slow?", "3 / 12", "12.0 s", "1,500", "Useful", "Strong evidence", "<b>65</b>",
        "Pending", "No score", "KeyError: &#x27;factors&#x27;", "no-question", "Running", "just now",
    ):  # fmt: skip
        assert expected in html, expected


def test_the_list_costs_the_same_for_one_session_and_for_fifty(desk):
    def cost() -> int:
        with CaptureQueriesContext(
            connection,
        ) as queries:
            assert desk.get(LIST).status_code == 200
        return len(queries)

    InvocationFactory(step__session=SessionFactory(scored=True))
    for_one = cost()
    for n in range(60):
        SessionFactory(scored=n % 2 == 0, owing=n % 2 == 1)
    assert cost() == for_one + 1 <= 13  # of several pages, one finds its keys first


def test_the_list_reads_no_answers(desk):
    SessionFactory(answer="a" * 1_000_000, query="q" * 500_000, metadata={"m": "x" * 100_000})
    with CaptureQueriesContext(connection) as queries:
        body = desk.get(LIST).content
    assert len(body) < 200_000
    quote = connection.ops.quote_name
    for sql in (query["sql"] for query in queries):
        assert f"{quote('diagnosis_session')}.{quote('answer')}" not in sql
        assert f"{quote('diagnosis_session')}.{quote('metadata')}" not in sql


def test_hostile_text_stays_text_in_the_list(desk):
    SessionFactory(query=HOSTILE, agent_id='"><script>1</script>', agent_flow="<b>flow</b>", evaluation_error=HOSTILE)
    html = desk.get(LIST, {"agent": HOSTILE, "q": HOSTILE, "score_from": HOSTILE, "status": HOSTILE}).content.decode()
    html += desk.get(LIST).content.decode()
    assert "<img src=x" not in html
    assert "<script>alert(1)" not in html
    assert "<b>flow" not in html
    assert "&lt;img src=x onerror=alert(1)&gt;" in html
    assert "{{ 7|add:7 }}" in html


@pytest.fixture
def mixed(db) -> None:
    """One session for each thing that may be asked for."""
    now = timezone.now()
    strong = SessionFactory(
        session_id="strong", scored=True, agent_id="alerter/1", agent_flow="AI_OPS", feedback="useful"
    )
    pending = SessionFactory(session_id="pending", owing=True, created_at=now - timedelta(days=3))
    broken = SessionFactory(
        session_id="broken", evaluation_error="x", evaluation_attempts=5, evidence_score=None, feedback="not_useful"
    )
    running = SessionFactory(
        session_id="running", running=True, agent_flow="CUSTOM", created_at=now - timedelta(days=40)
    )
    failed = SessionFactory(session_id="failed", status="FAILED", evidence_score=0, agent_flow=None)
    InvocationFactory(step__session=strong, l0_hit=True)
    InvocationFactory(step__session=pending, l1_hit=True, is_truncated=True)
    InvocationFactory(step__session=broken, no_hit=True)
    InvocationFactory(step__session=failed, failed=True)
    # A layer named without a count is a hit.
    InvocationFactory(step=None, session=running, tool_name="x", retrieval_layer="L1")


@pytest.mark.usefixtures("mixed")
@pytest.mark.parametrize(
    ("query", "found"),
    [
        ({}, {"strong", "pending", "broken", "running", "failed"}),
        ({"status": ["RUNNING", "FAILED"]}, {"running", "failed"}),
        ({"status": "nonsense"}, {"strong", "pending", "broken", "running", "failed"}),
        ({"flow": "AI_OPS"}, {"strong"}),
        ({"flow": "other"}, {"running", "failed"}),
        ({"feedback": "not_useful"}, {"broken"}),
        ({"feedback": "none"}, {"pending", "running", "failed"}),
        ({"scoring": "pending"}, {"pending"}),
        ({"scoring": "failed"}, {"broken"}),
        ({"scoring": "scored"}, {"strong", "failed"}),
        ({"score_from": "1"}, {"strong"}),
        ({"score_to": "64"}, {"failed"}),
        ({"score_from": "x", "score_to": "1e99"}, {"strong", "pending", "broken", "running", "failed"}),
        ({"facts": "l0"}, {"strong"}),
        ({"facts": "l1"}, {"pending", "running"}),
        ({"facts": "miss"}, {"broken"}),
        ({"facts": ["l1", "truncated"]}, {"pending"}),
        ({"facts": "failed"}, {"failed"}),
        ({"facts": ["failed", "l0"]}, set()),
        ({"agent": "alerter"}, {"strong"}),
        ({"period": "24h"}, {"strong", "broken", "failed"}),
        ({"period": "7d"}, {"strong", "pending", "broken", "failed"}),
        ({"period": "x"}, {"strong", "pending", "broken", "running", "failed"}),
        ({"_facets": "True"}, {"strong", "pending", "broken", "running", "failed"}),
    ],
    ids=lambda value: str(value) if isinstance(value, dict) else "",
)  # fmt: skip
def test_filters_find(desk, query, found):
    assert listed(desk, **query) == found


@pytest.mark.usefixtures("mixed")
def test_days_are_whole_and_of_the_servers_zone(desk, settings):
    settings.TIME_ZONE = "Asia/Shanghai"
    DiagnosisSession.objects.update(created_at="2026-03-01T15:59:59.999999Z")
    DiagnosisSession.objects.filter(session_id="strong").update(created_at="2026-03-01T16:00:00Z")
    assert listed(desk, day_from="2026-03-02") == {"strong"}
    assert listed(desk, day_to="2026-03-01") == {"pending", "broken", "running", "failed"}
    assert listed(desk, day_from="2026-03-02", day_to="2026-03-02") == {"strong"}
    for nonsense in ("yesterday", "9999-12-31", "0001-01-01", "2026-02-30"):
        assert len(listed(desk, day_from=nonsense, day_to=nonsense)) == 5


@pytest.mark.usefixtures("mixed")
def test_a_filter_in_use_is_named_and_can_be_taken_back(desk):
    html = desk.get(LIST, {"facts": ["l1", "truncated"], "score_from": "10", "flow": "AI_OPS"}).content.decode()
    for expected in (
        "Tool calls: <b>Truncated result</b>",
        "Evidence score: <b>≥ 10</b>",
        "Agent flow: <b>Alert analysis</b>",
    ):
        assert expected in html
    assert 'href="?facts=truncated&amp;flow=AI_OPS&amp;score_from=10"' in html


def test_search_finds_ids_conversations_users_and_questions(desk):
    SessionFactory(session_id="sess-1", query="退款失败 %_ iPhone退款", user_ref="u-77", conversation_id="conv-1")
    SessionFactory(session_id="sess-12", query="Сервис не отвечает", conversation_id="conv-1")
    SessionFactory(session_id="other", query="sess-1 is mentioned here")
    assert listed(desk, q="sess-1") == {"sess-1"}
    assert listed(desk, q="sess-") == {"sess-1", "sess-12", "other"}
    assert listed(desk, q="conv-1") == {"sess-1", "sess-12"}
    assert listed(desk, q="u-77") == {"sess-1"}
    assert (
        listed(desk, q="退款")
        == listed(desk, q="退")
        == listed(desk, q="%_")
        == listed(desk, q=" IPHONE退 ")
        == {"sess-1"}
    )
    assert listed(desk, q="сервис") == listed(desk, q="СЕРВИС НЕ ОТВЕЧАЕТ") == {"sess-12"}
    assert listed(desk, q="nothing like it") == set()


@pytest.fixture
def looks_at_two(monkeypatch):
    """Where each row must be looked at, two are, and then there is no time left."""
    monkeypatch.setattr(sessions_admin, "FIRST_LOOK", 2)
    monkeypatch.setattr(sessions_admin, "LOOK_SECONDS", 0.0)


def test_search_in_texts_goes_no_further_back_than_it_says(desk, looks_at_two):
    now = timezone.now()
    for n in range(4):
        SessionFactory(session_id=f"s{n}", query="the same", created_at=now - timedelta(days=n))
    response = desk.get(LIST, {"q": "same"})
    assert [row.session_id for row in response.context["cl"].result_list] == ["s0", "s1"]
    assert "Only the newest 2 sessions were looked through" in response.content.decode()
    day = (now - timedelta(days=3)).date().isoformat()
    response = desk.get(LIST, {"q": "same", "day_to": day})
    assert [row.session_id for row in response.context["cl"].result_list] == ["s3"]
    assert "were looked through" not in response.content.decode()
    assert listed(desk, q="s3") == {"s3"}


def test_a_search_looks_further_back_while_there_is_time_and_no_further_than_enough(desk, monkeypatch):
    monkeypatch.setattr(sessions_admin, "FIRST_LOOK", 1)
    monkeypatch.setattr(sessions_admin, "LOOK_SECONDS", 60.0)
    now = timezone.now()
    for n in range(8):
        SessionFactory(session_id=f"s{n}", query="odd" if n % 2 else "even", created_at=now - timedelta(days=n))
    assert listed(desk, q="odd") == {"s1", "s3", "s5", "s7"}
    assert "were looked through" not in desk.get(LIST, {"q": "odd"}).content.decode()
    monkeypatch.setattr(sessions_admin, "ENOUGH", 2)
    response = desk.get(LIST, {"q": "odd"})  # looked at: 1, 2 and 4 sessions, of which 0, 1 and 2 are odd
    assert {row.session_id for row in response.context["cl"].result_list} == {"s1", "s3"}
    assert "Only the newest 7 sessions were looked through" in response.content.decode()


def test_sessions_of_one_moment_are_all_looked_at(desk, looks_at_two):
    moment = timezone.now()
    for n in range(4):
        SessionFactory(session_id=f"s{n}", query="the same", created_at=moment)
    assert listed(desk, q="same") == {"s0", "s1", "s2", "s3"}


def test_several_filters_at_once_are_bounded_and_one_is_not(desk, looks_at_two):
    now = timezone.now()
    for n in range(4):
        SessionFactory(session_id=f"s{n}", agent_flow="CHAT", status="FAILED", created_at=now - timedelta(days=n))
    assert listed(desk, flow="CHAT", status="FAILED") == {"s0", "s1"}
    assert listed(desk, flow="CHAT") == listed(desk, status="FAILED") == {"s0", "s1", "s2", "s3"}
    assert listed(desk, flow="CHAT", period="30d") == {"s0", "s1", "s2", "s3"}
    assert listed(desk, flow="CHAT", status="FAILED", day_to=(now - timedelta(days=2)).date().isoformat()) == {
        "s2",
        "s3",
    }


def test_a_long_list_is_counted_only_so_far(desk, monkeypatch):
    monkeypatch.setattr(BoundedPaginator, "MAX_COUNT", 60)
    DiagnosisSession.objects.bulk_create(DiagnosisSession(session_id=f"s{n}") for n in range(70))
    html = desk.get(LIST).content.decode()
    assert "More than 60" in html
    assert len(listed(desk, p="2")) == 10
    assert desk.get(LIST, {"p": "99"}).status_code == 302


# -- the page --------------------------------------------------------------------------------------------------------


def test_the_page_shows_question_answer_evidence_facts_and_chain(desk):
    session = SessionFactory(
        scored=True, query="Why?", answer="## Cause\n\nThe **pool**.", conversation_id="conv/1", user_ref="u-1",
        confidence=94.0, metadata={"env": "prod"},
    )  # fmt: skip
    session.self_evaluation |= {"confidence": 94, "reasoning": "the dump", "mood": ["calm"]}
    session.save()
    InvocationFactory(step=StepFactory(session=session, agent_name="planner", thought="look there"), l0_hit=True)
    InvocationFactory(step=None, session=session, tool_name="loose_tool", failed=True)
    html = desk.get(page_of(session)).content.decode()
    for expected in (
        "Why?", "<h4>Cause</h4>", "<strong>pool</strong>", "A tool call succeeded", "+35", "+65",
        "Exact match found (L0)",
        "1 tool call", "94%", "the dump", "mood", "planner", "look there", "L0 ×1", "loose_tool", "timed out",
        "Calls that belong to no step", "?q=conv%2F1", "u-1", "&quot;env&quot;: &quot;prod&quot;",
    ):  # fmt: skip
        assert expected in html, expected


def test_a_session_with_nothing_at_all_opens(desk):
    session = DiagnosisSession.objects.create(session_id="bare")
    html = desk.get(page_of(session)).content.decode()
    for expected in ("The run has not ended.", "No score is owed before the run has ended.", "No steps were recorded."):
        assert expected in html


def test_the_page_says_why_there_is_no_score_and_when_one_is_old(desk):
    broken = SessionFactory(evaluation_error="AttributeError: <b>", evaluation_attempts=5, self_evaluation=["odd"])
    html = desk.get(page_of(broken)).content.decode()
    assert "Scoring failed" in html
    assert "AttributeError: &lt;b&gt;" in html
    stale = SessionFactory(scored=True, owing=True)
    html = desk.get(page_of(stale)).content.decode()
    assert "Facts arrived since this score" in html
    assert "+35" in html


def test_the_page_costs_the_same_for_one_step_and_for_many(desk):
    def cost(session: DiagnosisSession) -> int:
        with CaptureQueriesContext(connection) as queries:
            assert desk.get(page_of(session)).status_code == 200
        return len(queries)

    small, large = SessionFactory(scored=True), SessionFactory(scored=True)
    InvocationFactory(step__session=small)
    for _ in range(20):
        step = StepFactory(session=large)
        for _ in range(3):
            InvocationFactory(step=step)
    assert cost(large) == cost(small) <= 20


def test_500_steps_with_long_texts_stay_a_page_of_bounded_size(desk):
    session = SessionFactory(scored=True)
    long = "x" * 20_000
    for n in range(500):
        StepFactory.build(session=session, step_index=n, thought=long, model_input={"m": long}).save()
    for n, step in enumerate(session.steps.all()):
        InvocationFactory.build(session=session, step=step, invocation_id=f"i{n}", input_params={"q": long}).save()
    response = desk.get(page_of(session))
    assert len(response.content) < 1_500_000
    assert 'aria-label="Pages of steps"' in response.content.decode()
    assert "planner" in desk.get(page_of(session), {"steps": "5"}).content.decode()
    assert desk.get(page_of(session), {"steps": "-1x"}).status_code == 200


def test_hostile_text_stays_text_on_the_page(desk):
    session = SessionFactory(
        query=HOSTILE, answer=HOSTILE, agent_flow="<i>flow</i>", metadata={HOSTILE: HOSTILE},
        evaluation_error=HOSTILE,        self_evaluation={HOSTILE: HOSTILE, "reasoning": HOSTILE},
    )  # fmt: skip
    step = StepFactory(
        session=session, agent_name="<b>agent</b>", model_name=HOSTILE, thought=HOSTILE, model_input=HOSTILE
    )
    InvocationFactory(
        step=step, tool_name="<u>tool</u>", input_params={HOSTILE: HOSTILE}, output_preview=HOSTILE, success=False,
        error_message=HOSTILE, retrieval_details={HOSTILE: [HOSTILE]},
    )  # fmt: skip
    html = desk.get(page_of(session)).content.decode()
    html += desk.get(f"{LIST}{session.pk}/steps/{step.pk}/").content.decode()
    for forbidden in ("<img", "<script>alert", "<b>agent", "<u>tool", "<i>flow", 'onerror=alert(1)"'):
        assert forbidden not in html, forbidden
    assert "{{ 7|add:7 }}" in html
    assert html.count("&lt;img src=x onerror=alert(1)&gt;") > 10


def test_the_texts_of_a_step_are_fetched_when_asked_for(desk):
    step = StepFactory(model_input={"messages": ["the prompt"]}, model_output={"content": "the reply"})
    page = desk.get(page_of(step.session)).content.decode()
    assert "the prompt" not in page
    url = f"{LIST}{step.session.pk}/steps/{step.pk}/"
    assert f'hx-get="{url}"' in page
    fragment = desk.get(url).content.decode()
    assert "the prompt" in fragment
    assert "the reply" in fragment
    assert desk.get(f"{LIST}{SessionFactory().pk}/steps/{step.pk}/").status_code == 404


def test_other_apps_add_panels(desk, monkeypatch):
    session = SessionFactory()
    seen = []

    def source(request, of):
        seen.append((request.user.username, of.pk))
        return Panel("desk/said.html", {"x": 1})

    monkeypatch.setattr(panels, "_sources", [lambda *_: None])
    panels.register(source)
    panels.register(source)
    response = desk.get(page_of(session))
    assert [panel.template for panel in response.context["panels"]] == ["desk/said.html"]
    assert seen == [("rita", session.pk)]


# -- scoring again ---------------------------------------------------------------------------------------------------


@pytest.fixture
def operator(client):
    """Somebody who may have sessions scored again, signed in."""
    person = UserFactory(
        is_staff=True,
        permissions=["sessions_app.view_diagnosissession", "sessions_app.change_diagnosissession"],
    )
    client.force_login(person, backend="django.contrib.auth.backends.ModelBackend")
    client.defaults["HTTP_ACCEPT_LANGUAGE"] = "en"
    return client


def test_the_button_owes_a_score_again_and_leaves_a_trace(operator):
    session = SessionFactory(evaluation_error="x", evaluation_attempts=5)
    assert "Score again" in operator.get(page_of(session)).content.decode()
    url = f"{LIST}{session.pk}/score-again/"
    assert operator.get(url).status_code == 405
    response = operator.post(url, follow=True)
    assert "1 session will be scored again." in response.content.decode()
    session.refresh_from_db()
    assert session.evaluation_due_at is not None
    assert (session.evaluation_error, session.evaluation_attempts) == ("", 0)
    assert LogEntry.objects.get().object_id == str(session.pk)


def test_the_action_scores_those_that_have_ended(operator):
    ended, running = SessionFactory(scored=True), SessionFactory(running=True)
    body = {"action": "score_again", "_selected_action": [ended.pk, running.pk], "index": 0}
    html = operator.post(LIST, body, follow=True).content.decode()
    assert "1 session will be scored again." in html
    assert "1 session has not ended and cannot be scored yet." in html
    assert list(DiagnosisSession.objects.evaluation_pending()) == [ended]
    assert LogEntry.objects.count() == 1


def test_a_reviewer_may_not_have_sessions_scored_again(desk):
    session = SessionFactory(scored=True)
    assert "Score again" not in desk.get(page_of(session)).content.decode()
    assert "score_again" not in desk.get(LIST).content.decode()
    assert desk.post(f"{LIST}{session.pk}/score-again/").status_code == 403
    desk.post(LIST, {"action": "score_again", "_selected_action": [session.pk], "index": 0})
    assert not DiagnosisSession.objects.evaluation_pending().exists()
    assert not LogEntry.objects.exists()
