"""What a reviewer finds: kept whole, over the version it was written at, and made into a case."""

import pytest
from django.db import transaction

from cases_app.models import CaseLibrary, CaseQueue, CaseTransition
from feedback_app.models import BadCaseReview
from feedback_app.services import submission, triage
from feedback_app.services.triage import StaleTriageError
from sessions_app.errors import ConflictError, InvalidInputError
from tests.factories import CaseFactory, FeedbackEventFactory, SessionFactory, StepFactory, TriageFactory

pytestmark = pytest.mark.django_db

LIST = "/admin/feedback_app/badcasereview/"
FOUND = {
    "failure_mode": "HALLUCINATION",
    "severity": "HIGH",
    "blamed_step": "planner/0",
    "notes": "Made up a metric.",
    "corrected_answer": "## Root cause\nDNS.\n\n## Solution\nRestart the resolver.",
}


@pytest.fixture(autouse=True)
def _english(client):
    client.defaults["HTTP_ACCEPT_LANGUAGE"] = "en"


@pytest.fixture
def review(reviewer):
    step = StepFactory(session=SessionFactory(rejected=True, query="Why is checkout slow?"))
    return TriageFactory(session=step.session, state="IN_REVIEW", assignee=reviewer)


def stored(review, *names):
    review.refresh_from_db()
    return {name: getattr(review, name) for name in names or FOUND}


def press(client, review, action, **fields):
    return client.post(f"{LIST}{review.pk}/change/", {"action": action, **fields})


class TestWhatIsKept:
    @pytest.mark.parametrize("move", [triage.save_notes, triage.resolve])
    def test_all_of_it(self, move, review, reviewer):
        move(review_id=review.pk, reviewer=reviewer, **FOUND)
        assert stored(review) == FOUND
        assert review.version == 1

    def test_dismissing_keeps_what_was_written_and_drops_what_was_chosen(self, review, reviewer):
        triage.dismiss(review_id=review.pk, reviewer=reviewer, **FOUND)
        assert stored(review) == FOUND | {"failure_mode": "", "severity": "", "blamed_step": ""}
        assert review.state == "DISMISSED"

    @pytest.mark.parametrize(
        ("wrong", "field"),
        [
            ({"severity": "AWFUL"}, "severity"),
            ({"blamed_step": "planner/7"}, "blamed_step"),
            ({"blamed_step": "planner/" + "9" * 40}, "blamed_step"),
            ({"blamed_step": "x"}, "blamed_step"),
            ({"failure_mode": "BAD_LUCK"}, "failure_mode"),
        ],
    )
    def test_what_cannot_be_is_refused_and_changes_nothing(self, wrong, field, review, reviewer):
        before = BadCaseReview.objects.values().get(pk=review.pk)
        for move in (triage.save_notes, triage.resolve, triage.resolve_with_case):
            with pytest.raises(InvalidInputError) as refusal:
                move(review_id=review.pk, reviewer=reviewer, **{**FOUND, **wrong})
            assert list(refusal.value.errors) == [field]
        assert BadCaseReview.objects.values().get(pk=review.pk) == before
        assert not CaseLibrary.objects.exists()

    def test_a_step_of_another_session_is_not_to_blame(self, review, reviewer):
        StepFactory(agent_name="executor")
        with pytest.raises(InvalidInputError):
            triage.resolve(review_id=review.pk, reviewer=reviewer, **{**FOUND, "blamed_step": "executor/0"})

    def test_a_step_that_is_gone_is_still_offered_where_it_was_chosen(self, review, reviewer, client):
        triage.save_notes(review_id=review.pk, reviewer=reviewer, **FOUND)
        review.session.steps.all().delete()
        client.force_login(reviewer, backend="django.contrib.auth.backends.ModelBackend")
        page = client.get(f"{LIST}{review.pk}/change/").content.decode()
        assert '<option value="planner/0" selected>planner #0</option>' in page


class TestVersions:
    @pytest.mark.parametrize("move", [triage.save_notes, triage.resolve, triage.resolve_with_case, triage.dismiss])
    def test_what_was_read_before_a_newer_change_is_not_written_over_it(self, move, review, reviewer):
        triage.save_notes(review_id=review.pk, reviewer=reviewer, version=0, notes="Newer")
        before = BadCaseReview.objects.values().get(pk=review.pk)
        with pytest.raises(StaleTriageError):
            move(review_id=review.pk, reviewer=reviewer, version=0, **FOUND)
        assert BadCaseReview.objects.values().get(pk=review.pk) == before
        assert not CaseLibrary.objects.exists()

    def test_the_page_shows_the_difference_and_then_saves_knowingly(self, review, reviewer, client):
        client.force_login(reviewer, backend="django.contrib.auth.backends.ModelBackend")
        triage.save_notes(review_id=review.pk, reviewer=reviewer, notes="First line\nNewer", severity="LOW")
        response = press(client, review, "save_notes", **FOUND, version="0")
        page = response.content.decode()
        assert response.status_code == 409
        assert "This was changed since you opened it." in page
        assert "<del>Made up a metric.\n</del><ins>First line\n</ins><ins>Newer\n</ins>" in page
        assert "<del>High\n</del><ins>Low\n</ins>" in page
        assert "Made up a metric.</textarea>" in page
        assert response.context["form"]["version"].value() == "1"
        assert stored(review)["notes"] == "First line\nNewer"
        assert press(client, review, "save_notes", **FOUND, version="1").status_code == 302
        assert stored(review) == FOUND


class TestCaseFromCorrection:
    def test_is_split_and_linked_both_ways(self, review, reviewer):
        triage.resolve_with_case(review_id=review.pk, reviewer=reviewer, **FOUND)
        review.refresh_from_db()
        case = CaseLibrary.objects.get()
        assert (review.state, review.case) == ("RESOLVED", case)
        assert (case.diagnosis, case.source_type, case.status) == (review.session, "CORRECTION", "DRAFT")
        assert (case.title, case.root_cause.strip(), case.solution.strip()) == (
            "Why is checkout slow?", "DNS.", "Restart the resolver.",
        )  # fmt: skip
        assert (case.created_by, case.fault_category_id) == (reviewer.username, "GENERAL")
        assert CaseTransition.objects.get().actor == reviewer
        assert list(case.triages.all()) == [review]
        assert list(CaseLibrary.objects.in_queue(CaseQueue.TO_ENRICH)) == [case]

    def test_without_headings_it_is_whole(self, review, reviewer):
        triage.resolve_with_case(
            review_id=review.pk, reviewer=reviewer, failure_mode="INCOMPLETE", corrected_answer="It was DNS."
        )
        case = CaseLibrary.objects.get()
        assert (case.root_cause, case.solution) == ("It was DNS.", "It was DNS.")

    @pytest.mark.parametrize("said", ["", "  \n"])
    def test_needs_a_correction(self, said, review, reviewer):
        with pytest.raises(InvalidInputError) as refusal:
            triage.resolve_with_case(
                review_id=review.pk, reviewer=reviewer, failure_mode="INCOMPLETE", corrected_answer=said
            )
        assert list(refusal.value.errors) == ["corrected_answer"]
        assert stored(review, "state") == {"state": "IN_REVIEW"}

    def test_one_that_a_verdict_retired_becomes_it(self, reviewer):
        session = SessionFactory(session_id="s1", answer="The pool.")
        submission.submit_verdict(session_id="s1", verdict="useful")
        submission.submit_verdict(session_id="s1", verdict="not_useful")
        review = triage.claim_next(reviewer=reviewer)
        triage.resolve_with_case(review_id=review.pk, reviewer=reviewer, **FOUND | {"blamed_step": ""})
        case = CaseLibrary.objects.get()
        assert (case.source_type, case.status, case.retired_by_verdict) == ("CORRECTION", "DRAFT", False)
        assert case.diagnosis == session
        submission.submit_verdict(session_id="s1", verdict="not_useful")
        case.refresh_from_db()
        assert (case.is_flagged, case.status) == (False, "DRAFT")

    @pytest.mark.parametrize("kind", ["enriched", "published"])
    def test_one_that_people_worked_on_stays(self, kind, review, reviewer):
        case = CaseFactory(diagnosis=review.session, **{kind: True})
        before = CaseLibrary.objects.values().get(pk=case.pk)
        with pytest.raises(ConflictError, match="somebody worked on"):
            triage.resolve_with_case(review_id=review.pk, reviewer=reviewer, **FOUND)
        assert CaseLibrary.objects.values().get(pk=case.pk) == before
        assert stored(review, "state", "case") == {"state": "IN_REVIEW", "case": None}

    def test_neither_without_the_other_inside_another_transaction(self, review, reviewer, monkeypatch):
        monkeypatch.setattr(triage, "_close", lambda *_, **__: (_ for _ in ()).throw(ConflictError("no")))
        with transaction.atomic(), pytest.raises(ConflictError):
            triage.resolve_with_case(review_id=review.pk, reviewer=reviewer, **FOUND)
        assert not CaseLibrary.objects.exists()

    def test_who_does_not_hold_it_makes_none(self, review, other_reviewer):
        with pytest.raises(ConflictError):
            triage.resolve_with_case(review_id=review.pk, reviewer=other_reviewer, **FOUND)
        assert not CaseLibrary.objects.exists()

    def test_by_the_page(self, review, reviewer, client):
        client.force_login(reviewer, backend="django.contrib.auth.backends.ModelBackend")
        response = press(client, review, "make_case", **FOUND, version="0")
        assert response.status_code == 302
        case = CaseLibrary.objects.get()
        assert f"/admin/cases_app/caselibrary/{case.pk}/change/" in client.get(response["Location"]).content.decode()

    def test_who_may_not_enrich_may_not(self, review, reviewer, client):
        reviewer.groups.clear()
        names = ["feedback_app.view_badcasereview", "feedback_app.triage_badcasereview"]
        from tests.factories import _permission

        reviewer.user_permissions.add(*(_permission(name) for name in names))
        client.force_login(reviewer, backend="django.contrib.auth.backends.ModelBackend")
        assert press(client, review, "make_case", **FOUND).status_code == 403
        assert "make_case" not in client.get(f"{LIST}{review.pk}/change/").context["offers"]
        assert not CaseLibrary.objects.exists()

    def test_the_reader_s_correction_is_offered_as_text(self, review, reviewer, client):
        hostile = "</script><script>alert(1)</script>"
        FeedbackEventFactory(
            session=review.session, type="correction", value=0.5, payload={"original": "a", "corrected": hostile}
        )
        client.force_login(reviewer, backend="django.contrib.auth.backends.ModelBackend")
        page = client.get(f"{LIST}{review.pk}/change/").content.decode()
        assert 'data-suggestion-for="corrected_answer"' in page
        assert hostile not in page
