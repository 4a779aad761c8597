"""Cases and bad cases are found by what stands in them, and by nothing that stands there no more."""

from datetime import timedelta

import pytest
from django.utils import timezone

from cases_app.models import CaseLibrary, CaseTerm
from cases_app.services import enrichment
from feedback_app.models import BadCaseReview, BadCaseTerm
from feedback_app.services import triage
from feedback_app.services.erasure import erase_subject
from feedback_app.services.retention import apply_retention
from feedback_app.services.submission import record_event, submit_verdict
from sessions_app.models import DiagnosisSession
from sessions_app.services.recording import record_sessions

pytestmark = pytest.mark.django_db

WRITTEN = {"failure_mode": "HALLUCINATION", "notes": "Проверено вручную", "corrected_answer": "It was the gateway."}


@pytest.fixture
def rejected(write_terms):
    record_sessions(
        [{"session_id": "s-9", "query": "为什么结账很慢？", "answer": "Nobody knows.", "status": "SUCCESS"}]
    )
    submit_verdict(session_id="s-9", verdict="not_useful", comment="Совсем не то")
    write_terms()
    return BadCaseReview.objects.get()


def found(query):
    return [review.session_id for review in BadCaseReview.objects.matching(query)]


def test_a_bad_case_is_found_by_question_id_comment_and_findings(rejected, reviewer, write_terms):
    assert found("结账") == found("s-9") == found("совсем") == ["s-9"]
    assert found("gateway") == []
    triage.claim(review_id=rejected.pk, reviewer=reviewer)
    triage.save_notes(review_id=rejected.pk, reviewer=reviewer, **WRITTEN)
    write_terms()
    assert found("вручную") == found("gateways") == ["s-9"]
    triage.resolve(review_id=rejected.pk, reviewer=reviewer, **(WRITTEN | {"notes": "Another word"}))
    write_terms()
    assert (found("вручную"), found("another")) == ([], ["s-9"])


def test_a_bad_case_is_found_by_what_its_reader_adds_and_by_a_question_that_changes(rejected, write_terms):
    record_event({"session_id": "s-9", "type": "star", "value": 1, "payload": {"comment": "samovar"}})
    write_terms()
    assert found("samovar") == ["s-9"]
    record_sessions([{"session_id": "s-9", "query": "Why is the checkout slow?"}])
    write_terms()
    assert (found("checkout"), found("结账")) == (["s-9"], [])


def test_a_case_is_found_by_its_text_as_it_stands(reviewer, write_terms):
    record_sessions([{"session_id": "s-9", "query": "为什么结账很慢？", "answer": "The samovar.", "status": "SUCCESS"}])
    submit_verdict(session_id="s-9", verdict="useful")
    write_terms()
    case = CaseLibrary.objects.get()
    finds = CaseLibrary.objects.matching
    assert finds("结账 samovar").get() == finds("s-9").get() == finds(str(case.pk)[:9].upper()).get() == case
    record_sessions([{"session_id": "s-9", "answer": "The gateway was slow."}])
    write_terms()
    case.refresh_from_db()
    assert (finds("gateway").get(), finds("samovar").exists()) == (case, False)
    content = enrichment.content_of(case) | {"root_cause": "Шлюз", "solution": "Restart", "error_code": "ERR_GATE"}
    enrichment.enrich_case(case_id=case.pk, content=content, version=case.version, reviewer=reviewer)
    write_terms()
    assert finds("шлюза err_gate").get() == case
    assert not finds("gateway").exists()


def test_no_term_outlives_its_person(rejected, write_terms):
    DiagnosisSession.objects.update(user_ref="somebody")
    submit_verdict(session_id="s-9", verdict="useful")
    write_terms()
    assert CaseTerm.objects.exists()
    assert BadCaseTerm.objects.exists()
    erase_subject(user_ref="somebody")
    assert not CaseTerm.objects.exists()
    assert not BadCaseTerm.objects.exists()


def test_what_retention_takes_out_finds_nothing(rejected, settings, write_terms):
    submit_verdict(session_id="s-9", verdict="useful", comment="Write to zinaida@kvashnina.example")
    write_terms()
    assert found("zinaida") == ["s-9"]
    settings.RETENTION_ANONYMISE_DAYS = 1
    DiagnosisSession.objects.update(created_at=timezone.now() - timedelta(days=3))
    apply_retention()
    assert found("zinaida") == found("kvashnina") == []
    assert found("结账") == ["s-9"]


def test_a_case_that_outlives_its_session_is_no_longer_found_by_it(rejected, settings, reviewer, write_terms):
    submit_verdict(session_id="s-9", verdict="useful")
    case = CaseLibrary.objects.get()
    content = enrichment.content_of(case) | {"root_cause": "Ask zinaida@kvashnina.example"}
    enrichment.enrich_case(case_id=case.pk, content=content, version=case.version, reviewer=reviewer)
    write_terms()
    assert CaseLibrary.objects.matching("s-9 zinaida").get() == case
    settings.RETENTION_REMOVE_DAYS = 1
    DiagnosisSession.objects.update(created_at=timezone.now() - timedelta(days=3))
    apply_retention()
    assert CaseLibrary.objects.get() == CaseLibrary.objects.matching("结账").get()
    assert not CaseLibrary.objects.matching("s-9").exists()
    assert not CaseLibrary.objects.matching("zinaida").exists()
