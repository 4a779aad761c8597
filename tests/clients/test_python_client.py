"""The Python client against the product itself, over HTTP: what one says is what the other stores."""

import pytest
from diagnosis_client import FeedbackCollector, Recorder

from feedback_app.models import AgentFeedback
from sessions_app.models import DiagnosisSession

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def recorder(live_server, new_key):
    recorder = Recorder(live_server.url, new_key("ingest"), "oncall/1.0")
    yield recorder
    recorder.close(1)


@pytest.fixture
def collector(live_server):
    collector = FeedbackCollector(live_server.url)
    yield collector
    collector.close(1)


def diagnose(recorder, session_id="s-1"):
    """A supervisor that looks something up and lets an executor work."""
    with recorder.session(
        "结账为什么慢？",
        session_id=session_id,
        agent_flow="AI_OPS",
        agent_name="supervisor",
        conversation_id="c-1",
        user_ref="u-3fa9",
        metadata={"alert": "P99"},
    ) as session:
        step = recorder.before_model("supervisor", [{"role": "user", "content": "结账为什么慢？"}], model="gpt-4.1")
        recorder.after_model(
            step,
            "I look it up.",
            input_tokens=900,
            output_tokens=100,
            thought="the pool?",
            tool_calls=[{"id": "call_1", "name": "lookup_knowledge", "arguments": {"query": "slow"}}],
        )
        with recorder.lookup("lookup_knowledge", "slow", call_id="call_1") as lookup:
            lookup.hits(l0=["Pool exhausted"], l1=[("Slow checkout", 0.8)], truncated=True)
            lookup.result("Raise the pool.")
        with recorder.agent("executor"):
            with recorder.model_call(model="gpt-4.1-mini", messages="raise it") as call:
                call.output("done", input_tokens=40, output_tokens=2)
            with recorder.tool_call("shell", {"command": "ls"}) as call:
                call.fail("permission denied")
        session.evaluate(confidence=85, reasoning="seen in the log", tools_proposed=3, tools_accepted=2)
        session.answer("The pool was exhausted.")


def test_a_recorded_session_is_stored_whole(recorder, api, score_due):
    diagnose(recorder)
    assert recorder.flush()
    assert recorder.dropped == 0
    assert score_due() == 1

    stored = api.get("/api/sessions/s-1").json()
    expected = {
        "query": "结账为什么慢？",
        "answer": "The pool was exhausted.",
        "status": "SUCCESS",
        "agentFlow": "AI_OPS",
        "agentId": "oncall/1.0",
        "conversationId": "c-1",
        "userRef": "u-3fa9",
        "metadata": {"alert": "P99"},
        "stepCount": 2,
        "toolCallCount": 2,
        "totalTokenCount": 1042,
        "evidenceScore": 65,
    }
    assert {key: stored[key] for key in expected} == expected
    said = {key: stored["selfEvaluation"][key] for key in ("confidence", "tools_proposed", "tools_accepted")}
    assert said == {"confidence": 85, "tools_proposed": 3, "tools_accepted": 2}
    assert DiagnosisSession.objects.count() == 1

    first, second = stored["steps"]
    assert (first["agentName"], first["modelName"], first["thought"]) == ("supervisor", "gpt-4.1", "the pool?")
    assert (second["agentName"], second["inputTokens"], second["outputTokens"]) == ("executor", 40, 2)
    lookup, shell = first["toolInvocations"][0], second["toolInvocations"][0]
    assert (lookup["retrievalLayer"], lookup["l0MatchCount"], lookup["l1MatchCount"]) == ("L0+L1", 1, 1)
    assert lookup["isTruncated"]
    assert lookup["inputParams"] == {"query": "slow"}
    assert lookup["outputPreview"] == "Raise the pool."
    assert lookup["retrievalDetails"]["l0_titles"] == ["Pool exhausted"]
    assert (shell["toolName"], shell["success"], shell["errorMessage"]) == ("shell", False, "permission denied")


def test_a_session_is_known_by_its_name_before_it_has_ended(recorder):
    with recorder.session("q", session_id="s-1"):
        with recorder.tool_call("shell"):
            pass
        assert recorder.flush()
        assert list(DiagnosisSession.objects.values_list("session_id", flat=True)) == ["s-1"]
    assert recorder.flush()
    assert list(DiagnosisSession.objects.values_list("session_id", "status")) == [("s-1", "SUCCESS")]


def test_a_failed_session_is_stored_as_failed(recorder, api):
    with pytest.raises(OSError, match="gone"), recorder.session("q", session_id="s-1"):
        raise OSError("gone")
    assert recorder.flush()
    stored = api.get("/api/sessions/s-1").json()
    assert (stored["status"], stored["metadata"]) == ("FAILED", {"error": "OSError: gone"})


def test_a_wrong_key_is_said_and_stores_nothing(live_server, db, caplog):
    recorder = Recorder(live_server.url, "dk_wrong")
    diagnose(recorder)
    assert recorder.flush()
    recorder.close()
    assert recorder.dropped == 6
    assert "refuses spans" in caplog.text
    assert "the api_key is missing or wrong" in caplog.text
    assert "dk_wrong" not in caplog.text
    assert not DiagnosisSession.objects.exists()


def test_every_kind_of_feedback_is_stored(recorder, collector):
    diagnose(recorder)
    assert recorder.flush()
    collector.star("s-1", 4, "nearly")
    collector.correction("s-1", "The pool was exhausted.", "The pool leaked.", "seen in the heap")
    collector.edit("s-1", "Raise it to 50.", "Raise it to 80.")
    collector.re_ask("s-1", "Why, again?", "Why?")
    collector.thumbs("s-1", "down", "too vague")
    assert collector.flush()
    assert collector.dropped == 0
    kinds = sorted(AgentFeedback.objects.values_list("type", flat=True))
    assert kinds == ["correction", "edit", "re_ask", "star", "thumbs"]
    assert DiagnosisSession.objects.get().feedback == "not_useful"


def test_feedback_waits_for_a_session_that_is_still_on_its_way(recorder, collector):
    collector.thumbs("s-1", "up")
    assert not collector.flush(0.3)
    diagnose(recorder)
    assert recorder.flush()
    assert collector.flush(10)
    assert collector.dropped == 0
    assert DiagnosisSession.objects.get().feedback == "useful"
