"""Questions asked again, noticed by the server: whichever way and in whatever order the sessions come."""

from __future__ import annotations

import itertools
import json
import threading
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.db import connection, connections

from feedback_app.models import AgentFeedback, BadCaseReview, QuestionsToCompare
from feedback_app.services import re_asks
from feedback_app.tasks import find_re_asks
from sessions_app.models import DiagnosisSession
from sessions_app.services.recording import record_sessions
from tests.otlp import TRACE, request, span

pytestmark = pytest.mark.django_db

NOON = datetime(2026, 11, 9, 12, tzinfo=UTC)
PASSWORD, PASSWORD_AGAIN = "How do I reset my password", "How do I reset my password please"


def asked(session_id: str, query: str = PASSWORD, second: float = 0, **more: Any) -> Any:
    """A session of the conversation c1, that many seconds past noon."""
    place = {"conversation_id": "c1"} if not {"conversation_id", "user_ref"} & more.keys() else {}
    return {
        "session_id": session_id,
        "query": query,
        "started_at": NOON + timedelta(seconds=second),
        **place,
        **more,
    }


def found() -> list[tuple[str, str]]:
    """The (earlier, later) pairs that the worker has noticed by now."""
    find_re_asks()
    assert not QuestionsToCompare.objects.exists()
    events = AgentFeedback.objects.filter(type="re_ask").order_by("session_id", "created_at")
    return [(event.session_id, event.payload["laterSessionId"]) for event in events]


def test_the_password_of_the_design_within_thirty_seconds():
    record_sessions([asked("first", agent_id="helpdesk"), asked("second", PASSWORD_AGAIN, 30)])
    assert found() == [("first", "second")]
    event = AgentFeedback.objects.get()
    assert (event.type, event.source, event.value) == ("re_ask", "system", 0.8571)
    assert (event.agent_id, event.turn_id, event.created_at) == ("helpdesk", "first", NOON + timedelta(seconds=30))
    assert event.payload == {
        "question": PASSWORD_AGAIN,
        "previousQuestion": PASSWORD,
        "laterSessionId": "second",
    }


def test_a_question_asked_again_is_no_verdict():
    record_sessions([asked("first"), asked("second", PASSWORD_AGAIN, 30)])
    assert found()
    assert not DiagnosisSession.objects.exclude(feedback=None).exists()
    assert not BadCaseReview.objects.exists()


@pytest.mark.parametrize(
    ("later", "is_again"),
    [
        pytest.param(asked("b", PASSWORD_AGAIN, 120), True, id="just-in-time"),
        pytest.param(asked("b", PASSWORD_AGAIN, 120.001), False, id="too-late"),
        pytest.param(asked("b", "Where is the printer", 30), False, id="another-question"),
        pytest.param(asked("b", "How do I reset my router now", 30), False, id="not-alike-enough"),  # 5 of 8
        pytest.param(asked("b", "HOW do I reset my password?", 30), True, id="case-and-punctuation"),
        pytest.param(asked("b", second=30, conversation_id="c2"), False, id="another-conversation"),
        pytest.param(asked("b", second=30, conversation_id="C1"), False, id="ids-compare-exactly"),
        pytest.param(asked("b", second=30, user_ref="u1"), True, id="no-conversation-but-the-same-user"),
        pytest.param(
            asked("b", second=30, user_ref="u1", conversation_id="c2"), True, id="another-conversation-of-the-same-user"
        ),
        pytest.param(asked("b", second=30, user_ref="u2"), False, id="another-user"),
    ],
)
def test_what_counts_as_asked_again(later, is_again):
    record_sessions([asked("a", conversation_id="c1", user_ref="u1")])
    record_sessions([later])
    assert found() == ([("a", "b")] if is_again else [])


def test_chinese_is_compared_by_characters():
    record_sessions(
        [asked("a", "数据库连接池满了怎么办？"), asked("b", "数据库连接池满了", 20), asked("c", "磁盘满了", 40)]
    )
    assert found() == [("a", "b")]


def test_a_session_of_nobody_is_not_compared():
    record_sessions([asked("a", conversation_id=None), asked("b", second=5, conversation_id=None)])
    assert not QuestionsToCompare.objects.exists()


def test_only_the_last_five_are_compared():
    record_sessions([asked("a")] + [asked(f"other-{n}", f"question number {n}", n) for n in range(1, 6)])
    record_sessions([asked("b", second=10)])
    assert found() == []
    record_sessions([asked("a2", second=4.5)])  # among the last five of b; and it asks again what a asked
    assert found() == [("a", "a2"), ("a2", "b")]


@pytest.mark.parametrize("order", list(itertools.permutations(range(3))), ids=str)
def test_the_order_of_arrival_does_not_matter(order):
    sessions = [asked("a"), asked("b", second=30), asked("c", second=60)]
    for index in order:
        record_sessions([sessions[index]])
        found()
    assert found() == [("a", "b"), ("a", "c"), ("b", "c")]


def test_nothing_is_recorded_twice():
    sessions = [asked("a"), asked("b", second=30)]
    for _ in range(3):
        record_sessions(sessions)
        assert found() == [("a", "b")]
    re_asks.note_questions(["a", "b", "b"])  # as if the worker had died before it took them off the queue
    assert found() == [("a", "b")]


def test_a_pair_counts_once_even_when_it_turns_round():
    record_sessions([asked("a"), asked("b", second=30)])
    assert found() == [("a", "b")]
    record_sessions([asked("a", second=60)])  # its true start comes late
    assert found() == [("a", "b")]


def test_a_question_that_comes_later_than_its_session(api):
    opened = {"startedAt": "2026-11-09T12:00:00Z", "conversationId": "c1"}
    api.post("/api/sessions", {"sessionId": "a", **opened, "query": PASSWORD}, format="json")
    api.post("/api/sessions", {"sessionId": "b", **opened, "startedAt": "2026-11-09T12:00:30Z"}, format="json")
    assert found() == []
    api.patch("/api/sessions/b", {"query": PASSWORD_AGAIN, "status": "SUCCESS"}, format="json")
    assert found() == [("a", "b")]


def test_a_conversation_that_comes_later_than_its_question(api):
    record_sessions([asked("a"), asked("b", second=30, conversation_id=None)])
    assert found() == []
    api.patch("/api/sessions/b", {"conversationId": "c1"}, format="json")
    assert found() == [("a", "b")]


def test_the_rest_of_a_run_asks_for_no_comparison(api):
    api.post("/api/sessions", {"sessionId": "a", "query": PASSWORD, "conversationId": "c1"}, format="json")
    QuestionsToCompare.objects.all().delete()
    api.post("/api/sessions/a/steps", {"agentName": "planner", "stepIndex": 0, "thought": "so"}, format="json")
    api.post("/api/sessions", {"sessionId": "a", "query": PASSWORD, "conversationId": "c1"}, format="json")
    api.patch("/api/sessions/a", {"status": "SUCCESS", "answer": "so."}, format="json")
    assert not QuestionsToCompare.objects.exists()


def test_a_batch_of_old_sessions(api):
    lines = [
        {"sessionId": name, "query": PASSWORD, "conversationId": "c1", "startedAt": f"2025-03-01T08:{minute}:00Z"}
        for name, minute in (("late", "01"), ("early", "00"), ("next-hour", "59"))
    ]
    assert api.post("/api/sessions/batch", lines, format="json").json()["accepted"] == 3
    assert found() == [("early", "late")]
    assert AgentFeedback.objects.get().created_at == datetime(2025, 3, 1, 8, 1, tzinfo=UTC)


def test_old_sessions_that_do_not_say_when_are_not_of_one_moment(api):
    """A batch that names no times would else ask everything again at the moment of its arrival."""
    lines = [{"sessionId": name, "query": PASSWORD, "conversationId": "c1"} for name in ("a", "b")]
    assert api.post("/api/sessions/batch", lines, format="json").json()["accepted"] == 2
    api.post("/api/sessions", {"sessionId": "now", "query": PASSWORD, "conversationId": "c1"}, format="json")
    assert found() == []
    api.post("/api/sessions/batch", [{**lines[0], "startedAt": "2026-11-09T12:00:00Z"}], format="json")
    api.post("/api/sessions/batch", [{**lines[1], "startedAt": "2026-11-09T12:00:30Z"}], format="json")
    assert found() == [("a", "b")]


def test_sessions_opened_live_are_compared_by_the_servers_clock(api):
    for name in ("a", "b"):
        api.post("/api/sessions", {"sessionId": name, "query": PASSWORD, "conversationId": "c1"}, format="json")
    assert found() == [("a", "b")]


def test_traces_are_compared_too(api):
    attributes = {"gen_ai.operation.name": "invoke_agent", "gen_ai.conversation.id": "c1", "output.value": "so."}
    other = TRACE[:-1] + "d"
    for trace, at_ms in ((TRACE, 0), (other, 30_000)):
        said = {**attributes, "input.value": PASSWORD}
        body = json.dumps(request(span(1, "run", said, trace=trace, at_ms=at_ms)))
        assert api.post("/v1/traces", body, content_type="application/json").status_code == 200
    assert found() == [(TRACE, other)]


def test_without_consent_on_one_side_the_event_has_none():
    record_sessions([asked("a"), asked("b", second=30, consent=False)])
    assert found()
    assert AgentFeedback.objects.get().consent is False


def test_settings_decide(settings):
    settings.RE_ASK_WINDOW_SECONDS, settings.RE_ASK_DEPTH, settings.RE_ASK_THRESHOLD = 10, 1, 0.9
    record_sessions([asked("a"), asked("b", second=11), asked("c", PASSWORD_AGAIN, 12), asked("d", second=13)])
    assert found() == []
    record_sessions([asked("e", second=14)])
    assert found() == [("d", "e")]


def test_it_can_be_switched_off(settings):
    settings.RE_ASK_WINDOW_SECONDS = 0
    record_sessions([asked("a"), asked("b", second=1)])
    assert not QuestionsToCompare.objects.exists()


def test_a_measure_that_fails_does_not_hold_up_the_queue(settings):
    settings.SIMILARITY = "operator.truediv"  # of two texts: a TypeError
    record_sessions([asked("a"), asked("b", second=1)])
    assert found() == []


def test_a_session_that_is_gone_is_passed_over():
    record_sessions([asked("a"), asked("b", second=1)])
    DiagnosisSession.objects.filter(session_id="a").delete()
    assert found() == []


def test_the_number_of_queries_does_not_grow(django_assert_num_queries):
    """In the transaction that records one statement more; in the worker six, whatever the number of sessions."""
    record_sessions([asked(f"s{n}", f"question {n} of {n} about {n}", n) for n in range(50)])
    with django_assert_num_queries(6):  # what waits, its places, those around, known events, texts, the queue
        re_asks.compare_waiting()
    record_sessions([asked("one", "quite another question", 1)])
    with django_assert_num_queries(6):
        re_asks.compare_waiting()


@pytest.mark.django_db(transaction=True)
def test_eight_writers_and_two_workers_at_once():
    writers, rounds = 8, 6
    failures: list[BaseException] = []
    start = threading.Barrier(writers + 2)
    are_writing = threading.Event()
    are_writing.set()

    def guarded(work: Any, *args: Any) -> None:
        try:
            start.wait()
            work(*args)
        except BaseException as error:  # noqa: BLE001 - told below
            failures.append(error)
        finally:
            connections.close_all()

    def write(writer: int) -> None:
        for turn in range(rounds):
            place = {"conversation_id": f"c{turn}"}
            record_sessions([asked(f"{turn}-{writer}", second=writer, **place)])
            record_sessions([asked(f"{turn}-{writer}", second=writer, **place)])  # and again

    def sweep() -> None:
        while are_writing.is_set():
            re_asks.compare_waiting()

    workers = [threading.Thread(target=guarded, args=(sweep,)) for _ in range(2)]
    threads = [threading.Thread(target=guarded, args=(write, n)) for n in range(writers)]
    for thread in (*workers, *threads):
        thread.start()
    for thread in threads:
        thread.join()
    are_writing.clear()
    for thread in workers:
        thread.join()
    assert failures == []
    pairs = set(found())
    assert len(pairs) == AgentFeedback.objects.count(), "no pair twice"
    nearest = {(f"{turn}-{n}", f"{turn}-{n + 1}") for turn in range(rounds) for n in range(writers - 1)}
    assert nearest <= pairs, connection.vendor
    # While sessions are still arriving, one may be among the last five that in the end is not.
    assert all(earlier.split("-")[0] == later.split("-")[0] for earlier, later in pairs)
