"""Import of cases: a preview that writes nothing, then each row through the service for one case."""

import io
import json
import time
from html import escape

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile

from cases_app.models import BulkJob, BulkPart, CaseLibrary, CaseStatus, CaseTransition
from cases_app.services.bulk import confirm_job, progress_of, run_jobs, stop_job
from cases_app.services.importing import prepare_import
from sessions_app.errors import InvalidInputError
from tests.factories import CaseFactory, UserFactory

pytestmark = pytest.mark.django_db

LIST = "/admin/cases_app/caselibrary/"
IMPORT = f"{LIST}import/"
WHOLE = {
    "title": "Pool",
    "fault_category": "SLOW_RESPONSE",
    "error_code": "E1",
    "root_cause": "Small.",
    "solution": "Grow.",
}


@pytest.fixture(autouse=True)
def _speaks_english(client):
    client.defaults["HTTP_ACCEPT_LANGUAGE"] = "en"


def lines(*rows):
    return io.BytesIO("\n".join(json.dumps(row) for row in rows).encode())


def prepared(actor, *rows):
    return prepare_import(name="cases.jsonl", file=lines(*rows), actor=actor)


def counts(job):
    return {name: job.details[name] for name in ("new", "changed", "unchanged", "refused")}


def go(job, actor):
    confirm_job(job_id=job.pk, actor=actor, parameters={})
    assert run_jobs(until=time.monotonic() + 60) is False
    return progress_of(job)


def standing():
    return list(CaseLibrary.objects.order_by("pk").values())


def test_the_preview_says_what_would_change_and_writes_nothing(reviewer):
    changed, same = CaseFactory(enriched=True), CaseFactory(enriched=True)
    retired = CaseFactory(status=CaseStatus.RETIRED)
    before = standing()
    job = prepared(
        reviewer,
        WHOLE,
        {"case_id": str(changed.pk), "solution": "Better."},
        {"case_id": str(same.pk), "title": same.title},
        {"case_id": str(retired.pk), "title": "X"},
        {"case_id": "7b1e4b0e-0000-4000-8000-000000000000", "title": "X"},
        {"title": "X", "fault_category": "NOWHERE"},
        {"title": ""},
        "no object",
        WHOLE,
    )
    assert counts(job) == {"new": 1, "changed": 1, "unchanged": 1, "refused": 6}
    assert job.total == 2
    reasons = [row["reason"] for row in job.details["rows"] if row["kind"] == "refused"]
    assert [any(word in reason for reason in reasons) for word in
            ("Retired", "no case 7b1e", "no category NOWHERE", "needs a title", "Expected an object", "further up")
            ] == [True] * 6  # fmt: skip
    (shown,) = [row for row in job.details["rows"] if row["kind"] == "changed"]
    assert shown["changes"] == [["solution", changed.solution, "Better."]] or shown["changes"] == [
        ("solution", changed.solution, "Better.")
    ]
    assert standing() == before
    assert not CaseTransition.objects.exists()


def test_then_it_is_done_by_the_services(reviewer):
    case = CaseFactory()
    job = prepared(reviewer, WHOLE, {"case_id": str(case.pk), "fault_category": "SLOW_RESPONSE"})
    progress = go(job, reviewer)
    assert (progress.done, progress.failed) == (2, 0)
    made = CaseLibrary.objects.get(source_type="MANUAL")
    assert {name: getattr(made, name) for name in ("title", "root_cause", "created_by", "status")} == {
        "title": "Pool", "root_cause": "Small.", "created_by": "rita", "status": "ENRICHED",
    }  # fmt: skip
    before = case.root_cause
    case.refresh_from_db()
    assert (case.status, case.fault_category_id, case.root_cause) == ("ENRICHED", "SLOW_RESPONSE", before)
    assert set(CaseTransition.objects.values_list("action", "actor")) == {
        ("create", reviewer.pk),
        ("enrich", reviewer.pk),
    }


def test_the_job_keeps_what_the_file_says_and_no_copy_of_the_case(reviewer):
    case = CaseFactory(enriched=True, root_cause="What stands.")
    prepared(reviewer, {"case_id": str(case.pk), "solution": "Better."}, {"title": "New"})
    contents = [item["content"] for item in BulkPart.objects.get().items]
    assert contents == [{"solution": "Better."}, {"title": "New"}]


def test_large_rows_come_in_parts_that_a_packet_holds(reviewer):
    text = "\n\"'\\" * 50_000  # each of these takes three or four bytes on the way
    job = prepare_import(
        name="cases.jsonl",
        file=lines(*({"title": f"Row {number}", "root_cause": text, "solution": text} for number in range(12))),
        actor=reviewer,
    )
    sizes = [len(json.dumps(part.items)) for part in job.parts.all()]
    assert len(sizes) > 1
    assert max(sizes) < 2.1 * 2**20
    assert go(job, reviewer).done == 12
    assert CaseLibrary.objects.filter(solution=text).count() == 12


def test_one_row_as_large_as_a_file_may_hold(reviewer):
    text = "\x01" * 2**20
    job = prepare_import(
        name="cases.csv", file=io.BytesIO(f"title,root_cause,solution\nA,{text},{text}\n".encode()), actor=reviewer
    )
    assert go(job, reviewer).done == 1


def test_the_same_file_again_has_nothing_new(reviewer):
    go(prepared(reviewer, WHOLE, {**WHOLE, "title": "Disk"}), reviewer)
    with pytest.raises(InvalidInputError, match="Nothing in this file is new"):
        prepared(reviewer, WHOLE, {**WHOLE, "title": "Disk"})
    assert CaseLibrary.objects.count() == 2


def test_a_case_changed_meanwhile_is_not_written_over(reviewer):
    case = CaseFactory(enriched=True)
    job = prepared(reviewer, {"case_id": str(case.pk), "solution": "Mine."})
    CaseLibrary.objects.filter(pk=case.pk).update(solution="Theirs.", version=5)
    assert go(job, reviewer).failed == 1
    case.refresh_from_db()
    assert case.solution == "Theirs."
    assert job.failures.get().object_id == str(case.pk)


def test_what_is_published_stays_whole_and_is_changed_by_who_publishes(reviewer):
    case = CaseFactory(published=True)
    writer = UserFactory(permissions=["cases_app.enrich_caselibrary"])
    job = prepared(writer, WHOLE, {"case_id": str(case.pk), "solution": "New."})
    assert "only who publishes" in job.details["rows"][1]["reason"]
    job = prepared(reviewer, {**WHOLE, "title": "Y"}, {"case_id": str(case.pk), "solution": ""})
    assert "A published case needs this." in job.details["rows"][1]["reason"]
    go(prepared(reviewer, {"case_id": str(case.pk), "solution": "New."}), reviewer)
    case.refresh_from_db()
    assert (case.status, case.solution) == ("PUBLISHED", "New.")


def test_texts_of_the_file_do_not_stay_in_the_job(reviewer):
    job = prepared(reviewer, {**WHOLE, "solution": "secret words"})
    assert "secret" in json.dumps(list(BulkPart.objects.values("items")))
    go(job, reviewer)
    stopped = prepared(reviewer, {**WHOLE, "title": "Z", "solution": "secret words"})
    stop_job(job_id=stopped.pk)
    told = list(BulkPart.objects.values("items")) + list(BulkJob.objects.values("details", "preview"))
    assert "secret" not in json.dumps(told)
    assert "Z" not in {row.get("title") for one in told for row in one.get("details", {}).get("rows", [])}


class TestPages:
    def test_from_the_file_to_the_cases(self, client, as_reviewer):
        hostile = "<script>alert(1)</script>"
        old = CaseFactory(enriched=True)
        page = client.get(LIST).content.decode()
        assert f'href="{IMPORT}"' in page
        data = lines({**WHOLE, "title": hostile}, {"case_id": str(old.pk), "solution": hostile}, {"title": ""}).read()
        response = client.post(IMPORT, {"file": SimpleUploadedFile("cases.jsonl", data)})
        job = BulkJob.objects.get()
        assert response["Location"] == f"/admin/cases_app/bulkjob/{job.pk}/change/"
        page = client.get(response["Location"]).content.decode()
        assert hostile not in page
        assert page.count("&lt;script&gt;alert(1)") >= 2
        assert f"<del>{escape(old.solution)}</del>" in page
        assert "A case needs a title." in page
        client.post(response["Location"], {"action": "confirm"})
        run_jobs(until=time.monotonic() + 60)
        assert CaseLibrary.objects.filter(title=hostile).exists()

    @pytest.mark.parametrize(
        ("name", "data", "words"),
        [
            ("x.csv", b"title,secret\nA,B", "Unknown column: secret"),
            ("x.pdf", b"%PDF", "Known are files"),
            ("x.jsonl", b'{"title": ""}', "Nothing in this file is new. A case needs a title."),
            ("x.jsonl", b"", "The submitted file is empty."),
        ],
    )
    def test_what_cannot_be_read_is_said(self, name, data, words, client, as_reviewer):
        response = client.post(IMPORT, {"file": SimpleUploadedFile(name, data)})
        assert response.status_code == 200
        assert words in response.content.decode()
        assert not BulkJob.objects.exists()

    def test_who_may(self, client, sign_in):
        codes = {"anonymous": 302, "nobody": 302, "staff": 403, "Operator": 403, "Reviewer": 200, "Lead": 200}
        for role, code in codes.items():
            client.logout()
            sign_in(role)
            assert client.get(IMPORT).status_code == code, role
            file = SimpleUploadedFile("cases.jsonl", lines(WHOLE).read())
            client.post(IMPORT, {"file": file})
            assert BulkJob.objects.exists() == (code == 200), role
            BulkJob.objects.all().delete()
