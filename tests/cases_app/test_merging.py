"""Two cases that are one: the kept case stands for both sessions, the other is retired and points to it."""

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
from django.contrib.admin.models import LogEntry
from django.db import IntegrityError, connection, transaction
from django.utils import timezone

from cases_app.models import CaseLibrary, CaseStatus, CaseTransition
from cases_app.selectors.exports import exportable_cases
from cases_app.services import enrichment
from cases_app.services.merging import merge_cases
from cases_app.services.moving import StaleCaseError
from feedback_app.services import submission
from feedback_app.services.erasure import erase_subject
from sessions_app.errors import ConflictError, InvalidInputError, UnknownObjectError
from tests.factories import CaseFactory, SessionFactory

pytestmark = pytest.mark.django_db

LIST = "/admin/cases_app/caselibrary/"
DRAFT, ENRICHED, PUBLISHED, RETIRED = (status.value for status in CaseStatus)


def merge(kept, merged, reviewer, **options):
    versions = {"kept_version": kept.version, "merged_version": merged.version}
    result = merge_cases(kept_id=kept.pk, merged_id=merged.pk, reviewer=reviewer, **{**versions, **options})
    for case in (kept, merged):
        case.refresh_from_db()
    return result


def rows(case):
    found = CaseTransition.objects.filter(case=case).order_by("pk")
    return list(found.values_list("action", "from_state", "to_state", "actor__username", "reason"))


def say(case, verdict):
    return submission.submit_verdict(session_id=case.diagnosis_id, verdict=verdict)


class TestMerging:
    def test_the_kept_takes_what_it_lacks_and_both_tell_of_it(self, reviewer):
        kept = CaseFactory(title="Mine")
        merged = CaseFactory(enriched=True, error_code="E1", flagged_at=timezone.now(), title="Theirs")
        merge(kept, merged, reviewer, reason="The same pool")
        assert (kept.status, kept.fault_category_id, kept.error_code, kept.is_flagged) == (
            ENRICHED, "SLOW_RESPONSE", "E1", True,
        )  # fmt: skip
        assert (kept.title, kept.root_cause) == ("Mine", kept.diagnosis.answer)
        assert (merged.status, merged.merged_into, merged.is_flagged) == (RETIRED, kept, False)
        assert merged.diagnosis_id
        assert rows(kept) == [("absorb", DRAFT, ENRICHED, "rita", str(merged.pk))]
        assert rows(merged) == [("merge", ENRICHED, RETIRED, "rita", f"{kept.pk} The same pool")]

    def test_what_it_has_it_keeps(self, reviewer):
        kept = CaseFactory(published=True, fault_category_id="CACHE", error_code="E1")
        merge(kept, CaseFactory(enriched=True, error_code="E2"), reviewer)
        assert (kept.status, kept.fault_category_id, kept.error_code) == (PUBLISHED, "CACHE", "E1")

    @pytest.mark.parametrize("kept_state", CaseStatus.values)
    @pytest.mark.parametrize("merged_state", CaseStatus.values)
    def test_states(self, kept_state, merged_state, reviewer):
        kept, merged = (CaseFactory(status=state, fault_category_id="CACHE") for state in (kept_state, merged_state))
        refusal = (
            "retired already" if merged_state == RETIRED
            else "restore it first" if kept_state == RETIRED
            else "the other way" if merged_state == PUBLISHED != kept_state
            else ""
        )  # fmt: skip
        if not refusal:
            assert merge(kept, merged, reviewer).status == (PUBLISHED if kept_state == PUBLISHED else ENRICHED)
            return
        with pytest.raises(ConflictError, match=refusal):
            merge(kept, merged, reviewer)
        merged.refresh_from_db()
        assert (merged.status, merged.merged_into) == (merged_state, None)
        assert not CaseTransition.objects.exists()

    def test_what_was_changed_since_the_preview_is_not_merged(self, reviewer):
        kept, merged = CaseFactory(enriched=True), CaseFactory(enriched=True)
        for stale in ("kept_version", "merged_version"):
            with pytest.raises(StaleCaseError):
                merge(kept, merged, reviewer, **{stale: 7})
        assert not CaseTransition.objects.exists()

    def test_neither_itself_nor_nothing(self, reviewer):
        case = CaseFactory()
        with pytest.raises(InvalidInputError):
            merge(case, case, reviewer)
        gone = CaseFactory()
        CaseLibrary.objects.filter(pk=gone.pk).delete()
        with pytest.raises(UnknownObjectError):
            merge_cases(kept_id=case.pk, kept_version=0, merged_id=gone.pk, merged_version=0, reviewer=reviewer)

    def test_one_hop_leads_to_the_kept_however_often_it_is_merged(self, reviewer):
        first, second, third = (CaseFactory(enriched=True) for _ in range(3))
        merge(second, first, reviewer)
        merge(third, second, reviewer)
        first.refresh_from_db()
        assert set(third.merged.all()) == {first, second}
        assert [row[0] for row in rows(first)] == ["merge", "merge"]

    def test_only_what_is_retired_may_be_merged_says_the_database(self):
        kept = CaseFactory()
        with pytest.raises(IntegrityError), transaction.atomic():
            CaseFactory(merged_into=kept)

    def test_restored_it_stands_on_its_own(self, reviewer):
        kept, merged = CaseFactory(enriched=True), CaseFactory(enriched=True)
        merge(kept, merged, reviewer)
        enrichment.restore_case(case_id=merged.pk, reviewer=reviewer)
        merged.refresh_from_db()
        kept.refresh_from_db()
        assert (merged.status, merged.merged_into, kept.version) == (ENRICHED, None, 2)
        assert rows(kept)[-1] == ("let_go", ENRICHED, ENRICHED, "rita", str(merged.pk))
        assert say(merged, "useful").case_id == merged.pk


class TestWhatLeadsToTheKept:
    @pytest.fixture
    def pair(self, reviewer):
        kept = CaseFactory(published=True, error_code="E1")
        merged = CaseFactory(error_code="E2", diagnosis__feedback="useful")
        merge(kept, merged, reviewer)
        return kept, merged

    def test_verdicts_on_the_session_of_the_merged(self, pair):
        kept, merged = pair
        assert say(merged, "useful").case_id == kept.pk
        say(merged, "not_useful")
        kept.refresh_from_db()
        merged.refresh_from_db()
        assert (kept.status, kept.is_flagged, merged.status, merged.is_flagged) == (PUBLISHED, True, RETIRED, False)
        say(kept, "not_useful")
        say(merged, "useful")
        kept.refresh_from_db()
        assert kept.is_flagged  # the reader of the other source still doubts
        say(kept, "useful")
        kept.refresh_from_db()
        assert not kept.is_flagged

    def test_a_draft_that_stands_for_two_is_neither_retired_nor_rewritten_by_one(self, pair):
        kept, merged = pair
        CaseLibrary.objects.filter(pk=kept.pk).update(status=DRAFT, title="Written")
        say(kept, "not_useful")
        kept.refresh_from_db()
        assert (kept.status, kept.is_flagged) == (DRAFT, True)
        merged.diagnosis.answer = "Another answer"
        merged.diagnosis.save()
        say(merged, "useful")
        kept.refresh_from_db()
        assert kept.title == "Written"

    def test_lookups(self, pair, api):
        kept, merged = pair
        for query in (f"diagnosisId={merged.diagnosis_id}", "errorCode=E2", "errorCode=E1"):
            found = api.get(f"/api/cases?{query}").json()["results"]
            assert [one["caseId"] for one in found] == [str(kept.pk)], query
        assert api.get(f"/api/cases/{merged.pk}").json()["mergedInto"] == str(kept.pk)
        assert api.get("/api/cases?errorCode=E3").json()["results"] == []

    def test_whose_text_may_not_leave_keeps_it_from_leaving_with_the_other(self, pair):
        kept, merged = pair
        assert list(exportable_cases(CaseLibrary.objects.filter(pk=kept.pk))) == [kept]
        merged.diagnosis.consent = False
        merged.diagnosis.save()
        assert not exportable_cases(CaseLibrary.objects.all()).exists()

    def test_whoever_is_erased_takes_their_own_case_along(self, pair):
        kept, merged = pair
        for case, person in ((kept, "one"), (merged, "other")):
            type(case.diagnosis).objects.filter(pk=case.diagnosis.pk).update(user_ref=person)
        erase_subject(user_ref="one")
        left = CaseLibrary.objects.get()
        assert (left, left.status, left.merged_into) == (merged, RETIRED, None)
        erase_subject(user_ref="other")
        assert not CaseLibrary.objects.exists()


class TestPage:
    @pytest.fixture(autouse=True)
    def _english(self, client):
        client.defaults["HTTP_ACCEPT_LANGUAGE"] = "en"

    def test_the_case_offers_it_and_the_further_one_stays(self, client, as_reviewer):
        case = CaseFactory(diagnosis=SessionFactory(query="Checkout is slow at noon"))
        twin = CaseFactory(published=True, title="Checkout is slow at noon!")
        page = client.get(f"{LIST}{case.pk}/change/").content.decode()
        assert f"{LIST}{twin.pk}/merge/{case.pk}/" in page
        assert "100% alike" in page

    def test_preview_then_merge(self, client, as_reviewer):
        kept = CaseFactory(enriched=True, solution="Raise it.")
        merged = CaseFactory(diagnosis=None, title="<script>alert(1)</script>", solution="Raise it.\nWatch it.")
        url = f"{LIST}{kept.pk}/merge/{merged.pk}/"
        before = list(CaseLibrary.objects.order_by("pk").values())
        response = client.get(url)
        page = response.content.decode()
        assert "<ins>Watch it.\n</ins>" in page
        assert "<script>alert" not in page
        assert list(CaseLibrary.objects.order_by("pk").values()) == before
        form = {name: response.context["form"][name].value() for name in ("kept_version", "merged_version")}
        answer = client.post(url, {**form, "reason": "Twins"})
        assert answer["Location"] == f"{LIST}{kept.pk}/change/"
        merged.refresh_from_db()
        assert merged.merged_into == kept
        assert LogEntry.objects.count() == 2
        assert "merged into another case" in client.get(f"{LIST}{merged.pk}/change/").content.decode()
        again = client.post(url, form)
        assert (again.status_code, CaseTransition.objects.filter(action="absorb").count()) == (409, 1)
        assert "look again" in again.content.decode()

    def test_what_is_refused_is_said_before(self, client, as_reviewer):
        kept, merged = CaseFactory(), CaseFactory(published=True)
        page = client.get(f"{LIST}{kept.pk}/merge/{merged.pk}/").content.decode()
        assert "merge the other way" in page
        assert 'data-key="m"' not in page

    def test_who_may(self, client, sign_in):
        kept, merged = CaseFactory(), CaseFactory()
        for role, code in {"anonymous": 302, "staff": 403, "Operator": 403, "Reviewer": 200, "Lead": 200}.items():
            client.logout()
            sign_in(role)
            assert client.get(f"{LIST}{kept.pk}/merge/{merged.pk}/").status_code == code, role
            assert client.post(f"{LIST}{kept.pk}/merge/{merged.pk}/").status_code == (400 if code == 200 else code)
        assert not CaseTransition.objects.exists()

    @pytest.mark.parametrize("other", ["x", "00000000-0000-0000-0000-000000000000", "{kept}"])
    def test_no_such_pair(self, other, client, as_reviewer):
        kept = CaseFactory()
        assert client.get(f"{LIST}{kept.pk}/merge/{other.format(kept=kept.pk)}/").status_code == 302


@pytest.mark.django_db(transaction=True)
def test_each_into_the_other_at_once_leaves_one_of_them(reviewer):
    for _ in range(8):
        one, other = CaseFactory(enriched=True), CaseFactory(enriched=True)
        start, outcomes = threading.Barrier(3), []

        def meet(kept, merged, start=start, outcomes=outcomes):
            try:
                start.wait(10)
                merge_cases(kept_id=kept.pk, kept_version=0, merged_id=merged.pk, merged_version=0, reviewer=reviewer)
                outcomes.append("merged")
            except ConflictError:
                outcomes.append("refused")
            finally:
                connection.close()

        def say_useful(start=start, case=one):
            try:
                start.wait(10)
                say(case, "useful")
            finally:
                connection.close()

        with ThreadPoolExecutor(3) as pool:
            for done in [pool.submit(meet, one, other), pool.submit(meet, other, one), pool.submit(say_useful)]:
                done.result(30)
        assert sorted(outcomes) == ["merged", "refused"]
        states = CaseLibrary.objects.filter(pk__in=[one.pk, other.pk]).values_list("status", "merged_into_id")
        [kept], [merged] = [[row for row in states if (row[0] == RETIRED) == is_out] for is_out in (False, True)]
        assert kept == (ENRICHED, None)
        assert merged[1] in (one.pk, other.pk)
        assert CaseTransition.objects.filter(case__in=[one, other], action__in=("merge", "absorb")).count() == 2
