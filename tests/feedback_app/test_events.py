"""Feedback events: the five kinds, the design's own examples, repeats and refusals."""

from __future__ import annotations

import difflib

import pytest

from feedback_app import rules
from feedback_app.models import AgentFeedback, BadCaseReview
from sessions_app.services.recording import record_sessions

PASSWORD = {"question": "How do I reset my password please", "previousQuestion": "How do I reset my password"}
AUSTRALIA = {
    "original": "The capital of Australia is Sydney.",
    "corrected": "The capital of Australia is Canberra.",
    "userNote": "Sydney is the largest city but not the capital.",
}
DEAR_JOHN = {"original": "Dear John, I am writing to inform you...", "edited": "Hi John, Just a quick note..."}
DEAR_JOHN_DIFF = """--- 
+++ 
@@ -1 +1 @@
-Dear John, I am writing to inform you...
+Hi John, Just a quick note..."""  # noqa: W291 - so `difflib` writes a file without a name


@pytest.mark.parametrize(
    ("kind", "value", "payload", "number", "stored"),
    [
        pytest.param("thumbs", "up", {}, 1, {}, id="thumbs-up"),
        pytest.param("thumbs", "down", {}, -1, {}, id="thumbs-down"),
        pytest.param("star", 4, {}, 0.75, {"stars": 4}, id="four-stars"),
        pytest.param("star", 1, {}, 0.0, {"stars": 1}, id="one-star"),
        pytest.param("star", 5, {}, 1.0, {"stars": 5}, id="five-stars"),
        pytest.param("correction", None, AUSTRALIA, 0.1389, AUSTRALIA, id="canberra"),
        pytest.param("re_ask", None, PASSWORD, 0.8571, PASSWORD, id="password"),  # 6 words of 7
        pytest.param("edit", None, DEAR_JOHN, 0.5652, {**DEAR_JOHN, "diff": DEAR_JOHN_DIFF}, id="dear-john"),
        # the design's third example of a collector: comments with thumbs
        pytest.param("thumbs", "up", {"comment": "Great answer"}, 1, {"comment": "Great answer"}, id="great-answer"),
        pytest.param("thumbs", "down", {"comment": "Wrong ticker"}, -1, {"comment": "Wrong ticker"}, id="wrong-ticker"),
    ],
)
def test_the_examples_of_the_design(kind, value, payload, number, stored):
    assert rules.read_event(kind, value, payload) == (number, stored)


def test_the_edit_is_as_far_as_the_design_prints():
    """`print(f"Edit distance: {fb['edit_distance']:.2f}")`, with the formula and the diff of the design itself."""
    original, edited = DEAR_JOHN["original"], DEAR_JOHN["edited"]
    reading = rules.read_event("edit", None, DEAR_JOHN)
    assert f"{reading.value:.2f}" == "0.57"
    assert reading.value == round(1.0 - difflib.SequenceMatcher(None, original, edited).ratio(), 4)
    lines = difflib.unified_diff(original.splitlines(), edited.splitlines(), lineterm="")
    assert reading.payload["diff"] == "\n".join(lines)


@pytest.mark.parametrize(
    ("kind", "value", "payload", "expected"),
    [
        pytest.param("star", 5.0, {}, 1.0, id="five-stars-as-a-float"),
        pytest.param("edit", None, {"original": "same", "edited": "same"}, 0.0, id="unchanged"),
        pytest.param("edit", None, {"original": "", "edited": ""}, 0.0, id="nothing-of-nothing"),
        pytest.param("edit", None, {"original": "", "edited": "new"}, 1.0, id="from-nothing"),
        pytest.param("edit", None, {"original": "abc", "edited": "xyz"}, 1.0, id="rewritten"),
        pytest.param("edit", None, {"original": "a" * 300, "edited": "a" * 150 + "b" * 150}, 0.5, id="half-of-long"),
        pytest.param("edit", None, {"original": "x" * 20_000, "edited": "y" * 20_000}, 1.0, id="longest"),
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
        ("edit", None, {"original": "x", "edited": "y", "diff": "z"}, "payload.diff"),
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


def test_a_comment_that_follows_its_thumb_is_the_same_thumb(anonymous, session):
    """Who presses and then writes is one person; a repeat of either changes nothing."""
    press = {"sessionId": "s1", "type": "thumbs", "value": "down", "clientEventId": "e-1"}
    write = {**press, "payload": {"comment": "It was the cache."}}
    more = {**press, "payload": {"comment": "a\x00b"}, "consent": False}
    for event in (press, write, press, write, more, write, more, {**write, "value": "up"}):
        assert send(anonymous, event).json()["accepted"] == 1
    event = AgentFeedback.objects.get()
    assert event.payload == {"comment": "It was the cache.\n\na\ufffdb", "sanitised": True}
    assert (event.value, event.consent, event.session.feedback) == (-1.0, False, "not_useful")
    assert "words" in BadCaseReview.objects.get().priority_hours


def test_no_words_are_lost_whose_sum_is_longer_than_one_comment_may_be(anonymous, session):
    event = {"sessionId": "s1", "type": "thumbs", "value": "up", "clientEventId": "e-1"}
    said = ["x" * 20_000, "ы" * 20_000, "退" * 20_000]
    for words in said + said:
        assert send(anonymous, {**event, "payload": {"comment": words}}).json()["accepted"] == 1
    assert AgentFeedback.objects.get().comment == "\n\n".join(said)


def test_words_are_added_up_to_what_an_event_may_hold(anonymous, session, monkeypatch):
    monkeypatch.setattr(rules, "MAX_JOINED_CHARS", 25_000)
    event = {"sessionId": "s1", "type": "thumbs", "value": "up", "clientEventId": "e-1"}
    send(anonymous, {**event, "payload": {"comment": "x" * 15_000}})
    response = send(anonymous, {**event, "payload": {"comment": "y" * 15_000}})
    assert list(response.json()["rejected"][0]["errors"]) == ["payload.comment"]
    assert AgentFeedback.objects.get().comment == "x" * 15_000


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
