"""What is old loses what points to people, what is older goes; nothing else, and no writer waits."""

from __future__ import annotations

import contextlib
import json
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from io import StringIO

import pytest
from django.contrib.admin.models import CHANGE, LogEntry
from django.contrib.contenttypes.models import ContentType
from django.core.management import call_command
from django.db import connection, transaction
from django.utils import timezone

from cases_app.models import CaseLibrary, CaseTransition, CaseVersion
from cases_app.services.enrichment import content_of, enrich_case
from cases_app.services.moving import StaleCaseError
from feedback_app.models import AgentFeedback, BadCaseReview, BadCaseTransition
from feedback_app.services import retention, triage
from feedback_app.services.retention import Applied, apply_retention, count_due
from feedback_app.services.submission import record_event, submit_verdict
from feedback_app.tasks import apply_retention as task
from sessions_app.models import AgentStep, DiagnosisSession, OtlpTrace, ToolInvocation
from sessions_app.services.recording import record_sessions
from tests.dump import holds
from tests.factories import CaseFactory, FeedbackEventFactory, InvocationFactory, SessionFactory, StepFactory
from tests.otlp import request, span

pytestmark = pytest.mark.django_db

ADDRESS, NUMBER = "zinaida@kvashnina.example", "+7 912 345-67-89"
WORDS = f"Ask {ADDRESS} or call {NUMBER}; 10.0.0.1 at 2026-01-02 03:04:05"
CLEAN = "Ask [EMAIL] or call [PHONE]; 10.0.0.1 at 2026-01-02 03:04:05"


@pytest.fixture(autouse=True)
def _days(settings):
    settings.RETENTION_ANONYMISE_DAYS = 30
    settings.RETENTION_REMOVE_DAYS = 0


def days_ago(days):
    return timezone.now() - timedelta(days=days)


def holds_in_rows(text):
    """SQLite's write-ahead log keeps old pages until the next checkpoint; that is no place of ours."""
    return [place for place in holds(text) if not place.startswith("test.sqlite3")]


def written_all_over(reviewer, **fields):
    """A session with an address and a number in every text."""
    session = SessionFactory(
        query=WORDS, answer=WORDS, metadata={"said": WORDS, "userId": "u-5"}, self_evaluation={"reasoning": WORDS},
        evaluation_error=WORDS, user_ref="u-5", feedback="not_useful", **fields,
    )  # fmt: skip
    step = StepFactory(session=session, model_input={"messages": [{"content": WORDS}]}, thought=WORDS)
    InvocationFactory(step=step, input_params={ADDRESS: WORDS}, output_preview=WORDS, error_message=WORDS)
    payload = {"comment": WORDS, "laterSessionId": session.session_id}
    FeedbackEventFactory(session=session, payload=payload)
    case = CaseFactory(diagnosis=session, title=f"Ask {ADDRESS}", enriched=True, root_cause=WORDS, solution=WORDS)
    LogEntry.objects.log_actions(reviewer.pk, [case], CHANGE, "Published.")
    with transaction.atomic():
        review = triage.open_triage(session)
    triage.claim(review_id=review.pk, reviewer=reviewer)
    texts = {"notes": WORDS, "corrected_answer": WORDS, "failure_mode": "HALLUCINATION"}
    triage.resolve(review_id=review.pk, reviewer=reviewer, **texts)
    OtlpTrace.objects.create(trace_id=f"t-{session.pk}", session_id=session.session_id, spans=b"packed")
    return session


# -- anonymising -----------------------------------------------------------------------------------------------------


def test_old_texts_lose_what_points_to_people_wherever_they_stand(reviewer):
    old = written_all_over(reviewer, created_at=days_ago(31))
    kept = SessionFactory(query=WORDS, created_at=days_ago(29))
    DiagnosisSession.objects.filter(pk=kept.pk).update(query=f"{WORDS} kept")
    before = DiagnosisSession.objects.values("updated_at", "status", "feedback", "user_ref").get(pk=old.pk)
    assert count_due() == Applied(anonymised=1)

    assert apply_retention() == Applied(anonymised=1, is_done=True)

    session = DiagnosisSession.objects.get(pk=old.pk)
    assert (session.query, session.answer, session.metadata["said"]) == (CLEAN, CLEAN, CLEAN)
    assert session.metadata["userId"] == "u-5"  # so that the person can still be erased
    assert DiagnosisSession.objects.values("updated_at", "status", "feedback", "user_ref").get(pk=old.pk) == before
    assert AgentStep.objects.get().model_input == {"messages": [{"content": CLEAN}]}
    assert ToolInvocation.objects.get().input_params == {"[EMAIL]": CLEAN}
    assert AgentFeedback.objects.get().payload == {"comment": CLEAN, "laterSessionId": old.session_id}
    assert BadCaseReview.objects.get().corrected_answer == CLEAN
    case = CaseLibrary.objects.get()
    assert (case.title, case.solution, case.version) == ("Ask [EMAIL]", CLEAN, 1)
    ledger = OtlpTrace.objects.get()
    assert (bytes(ledger.spans), ledger.closed_at is None) == (b"", False)
    entry = LogEntry.objects.get(content_type=ContentType.objects.get_for_model(CaseLibrary))
    assert entry.object_repr == "Ask [EMAIL]"
    assert DiagnosisSession.objects.get(pk=kept.pk).query == f"{WORDS} kept"
    DiagnosisSession.objects.filter(pk=kept.pk).delete()
    assert holds_in_rows(NUMBER) == holds_in_rows(ADDRESS) == []


def test_it_is_done_once(reviewer):
    written_all_over(reviewer, created_at=days_ago(31))
    apply_retention()
    stands = DiagnosisSession.objects.values().get(), CaseLibrary.objects.values().get()
    assert apply_retention() == Applied(is_done=True)
    assert (DiagnosisSession.objects.values().get(), CaseLibrary.objects.values().get()) == stands


def test_what_is_written_later_is_cleaned_too(reviewer, anonymous):
    session = written_all_over(reviewer, created_at=days_ago(31))
    apply_retention()
    record_sessions([{"session_id": session.session_id, "metadata": {"late": WORDS}}])
    assert count_due().anonymised == 1
    apply_retention()
    assert DiagnosisSession.objects.get().metadata["late"] == CLEAN

    event = {"sessionId": session.session_id, "feedback": "useful", "comment": WORDS}
    assert anonymous.post("/api/feedback", event, format="json").status_code == 200
    apply_retention()
    assert {event.payload["comment"] for event in AgentFeedback.objects.all()} == {CLEAN}

    review = BadCaseReview.objects.get()
    triage.reopen(review_id=review.pk, reviewer=reviewer, reason=WORDS)
    apply_retention()
    assert BadCaseTransition.objects.filter(action="reopen").get().reason == CLEAN
    triage.claim(review_id=review.pk, reviewer=reviewer)
    triage.save_notes(review_id=review.pk, reviewer=reviewer, notes=WORDS, corrected_answer=WORDS)
    apply_retention()
    assert BadCaseReview.objects.get().notes == CLEAN

    case = CaseLibrary.objects.get()
    content = {**content_of(case), "title": f"Ask {ADDRESS}", "solution": WORDS}
    enrich_case(case_id=case.pk, content=content, version=case.version, reviewer=reviewer)
    assert apply_retention() == Applied(anonymised=1, is_done=True)
    assert CaseLibrary.objects.get().solution == CLEAN
    assert set(CaseVersion.objects.values_list("title", "solution")) == {("Ask [EMAIL]", CLEAN)}
    assert apply_retention() == Applied(is_done=True)


def test_what_somebody_writes_meanwhile_is_never_overwritten(reviewer, monkeypatch):
    session = written_all_over(reviewer, created_at=days_ago(31))
    star = {"session_id": session.session_id, "type": "star", "value": 3, "client_event_id": "one"}
    record_event(star)
    writes = [
        lambda: record_event(star | {"payload": {"comment": WORDS}}),
        lambda: record_sessions([{"session_id": session.session_id, "answer": f"Newer. {WORDS}"}]),
        lambda: FeedbackEventFactory(session=session, payload={"comment": WORDS}),
        lambda: BadCaseReview.objects.update(notes=f"Newer. {WORDS}", updated_at=timezone.now()),
        lambda: CaseLibrary.objects.update(solution=f"Newer. {WORDS}", version=7),
    ]
    original = retention._changes

    def interrupted(tables):
        changes = list(original(tables))
        if writes:
            writes.pop()()
        return changes

    monkeypatch.setattr(retention, "_changes", interrupted)
    for left in range(len(writes)):
        assert apply_retention().anonymised == 0, left
    assert apply_retention().anonymised == 1
    assert DiagnosisSession.objects.get().answer == f"Newer. {CLEAN}"
    assert BadCaseReview.objects.get().notes == f"Newer. {CLEAN}"
    assert CaseLibrary.objects.get().solution == f"Newer. {CLEAN}"


def test_a_run_stops_in_time_and_the_next_goes_on(monkeypatch):
    for _ in range(5):
        SessionFactory(query=WORDS, created_at=days_ago(40))
    ticks = iter(range(100))
    monkeypatch.setattr(retention.time, "monotonic", lambda: next(ticks))
    assert apply_retention(seconds=5) == Applied(anonymised=3)
    assert DiagnosisSession.objects.filter(query=CLEAN).count() == 3
    assert apply_retention(seconds=50) == Applied(anonymised=2, is_done=True)


@pytest.mark.django_db(transaction=True)
def test_texts_are_cleaned_outside_of_transactions_and_others_write_meanwhile(monkeypatch):
    old, other = SessionFactory(query=WORDS, created_at=days_ago(31)), SessionFactory()
    seen = []

    def write():
        try:
            DiagnosisSession.objects.filter(pk=other.pk).update(answer="written meanwhile")
        finally:
            connection.close()

    def slow(text):
        seen.append(connection.in_atomic_block)
        writer = threading.Thread(target=write)
        writer.start()
        writer.join(5)
        assert not writer.is_alive()
        return CLEAN if text == WORDS else text

    monkeypatch.setattr(retention, "anonymise_text", slow)
    apply_retention()
    assert seen
    assert True not in seen
    assert DiagnosisSession.objects.get(pk=old.pk).query == CLEAN
    assert DiagnosisSession.objects.get(pk=other.pk).answer == "written meanwhile"


@pytest.mark.django_db(transaction=True)
def test_whatever_is_written_while_it_runs_is_clean_in_the_end(reviewer):
    session = written_all_over(reviewer, created_at=days_ago(31))
    review, case = BadCaseReview.objects.get(), CaseLibrary.objects.get()
    triage.reopen(review_id=review.pk, reviewer=reviewer)
    triage.claim(review_id=review.pk, reviewer=reviewer)
    until = time.monotonic() + 3

    def enrich(text):
        current = CaseLibrary.objects.get(pk=case.pk)
        content = {**content_of(current), "solution": text}
        with contextlib.suppress(StaleCaseError):
            enrich_case(case_id=case.pk, content=content, version=current.version, reviewer=reviewer)

    writes = [
        lambda text: record_sessions([{"session_id": session.session_id, "answer": text}]),
        lambda text: submit_verdict(session_id=session.session_id, verdict="not_useful", comment=text),
        lambda text: triage.save_notes(review_id=review.pk, reviewer=reviewer, notes=text, corrected_answer=text),
        enrich,
    ]

    def keep(write):
        count = 0
        try:
            while time.monotonic() < until:
                write(f"{WORDS} {count}")
                count += 1
        finally:
            connection.close()
        return count

    with ThreadPoolExecutor(len(writes)) as pool:
        writers = [pool.submit(keep, write) for write in writes]
        while time.monotonic() < until:
            apply_retention()
        counts = [writer.result(30) for writer in writers]
    assert all(counts)
    while not apply_retention().is_done:
        pass
    assert holds_in_rows(ADDRESS) == []
    assert BadCaseReview.objects.get().notes.startswith(CLEAN)
    assert CaseLibrary.objects.get().solution.startswith(CLEAN)


# -- removing --------------------------------------------------------------------------------------------------------


@pytest.mark.django_db(transaction=True)
def test_older_sessions_go_and_the_cases_people_worked_on_stay(reviewer, settings):
    settings.RETENTION_REMOVE_DAYS = 90
    case = written_all_over(reviewer, created_at=days_ago(91)).case
    content = {**content_of(case), "error_code": "E1"}
    enrich_case(case_id=case.pk, content=content, version=case.version, reviewer=reviewer)
    CaseTransition.objects.filter(case=case).update(reason=WORDS)
    draft = CaseFactory(diagnosis=SessionFactory(query=WORDS, created_at=days_ago(92), feedback="useful"))
    kept = SessionFactory(created_at=days_ago(89), anonymised_at=timezone.now())
    assert count_due().removed == 2

    assert apply_retention().removed == 2

    assert list(DiagnosisSession.objects.all()) == [kept]
    for model in (AgentStep, ToolInvocation, AgentFeedback, BadCaseReview, OtlpTrace):
        assert not model.objects.exists()
    case = CaseLibrary.objects.get()
    assert (case.diagnosis_id, case.title, case.solution) == (None, "Ask [EMAIL]", CLEAN)
    assert set(case.versions.values_list("title", "solution")) == {("Ask [EMAIL]", CLEAN)}
    assert not CaseLibrary.objects.filter(pk=draft.pk).exists()
    assert holds_in_rows(NUMBER) == holds_in_rows(ADDRESS) == []


def test_many_go_a_few_at_a_time(settings, monkeypatch):
    settings.RETENTION_REMOVE_DAYS = 90
    monkeypatch.setattr(retention, "REMOVED_A_TRANSACTION", 3)
    for _ in range(8):
        StepFactory(session=SessionFactory(created_at=days_ago(100)))
    assert apply_retention() == Applied(removed=8, is_done=True)
    assert not AgentStep.objects.exists()


# -- off, task, command ----------------------------------------------------------------------------------------------


def test_it_is_off_without_settings(settings):
    settings.RETENTION_ANONYMISE_DAYS = 0
    session = SessionFactory(query=WORDS, created_at=days_ago(3000))
    assert apply_retention() == Applied(is_done=True)
    task()
    session.refresh_from_db()
    assert (session.query, session.anonymised_at) == (WORDS, None)


def test_the_task_does_it():
    session = SessionFactory(query=WORDS, created_at=days_ago(31))
    task()
    session.refresh_from_db()
    assert session.query == CLEAN


def test_the_command_previews_and_does_it_to_the_end(settings):
    settings.RETENTION_REMOVE_DAYS = 90
    SessionFactory(query=WORDS, created_at=days_ago(31))
    SessionFactory(created_at=days_ago(91), anonymised_at=timezone.now())
    out = StringIO()
    call_command("apply_retention", "--preview", stdout=out)
    assert "Anonymised after 30 days, removed after 90 days." in out.getvalue()
    assert "Due: 1 sessions to anonymise, 1 to remove." in out.getvalue()
    assert DiagnosisSession.objects.count() == 2
    call_command("apply_retention", stdout=out, stderr=StringIO())
    assert out.getvalue().endswith("1 sessions anonymised, 1 removed.\n")
    assert DiagnosisSession.objects.get().query == CLEAN


def test_spans_that_come_after_their_ledger_was_cleaned_are_refused(api, settings):
    settings.RETENTION_ANONYMISE_DAYS = 1
    agent = {"gen_ai.operation.name": "invoke_agent", "input.value": WORDS, "output.value": "so."}
    api.post("/v1/traces", json.dumps(request(span(1, "run", agent))), content_type="application/json")
    DiagnosisSession.objects.update(created_at=days_ago(2))
    apply_retention()
    late = request(span(2, "chat", {"gen_ai.operation.name": "chat", "input.value": WORDS}, parent=1))
    answer = api.post("/v1/traces", json.dumps(late), content_type="application/json")
    assert answer.json()["partialSuccess"]["rejectedSpans"] == "1"
    assert holds_in_rows(ADDRESS) == []
