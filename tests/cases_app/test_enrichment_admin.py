"""The case library and the page of one case, through the browser's requests."""

import re
from datetime import timedelta

import pytest
from django.contrib.admin.models import LogEntry
from django.contrib.auth import get_user_model
from django.utils import timezone

from cases_app.models import CaseLibrary, CaseTransition, FaultCategory
from cases_app.services import enrichment
from feedback_app.services import submission
from sessions_app import paging
from sessions_app.errors import InvalidInputError
from sessions_app.templatetags import desk
from sessions_app.text import MAX_TEXT_CHARS
from tests.factories import CaseFactory, FeedbackEventFactory, SessionFactory, UserFactory

pytestmark = pytest.mark.django_db

LIST = "/admin/cases_app/caselibrary/"
NEXT = f"{LIST}next/"
ADD = f"{LIST}add/"
CATEGORIES = "/admin/cases_app/faultcategory/"
CONTENT = {
    "fault_category": "CACHE",
    "error_code": "REDIS_TIMEOUT",
    "title": "Keys expire all at once",
    "root_cause": "One TTL for all keys.",
    "solution": "Spread the TTLs.",
}
ROLES = ("anonymous", "nobody", "staff", "Operator", "Reviewer", "Lead", "superuser")


def page_of(case):
    return f"{LIST}{case.pk}/change/"


def form_of(client, case):
    """What the form of the page would send, untouched."""
    form = client.get(page_of(case)).context["form"]
    fields = {field.html_name: field.value() for field in form}
    initial = {f"initial-{field.html_name}": field.value() for field in form if field.field.show_hidden_initial}
    return fields | initial


def press(client, case, action, fields=None, **changed):
    return client.post(page_of(case), {**(fields or {}), **changed, "action": action})


@pytest.fixture(autouse=True)
def _english(client):
    client.defaults["HTTP_ACCEPT_LANGUAGE"] = "en"


def rows_of(response):
    return list(response.context["cl"].result_list)


class TestWhoMayWhat:
    """Role by address and method. 302 leads the anonymous and the powerless to the login, or on after a button."""

    @pytest.mark.parametrize(
        ("method", "address", "codes"),
        [
            #                                     anonymous nobody staff Operator Reviewer Lead superuser
            pytest.param("get", LIST, (302, 302, 403, 200, 200, 200, 200), id="list"),
            pytest.param("get", f"{LIST}{{pk}}/change/", (302, 302, 403, 200, 200, 200, 200), id="page"),
            pytest.param("get", ADD, (302, 302, 403, 403, 200, 200, 200), id="add"),
            pytest.param("post", ADD, (302, 302, 403, 403, 200, 200, 200), id="add-empty"),
            pytest.param("get", NEXT, (302, 302, 403, 302, 302, 302, 302), id="next"),
            pytest.param("get", f"{LIST}{{pk}}/delete/", (302, 302, 403, 403, 403, 403, 403), id="delete"),
            pytest.param("post", f"{LIST}{{pk}}/delete/", (302, 302, 403, 403, 403, 403, 403), id="delete-post"),
            pytest.param("get", CATEGORIES, (302, 302, 403, 200, 200, 200, 200), id="categories"),
            pytest.param("get", f"{CATEGORIES}CACHE/change/", (302, 302, 403, 200, 200, 200, 200), id="category"),
            pytest.param("post", f"{CATEGORIES}CACHE/change/", (302, 302, 403, 403, 403, 200, 200), id="category-post"),
            pytest.param("get", f"{CATEGORIES}add/", (302, 302, 403, 403, 403, 200, 200), id="category-add"),
            pytest.param(
                "get", f"{CATEGORIES}CACHE/delete/", (302, 302, 403, 403, 403, 403, 403), id="category-delete"
            ),
        ],
    )
    def test_addresses(self, method, address, codes, client, sign_in):
        case = CaseFactory()
        for role, code in zip(ROLES, codes, strict=True):
            client.logout()
            sign_in(role)
            response = getattr(client, method)(address.format(pk=case.pk))
            assert response.status_code == code, role
            leads_to_login = response.status_code == 302 and "/login/" in response["Location"]
            assert leads_to_login == (role in ("anonymous", "nobody")), role
            get_user_model().objects.all().delete()
        assert CaseLibrary.objects.get() == case

    @pytest.mark.parametrize(
        ("action", "start", "codes"),
        [
            pytest.param("save", {}, (302, 302, 403, 403, 302, 302, 302), id="save"),
            pytest.param("save", {"published": True}, (302, 302, 403, 403, 302, 302, 302), id="save-published"),
            pytest.param("save_and_publish", {}, (302, 302, 403, 403, 302, 302, 302), id="save-and-publish"),
            pytest.param("publish", {"enriched": True}, (302, 302, 403, 403, 200, 200, 200), id="publish"),
            pytest.param("unpublish", {"published": True}, (302, 302, 403, 403, 200, 200, 200), id="unpublish"),
            pytest.param("retire", {}, (302, 302, 403, 403, 200, 200, 200), id="retire"),
            pytest.param("restore", {"status": "RETIRED"}, (302, 302, 403, 403, 200, 200, 200), id="restore"),
            pytest.param("unpublish", {}, (302, 302, 403, 403, 409, 409, 409), id="unpublish-a-draft"),
            pytest.param("restore", {}, (302, 302, 403, 403, 409, 409, 409), id="restore-a-draft"),
            pytest.param("delete", {}, (302, 302, 403, 400, 400, 400, 400), id="no-such-button"),
        ],
    )
    def test_buttons(self, action, start, codes, client, sign_in):
        """The form holds unsaved text: moves that do not save it show it again (200) in place of leading on."""
        for role, code in zip(ROLES, codes, strict=True):
            client.logout()
            sign_in(role)
            case = CaseFactory(**start)
            before = CaseLibrary.objects.values().get(pk=case.pk)
            response = press(client, case, action, CONTENT, version=0, seen=0)
            assert response.status_code == code, role
            moved = code in (200, 302) and role not in ("anonymous", "nobody")
            assert (CaseLibrary.objects.values().get(pk=case.pk) != before) == moved, role
            assert LogEntry.objects.filter(object_id=str(case.pk)).exists() == moved, role
            get_user_model().objects.all().delete()

    @pytest.mark.parametrize(
        ("permission", "start", "allowed"),
        [
            pytest.param("enrich", {}, {"save"}, id="enricher-of-a-draft"),
            pytest.param("enrich", {"enriched": True}, {"save"}, id="enricher-of-an-enriched"),
            pytest.param("enrich", {"published": True}, set(), id="enricher-of-a-published"),
            pytest.param("publish", {"enriched": True}, {"publish", "retire"}, id="publisher-of-an-enriched"),
            pytest.param("publish", {"published": True}, {"unpublish", "retire"}, id="publisher-of-a-published"),
            pytest.param("publish", {"status": "RETIRED"}, {"restore"}, id="publisher-of-a-retired"),
        ],
    )
    def test_half_a_reviewer_gets_past_no_gate(self, permission, start, allowed, client):
        person = UserFactory(
            is_staff=True, permissions=["cases_app.view_caselibrary", f"cases_app.{permission}_caselibrary"]
        )
        client.force_login(person, backend="django.contrib.auth.backends.ModelBackend")
        for action in ("save", "save_and_publish", "publish", "unpublish", "retire", "restore"):
            case = CaseFactory(**start)
            assert set(client.get(page_of(case)).context["offers"]) == allowed
            before = CaseLibrary.objects.values().get(pk=case.pk)
            fields = CONTENT if action.startswith("save") else {}
            response = press(client, case, action, fields, version=0, seen=0)
            assert (CaseLibrary.objects.values().get(pk=case.pk) != before) == (action in allowed), action
            assert action in allowed or response.status_code in (403, 409), action

    def test_a_button_needs_a_token_of_its_own_site(self, reviewer):
        from django.test import Client

        client, case = Client(enforce_csrf_checks=True), CaseFactory()
        client.force_login(reviewer, backend="django.contrib.auth.backends.ModelBackend")
        assert press(client, case, "retire").status_code == 403
        case.refresh_from_db()
        assert case.status == "DRAFT"


class TestList:
    def test_begins_with_what_is_to_be_enriched_the_oldest_first(self, client, as_reviewer):
        now = timezone.now()
        young, old = CaseFactory(created_at=now), CaseFactory(created_at=now - timedelta(days=2))
        CaseFactory(enriched=True)
        CaseFactory(manual=True)
        response = client.get(LIST)
        assert rows_of(response) == [old, young]
        tabs = response.context["tabs"]
        assert {tab.title: tab.count for tab in tabs} == {
            "To enrich": 2, "To publish": 1, "Published": 0, "Flagged": 0, "Retired": 0, "All": 4,
        }  # fmt: skip
        assert [tab.title for tab in tabs if tab.is_active] == ["To enrich"]

    @pytest.mark.parametrize(
        ("query", "found"),
        [
            ("queue=all", {"draft", "enriched", "published", "retired"}),
            ("queue=to_publish", {"enriched"}),
            ("queue=published", {"published"}),
            ("queue=flagged", {"enriched"}),
            ("queue=retired", {"retired"}),
            ("queue=nonsense", set()),
            ("queue=all&category=CACHE", {"published"}),
            ("queue=all&source=MANUAL", {"published"}),
            ("queue=all&reviewer=me", {"published"}),
            ("queue=all&reviewer=x", set()),
            ("queue=all&period=24h", {"draft", "enriched", "published"}),
            ("queue=all&q=缓存", {"published"}),
            ("queue=all&q=redis_timeout", {"published"}),
            ("queue=all&q=%25", set()),
            ("queue=all&q=S-77", {"draft"}),
        ],
    )
    def test_filters_and_search(self, query, found, client, as_reviewer):
        old = CaseFactory(status="RETIRED")
        CaseLibrary.objects.filter(pk=old.pk).update(updated_at=timezone.now() - timedelta(days=3))
        cases = {
            "draft": CaseFactory(diagnosis=SessionFactory(session_id="S-77")),
            "enriched": CaseFactory(enriched=True, flagged_at=timezone.now()),
            "published": CaseFactory(
                published=True, manual=True, fault_category_id="CACHE", title="缓存雪崩", error_code="REDIS_TIMEOUT",
                reviewed_by=as_reviewer,
            ),
            "retired": old,
        }  # fmt: skip
        response = client.get(f"{LIST}?{query}")
        assert response.status_code == 200
        assert {name for name, case in cases.items() if case in rows_of(response)} == found

    def test_asks_the_same_questions_for_one_row_and_for_many(self, client, as_reviewer, django_assert_max_num_queries):
        CaseFactory(published=True, reviewed_by=as_reviewer)
        client.get(f"{LIST}?queue=all")
        with django_assert_max_num_queries(LIST_QUERIES) as one:
            client.get(f"{LIST}?queue=all")
        for _ in range(20):
            CaseFactory(published=True, reviewed_by=as_reviewer)
        with django_assert_max_num_queries(len(one)) as many:
            client.get(f"{LIST}?queue=all")
        assert not any("solution" in query["sql"] for query in many.captured_queries)


LIST_QUERIES = 17


class TestProgress:
    def test_of_this_week_and_of_all(self, client, as_reviewer):
        old = timezone.now() - timedelta(days=15)
        for _ in range(3):
            CaseFactory()
        CaseFactory(enriched=True)
        CaseFactory(published=True, created_at=old)
        CaseFactory(created_at=old)
        CaseFactory(manual=True, enriched=True)
        CaseFactory(status="RETIRED")
        week, in_all = client.get(LIST).context["progress"]
        assert (week.done, week.left, week.share) == (1, 3, 25)
        assert (in_all.done, in_all.left, in_all.share) == (2, 4, 33)
        page = client.get(LIST).content.decode()
        assert "<b>2 done</b>, 4 left" in page
        assert client.get(f"{LIST}?queue=published").context["progress"] is None

    def test_counts_no_further_than_somebody_reads(self, client, as_reviewer, monkeypatch):
        monkeypatch.setattr(paging, "MOST_COUNTED", 2)
        monkeypatch.setattr(desk, "MOST_COUNTED", 2)
        for _ in range(4):
            CaseFactory()
        response = client.get(LIST)
        assert response.context["progress"][1].left == 3
        assert "<b>0 done</b>, 2+ left" in response.content.decode()

    def test_nothing_to_do_is_all_done(self, client, as_reviewer):
        assert [part.share for part in client.get(LIST).context["progress"]] == [100, 100]


class TestNext:
    def test_leads_through_the_queue_and_round(self, client, as_reviewer):
        now = timezone.now()
        first, second, third = (CaseFactory(created_at=now - timedelta(days=days)) for days in (3, 2, 2))
        second, third = CaseLibrary.objects.exclude(pk=first.pk).order_by("pk")  # MariaDB orders UUIDs its own way
        CaseFactory(enriched=True, created_at=now - timedelta(days=9))
        assert client.get(NEXT)["Location"] == page_of(first)
        for here, there in ((first, second), (second, third), (third, first)):
            assert client.get(f"{NEXT}?after={here.pk}")["Location"] == page_of(there)

    def test_says_when_none_is_left(self, client, as_reviewer):
        response = client.get(NEXT, follow=True)
        assert "No case waits to be enriched." in response.content.decode()


class TestPage:
    def test_shows_the_form_beside_the_session(self, client, as_reviewer):
        session = SessionFactory(scored=True, feedback="useful", query="Why is it slow?", answer="Raise **the limit**.")
        case = CaseFactory(diagnosis=session)
        FeedbackEventFactory(session=session, payload={"comment": "That was it."})
        page = client.get(page_of(case)).content.decode()
        for text in (
            "Why is it slow?", "Raise <strong>the limit</strong>.", "That was it.", "Strong evidence", str(case.pk),
            f"/admin/sessions_app/diagnosissession/{session.pk}/change/",
        ):  # fmt: skip
            assert text in page, text

    def test_suggests_the_categories_whose_keywords_occur(self, client, as_reviewer):
        case = CaseFactory(diagnosis=SessionFactory(query="redis 缓存 雪崩, p99 timeout", answer="The cache is cold."))
        field = client.get(page_of(case)).context["form"].fields["fault_category"]
        groups = {head: [code for code, _ in options] for head, options in field.choices if isinstance(options, list)}
        assert groups["Suggested"][0] == "CACHE"
        assert "SLOW_RESPONSE" in groups["Suggested"]
        assert "CACHE" not in groups["Others"]

    def test_django_s_history_leads_to_the_one_on_the_page(self, client, as_reviewer):
        case = CaseFactory(published=True)
        enrichment.unpublish_case(case_id=case.pk, reviewer=as_reviewer, reason="Outdated")
        address = client.get(f"{LIST}{case.pk}/history/")["Location"]
        assert address == f"{LIST}{case.pk}/change/#history"
        page = client.get(address).content.decode()
        assert 'id="history"' in page
        assert "Outdated" in page

    def test_asks_few_questions(self, client, as_reviewer, django_assert_max_num_queries):
        case = CaseFactory()
        client.get(page_of(case))
        for _ in range(20):
            FeedbackEventFactory(session=case.diagnosis)
            CaseTransition.objects.create(case=case, action="flag", from_state="DRAFT", to_state="DRAFT")
        with django_assert_max_num_queries(PAGE_QUERIES):
            client.get(page_of(case))

    @pytest.mark.parametrize("pk", ["4711", "00000000-0000-0000-0000-000000000000", "%20"])
    def test_an_unknown_case_leads_back(self, pk, client, as_reviewer):
        response = client.get(f"{LIST}{pk}/change/")
        assert (response.status_code, response["Location"]) == (302, "/admin/")

    def test_forms_never_write_a_status(self, client, as_reviewer):
        case = CaseFactory()
        press(client, case, "save", CONTENT, version=0, status="PUBLISHED", source_type="MANUAL", created_by="x")
        case.refresh_from_db()
        assert (case.status, case.source_type, case.created_by) == ("ENRICHED", "AUTO", "system")

    def test_a_flag_is_explained(self, client, as_reviewer):
        case = CaseFactory(enriched=True)
        submission.submit_verdict(session_id=case.diagnosis_id, verdict="not_useful")
        page = client.get(page_of(case)).content.decode()
        assert "no longer finds it useful" in page
        assert "Flagged" in page


PAGE_QUERIES = 18


class TestAnswerThatNobodySplit:
    @pytest.mark.parametrize("source", ["AUTO", "CORRECTION"])
    def test_stands_once_in_the_form_and_once_when_it_is_saved(self, source, client, as_reviewer):
        case = CaseFactory(source_type=source)
        assert case.root_cause == case.solution == case.diagnosis.answer
        fields = form_of(client, case)
        assert (fields["root_cause"], fields["solution"]) == ("", case.diagnosis.answer)
        refused = press(client, case, "save_and_publish", fields, fault_category="CACHE")
        assert list(refused.context["form"].errors) == ["root_cause"]
        press(client, case, "save", fields, fault_category="CACHE")
        case.refresh_from_db()
        assert (case.status, case.root_cause, case.solution) == ("ENRICHED", "", case.diagnosis.answer)

    def test_is_no_change_of_somebody_else(self, client, as_reviewer, other_reviewer):
        case = CaseFactory()
        fields = form_of(client, case)
        same = {**enrichment.content_of(case), "error_code": "E1"}
        enrichment.enrich_case(case_id=case.pk, content=same, version=0, reviewer=other_reviewer)
        response = press(client, case, "save", fields)
        assert [str(label) for label, _ in response.context["changes"]] == ["Error code"]

    def test_is_not_published_twice_by_any_way(self, reviewer):
        case = CaseFactory(enriched=True, root_cause="All of it.", solution="All of it. ")
        with pytest.raises(InvalidInputError) as refusal:
            enrichment.publish_case(case_id=case.pk, reviewer=reviewer)
        assert list(refusal.value.errors) == ["root_cause"]

    def test_of_what_a_person_wrote_nothing_is_left_out(self, client, as_reviewer):
        case = CaseFactory(manual=True, root_cause="Same.", solution="Same.")
        assert form_of(client, case)["root_cause"] == "Same."


class TestSaving:
    def test_save(self, client, as_reviewer):
        case = CaseFactory()
        response = press(client, case, "save", form_of(client, case), **CONTENT)
        assert response["Location"] == page_of(case)
        case.refresh_from_db()
        assert (case.status, case.fault_category_id, case.solution) == ("ENRICHED", "CACHE", "Spread the TTLs.")
        assert LogEntry.objects.get().object_id == str(case.pk)

    def test_save_and_publish(self, client, as_reviewer):
        case = CaseFactory()
        response = press(client, case, "save_and_publish", form_of(client, case), **CONTENT)
        assert response.status_code == 302
        case.refresh_from_db()
        assert (case.status, case.reviewed_by) == ("PUBLISHED", as_reviewer)

    def test_text_keeps_its_line_feeds_and_is_not_new_for_its_line_ends(self, client, as_reviewer):
        case = CaseFactory(root_cause="one\ntwo", enriched=True)
        fields = form_of(client, case)
        browser = {name: str(value).replace("\n", "\r\n") for name, value in fields.items()}
        assert press(client, case, "retire", browser).status_code == 302
        press(client, case, "restore")
        press(client, case, "save", {**browser, "version": 2})
        case.refresh_from_db()
        assert case.root_cause == "one\ntwo"

    def test_the_longest_answer_can_be_saved_and_goes_stale_like_any_other(self, client, as_reviewer, other_reviewer):
        answer = "缓存\n" * (MAX_TEXT_CHARS // 3)
        case = CaseFactory(diagnosis=SessionFactory(answer=answer))
        fields = form_of(client, case)
        enrichment.enrich_case(
            case_id=case.pk, content={**CONTENT, "root_cause": answer}, version=0, reviewer=other_reviewer
        )
        response = press(client, case, "save", fields, fault_category="CACHE")
        assert response.status_code == 409
        assert press(client, case, "save", dict(response.context["form"].data.items())).status_code == 302
        case.refresh_from_db()
        assert case.solution == answer.rstrip("\n")

    @pytest.mark.parametrize(
        ("action", "changed", "wrong"),
        [
            ("save_and_publish", {"fault_category": "GENERAL", "solution": " "}, {"fault_category", "solution"}),
            ("save", {"title": ""}, {"title"}),
            ("save", {"title": "x" * 201}, {"title"}),
            ("save", {"error_code": "x" * 129}, {"error_code"}),
            ("save", {"fault_category": "BAD_LUCK"}, {"fault_category"}),
            ("save", {"root_cause": "x" * (MAX_TEXT_CHARS + 1)}, {"root_cause"}),
        ],
    )
    def test_a_fault_is_shown_at_its_field_and_the_text_is_kept(self, action, changed, wrong, client, as_reviewer):
        case = CaseFactory()
        before = CaseLibrary.objects.values().get(pk=case.pk)
        response = press(client, case, action, form_of(client, case), **{**CONTENT, **changed})
        form = response.context["form"]
        assert response.status_code == 200
        assert set(form.errors) == wrong
        assert form["error_code"].value() == changed.get("error_code", "REDIS_TIMEOUT")
        assert CaseLibrary.objects.values().get(pk=case.pk) == before

    def test_publishing_as_it_is_names_what_is_missing(self, client):
        person = UserFactory(is_staff=True, permissions=["cases_app.view_caselibrary", "cases_app.publish_caselibrary"])
        client.force_login(person, backend="django.contrib.auth.backends.ModelBackend")
        case = CaseFactory(status="ENRICHED", solution="")
        page = press(client, case, "publish").content.decode()
        assert "The case is not complete. Fault category, Solution" in page

    def test_a_move_keeps_what_was_typed_before_the_eyes(self, client, as_reviewer):
        case = CaseFactory(published=True)
        response = press(client, case, "unpublish", form_of(client, case), title="Half-written")
        assert "What you wrote is not saved yet." in response.content.decode()
        fields = {field.html_name: field.value() for field in response.context["form"]}
        assert fields["title"] == "Half-written"
        press(client, case, "save", fields)
        case.refresh_from_db()
        assert (case.status, case.title) == ("ENRICHED", "Half-written")

    def test_a_retirement_says_why(self, client, as_reviewer):
        case = CaseFactory()
        press(client, case, "retire", reason="Duplicate of another")
        assert case.transitions.get().reason == "Duplicate of another"


class TestStaleForm:
    def test_shows_who_changed_what_and_saves_knowingly(self, client, as_reviewer, other_reviewer):
        case = CaseFactory(enriched=True, solution="Raise the limit.\nWatch it.\nDone.")
        fields = form_of(client, case)
        theirs = {**CONTENT, "title": case.title, "solution": "Raise the limit.\nWatch it closely.\nDone."}
        enrichment.enrich_case(case_id=case.pk, content=theirs, version=0, reviewer=other_reviewer)

        response = press(client, case, "save", fields, title="Mine", root_cause="My cause")
        page = response.content.decode()
        assert response.status_code == 409
        assert "Somebody changed this case since you opened it." in page
        assert [row.actor for row in response.context["rows_since"]] == [other_reviewer]
        changes = {str(label): difference for label, difference in response.context["changes"]}
        assert set(changes) == {"Fault category", "Error code", "Root cause", "Solution"}
        assert [tuple(line) for line in changes["Solution"].lines] == [
            ("same", "Raise the limit."), ("gone", "Watch it."), ("new", "Watch it closely."), ("same", "Done."),
        ]  # fmt: skip
        assert re.search(r"<del>Watch it\.\s*</del><ins>Watch it closely\.\s*</ins>", page)
        form = response.context["form"]
        assert (form["title"].value(), form["root_cause"].value()) == ("Mine", "My cause")
        case.refresh_from_db()
        assert (case.title, case.version) == (theirs["title"], 1)

        again = dict(response.context["form"].data.items())
        assert press(client, case, "save", again).status_code == 302
        case.refresh_from_db()
        assert (case.title, case.root_cause, case.version) == ("Mine", "My cause", 2)

    def test_a_third_change_is_noticed_again(self, client, as_reviewer, other_reviewer):
        case = CaseFactory()
        fields = form_of(client, case)
        enrichment.enrich_case(case_id=case.pk, content=CONTENT, version=0, reviewer=other_reviewer)
        again = press(client, case, "save", fields, title="Mine").context["form"].data
        enrichment.enrich_case(
            case_id=case.pk, content={**CONTENT, "title": "Third"}, version=1, reviewer=other_reviewer
        )
        response = press(client, case, "save", again)
        assert response.status_code == 409
        assert [str(label) for label, _ in response.context["changes"]] == ["Title"]
        assert len(response.context["rows_since"]) == 1

    def test_a_verdict_that_came_meanwhile_is_named(self, client, as_reviewer):
        case = CaseFactory(enriched=True)
        fields = form_of(client, case)
        submission.submit_verdict(session_id=case.diagnosis_id, verdict="not_useful")
        response = press(client, case, "save_and_publish", fields, title="Mine")
        assert response.status_code == 409
        assert [row.label for row in response.context["rows_since"]] == ["Flagged"]
        assert response.context["changes"] == []


class TestByHand:
    def test_a_case_is_written(self, client, as_reviewer):
        response = client.post(ADD, CONTENT)
        case = CaseLibrary.objects.get()
        assert response["Location"] == page_of(case)
        assert (case.source_type, case.status, case.created_by) == ("MANUAL", "ENRICHED", as_reviewer.username)
        assert LogEntry.objects.get().is_addition()

    def test_it_needs_a_title(self, client, as_reviewer):
        response = client.post(ADD, {**CONTENT, "title": " "})
        assert list(response.context["form"].errors) == ["title"]
        assert response.context["form"]["solution"].value() == CONTENT["solution"]
        assert not CaseLibrary.objects.exists()


class TestCategories:
    def test_a_lead_changes_names_and_keywords_but_not_the_code(self, client, as_lead):
        response = client.post(
            f"{CATEGORIES}CACHE/change/",
            {
                "code": "OTHER",
                "name": "Caching",
                "name_zh": "缓存",
                "name_ru": "",
                "keywords": "redis\r\n\r\n 缓存 \r\nredis",
            },
        )
        assert response.status_code == 302
        category = FaultCategory.objects.get(pk="CACHE")
        assert (category.name, category.name_ru, category.keywords) == ("Caching", "", ["redis", "缓存"])
        assert not FaultCategory.objects.filter(pk="OTHER").exists()

    def test_keywords_are_shown_one_a_line(self, client, as_lead):
        page = client.get(f"{CATEGORIES}CACHE/change/").content.decode()
        assert re.search(r"<textarea[^>]*name=\"keywords\"[^>]*>\s*redis\ncache\n", page)

    @pytest.mark.parametrize(("code", "is_good"), [("GPU_2", True), ("gpu", False), ("GPU ", True), ("G-U", False)])
    def test_a_new_code_is_of_capitals(self, code, is_good, client, as_lead):
        response = client.post(f"{CATEGORIES}add/", {"code": code, "name": "GPU"})
        assert (response.status_code == 302) == is_good
        assert FaultCategory.objects.filter(pk=code.strip()).exists() == is_good

    def test_the_list_counts_cases(self, client, as_reviewer, django_assert_max_num_queries):
        CaseFactory(fault_category_id="CACHE")
        with django_assert_max_num_queries(9):
            response = client.get(CATEGORIES)
        assert {row.code: row.cases_here for row in rows_of(response)}["CACHE"] == 1
