"""Actions on many objects: prepared, previewed, confirmed, done one by one, interrupted, and gone on with."""

import time
from datetime import timedelta
from types import SimpleNamespace

import pytest
from django.contrib.auth.models import Group
from django.db import OperationalError
from django.utils import timezone, translation

from cases_app.models import BulkFailure, BulkJob, BulkPart, CaseLibrary, CaseTransition, JobState
from cases_app.services import bulk
from cases_app.services.bulk import ACTIONS, confirm_job, gather_job, prepare_job, progress_of, run_jobs, stop_job
from feedback_app.models import BadCaseReview, BadCaseTransition
from feedback_app.services import triage_bulk
from sessions_app.errors import ConflictError, InvalidInputError
from tests.factories import CaseFactory, TriageFactory, UserFactory

pytestmark = pytest.mark.django_db


def prepared(action, rows, actor):
    return prepare_job(action=ACTIONS[action], rows=rows, actor=actor)


def confirmed(action, rows, actor, **parameters):
    job = prepared(action, rows, actor)
    return confirm_job(job_id=job.pk, actor=actor, parameters=parameters)


def run(seconds=60):
    return run_jobs(until=time.monotonic() + seconds)


def done(action, rows, actor, **parameters):
    job = confirmed(action, rows, actor, **parameters)
    assert run() is False
    job.refresh_from_db()
    return job


@pytest.fixture
def small_parts(monkeypatch):
    monkeypatch.setattr(bulk, "PART_OBJECTS", 2)
    monkeypatch.setattr(bulk.gather_job, "__kwdefaults__", {"size": 2, "preview": None, "details": None})


class TestPreparing:
    def test_it_counts_what_speaks_against_and_does_nothing(self, reviewer, other_reviewer, small_parts):
        TriageFactory.create_batch(3)
        TriageFactory(state="IN_REVIEW", assignee=other_reviewer)
        TriageFactory(state="IN_REVIEW", assignee=reviewer)
        TriageFactory.create_batch(2, state="RESOLVED")
        before = list(BadCaseReview.objects.order_by("pk").values())
        job = prepared("triage.claim", BadCaseReview.objects.all(), reviewer)
        assert job.state == JobState.PREVIEW
        assert job.total == 7
        assert job.preview == {"otto has taken this bad case.": 1, "This bad case is closed.": 2}
        assert [part.size for part in job.parts.all()] == [2, 2, 2, 1]
        assert run() is False
        assert list(BadCaseReview.objects.order_by("pk").values()) == before

    def test_nothing_selected_is_no_job(self, reviewer):
        with pytest.raises(InvalidInputError, match="Nothing is selected"):
            prepared("triage.claim", BadCaseReview.objects.none(), reviewer)
        assert not BulkJob.objects.exists()

    def test_too_many_are_refused_before_they_are_read(self, reviewer, monkeypatch):
        monkeypatch.setattr(bulk, "MAX_OBJECTS", 2)
        TriageFactory.create_batch(3)
        with pytest.raises(InvalidInputError, match="up to 2 objects"):
            prepared("triage.claim", BadCaseReview.objects.all(), reviewer)
        assert not BulkJob.objects.exists()

    def test_only_who_prepared_confirms_and_only_once(self, reviewer, other_reviewer):
        TriageFactory()
        job = prepared("triage.claim", BadCaseReview.objects.all(), reviewer)
        with pytest.raises(ConflictError):
            confirm_job(job_id=job.pk, actor=other_reviewer, parameters={})
        confirm_job(job_id=job.pk, actor=reviewer, parameters={})
        with pytest.raises(ConflictError):
            confirm_job(job_id=job.pk, actor=reviewer, parameters={})


class TestTriages:
    def test_claim(self, reviewer, other_reviewer, small_parts):
        free = TriageFactory.create_batch(3)
        taken = TriageFactory(state="IN_REVIEW", assignee=other_reviewer)
        late = TriageFactory()
        rows = BadCaseReview.objects.exclude(pk=late.pk)
        job = done("triage.claim", rows, reviewer)
        assert job.state == JobState.DONE
        assert progress_of(job) == bulk.Progress(total=4, done=3, failed=1)
        assert set(BadCaseReview.objects.filter(assignee=reviewer)) == set(free)
        assert BadCaseTransition.objects.filter(action="claim", actor=reviewer).count() == 3
        (failure,) = BulkFailure.objects.all()
        assert (failure.object_id, failure.reason) == (str(taken.pk), "otto has taken this bad case.")
        late.refresh_from_db()
        assert late.state == "OPEN"

    def test_assign_takes_from_others_and_leaves_what_is_closed(self, lead, reviewer, other_reviewer):
        TriageFactory()
        TriageFactory(state="IN_REVIEW", assignee=other_reviewer)
        TriageFactory(state="DISMISSED")
        job = done("triage.assign", BadCaseReview.objects.all(), lead, assignee=str(reviewer.pk), reason="On call.")
        assert progress_of(job) == bulk.Progress(3, 2, 1)
        assert BadCaseReview.objects.filter(assignee=reviewer, state="IN_REVIEW").count() == 2
        assert set(BadCaseTransition.objects.values_list("action", "actor", "reason")) == {
            ("assign", lead.pk, "To rita. On call.")
        }

    def test_assign_to_who_may_not_triage_is_refused_for_each(self, lead, operator):
        TriageFactory.create_batch(2)
        job = done("triage.assign", BadCaseReview.objects.all(), lead, assignee=str(operator.pk))
        assert progress_of(job) == bulk.Progress(2, 0, 2)
        assert {failure.reason for failure in job.failures.all()} == {"olga may not triage."}
        assert not BadCaseTransition.objects.exists()

    def test_who_may_not_triage_is_not_offered(self, lead, reviewer, operator):
        assert [name for _, name in triage_bulk._assignees()] == ["lena", "rita"]

    def test_dismiss_takes_what_is_free_first(self, reviewer, other_reviewer):
        TriageFactory.create_batch(2)
        TriageFactory(state="IN_REVIEW", assignee=other_reviewer)
        job = done("triage.dismiss", BadCaseReview.objects.all(), reviewer, notes="A test of ours.")
        assert progress_of(job) == bulk.Progress(3, 2, 1)
        assert set(BadCaseReview.objects.filter(state="DISMISSED").values_list("notes", "assignee")) == {
            ("A test of ours.", reviewer.pk)
        }

    def test_dismiss_keeps_what_was_written(self, reviewer):
        review = TriageFactory(state="IN_REVIEW", assignee=reviewer, notes="Seen.", corrected_answer="The pool.")
        done("triage.dismiss", BadCaseReview.objects.all(), reviewer, notes="A test of ours.")
        review.refresh_from_db()
        assert (review.notes, review.corrected_answer) == ("Seen.\n\nA test of ours.", "The pool.")

    def test_dismiss_without_a_word_claims_nothing(self, reviewer):
        review = TriageFactory()
        job = done("triage.dismiss", BadCaseReview.objects.all(), reviewer, notes="  ")
        assert progress_of(job) == bulk.Progress(1, 0, 1)
        review.refresh_from_db()
        assert (review.state, review.assignee) == ("OPEN", None)
        assert not BadCaseTransition.objects.exists()


class TestCases:
    def test_category_makes_drafts_enriched_and_keeps_the_rest(self, reviewer):
        draft, same = CaseFactory(), CaseFactory(enriched=True)
        retired = CaseFactory(status="RETIRED")
        text = draft.root_cause
        job = done("case.set_category", CaseLibrary.objects.all(), reviewer, category="SLOW_RESPONSE")
        assert progress_of(job) == bulk.Progress(3, 2, 1)
        draft.refresh_from_db()
        assert (draft.fault_category_id, draft.status, draft.root_cause) == ("SLOW_RESPONSE", "ENRICHED", text)
        assert list(CaseTransition.objects.values_list("case", "action")) == [(draft.pk, "enrich")]
        assert [failure.object_id for failure in job.failures.all()] == [str(retired.pk)]
        same.refresh_from_db()
        assert same.version == 0

    def test_of_what_is_published_only_who_publishes_changes_the_category(self):
        writer = UserFactory(permissions=["cases_app.enrich_caselibrary"])
        case = CaseFactory(published=True)
        job = prepared("case.set_category", CaseLibrary.objects.all(), writer)
        assert list(job.preview.values()) == [1]
        confirm_job(job_id=job.pk, actor=writer, parameters={"category": "DISK_FULL"})
        run()
        assert progress_of(job).failed == 1
        case.refresh_from_db()
        assert case.fault_category_id == "SLOW_RESPONSE"

    def test_publish_says_of_each_what_is_missing(self, reviewer):
        whole = CaseFactory(enriched=True)
        CaseFactory(enriched=True, solution=" ")
        CaseFactory()
        job = prepared("case.publish", CaseLibrary.objects.all(), reviewer)
        assert sum(job.preview.values()) == 1
        confirm_job(job_id=job.pk, actor=reviewer, parameters={})
        run()
        assert progress_of(job) == bulk.Progress(3, 1, 2)
        assert list(CaseLibrary.objects.published()) == [whole]
        assert "The case is not complete. A published case needs this." in {f.reason for f in job.failures.all()}

    def test_retire(self, reviewer):
        CaseFactory.create_batch(3)
        done("case.retire", CaseLibrary.objects.all(), reviewer, reason="Old.")
        assert set(CaseLibrary.objects.values_list("status", flat=True)) == {"RETIRED"}
        assert set(CaseTransition.objects.values_list("action", "reason")) == {("retire", "Old.")}

    def test_refusals_are_noted_in_the_language_of_whoever_asked(self, reviewer):
        CaseFactory(status="RETIRED")
        with translation.override("ru"):
            job = confirmed("case.retire", CaseLibrary.objects.all(), reviewer)
        run()
        assert "случая" in job.failures.get().reason


class TestInterruptions:
    def test_it_stops_in_time_and_goes_on_where_it_was(self, reviewer, small_parts):
        TriageFactory.create_batch(5)
        job = confirmed("triage.claim", BadCaseReview.objects.all(), reviewer)
        assert run(seconds=-1) is True
        assert progress_of(job).seen == 0
        assert run() is False
        assert progress_of(job) == bulk.Progress(5, 5, 0)

    def test_a_worker_that_dies_does_nothing_twice(self, reviewer, monkeypatch):
        cases = CaseFactory.create_batch(4, enriched=True)
        job = confirmed("case.publish", CaseLibrary.objects.all(), reviewer)
        whole, calls = bulk._do_next, []

        def die_at_the_third(*args):
            calls.append(args)
            if len(calls) == 3:
                raise SystemExit
            whole(*args)

        monkeypatch.setattr(bulk, "_do_next", die_at_the_third)
        monkeypatch.setattr(bulk, "_release", lambda _part: None)  # killed, it gives nothing back
        with pytest.raises(SystemExit):
            run()
        monkeypatch.undo()
        assert progress_of(job) == bulk.Progress(4, 2, 0)
        assert run() is True  # the claim still stands
        assert progress_of(job).seen == 2
        BulkPart.objects.update(claimed_until=timezone.now() - timedelta(seconds=1))
        assert run() is False
        assert progress_of(job) == bulk.Progress(4, 4, 0)
        assert CaseTransition.objects.filter(action="publish").count() == len(cases)
        assert not job.failures.exists()

    def test_whoever_lost_the_claim_undoes_its_object(self, reviewer):
        review = TriageFactory()
        job = confirmed("triage.claim", BadCaseReview.objects.all(), reviewer)
        part = bulk._claim_part(job)
        BulkPart.objects.update(claim="another")
        assert bulk._do_part(job, part, time.monotonic() + 5)
        review.refresh_from_db()
        assert (review.state, part.position) == ("OPEN", 0)
        assert not BadCaseTransition.objects.exists()
        assert BulkPart.objects.get().claimed_until is not None  # the other's claim is left alone

    def test_a_part_has_one_worker(self, reviewer):
        TriageFactory()
        job = confirmed("triage.claim", BadCaseReview.objects.all(), reviewer)
        assert bulk._claim_part(job) is not None
        assert bulk._claim_part(job) is None

    @pytest.mark.django_db(transaction=True)
    def test_a_fault_of_ours_is_noted_and_holds_nobody_up(self, reviewer, monkeypatch):
        first, second = TriageFactory(), TriageFactory()
        whole = triage_bulk.triage.claim

        def break_once(*, review_id, reviewer):
            if review_id == first.pk:
                raise ZeroDivisionError("secret text")
            return whole(review_id=review_id, reviewer=reviewer)

        monkeypatch.setattr(triage_bulk.triage, "claim", break_once)
        job = done("triage.claim", BadCaseReview.objects.all(), reviewer)
        assert progress_of(job) == bulk.Progress(2, 1, 1)
        assert "secret" not in job.failures.get().reason
        second.refresh_from_db()
        assert second.assignee == reviewer

    @pytest.mark.django_db(transaction=True)
    def test_while_the_database_is_away_nothing_counts_as_failed(self, reviewer, monkeypatch):
        TriageFactory.create_batch(2)
        job = confirmed("triage.claim", BadCaseReview.objects.all(), reviewer)

        def away(**_):
            raise OperationalError(2006, "server has gone away")

        monkeypatch.setattr(triage_bulk, "triage", SimpleNamespace(claim=away))
        assert run() is True
        assert progress_of(job) == bulk.Progress(2, 0, 0)
        monkeypatch.undo()
        assert run() is False
        assert progress_of(job) == bulk.Progress(2, 2, 0)

    def test_stopping_keeps_what_is_done(self, reviewer, monkeypatch):
        TriageFactory.create_batch(3)
        job = confirmed("triage.claim", BadCaseReview.objects.all(), reviewer)
        whole = bulk._do_next

        def stop_after_the_first(*args):
            whole(*args)
            stop_job(job_id=job.pk)

        monkeypatch.setattr(bulk, "_do_next", stop_after_the_first)
        assert run() is False
        job.refresh_from_db()
        assert job.state == JobState.STOPPED
        assert BadCaseReview.objects.filter(assignee=reviewer).count() == 1
        with pytest.raises(ConflictError):
            stop_job(job_id=job.pk)

    @pytest.mark.parametrize("how", ["role", "left"])
    def test_who_lost_the_right_lost_the_job(self, how, reviewer):
        TriageFactory()
        job = confirmed("triage.claim", BadCaseReview.objects.all(), reviewer)
        if how == "role":
            reviewer.groups.remove(Group.objects.get(name="Reviewer"))
        else:
            reviewer.is_active = False
            reviewer.save()
        assert run() is False
        job.refresh_from_db()
        assert (job.state, job.note) == (JobState.STOPPED, "Who asked for it may not do this any more.")
        assert not BadCaseTransition.objects.exists()


def test_finished_parts_forget_their_objects_and_old_jobs_are_forgotten(reviewer):
    TriageFactory()
    job = done("triage.claim", BadCaseReview.objects.all(), reviewer)
    assert BulkPart.objects.get().items == []
    waiting = prepared("triage.claim", BadCaseReview.objects.all(), reviewer)
    bulk.forget_jobs()
    assert BulkJob.objects.count() == 2
    BulkJob.objects.filter(pk=waiting.pk).update(created_at=timezone.now() - timedelta(days=2))
    BulkJob.objects.filter(pk=job.pk).update(created_at=timezone.now() - timedelta(days=2))
    bulk.forget_jobs()
    assert list(BulkJob.objects.all()) == [job]
    BulkJob.objects.update(finished_at=timezone.now() - timedelta(days=91))
    bulk.forget_jobs()
    assert not BulkJob.objects.exists()


def test_items_come_from_an_iterator_a_part_at_a_time(reviewer):
    pulled = []

    def items():
        for n in range(7):
            pulled.append((n, BulkPart.objects.count()))
            yield n

    job = gather_job(action=ACTIONS["triage.claim"], items=items(), actor=reviewer, preview={}, size=3)
    assert job.total == 7
    assert pulled[3] == (3, 1)
    assert pulled[6] == (6, 2)
