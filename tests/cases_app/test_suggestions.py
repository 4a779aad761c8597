"""What the session of a case suggests for its fields: gathered from the rows, and shown on its page."""

import json
import re

import pytest

from cases_app.models import CaseLibrary, FaultCategory
from cases_app.selectors.suggestions import suggestions_for
from cases_app.suggestions.clues import Found, Source
from feedback_app.services import submission
from tests.factories import CaseFactory, InvocationFactory, SessionFactory, StepFactory

pytestmark = pytest.mark.django_db

ANSWER = "# Очередь стоит\n\n## Причина\nПул соединений исчерпан.\n\n## Решение\nПоднять предел до 200.\n"
HOSTILE = "</script><script>alert(1)</script>\"'><img src=x onerror=alert(1)>{{ 7*7 }}\u202e"


@pytest.fixture
def case():
    session = SessionFactory(
        feedback="useful", query="Сервис вернул код ответа 503, почему?", answer=ANSWER,
        metadata={"alerts": [{"alert_name": "DbPoolExhausted"}], "title": "Отказ заказов"},
    )  # fmt: skip
    step = StepFactory(session=session, agent_name="DbExpert")
    InvocationFactory(step=step, tool_name="hikari_stats")
    InvocationFactory(step=step, tool_name="fetch", failed=True, error_message="upstream said ECONNRESET")
    return CaseFactory(diagnosis=session)


def values(suggestions):
    return {name: [one.value for one in some] for name, some in suggestions.items()}


def page(client, case):
    client.defaults["HTTP_ACCEPT_LANGUAGE"] = "en"
    return client.get(f"/admin/cases_app/caselibrary/{case.pk}/change/")


class TestGathered:
    def test_from_all_that_the_session_says(self, case, django_assert_max_num_queries):
        case = CaseLibrary.objects.select_related("diagnosis").get()
        with django_assert_max_num_queries(4):
            found = suggestions_for(case)
        assert values(found) == {
            "fault_category": ["DB_CONNECTION"],
            "error_code": ["DbPoolExhausted", "HTTP 503", "ECONNRESET"],
            "title": ["Очередь стоит", "Отказ заказов"],
            "root_cause": ["Пул соединений исчерпан."],
            "solution": ["Поднять предел до 200."],
        }
        assert Found("hikari_stats", Source.TOOL) in found["fault_category"][0].evidence
        assert found["root_cause"][0].evidence == (Found("Причина", Source.HEADING),)
        assert [one.evidence[0].source for one in found["title"]] == [Source.FIRST_HEADING, Source.METADATA]

    def test_what_stands_there_already_is_left_out(self, case):
        case.fault_category_id, case.error_code, case.title = "DB_CONNECTION", "HTTP 503", "Очередь стоит"
        case.root_cause = "\nПул соединений исчерпан.\n"
        found = values(suggestions_for(case))
        assert found["error_code"] == ["DbPoolExhausted", "ECONNRESET"]
        assert (found["title"], found["root_cause"]) == (["Отказ заказов"], [])
        assert "DB_CONNECTION" not in found["fault_category"]

    @pytest.mark.parametrize("status", ["PUBLISHED", "RETIRED"])
    def test_nothing_for_a_case_that_nobody_works_on(self, status, case):
        case.status = status
        assert suggestions_for(case) == {}

    def test_a_case_by_hand_is_read_itself(self):
        case = CaseFactory(manual=True, title="redis: 缓存雪崩, HTTP 502", root_cause="## Cause\nx", solution="y")
        found = values(suggestions_for(case))
        assert (found["fault_category"][0], found["error_code"]) == ("CACHE", ["HTTP 502"])
        assert (found["title"], found["root_cause"], found["solution"]) == ([], [], [])

    @pytest.mark.parametrize(
        "metadata", [{}, {"title": 5}, {"title": " \n"}, {"title": ["x"]}, {"title": "Title: "}, {"alert": None}]
    )
    def test_odd_metadata(self, metadata):
        session = SessionFactory(query="?", answer=None, metadata=metadata)
        found = values(suggestions_for(CaseFactory(diagnosis=session, title="?", root_cause="", solution="")))
        assert not any(found.values())


class TestOnItsPage:
    def test_each_with_its_button_and_where_it_came_from(self, case, client, as_reviewer):
        text = page(client, case).content.decode()
        assert text.count('data-suggestion="') == 8
        assert '<code dir="auto">DbPoolExhausted</code>' in text
        assert 'alert <code dir="auto">DbPoolExhausted</code>' in text
        assert '<code dir="auto">hikari</code> in' not in text
        assert 'tool <code dir="auto">hikari_stats</code>' in text
        assert 'below <code dir="auto">Причина</code> in the answer' in text
        assert "first heading of the answer" in text
        keys = re.findall(r'data-suggestion-for="(\w+)"[^>]* aria-keyshortcuts="(\d)"', text)
        assert keys == [
            ("fault_category", "1"), ("error_code", "2"), ("title", "3"), ("root_cause", "4"), ("solution", "5"),
        ]  # fmt: skip

    def test_values_come_as_data(self, case, client, as_reviewer):
        response = page(client, case)
        data = re.search(
            r'<script id="case-suggestions" type="application/json">(.*?)</script>', response.content.decode()
        )
        assert json.loads(data[1]) == values(suggestions_for(case))

    def test_a_category_is_offered_by_its_name(self, case, client, as_reviewer):
        FaultCategory.objects.filter(pk="DB_CONNECTION").update(name="Our <b>pools</b>")
        text = page(client, case).content.decode()
        assert "<bdi>Our &lt;b&gt;pools&lt;/b&gt; (DB_CONNECTION)</bdi>" in text

    def test_who_may_not_write_sees_none(self, case, client, sign_in):
        sign_in("Operator")
        assert "data-suggestion" not in page(client, case).content.decode()

    def test_none_where_nothing_is_suggested(self, client, as_reviewer):
        case = CaseFactory(published=True)
        text = page(client, case).content.decode()
        assert "data-suggestion" not in text

    def test_a_form_that_was_refused_comes_back_with_them(self, case, client, as_reviewer):
        address = f"/admin/cases_app/caselibrary/{case.pk}/change/"
        response = client.post(address, {"action": "save", "title": "", "fault_category": "GENERAL"})
        assert set(response.context["form"].errors) == {"title"}
        assert "DbPoolExhausted" in response.content.decode()

    def test_hostile_text_stays_text(self, client, as_reviewer):
        answer = f"# {HOSTILE}\n## Cause {HOSTILE}\n{HOSTILE}\n## Solution\n{HOSTILE}"
        session = SessionFactory(
            query=f"redis {HOSTILE}", answer=answer, metadata={"title": HOSTILE, "alert": {"name": "Down:./-"}}
        )
        InvocationFactory(step__session=session, step__agent_name="<b>redis</b>", tool_name='"><i>redis')
        text = page(client, CaseFactory(diagnosis=session)).content.decode()
        assert 'data-suggestion-for="root_cause"' in text
        for forbidden in ("<script>alert", "<img src=x", "<b>redis", "<i>redis", 'aria-label="Take </script>'):
            assert forbidden not in text


class TestOnRealRuns:
    def test_every_run_gets_a_code_and_nearly_every_one_a_category_and_its_parts(self, dbot_sessions, api):
        response = api.post("/api/sessions/batch", dbot_sessions, format="json")
        assert (response.json()["accepted"], response.json()["rejected"]) == (22, [])
        alerts, codes, categories, parts, titles = {}, {}, {}, {}, {}
        for run in dbot_sessions:
            name = run["sessionId"]
            submission.submit_verdict(session_id=name, verdict="useful")
            found = values(suggestions_for(CaseLibrary.objects.select_related("diagnosis").get(diagnosis_id=name)))
            alerts[name] = run["metadata"]["alerts"][0]["alert_name"]
            codes[name], categories[name], titles[name] = (
                (found[field] or [None])[0] for field in ("error_code", "fault_category", "title")
            )
            parts[name] = found["root_cause"] and found["solution"] and found["root_cause"] != found["solution"]
        assert codes == alerts
        assert sum(category not in (None, "GENERAL") for category in categories.values()) == 22
        meant = {"NodeCpuHigh": "CPU_HIGH", "NodeLoadHigh": "CPU_HIGH", "NodeOutOfMem": "MEMORY_OOM"}
        assert sum(categories[name] == meant[alerts[name]] for name in alerts) >= 20
        assert sum(bool(both) for both in parts.values()) == 22
        assert sum(titles[run["sessionId"]] == run["metadata"]["title"] for run in dbot_sessions) >= 20
