"""What reviewers wrote elsewhere stays when a person is erased, without what it quotes of the person."""

from __future__ import annotations

import pytest
from django.contrib.admin.models import CHANGE, LogEntry
from django.contrib.contenttypes.models import ContentType

from cases_app.models import CaseLibrary, CaseTransition, CaseVersion
from cases_app.services import enrichment
from cases_app.services.moving import StaleCaseError
from feedback_app.models import BadCaseReview, BadCaseTransition, SecondReview, WeeklyReport
from feedback_app.services import triage
from feedback_app.services.erasure import QUOTES, erase_subject, preview_erasure
from feedback_app.services.submission import record_event
from tests.dump import holds
from tests.factories import CaseFactory, SessionFactory, TriageFactory

pytestmark = pytest.mark.django_db

REF = "planted-ref-7731"
QUESTION = "为什么茶炊商店的结账会卡住三分钟之久？"
ANSWER = "Because the samovar-pool\nof Kvashnina's shop had run dry."
COMMENT = "Zinaida of the samovar shop says no"
PLANTED = (REF, "s-planted-1", QUESTION, "Kvashnina", COMMENT)
QUOTED = f"会话s-planted-1出错 ({REF}): {QUESTION} — {ANSWER} — {COMMENT}!"
LEFT = "会话[ERASED]出错 ([ERASED]): [ERASED] — [ERASED] — [ERASED]!"


@pytest.fixture
def person():
    session = SessionFactory(session_id="s-planted-1", user_ref=REF, query=QUESTION, answer=ANSWER)
    record_event({"session_id": session.session_id, "type": "star", "value": 1, "payload": {"comment": COMMENT}})
    return session


def write_case(reviewer, **texts):
    content = {"fault_category": "SLOW_RESPONSE", "error_code": "", "title": "A pool", "root_cause": "", "solution": ""}
    return enrichment.create_case(content=content | texts, author=reviewer)


def test_quotes_in_cases_of_others_are_blanked_in_their_versions_history_and_log_too(person, reviewer):
    case = write_case(reviewer, title=QUESTION, root_cause=QUOTED, solution="Raise the limit.")
    enrichment.retire_case(case_id=case.pk, reviewer=reviewer, reason=QUOTED)
    LogEntry.objects.create(
        user=reviewer, content_type=ContentType.objects.get_for_model(CaseLibrary), object_id=str(case.pk),
        object_repr=QUESTION, action_flag=CHANGE, change_message=QUESTION,
    )  # fmt: skip
    before = CaseLibrary.objects.get()
    assert preview_erasure(user_ref=REF)[QUOTES] == 3

    erased = erase_subject(user_ref=REF)

    assert erased.erasure.counts[QUOTES] == 3
    case = CaseLibrary.objects.get()
    assert (case.title, case.root_cause, case.solution) == ("[ERASED]", LEFT, "Raise the limit.")
    assert list(CaseVersion.objects.values_list("root_cause", flat=True)) == [LEFT]
    assert CaseTransition.objects.get(action="retire").reason == LEFT
    assert {text: holds(text) for text in PLANTED} == {text: [] for text in PLANTED}
    assert not CaseLibrary.objects.matching("samovar").exists()
    assert CaseLibrary.objects.matching("limit").get() == case
    with pytest.raises(StaleCaseError):  # a form that was open brings nothing back
        enrichment.enrich_case(
            case_id=case.pk, content=enrichment.content_of(before), version=before.version, reviewer=reviewer
        )


def test_quotes_in_triages_of_others_are_blanked(person, reviewer):
    review = TriageFactory()
    triage.claim(review_id=review.pk, reviewer=reviewer)
    answer = ANSWER.replace("\n", "\r\n")  # as a form of a browser sends it
    found = {"failure_mode": "HALLUCINATION", "notes": QUOTED, "corrected_answer": f"As before: {answer}"}
    triage.resolve(review_id=review.pk, reviewer=reviewer, **found)
    SecondReview.objects.update_or_create(
        review=review, defaults={"first_reviewer": reviewer, "first_mode": "HALLUCINATION", "notes": QUOTED}
    )
    erase_subject(user_ref=REF)
    review = BadCaseReview.objects.get()
    assert (review.notes, review.corrected_answer) == (LEFT, "As before: [ERASED]")
    assert BadCaseTransition.objects.get(action="resolve").reason == LEFT
    assert SecondReview.objects.get().notes == LEFT
    assert {text: holds(text) for text in PLANTED} == {text: [] for text in PLANTED}
    assert not BadCaseReview.objects.matching("samovar").exists()


def test_what_is_no_quote_stays_as_it_was(person, reviewer):
    same = SessionFactory(query=QUESTION, answer="Nobody knows.", feedback="useful")
    own = CaseFactory(diagnosis=same)  # somebody else asked the same
    texts = {"title": "茶炊商店", "root_cause": "s-planted-11, my-planted-ref-7731x, dry.", "solution": "planted-ref"}
    other = write_case(reviewer, **texts)
    before = list(CaseLibrary.objects.order_by("pk").values())
    assert QUOTES not in preview_erasure(user_ref=REF)
    assert QUOTES not in erase_subject(user_ref=REF).erasure.counts
    assert list(CaseLibrary.objects.order_by("pk").values()) == before
    assert {own.pk, other.pk} == {row["case_id"] for row in before}


def test_a_short_id_is_blanked_only_where_it_is_the_whole_value(reviewer, django_user_model):
    SessionFactory(session_id="7", user_ref="user")
    case = write_case(reviewer, root_cause="The user saw 7 errors.")
    week = "2026-01-05"
    report = WeeklyReport.objects.create(
        week=week, starts_at=f"{week}T00:00Z", ends_at=f"{week}T00:00Z",
        figures={"worst": ["7", "7 of 9"], "by": {"user": "the user"}},
    )  # fmt: skip
    erase_subject(user_ref="user")
    case.refresh_from_db()
    report.refresh_from_db()
    assert case.root_cause == "The user saw 7 errors."
    assert report.figures == {"worst": ["[ERASED]", "7 of 9"], "by": {"[ERASED]": "the user"}}
