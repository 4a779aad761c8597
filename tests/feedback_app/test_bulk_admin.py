"""Bulk actions through the browser's requests: tick, look, confirm, watch, read what was refused."""

import csv
import io
import json

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from cases_app import tasks
from cases_app.models import BulkFailure, BulkJob, CaseLibrary, JobState
from cases_app.services import bulk
from feedback_app.models import BadCaseReview, BadCaseTransition
from tests.factories import CaseFactory, TriageFactory, UserFactory

pytestmark = pytest.mark.django_db

CASES = "/admin/cases_app/caselibrary/"
TRIAGES = "/admin/feedback_app/badcasereview/"
JOBS = "/admin/cases_app/bulkjob/"
HOSTILE = "<script>alert(1)</script>"


@pytest.fixture(autouse=True)
def _speaks_english(client):
    client.defaults["HTTP_ACCEPT_LANGUAGE"] = "en"


def tick(client, where, action, rows, **fields):
    data = {"action": action, "index": 0, "_selected_action": [str(row.pk) for row in rows], **fields}
    return client.post(where, data)


def test_from_ticks_to_the_list_of_refusals(client, as_reviewer, other_reviewer, django_capture_on_commit_callbacks):
    free = TriageFactory.create_batch(2)
    taken = TriageFactory(state="IN_REVIEW", assignee=other_reviewer)
    TriageFactory()
    response = tick(client, TRIAGES, "triage_claim", [*free, taken])
    job = BulkJob.objects.get()
    assert response["Location"] == f"{JOBS}{job.pk}/change/"
    page = client.get(response["Location"]).content.decode()
    assert "1 × otto has taken this bad case." in page
    assert not BadCaseTransition.objects.exists()

    with django_capture_on_commit_callbacks() as callbacks:
        response = client.post(f"{JOBS}{job.pk}/change/", {"action": "confirm"})
    assert len(callbacks) == 1  # the worker is told
    assert client.get(f"{JOBS}{job.pk}/progress/").json()["percent"] == 0
    tasks.run_bulk_jobs()
    assert client.get(f"{JOBS}{job.pk}/progress/").json() == {
        "state": "DONE", "total": 3, "done": 2, "failed": 1, "percent": 100, "said": "3 of 3",
    }  # fmt: skip
    page = client.get(response["Location"]).content.decode()
    assert f"<code>{taken.pk}</code>" in page
    assert BadCaseReview.objects.filter(assignee=as_reviewer).count() == 2
    rows = list(csv.reader(io.StringIO(b"".join(client.get(f"{JOBS}{job.pk}/failures/")).decode("utf-8-sig"))))
    assert rows == [["object", "reason"], [str(taken.pk), "otto has taken this bad case."]]


def test_all_that_the_filters_show(client, as_reviewer):
    CaseFactory.create_batch(3, title="needle")
    CaseFactory(title="hay")
    tick(client, f"{CASES}?q=needle", "case_retire", CaseLibrary.objects.all()[:1], select_across=1)
    assert BulkJob.objects.get().total == 3


def test_what_an_action_asks_is_asked(client, as_lead, reviewer):
    TriageFactory()
    tick(client, TRIAGES, "triage_assign", BadCaseReview.objects.all())
    page = f"{JOBS}{BulkJob.objects.get().pk}/change/"
    assert ">rita</option>" in client.get(page).content.decode()
    refused = client.post(page, {"action": "confirm", "assignee": "999"})
    assert refused.status_code == 200
    assert "Select a valid choice" in refused.content.decode()
    assert BulkJob.objects.get().state == JobState.PREVIEW
    client.post(page, {"action": "confirm", "assignee": reviewer.pk, "reason": HOSTILE})
    tasks.run_bulk_jobs()
    assert BadCaseReview.objects.get().assignee == reviewer
    shown = client.get(page).content.decode()
    assert HOSTILE not in shown
    assert "&lt;script&gt;" in shown
    assert ">rita<" in shown


def test_stopping_before_and_after(client, as_reviewer):
    TriageFactory()
    tick(client, TRIAGES, "triage_claim", BadCaseReview.objects.all())
    page = f"{JOBS}{BulkJob.objects.get().pk}/change/"
    assert client.post(page, {"action": "stop"}).status_code == 302
    assert client.post(page, {"action": "confirm"}).status_code == 409
    assert client.post(page, {"action": "stop"}).status_code == 409
    assert client.post(page, {"action": "explode"}).status_code == 400
    tasks.run_bulk_jobs()
    assert BadCaseReview.objects.get().state == "OPEN"


def test_a_job_is_its_makers_and_seen_by_who_may_do_the_same(client, as_lead, reviewer):
    TriageFactory()
    tick(client, TRIAGES, "triage_assign", BadCaseReview.objects.all())
    job = BulkJob.objects.get()
    page = f"{JOBS}{job.pk}/change/"
    client.force_login(reviewer, backend="django.contrib.auth.backends.ModelBackend")
    for address in (page, f"{JOBS}{job.pk}/progress/", f"{JOBS}{job.pk}/failures/"):
        assert client.get(address).status_code == 403
    assert client.post(page, {"action": "confirm"}).status_code == 403
    assert "Assign bad cases" not in client.get(JOBS).content.decode()
    second = UserFactory(is_staff=True, role="Lead")
    client.force_login(second, backend="django.contrib.auth.backends.ModelBackend")
    assert client.get(page).status_code == 200
    assert "Go ahead" not in client.get(page).content.decode()
    assert client.post(page, {"action": "confirm"}).status_code == 403
    job.refresh_from_db()
    assert job.state == JobState.PREVIEW


@pytest.mark.parametrize(
    ("where", "action", "allowed"),
    [
        (TRIAGES, "triage_claim", {"Reviewer", "Lead"}),
        (TRIAGES, "triage_dismiss", {"Reviewer", "Lead"}),
        (TRIAGES, "triage_assign", {"Lead"}),
        (CASES, "case_set_category", {"Reviewer", "Lead"}),
        (CASES, "case_publish", {"Reviewer", "Lead"}),
        (CASES, "case_retire", {"Reviewer", "Lead"}),
    ],
)
def test_who_may_prepare(where, action, allowed, client, sign_in):
    row = TriageFactory() if where == TRIAGES else CaseFactory()
    for role in ("anonymous", "nobody", "staff", "Operator", "Reviewer", "Lead"):
        BulkJob.objects.all().delete()
        client.logout()
        sign_in(role)
        tick(client, where, action, [row])
        assert BulkJob.objects.exists() == (role in allowed), role


def test_the_page_of_a_large_job_asks_little(client, as_reviewer):
    job = BulkJob.objects.create(action="triage.claim", actor=as_reviewer, state=JobState.DONE, total=500)
    BulkFailure.objects.bulk_create(BulkFailure(job=job, object_id=str(n), reason=f"no {n % 3}") for n in range(500))
    client.get(JOBS)
    with CaptureQueriesContext(connection) as queries:
        page = client.get(f"{JOBS}{job.pk}/change/").content.decode()
    assert len(queries) <= 15
    assert "167 × <span" in page
    assert page.count("<code>") == 100
    with CaptureQueriesContext(connection) as queries:
        json.loads(client.get(f"{JOBS}{job.pk}/progress/").content)
    assert len(queries) <= 7


@pytest.mark.parametrize(("seconds", "asked"), [(-1, 1), (10, 0)])
def test_a_worker_asks_to_go_on_only_where_its_time_was_up(
    seconds, asked, reviewer, monkeypatch, django_capture_on_commit_callbacks
):
    TriageFactory()
    job = bulk.prepare_job(action=bulk.ACTIONS["triage.claim"], rows=BadCaseReview.objects.all(), actor=reviewer)
    bulk.confirm_job(job_id=job.pk, actor=reviewer, parameters={})
    assert bulk._claim_part(job) is not None  # another worker has the only part
    monkeypatch.setattr(tasks, "RUN_SECONDS", seconds)
    with django_capture_on_commit_callbacks() as callbacks:
        tasks.run_bulk_jobs()
    assert len(callbacks) == asked
