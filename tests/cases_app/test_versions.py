"""What a case has said before: kept with each change, shown as a difference, and put back as a new version."""

import re
import time

import pytest
from django.contrib.auth.models import Permission

from cases_app.models import CaseLibrary, CaseVersion, FaultCategory
from cases_app.services import creation, enrichment
from cases_app.services.bulk import confirm_job, prepare_job, run_jobs
from cases_app.services.case_bulk import SET_CATEGORY
from cases_app.services.merging import merge_cases
from cases_app.services.moving import StaleCaseError
from feedback_app.services import submission
from sessions_app.errors import ConflictError, InvalidInputError, UnknownObjectError
from sessions_app.services.recording import record_sessions
from tests.factories import CaseFactory, SessionFactory

pytestmark = pytest.mark.django_db

LIST = "/admin/cases_app/caselibrary/"
CONTENT = {
    "fault_category": "CACHE",
    "error_code": "E1",
    "title": "Keys expire all at once",
    "root_cause": "One TTL for all keys.",
    "solution": "Spread the TTLs.",
}


def write(case, reviewer, **changed):
    case.refresh_from_db()
    return enrichment.enrich_case(
        case_id=case.pk, content={**CONTENT, **changed}, version=case.version, reviewer=reviewer
    )


def restore(case, number, reviewer, version=None):
    case.refresh_from_db()
    version = case.version if version is None else version
    return enrichment.restore_version(case_id=case.pk, number=number, version=version, reviewer=reviewer)


def told(case):
    rows = CaseVersion.objects.filter(case=case).order_by("number")
    return list(rows.values_list("number", "action", "actor__username", "fault_category", "solution"))


class TestKeeping:
    def test_each_change_of_texts_and_what_stood_before_the_first(self, reviewer, other_reviewer):
        case = CaseFactory()
        answer = case.solution
        write(case, reviewer)
        enrichment.publish_case(case_id=case.pk, reviewer=reviewer)
        write(case, other_reviewer, solution="Spread them.")
        assert told(case) == [
            (0, "", None, "GENERAL", answer),
            (1, "enrich", "rita", "CACHE", "Spread the TTLs."),
            (3, "enrich", "otto", "CACHE", "Spread them."),
        ]

    def test_by_hand_by_correction_in_bulk_and_by_merging(self, reviewer):
        by_hand = enrichment.create_case(content=CONTENT, author=reviewer)
        job = prepare_job(action=SET_CATEGORY, rows=CaseLibrary.objects.all(), actor=reviewer)
        confirm_job(job_id=job.pk, actor=reviewer, parameters={"category": "MEMORY_OOM"})
        run_jobs(until=time.monotonic() + 60)
        assert [row[1] for row in told(by_hand)] == ["create", "enrich"]
        assert [row[3] for row in told(by_hand)] == ["CACHE", "MEMORY_OOM"]
        corrected = CaseFactory()
        creation.case_of_correction(corrected.diagnosis, corrected_answer="Do this", author=reviewer)
        assert [row[:3] for row in told(corrected)] == [(0, "", None), (1, "correct", "rita")]
        by_hand.refresh_from_db()
        merge_cases(
            kept_id=corrected.pk, kept_version=1, merged_id=by_hand.pk, merged_version=by_hand.version,
            reviewer=reviewer,
        )  # fmt: skip
        assert told(corrected)[-1][:4] == (2, "absorb", "rita", "MEMORY_OOM")

    def test_a_draft_nobody_worked_on_has_none_and_follows_its_answer(self, reviewer):
        session = SessionFactory(answer="First")
        submission.submit_verdict(session_id=session.session_id, verdict="useful")
        record_sessions([{"session_id": session.session_id, "answer": "Second"}])
        assert session.case.solution == "Second"
        assert told(session.case) == []

    def test_a_draft_that_somebody_wrote_into_no_longer_follows(self, reviewer):
        session = SessionFactory(answer="First")
        submission.submit_verdict(session_id=session.session_id, verdict="useful")
        write(session.case, reviewer, fault_category="GENERAL")
        enrichment.retire_case(case_id=session.case.pk, reviewer=reviewer)
        enrichment.restore_case(case_id=session.case.pk, reviewer=reviewer)
        record_sessions([{"session_id": session.session_id, "answer": "Second"}])
        session.case.refresh_from_db()
        assert (session.case.status, session.case.solution) == ("DRAFT", CONTENT["solution"])


class TestRestoring:
    def test_comes_back_as_a_new_version(self, reviewer, other_reviewer):
        case = CaseFactory()
        write(case, reviewer)
        write(case, other_reviewer, solution="Worse", fault_category="MEMORY_OOM")
        case = restore(case, 1, reviewer)
        assert (enrichment.content_of(case), case.version) == (CONTENT, 3)
        assert told(case)[-1] == (3, "revert", "rita", "CACHE", "Spread the TTLs.")
        row = case.transitions.first()
        assert (row.action, row.actor, row.reason) == ("revert", reviewer, "#1")

    def test_what_it_refuses(self, reviewer):
        case = CaseFactory()
        write(case, reviewer, fault_category="MEMORY_OOM")
        write(case, reviewer)
        with pytest.raises(UnknownObjectError):
            restore(case, 7, reviewer)
        with pytest.raises(StaleCaseError):
            restore(case, 1, reviewer, version=1)
        with pytest.raises(InvalidInputError, match="says this already"):
            restore(case, 2, reviewer)
        FaultCategory.objects.filter(pk="MEMORY_OOM").delete()
        with pytest.raises(InvalidInputError, match="no category MEMORY_OOM"):
            restore(case, 1, reviewer)
        enrichment.publish_case(case_id=case.pk, reviewer=reviewer)
        with pytest.raises(InvalidInputError, match="not complete"):
            restore(case, 0, reviewer)
        enrichment.retire_case(case_id=case.pk, reviewer=reviewer)
        with pytest.raises(ConflictError):
            restore(case, 0, reviewer)
        assert case.versions.count() == 3


class TestPage:
    @pytest.fixture
    def case(self, client, reviewer):
        client.defaults["HTTP_ACCEPT_LANGUAGE"] = "en"
        case = CaseFactory()
        write(case, reviewer, title="<script>alert(1)</script>")
        write(case, reviewer, solution="Spread them.")
        return case

    def test_any_two_are_compared(self, case, client, as_reviewer):
        url = f"{LIST}{case.pk}/versions/"
        assert url in client.get(f"{LIST}{case.pk}/change/").content.decode()
        page = client.get(url).content.decode()
        assert re.search(r"<del>Spread the TTLs\.\s*</del><ins>Spread them\.\s*</ins>", page)
        assert "<script>alert" not in page
        page = client.get(f"{url}?from=0&to=2").content.decode()
        assert re.search(r"<del>GENERAL\s*</del><ins>CACHE\s*</ins>", page)
        for odd in ("from=9&to=x", "from=&to=0", "from=2&to=2", "to=%F0%9F%92%A9"):
            assert client.get(f"{url}?{odd}").status_code == 200

    def test_one_is_restored(self, case, client, as_reviewer):
        url = f"{LIST}{case.pk}/versions/"
        answer = client.post(url, {"number": "1", "version": "2"})
        assert answer["Location"] == f"{LIST}{case.pk}/change/"
        case.refresh_from_db()
        assert case.title == "<script>alert(1)</script>"
        again = client.post(url, {"number": "0", "version": "2"})
        assert again.status_code == 409
        assert "look again" in again.content.decode()
        assert client.post(url, {"number": "x", "version": "3"}).status_code == 400

    def test_who_may(self, case, client, sign_in):
        for role, code, posted in (
            ("anonymous", 302, 302), ("staff", 403, 403), ("Operator", 200, 403), ("Reviewer", 200, 302),
        ):  # fmt: skip
            client.logout()
            sign_in(role)
            assert client.get(f"{LIST}{case.pk}/versions/").status_code == code, role
            data = {"number": "1", "version": "2"}
            assert client.post(f"{LIST}{case.pk}/versions/", data).status_code == posted, role

    def test_of_a_case_that_nobody_changed(self, client, as_reviewer):
        client.defaults["HTTP_ACCEPT_LANGUAGE"] = "en"
        page = client.get(f"{LIST}{CaseFactory().pk}/versions/").content.decode()
        assert "Nobody has changed this case yet." in page

    def test_what_agents_find_is_put_back_by_who_publishes(self, case, client, sign_in, reviewer):
        enrichment.publish_case(case_id=case.pk, reviewer=reviewer)
        case.refresh_from_db()
        person = sign_in("staff")
        codenames = ("view_caselibrary", "enrich_caselibrary")
        person.user_permissions.add(*Permission.objects.filter(codename__in=codenames))
        url = f"{LIST}{case.pk}/versions/"
        assert "Restore version" not in client.get(url).content.decode()
        assert client.post(url, {"number": "1", "version": str(case.version)}).status_code == 403

    def test_asks_few_questions(self, case, client, as_reviewer, reviewer, django_assert_max_num_queries):
        for number in range(10):
            write(case, reviewer, solution=str(number))
        with django_assert_max_num_queries(9) as asked:
            client.get(f"{LIST}{case.pk}/versions/")
        assert sum("case_version" in query["sql"] for query in asked.captured_queries) == 2
