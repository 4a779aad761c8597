"""The export for training: what teaches, anonymised, of those alone who did not refuse."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from io import StringIO

import pytest
from django.core.management import CommandError, call_command
from django.db import connection
from django.test.utils import CaptureQueriesContext

from feedback_app.selectors import training
from feedback_app.selectors.training import Selection, TrainingFormat, count_rows, training_lines
from sessions_app.models import DiagnosisSession
from sessions_app.privacy import pseudonym
from tests.factories import FeedbackEventFactory, SessionFactory, TriageFactory

pytestmark = pytest.mark.django_db

PERSONAL = "I am jane@example.com, call +7 912 345-67-89"
CLEAN = "I am [EMAIL], call [PHONE]"
MARCH = datetime(2026, 3, 5, 12, tzinfo=UTC)
APRIL = datetime(2026, 4, 5, 12, tzinfo=UTC)


def export(form, **selection):
    return [json.loads(line) for line in training_lines(TrainingFormat(form), Selection(**selection))]


def correction(session, original="old", corrected="new", **fields):
    payload = {"original": original, "corrected": corrected}
    return FeedbackEventFactory(session=session, type="correction", value=0.5, payload=payload, **fields)


# -- what teaches ----------------------------------------------------------------------------------------------------


def test_useful_answers_become_prompt_and_completion():
    SessionFactory(query=f"Why? {PERSONAL}", answer=f"So. {PERSONAL}", feedback="useful")
    SessionFactory(feedback="not_useful")
    SessionFactory(feedback=None)
    SessionFactory(feedback="useful", answer=None)
    SessionFactory(feedback="useful", answer="  ")
    SessionFactory(feedback="useful", query="")
    assert export("sft") == [{"prompt": f"Why? {CLEAN}", "completion": f"So. {CLEAN}"}]


def test_corrections_become_prompt_rejected_and_chosen():
    session = SessionFactory(session_id="incident-4711", query="What of incident-4711?")
    correction(session, original="Restart it.", corrected=f"Raise the limit. {PERSONAL}")
    correction(session, original="same", corrected="same")
    correction(session, original="", corrected="something")
    FeedbackEventFactory(session=session, type="edit", value=0.1, payload={"original": "a", "edited": "b"})
    assert export("dpo") == [
        {
            "prompt": f"What of {pseudonym('incident-4711')}?",
            "rejected": "Restart it.",
            "chosen": f"Raise the limit. {CLEAN}",
        }
    ]


def test_what_a_reviewer_wrote_in_place_of_an_answer_is_a_correction_too():
    TriageFactory(state="RESOLVED", corrected_answer=f"Better. {PERSONAL}", resolved_at=MARCH)
    TriageFactory(state="IN_REVIEW", corrected_answer="Not yet decided.")
    TriageFactory(state="RESOLVED", corrected_answer="", resolved_at=MARCH)
    (record,) = export("dpo")
    assert record["chosen"] == f"Better. {CLEAN}"
    assert record["rejected"] == SessionFactory.answer
    assert record["prompt"].startswith("Why is order-service slow?")


def test_every_event_is_a_line():
    session = SessionFactory(session_id="incident-4711")
    payload = {"comment": PERSONAL, "incident-4711": [PERSONAL]}
    FeedbackEventFactory(session=session, payload=payload, created_at=MARCH, client_event_id="client-77")
    assert export("jsonl") == [
        {
            "sessionId": pseudonym("incident-4711"),
            "turnId": pseudonym("incident-4711"),
            "agentId": "oncall-assistant",
            "type": "thumbs",
            "value": 1.0,
            "payload": {"comment": CLEAN, pseudonym("incident-4711"): [CLEAN]},
            "source": "user",
            "createdAt": "2026-03-05T12:00Z",
        }
    ]


def test_lines_are_one_line_each_whatever_stands_in_the_text():
    SessionFactory(query='a\nb\r"c"\u2028</script>=1+1', answer="表\t\x0b", feedback="useful")
    (line,) = training_lines(TrainingFormat.SFT, Selection())
    assert line.count("\n") == 1
    assert json.loads(line) == {"prompt": 'a\nb\r"c"\u2028</script>=1+1', "completion": "表\t\x0b"}


# -- consent ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("form", TrainingFormat.values)
def test_nothing_is_exported_of_who_refused(form):
    """For the session, or for the event that says it."""
    for refusal in ({"session_consent": False}, {"event_consent": False}):
        session = SessionFactory(feedback="useful", query="secret", consent=refusal.get("session_consent", True))
        consent = refusal.get("event_consent", True)
        FeedbackEventFactory(session=session, payload={"comment": "secret"}, consent=consent)
        correction(session, original="secret", corrected="secrets", consent=consent)
    refused = SessionFactory(feedback="not_useful", consent=False)
    TriageFactory(session=refused, state="RESOLVED", corrected_answer="secret", resolved_at=MARCH)
    assert export(form) == []
    assert count_rows(TrainingFormat(form), Selection()) == 0


def test_a_question_asked_again_is_not_exported_once_its_own_session_refused():
    earlier, later = SessionFactory(), SessionFactory()
    payload = {"question": "asked again", "previousQuestion": "asked", "laterSessionId": later.session_id}
    FeedbackEventFactory(session=earlier, type="re_ask", value=0.9, payload=payload)
    assert "asked again" in "".join(training_lines(TrainingFormat.JSONL, Selection()))
    DiagnosisSession.objects.filter(pk=later.pk).update(consent=False)
    assert list(training_lines(TrainingFormat.JSONL, Selection())) == []


def test_a_refusal_on_the_wire_is_kept_for_operations_and_never_exported(api, anonymous):
    sessions = [
        {"sessionId": f"s-{consent}", "query": "Q", "answer": "A", "status": "SUCCESS", "consent": consent}
        for consent in (True, False)
    ]
    assert api.post("/api/sessions/batch", sessions, format="json").json()["accepted"] == 2
    for session_id, consent in (("s-True", True), ("s-True", False), ("s-False", True)):
        event = {"sessionId": session_id, "type": "star", "value": 5, "consent": consent}
        assert anonymous.post("/api/feedback/events", event, format="json").json()["accepted"] == 1
    assert api.get("/api/sessions/s-False").json()["consent"] is False
    assert [line["sessionId"] for line in export("jsonl")] == [pseudonym("s-True")]


# -- which -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("form", TrainingFormat.values)
def test_days_and_agent_narrow_it(form):
    for number, (at, agent) in enumerate(((MARCH, "one"), (MARCH, "two"), (APRIL, "one"))):
        session = SessionFactory(created_at=at, agent_id=agent, feedback="useful", query=f"q{number}")
        correction(session, created_at=at)
    assert len(export(form)) == 3
    assert len(export(form, agent_id="one")) == 2
    assert len(export(form, first=MARCH.date(), last=MARCH.date())) == 2
    assert len(export(form, first=APRIL.date())) == 1
    assert len(export(form, last=MARCH.date(), agent_id="one")) == 1
    assert export(form, agent_id="three") == []


@pytest.mark.parametrize("form", TrainingFormat.values)
def test_pages_join_without_gap_or_repetition(form, monkeypatch):
    monkeypatch.setattr(training, "PAGE_EVENTS", 3)
    monkeypatch.setattr(training, "PAGE_ANSWERS", 3)
    for number in range(10):
        session = SessionFactory(feedback="useful", query=f"q{number}", created_at=MARCH)
        correction(session, original=f"old {number}", corrected=f"new {number}", created_at=MARCH)
    with CaptureQueriesContext(connection) as queries:
        lines = export(form)
    assert len({json.dumps(line) for line in lines}) == len(lines) == 10
    assert not [query for query in queries if "OFFSET" in query["sql"]]


# -- the command -----------------------------------------------------------------------------------------------------


def test_the_command_writes_a_file_and_shows_its_progress(tmp_path, capfd):
    correction(SessionFactory())
    target, err = tmp_path / "out.jsonl", StringIO()
    call_command("export_feedback", "--format", "dpo", "--out", str(target), stderr=err)
    assert json.loads(target.read_text("utf-8"))["chosen"] == "new"
    assert err.getvalue() == "1 lines.\n"
    assert "1/1" in capfd.readouterr().err
    assert [path.name for path in tmp_path.iterdir()] == ["out.jsonl"]


def test_standard_output_holds_nothing_but_lines():
    SessionFactory(feedback="useful", query="why", answer="so")
    out = StringIO()
    call_command("export_feedback", "--format", "sft", stdout=out, stderr=StringIO())
    assert out.getvalue() == '{"prompt":"why","completion":"so"}\n'


def test_a_failed_export_leaves_no_half_file(tmp_path, monkeypatch):
    def broken(*_args, **_options):
        yield "{}\n"
        raise RuntimeError("the database went away")

    monkeypatch.setattr("feedback_app.management.commands.export_feedback.training_lines", broken)
    with pytest.raises(RuntimeError):
        call_command("export_feedback", "--format", "sft", "--out", str(tmp_path / "out"), stderr=StringIO())
    assert list(tmp_path.iterdir()) == []
    monkeypatch.undo()
    with pytest.raises(CommandError, match="Cannot write"):
        call_command("export_feedback", "--format", "sft", "--out", str(tmp_path / "no" / "out"), stderr=StringIO())
    with pytest.raises(CommandError, match="begin before"):
        call_command("export_feedback", "--format", "sft", "--from", "2026-02-01", "--to", "2026-01-01")
