"""Erasing a person: nothing of them is left anywhere, and nothing of anybody else is lost."""

from __future__ import annotations

import json
import random
import threading
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from io import StringIO

import pytest
from django.contrib.admin.models import LogEntry
from django.core.management import CommandError, call_command
from django.db import connection
from django.utils import timezone

from cases_app.models import CaseLibrary, FaultCategory, SourceType
from cases_app.services.enrichment import enrich_and_publish_case
from feedback_app.models import AgentFeedback, BadCaseReview, BadCaseTransition, Erasure, WeeklyReport
from feedback_app.services import erasure, triage
from feedback_app.services.erasure import erase_subject, preview_erasure
from sessions_app.errors import UnknownObjectError
from sessions_app.models import AgentStep, DiagnosisSession, ErasedId, OtlpTrace, ToolInvocation
from sessions_app.privacy import fingerprint
from sessions_app.services.erasing import ErasedError
from sessions_app.services.recording import record_sessions
from tests.conftest import LOGIN_BACKEND
from tests.dump import holds
from tests.factories import CaseFactory, FeedbackEventFactory, InvocationFactory, SessionFactory, StepFactory
from tests.otlp import TRACE, request, span

REF = "planted-ref-7731"
NAME = "Зинаида Квашнина"
ADDRESS = "zinaida@kvashnina.example"
QUESTION = "为什么茶炊商店的结账会卡住三分钟之久？"
ANSWER = "Because the samovar-pool of Kvashnina's shop had run dry."
SESSIONS = ("p-useful", "p-rejected", "p-unnamed", "p-traced")
PLANTED = (REF, NAME, ADDRESS, QUESTION, ANSWER, *SESSIONS)
WORDS = f"{NAME} <{ADDRESS}>: {QUESTION} {ANSWER}"
AGENT = {"gen_ai.operation.name": "invoke_agent", "input.value": QUESTION, "output.value": ANSWER}


def post(client, path, body, expected=(200, 201)):
    answer = client.post(path, body, format="json")
    assert answer.status_code in expected, answer.content
    return answer


def whole(session_id, **fields):
    return {
        "sessionId": session_id,
        "query": QUESTION,
        "status": "SUCCESS",
        "answer": ANSWER,
        "userRef": REF,
        "metadata": {"said": WORDS},
        "selfEvaluation": {"reasoning": WORDS},
        "steps": [
            {
                "agentName": "planner",
                "stepIndex": 0,
                "modelInput": {"messages": [{"content": WORDS}]},
                "modelOutput": {"content": WORDS},
                "thought": WORDS,
                "toolInvocations": [
                    {"toolName": "logs", "inputParams": {"q": WORDS}, "output": WORDS, "errorMessage": WORDS}
                ],
            }
        ],
        **fields,
    }


@pytest.fixture
def planted(api, reviewer, client, django_capture_on_commit_callbacks):
    """A person's words in every place that the product has for them, written through its own doors."""
    post(api, "/api/sessions/batch", [whole("p-useful", conversationId="c-1"), whole("p-rejected")], (207,))
    post(api, "/api/sessions/batch", [whole("p-unnamed", conversationId="c-1", userRef=None)], (207,))
    named = {"diagnosis.session.id": "p-traced", "diagnosis.user.ref": REF, "user.id": REF}
    sent = request(span(1, "run", {**AGENT, **named}), span(2, "chat", {"input.value": WORDS}, parent=1))
    assert api.post("/v1/traces", json.dumps(sent), content_type="application/json").content == b"{}"
    DiagnosisSession.objects.filter(session_id="p-traced").update(user_ref=REF)

    post(api, "/api/feedback", {"sessionId": "p-useful", "feedback": "useful", "comment": WORDS})
    post(api, "/api/feedback", {"sessionId": "p-rejected", "feedback": "not_useful", "comment": WORDS})
    for kind, payload in (
        ("correction", {"original": ANSWER, "corrected": WORDS, "userNote": WORDS}),
        ("edit", {"original": ANSWER, "edited": WORDS}),
        ("re_ask", {"question": QUESTION, "previousQuestion": WORDS}),
    ):
        post(api, "/api/feedback/events", {"sessionId": "p-useful", "type": kind, "payload": payload})

    review = BadCaseReview.objects.get(session_id="p-rejected")
    triage.claim(review_id=review.pk, reviewer=reviewer)
    texts = {"notes": WORDS, "corrected_answer": WORDS, "failure_mode": "HALLUCINATION"}
    triage.resolve(review_id=review.pk, reviewer=reviewer, **texts)
    case = CaseLibrary.objects.get(diagnosis_id="p-useful")
    content = {"fault_category": "SLOW_RESPONSE", "error_code": "E1", "title": QUESTION, "root_cause": ANSWER}
    enrich_and_publish_case(
        case_id=case.pk, content={**content, "solution": NAME}, version=case.version, reviewer=reviewer
    )
    CaseLibrary.objects.filter(pk=case.pk).update(solution=WORDS)
    corrected = CaseFactory(diagnosis=None, source_type=SourceType.CORRECTION, title=QUESTION, root_cause=WORDS)
    BadCaseReview.objects.filter(pk=review.pk).update(case=corrected)
    client.force_login(reviewer, backend=LOGIN_BACKEND)
    client.post(f"/admin/cases_app/caselibrary/{case.pk}/change/", {"action": "unpublish", "reason": WORDS})
    DiagnosisSession.objects.filter(session_id="p-rejected").update(evaluation_error=f"ValueError: {WORDS}")
    FaultCategory.objects.filter(pk="GENERAL").update(description=f"{QUESTION[:14]}…", keywords=[ANSWER, REF, "slow"])

    figures = {"re_asked": [{"session_id": "p-useful", "count": 3}], "worst": ["oncall-assistant", "p-rejected"]}
    now = timezone.now()
    WeeklyReport.objects.create(week=now.date(), starts_at=now, ends_at=now, figures=figures)


@pytest.fixture
def neighbour(planted):
    """Somebody else, who asked something else."""
    session = SessionFactory(session_id="n-1", user_ref="another", conversation_id="c-9", feedback="useful")
    InvocationFactory(step=StepFactory(session=session))
    FeedbackEventFactory(session=session)
    CaseFactory(diagnosis=session)
    return session


def rows_of_all() -> dict[str, int]:
    models = (DiagnosisSession, AgentStep, ToolInvocation, AgentFeedback, BadCaseReview, CaseLibrary, OtlpTrace)
    return {model.__name__: model.objects.count() for model in models}


@pytest.mark.django_db(transaction=True)
def test_nothing_of_the_person_is_left_in_any_table_file_or_log(planted, neighbour, api, lead, caplog, capfd):
    assert {place.split(".")[0] for text in PLANTED for place in holds(text)} >= {
        "diagnosis_session", "agent_step", "tool_invocation", "agent_feedback", "bad_case_review",
        "bad_case_transition",
        "case_library", "case_transition", "case_version", "weekly_report", "django_admin_log", "otlp_trace",
        "fault_category", "dump",
    }  # fmt: skip
    counts = preview_erasure(user_ref=REF)
    assert counts["diagnosis_session"] == 4

    erased = erase_subject(user_ref=REF, actor=lead)

    assert erased.is_compact
    assert {text: holds(text) for text in PLANTED} == {text: [] for text in PLANTED}
    output = capfd.readouterr()
    assert not [text for text in PLANTED if text in caplog.text + output.out + output.err]
    assert rows_of_all() == {
        "DiagnosisSession": 1,
        "AgentStep": 1,
        "ToolInvocation": 1,
        "AgentFeedback": 1,
        "BadCaseReview": 0,
        "CaseLibrary": 1,
        "OtlpTrace": 0,
    }
    row = Erasure.objects.get()
    assert (row.actor, row.subject, row.counts["diagnosis_session"]) == (lead, fingerprint(REF), 4)
    assert {table: row.counts[table] for table in counts} == counts
    assert FaultCategory.objects.get(pk="GENERAL").keywords == ["[ERASED]", "[ERASED]", "slow"]
    assert WeeklyReport.objects.get().figures == {
        "re_asked": [{"session_id": "[ERASED]", "count": 3}],
        "worst": ["oncall-assistant", "[ERASED]"],
    }
    assert LogEntry.objects.filter(object_repr="[ERASED]", change_message="").count() == 1


@pytest.mark.django_db(transaction=True)
def test_what_comes_late_brings_nothing_back(planted, api):
    erase_subject(user_ref=REF)
    before = rows_of_all()
    late = request(span(3, "execute_tool logs", {"input.value": WORDS, "diagnosis.session.id": "p-traced"}, parent=1))
    unnamed = request(span(4, "chat", {"gen_ai.operation.name": "chat", "input.value": WORDS}, parent=1))
    elsewhere = request(span(5, "run", {**AGENT, "diagnosis.session.id": "p-useful"}, trace="e" * 32))
    for sent in (late, unnamed, elsewhere):
        answer = api.post("/v1/traces", json.dumps(sent), content_type="application/json")
        assert (answer.status_code, answer.json()["partialSuccess"]["rejectedSpans"]) == (200, "1")
        assert "erased" in answer.json()["partialSuccess"]["errorMessage"]
    refused = api.post("/api/sessions", {"sessionId": "p-useful", "query": QUESTION}, format="json")
    assert (refused.status_code, refused.json()["code"]) == (409, "erased")
    refused = api.post("/api/sessions/p-useful/steps", {"agentName": "a", "stepIndex": 0}, format="json")
    assert (refused.status_code, refused.json()["code"]) == (409, "erased")
    batch = post(api, "/api/sessions/batch", [whole("p-rejected"), {"sessionId": "n-2", "query": "?"}], (207,)).json()
    assert (batch["accepted"], [each["sessionId"] for each in batch["rejected"]]) == (1, ["p-rejected"])
    unknown = api.post(
        "/api/feedback", {"sessionId": "p-useful", "feedback": "useful", "comment": WORDS}, format="json"
    )
    assert unknown.status_code == 404
    assert rows_of_all() == {**before, "DiagnosisSession": before["DiagnosisSession"] + 1}
    assert not [text for text in PLANTED if holds(text)]
    post(api, "/api/sessions", {"sessionId": "p-new", "query": "Another question", "userRef": REF})


@pytest.mark.django_db
def test_a_session_that_stood_in_for_a_traced_one_goes_too(api):
    sent = request(span(1, "run", AGENT))
    api.post("/v1/traces", json.dumps(sent), content_type="application/json")
    post(api, "/api/feedback/events", {"sessionId": TRACE, "type": "star", "value": 4})
    named = request(span(2, "logs", {"diagnosis.session.id": "p-1", "user.id": REF}, parent=1))
    api.post("/v1/traces", json.dumps(named), content_type="application/json")
    assert set(DiagnosisSession.objects.values_list("session_id", flat=True)) == {TRACE, "p-1"}
    DiagnosisSession.objects.filter(session_id="p-1").update(user_ref=REF)
    erase_subject(user_ref=REF)
    assert not DiagnosisSession.objects.exists()
    assert ErasedId.objects.count() == 2


@pytest.mark.django_db
def test_a_question_that_another_session_of_the_conversation_quotes_goes_too():
    earlier = SessionFactory(user_ref="another", conversation_id="c-1")
    later = SessionFactory(user_ref=REF, conversation_id="c-1", query=QUESTION)
    quoting = {"question": QUESTION, "previousQuestion": "?", "laterSessionId": later.session_id}
    FeedbackEventFactory(session=earlier, type="re_ask", payload=quoting, source="system")
    kept = FeedbackEventFactory(session=earlier, type="re_ask", payload={**quoting, "laterSessionId": "x"})
    assert preview_erasure(user_ref=REF) == {"agent_feedback": 1, "diagnosis_session": 1}
    erase_subject(user_ref=REF)
    assert list(AgentFeedback.objects.all()) == [kept]
    assert list(DiagnosisSession.objects.all()) == [earlier]


@pytest.mark.django_db
def test_many_sessions_go_some_at_a_time_and_the_audit_counts_them_all(monkeypatch):
    monkeypatch.setattr(erasure, "SESSIONS_A_TRANSACTION", 3)
    for _ in range(10):
        StepFactory(session=SessionFactory(user_ref=REF))
    kept = SessionFactory(user_ref="another")
    erased = erase_subject(user_ref=REF)
    assert (erased.erasure.counts["diagnosis_session"], erased.erasure.counts["agent_step"]) == (10, 10)
    assert list(DiagnosisSession.objects.all()) == [kept]


@pytest.mark.django_db
def test_an_interrupted_erasure_is_taken_up_again(monkeypatch):
    monkeypatch.setattr(erasure, "SESSIONS_A_TRANSACTION", 2)
    for _ in range(5):
        SessionFactory(user_ref=REF)
    calls = []

    def forget(ids):
        calls.append(ids)
        if len(calls) == 2:
            raise RuntimeError("killed")

    with monkeypatch.context() as patch:
        patch.setattr(erasure, "remember_erased", forget)
        with pytest.raises(RuntimeError):
            erase_subject(user_ref=REF)
    assert DiagnosisSession.objects.count() == 3
    assert Erasure.objects.get().counts["diagnosis_session"] == 2
    erase_subject(user_ref=REF)
    assert not DiagnosisSession.objects.exists()
    assert [row.counts["diagnosis_session"] for row in Erasure.objects.order_by("pk")] == [2, 3]


@pytest.mark.django_db
def test_who_is_unknown_is_no_success():
    SessionFactory(user_ref="another")
    assert preview_erasure(user_ref=REF) == {}
    with pytest.raises(UnknownObjectError):
        erase_subject(user_ref=REF)
    assert not Erasure.objects.exists()
    assert DiagnosisSession.objects.count() == 1


# -- the command -----------------------------------------------------------------------------------------------------


@pytest.mark.django_db(transaction=True)
def test_the_command_previews_asks_and_erases():
    SessionFactory(user_ref=REF, query=QUESTION)
    out = StringIO()
    call_command("erase_subject", REF, "--preview", stdout=out)
    assert "1  diagnosis_session" in out.getvalue()
    with pytest.raises(CommandError, match="--yes"):
        call_command("erase_subject", REF, stdout=out)
    assert DiagnosisSession.objects.count() == 1
    call_command("erase_subject", REF, "--yes", stdout=out)
    assert not DiagnosisSession.objects.exists()
    assert Erasure.objects.get().actor is None
    assert REF not in out.getvalue()
    call_command("erase_subject", REF, "--yes", stdout=out)
    assert out.getvalue().endswith("Nothing is stored of this person.\n")


@pytest.mark.django_db(transaction=True)
def test_a_file_that_stays_busy_is_told():
    if connection.vendor != "sqlite":
        pytest.skip("other databases have no such file")
    SessionFactory(user_ref=REF)
    other = connection.copy()
    try:
        with other.cursor() as cursor:
            cursor.execute("BEGIN")
            cursor.execute("SELECT COUNT(*) FROM diagnosis_session")
            cursor.fetchone()
            with connection.cursor() as own:
                own.execute("PRAGMA busy_timeout=100")
            with pytest.raises(CommandError, match="again"):
                call_command("erase_subject", REF, "--yes", stdout=StringIO())
            cursor.execute("ROLLBACK")
    finally:
        other.close()
        connection.close()
    call_command("erase_subject", REF, stdout=StringIO())


# -- races -----------------------------------------------------------------------------------------------------------


@pytest.mark.django_db(transaction=True)
def test_who_records_while_the_person_is_erased_brings_nothing_back():
    ids = [f"p-{number}" for number in range(30)]
    record_sessions([{"session_id": each, "query": QUESTION, "user_ref": REF} for each in ids])
    stopped, outcomes = threading.Event(), Counter()

    def keep_recording(seed):
        turns = random.Random(seed)
        try:
            while not stopped.is_set():
                item = {"session_id": turns.choice(ids), "answer": ANSWER, "user_ref": REF}
                step = {"agent_name": "a", "step_index": turns.randrange(5), "thought": WORDS}
                try:
                    record_sessions([{**item, "steps": [step]}])
                    outcomes["recorded"] += 1
                except ErasedError:
                    outcomes["refused"] += 1
        finally:
            connection.close()

    with ThreadPoolExecutor(4) as pool:
        writers = [pool.submit(keep_recording, seed) for seed in range(4)]

        def wait_for(outcome):
            enough, until = outcomes[outcome] + 20, time.monotonic() + 60
            while outcomes[outcome] < enough and time.monotonic() < until and not any(each.done() for each in writers):
                time.sleep(0.01)
            return outcomes[outcome] >= enough

        try:
            is_busy = wait_for("recorded")
            erase_subject(user_ref=REF)
            is_refused = wait_for("refused")
        finally:
            stopped.set()
        for each in writers:
            each.result(30)
    assert is_busy
    assert is_refused
    assert not DiagnosisSession.objects.exists()
    assert not AgentStep.objects.exists()
    assert ErasedId.objects.count() == len(ids)


@pytest.mark.django_db
def test_history_of_the_triage_goes_with_it(planted):
    assert BadCaseTransition.objects.filter(reason=WORDS).exists()
    erase_subject(user_ref=REF)
    assert not BadCaseTransition.objects.exists()
    assert ErasedId.objects.filter(erased_at__lte=timezone.now()).count() >= 4
