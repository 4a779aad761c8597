"""A blind second verdict: who is drawn, who sees what, who settles."""

import json

import pytest
from django.contrib.auth import get_user_model

from feedback_app.models import (
    NOTHING_WRONG,
    BadCaseReview,
    BadCaseTransition,
    FailureMode,
    SecondReview,
    SecondState,
)  # fmt: skip
from feedback_app.selectors.second_reviews import agreement_table
from feedback_app.selectors.triage import same_question
from feedback_app.services import triage
from feedback_app.services.second_reviews import is_drawn, judge, settle
from sessions_app.errors import ConflictError, InvalidInputError
from tests.conftest import LOGIN_BACKEND
from tests.factories import SessionFactory, TriageFactory

pytestmark = pytest.mark.django_db

TRIAGES = "/admin/feedback_app/badcasereview/"
SECONDS = "/admin/feedback_app/secondreview/"
SECRET = "Words of the first reviewer."


@pytest.fixture(autouse=True)
def _speaks_english(client, settings):
    client.defaults["HTTP_ACCEPT_LANGUAGE"] = "en"
    settings.SECOND_REVIEW_SHARE = 1.0


def closed_by(person, mode="HALLUCINATION", notes=SECRET):
    review = TriageFactory()
    triage.claim(review_id=review.pk, reviewer=person)
    if mode == NOTHING_WRONG:
        triage.dismiss(review_id=review.pk, reviewer=person, notes=notes)
    else:
        triage.resolve(review_id=review.pk, reviewer=person, failure_mode=mode, notes=notes)
    review.refresh_from_db()
    return review


def enter(client, person):
    client.force_login(person, backend=LOGIN_BACKEND)


class TestDrawing:
    def test_by_default_none_is(self, reviewer, settings):
        settings.SECOND_REVIEW_SHARE = 0.0
        closed_by(reviewer)
        assert not SecondReview.objects.exists()

    def test_the_share_is_met_and_drawing_again_gives_the_same(self):
        ids = [f"session-{n}" for n in range(4000)]
        drawn = {one for one in ids if is_drawn(one, 0.25)}
        assert 900 < len(drawn) < 1100
        assert drawn == {one for one in ids if is_drawn(one, 0.25)}
        assert drawn <= {one for one in ids if is_drawn(one, 0.5)}
        assert not any(is_drawn(one, 0.0) for one in ids)
        assert all(is_drawn(one, 1.0) for one in ids)

    def test_closing_owes_one_and_opening_again_takes_it_back(self, reviewer, lead):
        review = closed_by(reviewer)
        second = SecondReview.objects.get()
        assert (second.state, second.first_mode, second.first_reviewer) == ("WAITING", "HALLUCINATION", reviewer)
        triage.reopen(review_id=review.pk, reviewer=lead)
        assert not SecondReview.objects.exists()

    def test_a_dismissal_is_a_verdict_too_but_not_a_readers_change_of_mind(self, reviewer):
        closed_by(reviewer, NOTHING_WRONG)
        assert SecondReview.objects.get().first_mode == NOTHING_WRONG
        session = SessionFactory(rejected=True)
        triage.open_triage(session)
        triage.close_by_verdict(session)
        assert SecondReview.objects.count() == 1


class TestWhatElseMightTell:
    def test_the_same_question_elsewhere_tells_no_hidden_verdict(self, client, reviewer, other_reviewer):
        review = closed_by(reviewer)
        sibling = TriageFactory()
        BadCaseReview.objects.update(question_key="q")
        for person, expected in ((other_reviewer, []), (reviewer, [review])):
            sibling.refresh_from_db()
            assert same_question(sibling, person) == expected

    def test_one_that_became_a_case_is_not_drawn(self, reviewer):
        review = TriageFactory()
        triage.claim(review_id=review.pk, reviewer=reviewer)
        triage.resolve_with_case(
            review_id=review.pk, reviewer=reviewer, failure_mode="HALLUCINATION", corrected_answer="The pool was full."
        )
        assert not SecondReview.objects.exists()

    def test_a_refusal_does_not_tell_how_it_was_closed(self, reviewer, other_reviewer):
        review = closed_by(reviewer, NOTHING_WRONG)
        with pytest.raises(ConflictError) as refusal:
            triage.claim(review_id=review.pk, reviewer=other_reviewer)
        assert "ismiss" not in refusal.value.message


class TestJudging:
    def test_the_same_is_agreement_and_another_is_not(self, reviewer, other_reviewer):
        for mode, state in (("HALLUCINATION", "AGREED"), (NOTHING_WRONG, "DISAGREED")):
            closed_by(reviewer)
            second = SecondReview.objects.get(state="WAITING")
            assert judge(second_id=second.pk, reviewer=other_reviewer, mode=mode).state == state
        assert set(BadCaseReview.objects.values_list("state", "failure_mode")) == {("RESOLVED", "HALLUCINATION")}

    def test_nobody_judges_twice_or_their_own(self, reviewer, other_reviewer, lead):
        closed_by(reviewer)
        second = SecondReview.objects.get()
        with pytest.raises(ConflictError):
            judge(second_id=second.pk, reviewer=reviewer, mode="HALLUCINATION")
        with pytest.raises(InvalidInputError):
            judge(second_id=second.pk, reviewer=other_reviewer, mode="NONSENSE")
        judge(second_id=second.pk, reviewer=other_reviewer, mode="INCOMPLETE")
        with pytest.raises(ConflictError):
            judge(second_id=second.pk, reviewer=lead, mode="HALLUCINATION")
        second.refresh_from_db()
        assert (second.reviewer, second.mode) == (other_reviewer, "INCOMPLETE")

    @pytest.mark.parametrize(
        ("mode", "state", "failure_mode", "rows"),
        [
            ("HALLUCINATION", "RESOLVED", "HALLUCINATION", 0),
            ("INCOMPLETE", "RESOLVED", "INCOMPLETE", 1),
            (NOTHING_WRONG, "DISMISSED", "", 1),
        ],
    )
    def test_a_lead_settles_once(self, mode, state, failure_mode, rows, reviewer, other_reviewer, lead):
        review = closed_by(reviewer)
        second = SecondReview.objects.get()
        with pytest.raises(ConflictError):
            settle(second_id=second.pk, lead=lead, mode=mode)
        judge(second_id=second.pk, reviewer=other_reviewer, mode="INCOMPLETE")
        settle(second_id=second.pk, lead=lead, mode=mode)
        review.refresh_from_db()
        assert (review.state, review.failure_mode) == (state, failure_mode)
        assert BadCaseTransition.objects.filter(action="settle", actor=lead).count() == rows
        with pytest.raises(ConflictError):
            settle(second_id=second.pk, lead=lead, mode="TOOL_FAILURE")

    def test_what_one_of_the_two_said_may_be_retired_by_then(self, client, reviewer, other_reviewer, lead):
        closed_by(reviewer)
        second = SecondReview.objects.get()
        judge(second_id=second.pk, reviewer=other_reviewer, mode="INCOMPLETE")
        FailureMode.objects.filter(code__in=("INCOMPLETE", "TOOL_FAILURE")).update(is_retired=True)
        client.force_login(lead, backend=LOGIN_BACKEND)
        page = f"{SECONDS}{second.pk}/change/"
        assert client.post(page, {"action": "settle", "mode": "TOOL_FAILURE"}).status_code == 200
        assert client.post(page, {"action": "settle", "mode": "INCOMPLETE"}).status_code == 302
        second.refresh_from_db()
        assert (second.state, second.settled_mode) == ("SETTLED", "INCOMPLETE")

    def test_settling_leaves_a_triage_alone_that_was_opened_again(self, reviewer, other_reviewer, lead):
        review = closed_by(reviewer)
        second = SecondReview.objects.get()
        judge(second_id=second.pk, reviewer=other_reviewer, mode="INCOMPLETE")
        triage.reopen(review_id=review.pk, reviewer=lead)
        settle(second_id=second.pk, lead=lead, mode="INCOMPLETE")
        review.refresh_from_db()
        assert (review.state, review.failure_mode) == ("OPEN", "HALLUCINATION")


class TestBlindness:
    def test_nothing_tells_the_first_verdict_before_the_second(self, client, reviewer, other_reviewer, lead):
        review = closed_by(reviewer)
        second = SecondReview.objects.get()
        addresses = [
            f"{TRIAGES}?state=all", f"{TRIAGES}?state=closed", f"{TRIAGES}?q=words", f"{TRIAGES}{review.pk}/change/",
            f"{TRIAGES}{review.pk}/history/", f"/admin/sessions_app/diagnosissession/{review.session.pk}/change/",
            SECONDS, f"{SECONDS}{second.pk}/change/", "/admin/",
        ]  # fmt: skip
        for person in (other_reviewer, lead):
            enter(client, person)
            for address in addresses:
                page = client.get(address, follow=True).content.decode()
                assert SECRET not in page, (person, address)
                assert "Resolved</span>" not in page, (person, address)
                assert "Hallucination" not in page.replace(">Hallucination</option>", ""), (person, address)
        rows = b"".join(client.get(f"{TRIAGES}export/jsonl/?state=all").streaming_content)
        assert rows == b""  # the Lead's export
        response = client.post(f"{TRIAGES}{review.pk}/change/", {"action": "reopen"})
        assert response.status_code == 302
        assert SecondReview.objects.exists()

    def test_the_first_reviewer_sees_their_own_and_never_the_page_of_the_second(self, client, reviewer):
        review = closed_by(reviewer)
        enter(client, reviewer)
        assert SECRET in client.get(f"{TRIAGES}{review.pk}/change/").content.decode()
        second = SecondReview.objects.get()
        assert client.get(f"{SECONDS}{second.pk}/change/").status_code == 403
        assert (
            client.post(f"{SECONDS}{second.pk}/change/", {"action": "judge", "mode": "INCOMPLETE"}).status_code == 403
        )
        assert f"{second.pk}/change/" not in client.get(SECONDS).content.decode()
        second.refresh_from_db()
        assert second.state == SecondState.WAITING

    def test_from_the_list_to_the_settlement(self, client, reviewer, other_reviewer, lead):
        review = closed_by(reviewer)
        page = f"{SECONDS}{SecondReview.objects.get().pk}/change/"
        enter(client, other_reviewer)
        assert page in client.get(SECONDS).content.decode()
        assert client.post(page, {"action": "judge"}).status_code == 200  # says that a verdict is missing
        assert client.post(page, {"action": "explode"}).status_code == 400
        client.post(page, {"action": "judge", "mode": "INCOMPLETE", "notes": "<script>x</script>"})
        shown = client.get(page).content.decode()
        assert SECRET in shown
        assert "<script>x" not in shown
        assert "Settle it" not in shown
        assert client.post(page, {"action": "settle", "mode": "INCOMPLETE"}).status_code == 403
        enter(client, lead)
        assert client.post(page, {"action": "judge", "mode": "INCOMPLETE"}).status_code == 409
        assert "Settle it" in client.get(page).content.decode()
        client.post(page, {"action": "settle", "mode": "INCOMPLETE"})
        review.refresh_from_db()
        assert review.failure_mode == "INCOMPLETE"
        assert client.get(f"{TRIAGES}{review.pk}/change/").status_code == 200


class TestAgreement:
    def test_the_page_says_what_the_verdicts_say(self, client, reviewer, other_reviewer, lead):
        verdicts = [("HALLUCINATION", "HALLUCINATION")] * 2 + [("INCOMPLETE", "INCOMPLETE")] * 1
        verdicts += [("HALLUCINATION", "INCOMPLETE")]
        for number, (first, second) in enumerate(verdicts):
            people = (reviewer, other_reviewer) if number % 2 else (other_reviewer, reviewer)
            said = (first, second) if number % 2 else (second, first)
            closed_by(people[0], said[0])
            judge(second_id=SecondReview.objects.get(state="WAITING").pk, reviewer=people[1], mode=said[1])
        table = agreement_table()
        (pair,) = table.pairs
        assert pair.names == ("rita", "otto")
        # Of rita 3 H 1 I, of otto 2 H 2 I: expected (3·2 + 1·2) / 16 = 1/2; (3/4 − 1/2) / (1/2)
        assert (pair.overall.total, pair.overall.observed, pair.overall.kappa) == (4, 0.75, 0.5)
        assert [mode for mode, _ in pair.by_mode] == ["Hallucination", "Incomplete"]
        enter(client, lead)
        page = client.get(f"{SECONDS}agreement/").content.decode()
        assert "rita · otto" in page
        assert "<b>0.50</b>" in page

    def test_of_nothing_it_says_so_and_only_leads_read_it(self, client, sign_in):
        for role, code in {"Operator": 403, "Reviewer": 403, "Lead": 200}.items():
            sign_in(role)
            response = client.get(f"{SECONDS}agreement/")
            assert response.status_code == code, role
        assert "Nothing has been judged twice yet." in response.content.decode()

    def test_who_left_is_not_compared(self, reviewer, other_reviewer):
        closed_by(reviewer)
        judge(second_id=SecondReview.objects.get().pk, reviewer=other_reviewer, mode="INCOMPLETE")
        get_user_model().objects.filter(pk=reviewer.pk).delete()
        assert json.dumps(agreement_table()) == json.dumps([None, [], []])
