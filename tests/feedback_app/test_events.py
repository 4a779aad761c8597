"""Feedback events: the five kinds, the design's own examples, repeats and refusals."""

from __future__ import annotations

import pytest

from feedback_app import rules
from feedback_app.models import AgentFeedback
from sessions_app.services.recording import record_sessions


@pytest.mark.parametrize(
    ("kind", "value", "payload", "expected"),
    [
        pytest.param("thumbs", "up", {}, 1.0, id="thumbs-up"),
        pytest.param("thumbs", "down", {}, -1.0, id="thumbs-down"),
        pytest.param("star", 4, {}, 0.75, id="four-stars"),
        pytest.param("star", 1, {}, 0.0, id="one-star"),
        pytest.param("star", 5.0, {}, 1.0, id="five-stars-as-a-float"),
        pytest.param("edit", None, {"original": "same", "edited": "same"}, 0.0, id="unchanged"),
        pytest.param("edit", None, {"original": "abc", "edited": "xyz"}, 1.0, id="rewritten"),
        pytest.param(
            "re_ask",
            None,
            {"question": "How do I reset my password please", "previousQuestion": "How do I reset my password"},
            0.8571,
            id="the-designs-re-ask",
        ),
        pytest.param(
            "re_ask",
            None,
            {"question": "数据库连接池满了", "previousQuestion": "数据库连接池满了怎么办"},
            0.7,
            id="chinese",
        ),
    ],
)
def test_each_kind_becomes_its_number(kind, value, payload, expected):
    assert rules.read_event(kind, value, payload).value == expected


def test_the_designs_correction_and_edit():
    correction = {
        "original": "The capital of Australia is Sydney.",
        "corrected": "The capital of Australia is Canberra.",
        "userNote": "Sydney is the largest city but not the capital.",
    }
    reading = rules.read_event("correction", None, correction)
    assert reading.payload == correction
    assert 0 < reading.value < 0.3
    edit = rules.read_event(
        "edit",
        None,
        {"original": "Dear John, I am writing to inform you...", "edited": "Hi John, Just a quick note..."},
    )
    assert 0.4 < edit.value < 0.7


@pytest.mark.parametrize(
    ("kind", "value", "payload", "field"),
    [
        ("thumbs", "sideways", {}, "value"), ("thumbs", None, {}, "value"), ("thumbs", 1, {}, "value"),
        ("star", 0, {}, "value"), ("star", 6, {}, "value"), ("star", 2.5, {}, "value"), ("star", True, {}, "value"),
        ("star", "4", {}, "value"), ("correction", None, {"original": "x"}, "payload.corrected"),
        ("correction", None, {"original": "x", "corrected": 5}, "payload.corrected"),
        ("edit", None, {"edited": "x"}, "payload.original"),
        ("edit", None, {"original": "x" * 20_001, "edited": ""}, "payload.original"),
        ("re_ask", None, {"question": "x"}, "payload.previousQuestion"),
        ("thumbs", "up", {"reason": "x"}, "payload.reason"),
    ],
)  # fmt: skip
def test_what_a_kind_must_carry_is_named(kind, value, payload, field):
    with pytest.raises(rules.EventError) as caught:
        rules.read_event(kind, value, payload)
    assert caught.value.field == field


@pytest.fixture
def session(db):
    record_sessions([{"session_id": "s1", "agent_id": "agent-1"}])


def send(client, *events):
    return client.post("/api/feedback/events", list(events), format="json")


STAR = {"sessionId": "s1", "type": "star", "value": 4}


def test_a_list_says_which_were_accepted_and_of_the_others_why_not(anonymous, session):
    response = send(anonymous, STAR, {**STAR, "value": 9}, {**STAR, "sessionId": "nope"}, 7, {**STAR, "typo": 1})
    assert response.status_code == 200
    assert response.json()["accepted"] == 1
    assert [(row["index"], list(row["errors"])) for row in response.json()["rejected"]] == [
        (1, ["value"]), (2, ["sessionId"]), (3, ["body"]), (4, ["typo"]),
    ]  # fmt: skip
    event = AgentFeedback.objects.get()
    assert (event.value, event.payload, event.agent_id, event.source) == (0.75, {"stars": 4}, "agent-1", "user")


def test_a_single_event_that_is_refused_is_also_an_error_of_the_request(anonymous, session):
    response = anonymous.post("/api/feedback/events", {**STAR, "value": 9}, format="json")
    assert response.status_code == 400
    assert response.json()["success"] is False
    assert response.json()["accepted"] == 0


def test_a_client_event_id_makes_a_repeat_harmless(anonymous, session):
    event = {"sessionId": "s1", "type": "thumbs", "value": "up", "clientEventId": "e-1"}
    assert [send(anonymous, event, event).json()["accepted"] for _ in range(2)] == [2, 2]
    assert AgentFeedback.objects.count() == 1


def test_a_repeat_of_an_old_verdict_does_not_undo_a_newer_one(anonymous, session):
    up = {"sessionId": "s1", "type": "thumbs", "value": "up", "clientEventId": "e-1"}
    send(anonymous, up)
    anonymous.post("/api/feedback", {"sessionId": "s1", "feedback": "not_useful"}, format="json")
    send(anonymous, up)
    assert AgentFeedback.objects.get(client_event_id="e-1").session.feedback == "not_useful"


def test_a_client_event_id_of_another_event_is_refused_and_not_swallowed(anonymous, session):
    record_sessions([{"session_id": "s2"}])
    send(anonymous, {**STAR, "clientEventId": "e-1"})
    response = send(anonymous, {**STAR, "sessionId": "s2", "clientEventId": "e-1"})
    assert list(response.json()["rejected"][0]["errors"]) == ["clientEventId"]


def test_more_than_500_or_none_are_refused_whole(anonymous, session):
    assert send(anonymous, *[STAR] * 501).status_code == 400
    assert send(anonymous).status_code == 400
    assert not AgentFeedback.objects.exists()


def test_unstorable_characters_in_a_comment_are_replaced_and_marked(anonymous, session):
    send(anonymous, {**STAR, "payload": {"comment": "a\x00b"}})
    assert AgentFeedback.objects.get().payload == {"comment": "a\ufffdb", "stars": 4, "sanitised": True}
