"""What people said in a trace becomes feedback, once; what the agent said of itself does not."""

from __future__ import annotations

import json

import pytest

from cases_app.models import CaseLibrary
from feedback_app.models import AgentFeedback, BadCaseReview
from feedback_app.rules import read_judgement
from sessions_app.models import DiagnosisSession
from tests.otlp import START_NS, TRACE, request, span

pytestmark = pytest.mark.django_db

AGENT = {"gen_ai.operation.name": "invoke_agent", "input.value": "why?", "output.value": "so."}


def send(api, *spans):
    answer = api.post("/v1/traces", json.dumps(request(*spans)), content_type="application/json")
    assert (answer.status_code, answer.content) == (200, b"{}")


def annotation(name="helpfulness", kind="HUMAN", prefix="annotations.0.annotation", **more):
    said = {"name": name, "annotator_kind": kind, **more}
    return {f"{prefix}.{key}": value for key, value in said.items()}


def test_a_persons_annotation_sets_the_verdict_and_makes_the_case(api):
    said = annotation(label="thumbs-up", score=1, explanation="It was the pool indeed.")
    send(api, span(1, "run", {**AGENT, **said}))
    event = AgentFeedback.objects.get()
    assert (event.type, event.value, event.payload, event.source) == (
        "thumbs",
        1.0,
        {"comment": "It was the pool indeed."},
        "user",
    )
    assert event.created_at.timestamp() == pytest.approx(START_NS / 1e9 + 0.101)
    assert DiagnosisSession.objects.get().feedback == "useful"
    assert CaseLibrary.objects.get().root_cause == "so."
    assert DiagnosisSession.objects.get().self_evaluation is None


def test_a_trace_told_again_and_again_tells_its_judgement_once(api):
    judged = span(1, "run", {**AGENT, **annotation(label="down")})
    for number in range(2, 5):
        send(api, judged, span(number, "execute_tool logs", {"gen_ai.operation.name": "execute_tool"}, parent=1))
    assert AgentFeedback.objects.get().value == -1.0
    assert BadCaseReview.objects.count() == 1


def test_a_person_who_changed_their_mind_meanwhile_is_not_overruled_by_the_trace(api, client_with):
    judged = span(1, "run", {**AGENT, **annotation(label="up")})
    send(api, judged)
    api.post("/api/feedback", {"sessionId": TRACE, "feedback": "not_useful"}, format="json")
    send(api, judged, span(2, "execute_tool logs", {"gen_ai.operation.name": "execute_tool"}, parent=1))
    assert DiagnosisSession.objects.get().feedback == "not_useful"


def test_what_the_agent_said_of_itself_is_its_self_evaluation(api):
    events = [
        ("gen_ai.evaluation.result", {"gen_ai.evaluation.name": "Confidence", "gen_ai.evaluation.score.value": 0.8}),
        ("gen_ai.evaluation.result", {"gen_ai.evaluation.name": "groundedness", "gen_ai.evaluation.score.label": "ok"}),
    ]
    model = {"gen_ai.operation.name": "chat"}
    send(
        api,
        span(1, "run", {**AGENT, **annotation(kind="LLM", score=0.1)}),
        span(2, "chat", model, parent=1, events=events),
    )
    assert DiagnosisSession.objects.get().self_evaluation == {
        "confidence": 80.0,
        "groundedness": {"label": "ok"},
        "helpfulness": {"score": 0.1},
    }
    assert not AgentFeedback.objects.exists()
    assert DiagnosisSession.objects.get().feedback is None


@pytest.mark.parametrize(
    "prefix",
    [
        f"{scope}{plural}.0.{singular}"
        for scope in ("", "trace.", "session.")
        for plural, singular in (("annotations", "annotation"), ("evaluations", "evaluation"))
    ],
)
def test_every_name_that_openinference_has_for_a_judgement_is_known(api, prefix):
    send(api, span(1, "run", {**AGENT, **annotation(prefix=prefix, label="incorrect")}))
    assert AgentFeedback.objects.get().value == -1.0


def test_a_persons_word_may_come_on_a_span_of_its_own_before_the_run(api):
    said = {"gen_ai.evaluation.name": "rating", "gen_ai.evaluation.score.value": 4, "annotator.kind": "human"}
    send(api, span(9, "annotate", {}, parent=1, events=[("gen_ai.evaluation.result", said)]))
    assert not DiagnosisSession.objects.exists()
    send(api, span(1, "run", AGENT))
    event = AgentFeedback.objects.get()
    assert (event.type, event.value, event.payload) == ("star", 0.75, {"stars": 4})


def test_two_people_in_one_trace_are_two_events_and_the_later_one_counts(api):
    first = ("gen_ai.evaluation.result", {"gen_ai.evaluation.score.label": "wrong", "annotator.kind": "HUMAN"})
    second = ("gen_ai.evaluation.result", {"gen_ai.evaluation.score.label": "correct", "annotator.kind": "HUMAN"})
    send(
        api,
        span(1, "run", AGENT),
        span(7, "later", {}, at_ms=70, events=[second]),
        span(6, "first", {}, events=[first]),
    )
    assert list(AgentFeedback.objects.order_by("created_at").values_list("value", flat=True)) == [-1.0, 1.0]
    assert DiagnosisSession.objects.get().feedback == "useful"


def test_a_session_that_may_not_be_exported_has_feedback_that_may_not(api):
    send(api, span(1, "run", {**AGENT, **annotation(label="up"), "diagnosis.consent": False}))
    assert AgentFeedback.objects.get().consent is False


@pytest.mark.parametrize("text", ["x" * 60_000, "nul \0", "😀" * 30_000])
def test_hostile_words_cost_nothing_but_themselves(api, text):
    send(api, span(1, "run", {**AGENT, **annotation(name=text, label="up", explanation=text)}))
    assert AgentFeedback.objects.get().value == 1.0
    assert len(AgentFeedback.objects.get().comment) <= 20_000


@pytest.mark.parametrize(
    ("said", "event"),
    [
        pytest.param(("quality", None, "Thumbs-Up", ""), ("thumbs", "up"), id="label"),
        pytest.param(("quality", 1.0, "not_useful", ""), ("thumbs", "down"), id="label-before-score"),
        pytest.param(("correctness", None, "Incorrect", ""), ("thumbs", "down"), id="incorrect-is-not-correct"),
        pytest.param(("quality", 1, "", ""), ("thumbs", "up"), id="one"),
        pytest.param(("quality", 0, "", ""), ("thumbs", "down"), id="zero"),
        pytest.param(("quality", -1, "", ""), ("thumbs", "down"), id="minus-one"),
        pytest.param(("quality", 0.5, "", ""), ("thumbs", "up"), id="half"),
        pytest.param(("quality", 0.49, "", ""), ("thumbs", "down"), id="below-half"),
        pytest.param(("User Rating", 5, "", ""), ("star", 5), id="stars"),
        pytest.param(("stars", 0.2, "", ""), ("thumbs", "down"), id="stars-of-another-scale"),
        pytest.param(("rating", 9, "", ""), ("thumbs", "up"), id="stars-out-of-range"),
        pytest.param(("quality", 4, "", ""), ("thumbs", "up"), id="a-four-that-is-no-star"),
    ],
)
def test_judgements_are_read_by_one_rule(said, event):
    read = read_judgement(*said)
    assert (read.type, read.value) == event


@pytest.mark.parametrize("label", ["", "meh", "sideways"])
def test_a_judgement_that_says_neither_is_no_event(label):
    assert read_judgement("quality", None, label, "I do not know.") is None
