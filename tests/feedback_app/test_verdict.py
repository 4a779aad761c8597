"""Contract 1, line by line."""

from __future__ import annotations

import uuid

import pytest

from cases_app.models import CaseLibrary, CaseTransition
from cases_app.services import enrichment
from feedback_app.models import AgentFeedback, BadCaseReview
from sessions_app.models import DiagnosisSession
from sessions_app.services.recording import record_sessions
from sessions_app.services.tokens import feedback_token

pytestmark = pytest.mark.django_db


@pytest.fixture
def session(db):
    record_sessions([{"session_id": "s1", "status": "SUCCESS", "query": "为什么 CPU 高？" * 20, "answer": "死循环。"}])
    return DiagnosisSession.objects.get()


def say(client, feedback, session_id="s1", headers=None, **more):
    body = {"sessionId": session_id, "feedback": feedback, **more}
    return client.post("/api/feedback", body, format="json", headers=headers or {})


def test_useful_writes_the_verdict_makes_the_case_and_returns_its_id(anonymous, session):
    response = say(anonymous, "useful")
    case = CaseLibrary.objects.get()
    assert response.status_code == 200
    assert response.json() == {"success": True, "message": "反馈已记录", "caseId": str(case.case_id)}
    session.refresh_from_db()
    assert (session.feedback, session.status) == ("useful", "SUCCESS")
    assert (case.diagnosis_id, case.source_type, case.fault_category_id) == ("s1", "AUTO", "GENERAL")
    assert (case.root_cause, case.solution, case.created_by) == ("死循环。", "死循环。", "system")
    assert case.title == session.query[:100]
    assert case.status == "DRAFT"
    assert not BadCaseReview.objects.exists()


def test_useful_again_returns_the_same_case(anonymous, session):
    ids = {say(anonymous, "useful").json()["caseId"] for _ in range(3)}
    assert ids == {str(CaseLibrary.objects.get().case_id)}
    assert AgentFeedback.objects.filter(type="thumbs", value=1).count() == 3


def test_not_useful_opens_a_triage_and_leaves_the_status_alone(anonymous, session):
    response = say(anonymous, "not_useful", comment="It was the cache.")
    assert response.json() == {"success": True, "message": "反馈已记录", "caseId": None}
    session.refresh_from_db()
    assert (session.feedback, session.status) == ("not_useful", "SUCCESS")
    triage = BadCaseReview.objects.get()
    assert (triage.session_id, triage.state, triage.assignee) == ("s1", "OPEN", None)
    assert triage.due_at is not None
    event = AgentFeedback.objects.get()
    assert (event.type, event.value, event.comment, event.turn_id) == ("thumbs", -1.0, "It was the cache.", "s1")
    assert not CaseLibrary.objects.exists()


@pytest.mark.parametrize("value", ["maybe", "", None, True, 1, "USEFUL", ["useful"]])
def test_any_other_value_is_a_400_and_writes_nothing(anonymous, session, value):
    response = say(anonymous, value)
    assert response.status_code == 400
    assert list(response.json()["errors"]) == ["feedback"]
    assert not AgentFeedback.objects.exists()


def test_an_unknown_session_is_a_404(anonymous, db):
    response = say(anonymous, "useful", session_id="nope")
    assert response.status_code == 404
    assert response.json()["code"] == "not_found"


@pytest.mark.parametrize(
    ("language", "message"),
    [(None, "反馈已记录"), ("zh-CN,zh;q=0.9", "反馈已记录"), ("en-US", "Feedback recorded"), ("ru", "Отзыв записан")],
)
def test_the_message_follows_accept_language_and_is_chinese_without_one(anonymous, session, language, message):
    headers = {"accept-language": language} if language else {}
    assert say(anonymous, "useful", headers=headers).json()["message"] == message


def test_refusals_follow_accept_language_whoever_was_refused_before(anonymous, session):
    comment = "x" * 20_001
    languages = ("ru", "en", "zh-CN")
    said = [
        say(anonymous, "maybe", comment=comment, headers={"accept-language": each}).json() for each in languages * 2
    ]
    assert said[:3] == said[3:]
    for field in ("feedback", "comment"):
        assert len({body["errors"][field][0] for body in said}) == 3
    assert said[1]["errors"]["comment"] == ["Ensure this field has no more than 20000 characters."]


def test_other_methods_are_refused_by_name(anonymous, session):
    answer = anonymous.get("/api/feedback")
    assert (answer.status_code, answer["Allow"]) == (405, "POST, OPTIONS")
    assert answer.json()["code"] == "method_not_allowed"


def test_useful_before_the_answer_waits_for_it(anonymous, api):
    api.post("/api/sessions", {"sessionId": "s1", "query": "q"}, format="json")
    assert say(anonymous, "useful").json()["caseId"] is None
    assert not CaseLibrary.objects.exists()
    api.patch("/api/sessions/s1", {"status": "SUCCESS", "answer": "At last."}, format="json")
    case = CaseLibrary.objects.get()
    assert (case.diagnosis_id, case.solution, case.title) == ("s1", "At last.", "q")
    assert say(anonymous, "useful").json()["caseId"] == str(case.case_id)


def test_an_answer_without_a_verdict_or_with_not_useful_makes_no_case(anonymous, api):
    for session_id, verdict in (("a", None), ("b", "not_useful")):
        api.post("/api/sessions", {"sessionId": session_id}, format="json")
        if verdict:
            say(anonymous, verdict, session_id=session_id)
        api.patch(f"/api/sessions/{session_id}", {"status": "SUCCESS", "answer": "A"}, format="json")
    assert not CaseLibrary.objects.exists()


def test_a_draft_follows_a_fuller_answer_and_an_enriched_case_does_not(anonymous, session, reviewer):
    say(anonymous, "useful")
    record_sessions([{"session_id": "s1", "answer": "死循环。修复：回滚。"}])
    case = CaseLibrary.objects.get()
    assert case.solution == "死循环。修复：回滚。"
    enrich(case, reviewer)
    record_sessions([{"session_id": "s1", "answer": "Something else."}])
    case.refresh_from_db()
    assert case.solution == "Roll back."


def test_a_question_that_comes_after_the_answer_names_the_draft(anonymous, api):
    api.post("/api/sessions", {"sessionId": "s1", "status": "SUCCESS", "answer": "A"}, format="json")
    say(anonymous, "useful")
    api.patch("/api/sessions/s1", {"query": "Why?"}, format="json")
    assert CaseLibrary.objects.get().title == "Why?"


def enrich(case, reviewer):
    return enrichment.enrich_case(
        case_id=case.case_id,
        version=case.version,
        reviewer=reviewer,
        content={
            "fault_category": "CPU_HIGH",
            "error_code": "",
            "title": "Endless loop",
            "root_cause": "A loop.",
            "solution": "Roll back.",
        },
    )


def test_taking_useful_back_retires_a_case_nobody_worked_on_and_useful_restores_it(anonymous, session):
    case_id = say(anonymous, "useful").json()["caseId"]
    assert say(anonymous, "not_useful").json()["caseId"] is None
    assert CaseLibrary.objects.get().status == "RETIRED"
    assert BadCaseReview.objects.get().state == "OPEN"
    assert say(anonymous, "useful").json()["caseId"] == case_id
    assert CaseLibrary.objects.get().status == "DRAFT"
    assert BadCaseReview.objects.get().state == "DISMISSED"
    say(anonymous, "not_useful")
    assert BadCaseReview.objects.get().state == "OPEN"
    assert [row.action for row in CaseTransition.objects.order_by("id")] == ["create", "retire", "restore", "retire"]
    assert AgentFeedback.objects.count() == 4


def test_taking_useful_back_flags_a_case_a_reviewer_enriched_and_useful_clears_the_flag(anonymous, session, reviewer):
    say(anonymous, "useful")
    enrich(CaseLibrary.objects.get(), reviewer)
    say(anonymous, "not_useful")
    case = CaseLibrary.objects.get()
    assert (case.status, case.is_flagged) == ("ENRICHED", True)
    assert say(anonymous, "useful").json()["caseId"] == str(case.case_id)
    case.refresh_from_db()
    assert (case.status, case.is_flagged, case.solution) == ("ENRICHED", False, "Roll back.")


def test_a_case_a_reviewer_retired_stays_retired(anonymous, session, reviewer):
    say(anonymous, "useful")
    enrichment.retire_case(case_id=CaseLibrary.objects.get().case_id, reviewer=reviewer)
    say(anonymous, "not_useful")
    say(anonymous, "useful")
    assert CaseLibrary.objects.get().status == "RETIRED"


def test_a_triage_in_review_stays_with_its_reviewer_when_the_verdict_turns(anonymous, session, reviewer):
    from feedback_app.services import triage

    say(anonymous, "not_useful")
    triage.claim(review_id=BadCaseReview.objects.get().pk, reviewer=reviewer)
    say(anonymous, "useful")
    assert (BadCaseReview.objects.get().state, BadCaseReview.objects.get().assignee) == ("IN_REVIEW", reviewer)


def test_a_thumbs_event_sets_the_verdict_by_the_same_rule(anonymous, session):
    event = {"sessionId": "s1", "type": "thumbs", "value": "up"}
    assert anonymous.post("/api/feedback/events", event, format="json").json() == {"accepted": 1, "rejected": []}
    session.refresh_from_db()
    assert session.feedback == "useful"
    assert CaseLibrary.objects.get().diagnosis_id == "s1"
    anonymous.post("/api/feedback/events", {**event, "value": "down"}, format="json")
    assert CaseLibrary.objects.get().status == "RETIRED"
    assert BadCaseReview.objects.get().state == "OPEN"


def test_a_beacon_may_send_its_json_as_text(anonymous, session):
    body = '{"sessionId": "s1", "feedback": "useful"}'
    response = anonymous.generic("POST", "/api/feedback", body, content_type="text/plain;charset=UTF-8")
    assert response.status_code == 200


def test_with_token_auth_only_the_sessions_own_token_speaks_for_it(anonymous, api, session, settings):
    settings.FEEDBACK_AUTH = "token"
    record_sessions([{"session_id": "other"}])
    assert say(anonymous, "useful").status_code == 403
    assert say(anonymous, "useful", headers={"x-feedback-token": feedback_token("other")}).status_code == 403
    assert say(anonymous, "useful", headers={"x-feedback-token": feedback_token("s1") + "x"}).status_code == 403
    assert not AgentFeedback.objects.exists()
    assert say(anonymous, "useful", headers={"x-feedback-token": feedback_token("s1")}).status_code == 200
    assert say(anonymous, "useful", token=feedback_token("s1")).status_code == 200
    opened = api.post("/api/sessions", {"sessionId": "s2"}, format="json").json()
    assert say(anonymous, "useful", session_id="s2", token=opened["feedbackToken"]).status_code == 200


def test_a_case_can_be_read_by_its_id(api, anonymous, session):
    case_id = say(anonymous, "useful").json()["caseId"]
    body = api.get(f"/api/cases/{case_id}").json()
    assert (body["diagnosisId"], body["sourceType"], body["faultCategory"]) == ("s1", "AUTO", "GENERAL")
    assert (body["rootCause"], body["createdBy"], body["status"]) == ("死循环。", "system", "DRAFT")
    assert api.get(f"/api/cases/{uuid.uuid4()}").status_code == 404
    assert api.get("/api/cases?status=DRAFT&faultCategory=GENERAL").json()["results"][0]["caseId"] == case_id


def test_the_list_gives_an_agent_only_what_a_reviewer_published(api, anonymous, session, reviewer):
    say(anonymous, "useful")
    case = CaseLibrary.objects.get()
    assert api.get("/api/cases").json()["results"] == []
    enrich(case, reviewer)
    enrichment.publish_case(case_id=case.case_id, reviewer=reviewer)
    assert [row["caseId"] for row in api.get("/api/cases?faultCategory=CPU_HIGH").json()["results"]] == [
        str(case.case_id)
    ]
