"""The queue of bad cases and the page of one, through the browser's requests."""

from datetime import timedelta

import pytest
from django.contrib.admin.models import LogEntry
from django.contrib.auth import get_user_model
from django.utils import timezone

from feedback_app.models import BadCaseReview, BadCaseTransition, EventSource, EventType
from feedback_app.services import priority, terms, triage
from sessions_app.text import MAX_TEXT_CHARS
from tests.factories import (
    CaseFactory,
    FeedbackEventFactory,
    InvocationFactory,
    SessionFactory,
    TriageFactory,
    UserFactory,
)

pytestmark = pytest.mark.django_db

LIST = "/admin/feedback_app/badcasereview/"
NEXT = f"{LIST}next/"
VERDICT = {"failure_mode": "HALLUCINATION", "notes": "Made up a metric.", "corrected_answer": "It was DNS."}
ROLES = ("anonymous", "nobody", "staff", "Operator", "Reviewer", "Lead", "superuser")


def page_of(review):
    return f"{LIST}{review.pk}/change/"


def press(client, review, action, **fields):
    return client.post(page_of(review), {"action": action, **fields})


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
            pytest.param("get", f"{LIST}add/", (302, 302, 403, 403, 403, 403, 403), id="add"),
            pytest.param("post", f"{LIST}add/", (302, 302, 403, 403, 403, 403, 403), id="add-post"),
            pytest.param("get", f"{LIST}{{pk}}/delete/", (302, 302, 403, 403, 403, 403, 403), id="delete"),
            pytest.param("post", f"{LIST}{{pk}}/delete/", (302, 302, 403, 403, 403, 403, 403), id="delete-post"),
            pytest.param("get", f"{LIST}{{pk}}/history/", (302, 302, 403, 302, 302, 302, 302), id="history"),
            pytest.param("get", NEXT, (302, 302, 405, 405, 405, 405, 405), id="next-get"),
            pytest.param("post", NEXT, (302, 302, 403, 403, 302, 302, 302), id="next"),
            pytest.param("get", f"{LIST}holders/", (302, 302, 403, 403, 403, 200, 200), id="holders"),
            pytest.param("post", f"{LIST}holders/", (302, 302, 403, 403, 403, 405, 405), id="holders-post"),
        ],
    )
    def test_addresses(self, method, address, codes, client, sign_in):
        for role, code in zip(ROLES, codes, strict=True):
            review = TriageFactory()
            client.logout()
            sign_in(role)
            response = getattr(client, method)(address.format(pk=review.pk))
            assert response.status_code == code, role
            leads_to_login = response.status_code == 302 and "/login/" in response["Location"]
            assert leads_to_login == (role in ("anonymous", "nobody")), role
            get_user_model().objects.all().delete()

    @pytest.mark.parametrize(
        ("action", "start", "codes"),
        [
            pytest.param("claim", "open", (302, 302, 403, 403, 302, 302, 302), id="claim"),
            pytest.param("save_notes", "mine", (302, 302, 403, 403, 302, 302, 302), id="save-notes"),
            pytest.param("resolve", "mine", (302, 302, 403, 403, 302, 302, 302), id="resolve"),
            pytest.param("dismiss", "mine", (302, 302, 403, 403, 302, 302, 302), id="dismiss"),
            pytest.param("release", "mine", (302, 302, 403, 403, 302, 302, 302), id="release"),
            pytest.param("release", "theirs", (302, 302, 403, 403, 409, 302, 302), id="release-of-others"),
            pytest.param("resolve", "theirs", (302, 302, 403, 403, 409, 409, 409), id="resolve-of-others"),
            pytest.param("reopen", "closed", (302, 302, 403, 403, 403, 302, 302), id="reopen"),
            pytest.param("delete", "open", (302, 302, 403, 400, 400, 400, 400), id="no-such-button"),
        ],
    )
    def test_buttons(self, action, start, codes, client, sign_in):
        for role, code in zip(ROLES, codes, strict=True):
            client.logout()
            person = sign_in(role)
            states = {
                "open": {},
                "mine": {"state": "IN_REVIEW", "assignee": person},
                "theirs": {"state": "IN_REVIEW", "assignee": UserFactory()},
                "closed": {"state": "RESOLVED"},
            }
            review = TriageFactory(**states[start])
            before = BadCaseReview.objects.values().get(pk=review.pk)
            response = press(client, review, action, **(VERDICT if action != "claim" else {}))
            assert response.status_code == code, role
            moved = code == 302 and role not in ("anonymous", "nobody")
            assert (BadCaseReview.objects.values().get(pk=review.pk) != before) == moved, role
            assert LogEntry.objects.filter(object_id=str(review.pk)).exists() == moved, role
            get_user_model().objects.all().delete()

    def test_a_button_needs_a_token_of_its_own_site(self, reviewer):
        from django.test import Client

        client, review = Client(enforce_csrf_checks=True), TriageFactory()
        client.force_login(reviewer, backend="django.contrib.auth.backends.ModelBackend")
        assert press(client, review, "claim").status_code == 403
        assert client.post(NEXT).status_code == 403
        review.refresh_from_db()
        assert review.state == "OPEN"

    def test_the_page_shows_only_the_buttons_of_its_reader(self, client, sign_in):
        offered = {"Operator": [], "Reviewer": ["claim"], "Lead": ["claim", "assign"]}
        review = TriageFactory()
        for role, buttons in offered.items():
            sign_in(role)
            assert client.get(page_of(review)).context["offers"] == buttons


class TestQueue:
    def test_shows_what_waits_in_the_order_it_states(self, client, as_reviewer, other_reviewer):
        now = timezone.now()
        theirs = TriageFactory(state="IN_REVIEW", assignee=other_reviewer, due_at=now - timedelta(days=1))
        late = TriageFactory(due_at=now + timedelta(days=3))
        sure = TriageFactory(due_at=now + timedelta(days=5), session=SessionFactory(rejected=True, confidence=92))
        overdue = TriageFactory(due_at=now - timedelta(hours=1))
        TriageFactory(state="RESOLVED", resolved_at=now)
        response = client.get(LIST)
        assert rows_of(response) == [overdue, sure, late, theirs]
        assert [rule.hours for rule in response.context["order_rules"]][:2] == ["+72 h", "+24 h"]
        assert not client.get(f"{LIST}?state=closed").context["order_rules"]

    def test_a_row_says_what_a_reviewer_wants_to_know(self, client, as_reviewer):
        session = SessionFactory(rejected=True, scored=True, confidence=95, query="Why <b>slow</b>?", agent_id="bot/2")
        TriageFactory(session=session, state="IN_REVIEW", assignee=as_reviewer, due_at=timezone.now())
        FeedbackEventFactory(session=session, value=-1.0, payload={"comment": "Wrong <i>pool</i>"})
        page = client.get(LIST).content.decode()
        for text in ("Why &lt;b&gt;slow&lt;/b&gt;?", "Wrong &lt;i&gt;pool&lt;/i&gt;", "bot/2", "95%", ">65<"):
            assert text in page
        for mark in ("desk-badge--mine", "desk-badge--overdue", "desk-badge--confident", "desk-badge--in_review"):
            assert mark in page

    @pytest.mark.parametrize(
        ("query", "found"),
        [
            ("", {"free", "mine", "theirs"}),
            ("state=closed", {"resolved", "dismissed"}),
            ("state=all", {"free", "mine", "theirs", "resolved", "dismissed"}),
            ("state=RESOLVED", {"resolved"}),
            ("state=OPEN", {"free"}),
            ("state=nonsense", set()),
            ("assignee=mine", {"mine"}),
            ("assignee=nobody", {"free"}),
            ("assignee={theirs}", {"theirs"}),
            ("assignee=x", set()),
            ("due=overdue", {"theirs"}),
            ("comment=yes", {"mine"}),
            ("flow=AI_OPS", {"theirs"}),
            ("flow=other", {"mine"}),
            ("agent=pipe", {"theirs"}),
            ("score_from=40&score_to=60", {"mine"}),
            ("score_to=39", {"free"}),
            ("state=all&failure_mode=HALLUCINATION", {"resolved"}),
            ("confidence_from=81", {"mine"}),
            ("confidence_to=81", {"free"}),
            ("confidence_from=10&confidence_to=40.5", {"free"}),
            ("confidence_from=x", {"free", "mine", "theirs"}),
            ("facts=l0", {"mine"}),
            ("facts=miss", {"free"}),
            ("facts=truncated", {"free"}),
            ("facts=failed", {"theirs"}),
            ("facts=l0&facts=failed", set()),
            ("state=all&severity=HIGH", {"resolved"}),
            ("q=КЭШ", {"theirs"}),
            ("q=кэш+лавина", {"theirs"}),
            ("q=ТОЛЬКО", {"free"}),
            ("period=24h", {"free", "mine"}),
            ("assignee=mine&due=overdue", set()),
            ("q=缓存", {"mine"}),
            ("q=短信+网关", {"mine"}),
            ("q=100%25", {"free"}),
            ("q=_", set()),
            ("q=S-77", {"theirs"}),
            ("q=note-word", {"theirs"}),
        ],
    )
    def test_filters_and_search(self, query, found, client, as_reviewer, other_reviewer):
        now = timezone.now()
        reviews = {
            "free": TriageFactory(
                session=SessionFactory(rejected=True, query="100% CPU", evidence_score=20, confidence=40.5)
            ),
            "mine": TriageFactory(
                state="IN_REVIEW",
                assignee=as_reviewer,
                session=SessionFactory(
                    rejected=True, query="缓存雪崩", agent_flow="BATCH", evidence_score=50, confidence=95
                ),
            ),
            "theirs": TriageFactory(
                state="IN_REVIEW",
                assignee=other_reviewer,
                notes="note-word",
                due_at=now - timedelta(days=1),
                created_at=now - timedelta(days=3),
                session=SessionFactory(
                    rejected=True,
                    session_id="S-77",
                    agent_flow="AI_OPS",
                    agent_id="pipeline/1",
                    evidence_score=80,
                    query="Кэш: лавина",
                ),
            ),
            "resolved": TriageFactory(state="RESOLVED", failure_mode="HALLUCINATION", severity="HIGH"),
            "dismissed": TriageFactory(state="DISMISSED"),
        }
        FeedbackEventFactory(session=reviews["mine"].session, value=-1.0, payload={"comment": "就是短信网关"})
        FeedbackEventFactory(session=reviews["free"].session, value=-1.0, payload={"comment": ""})
        correction = {"original": "a", "corrected": "b", "userNote": ""}
        FeedbackEventFactory(session=reviews["free"].session, type="correction", value=0.5, payload=correction)
        BadCaseReview.objects.filter(pk=reviews["free"].pk).update(notes="Только здесь")
        InvocationFactory(step__session=reviews["mine"].session, l0_hit=True)
        InvocationFactory(step__session=reviews["free"].session, no_hit=True, is_truncated=True)
        InvocationFactory(step__session=reviews["theirs"].session, failed=True)
        for review in reviews.values():
            priority.refresh(review.session_id)
            terms.refresh(review.session_id)
        response = client.get(f"{LIST}?{query.format(theirs=other_reviewer.pk)}")
        assert response.status_code == 200
        assert {name for name, review in reviews.items() if review in rows_of(response)} == found

    def test_tabs_count_and_mark_what_is_shown(self, client, as_reviewer, other_reviewer):
        TriageFactory()
        TriageFactory(state="IN_REVIEW", assignee=as_reviewer, due_at=timezone.now())
        TriageFactory(state="IN_REVIEW", assignee=other_reviewer)
        TriageFactory(state="DISMISSED")
        tabs = client.get(f"{LIST}?assignee=mine").context["tabs"]
        assert [(tab.title, tab.count) for tab in tabs] == [
            ("Waiting", 3), ("Mine", 1), ("Unassigned", 1), ("Overdue", 1), ("Closed", None), ("All", None),
        ]  # fmt: skip
        assert [tab.title for tab in tabs if tab.is_active] == ["Mine"]

    def test_fetches_no_answers_and_asks_the_same_questions_for_one_row_and_for_many(
        self, client, as_reviewer, django_assert_max_num_queries
    ):
        def fill(count):
            for _ in range(count):
                review = TriageFactory(state="IN_REVIEW", assignee=as_reviewer)
                FeedbackEventFactory(session=review.session, value=-1.0, payload={"comment": "No."})

        fill(1)
        client.get(LIST)
        with django_assert_max_num_queries(LIST_QUERIES) as one:
            client.get(LIST)
        fill(29)
        with django_assert_max_num_queries(len(one)) as many:
            client.get(LIST)
        assert not any('"answer"' in query["sql"] or "`answer`" in query["sql"] for query in many.captured_queries)


LIST_QUERIES = 21


class TestButtonsOfTheList:
    def test_claim_stays_in_the_list_as_it_was_filtered(self, client, as_reviewer):
        review = TriageFactory(notes="Kept")
        address = f"{page_of(review)}?_changelist_filters=due%3Doverdue"
        response = client.post(address, {"action": "claim", "from_list": "1"})
        assert response["Location"] == f"{LIST}?due=overdue"
        review.refresh_from_db()
        assert (review.state, review.assignee, review.notes) == ("IN_REVIEW", as_reviewer, "Kept")

    def test_release_keeps_the_notes(self, client, as_reviewer):
        review = TriageFactory(state="IN_REVIEW", assignee=as_reviewer, notes="Kept")
        press(client, review, "release", from_list="1")
        review.refresh_from_db()
        assert (review.state, review.assignee, review.notes) == ("OPEN", None, "Kept")

    def test_who_comes_second_is_told_who_has_it(self, client, as_reviewer, other_reviewer):
        review = TriageFactory(state="IN_REVIEW", assignee=other_reviewer)
        response = client.post(page_of(review), {"action": "claim", "from_list": "1"}, follow=True)
        assert f"{other_reviewer.username} has taken this bad case." in response.content.decode()
        review.refresh_from_db()
        assert review.assignee == other_reviewer


class TestTakeNext:
    def test_claims_and_opens_the_first(self, client, as_reviewer):
        TriageFactory(due_at=timezone.now() + timedelta(days=2))
        first = TriageFactory(due_at=timezone.now() - timedelta(days=2))
        response = client.post(NEXT)
        assert response["Location"] == page_of(first)
        first.refresh_from_db()
        assert first.assignee == as_reviewer
        assert LogEntry.objects.get().object_id == str(first.pk)

    def test_says_when_none_is_free(self, client, as_reviewer, other_reviewer):
        TriageFactory(state="IN_REVIEW", assignee=other_reviewer)
        response = client.post(NEXT, follow=True)
        assert "No bad case is free." in response.content.decode()


class TestPage:
    def test_shows_all_that_a_verdict_needs(self, client, as_reviewer):
        session = SessionFactory(
            rejected=True, scored=True, confidence=91, query="Why is it slow?", answer="Raise **the limit**."
        )
        InvocationFactory(step__session=session, step__thought="Look at the pool first.", tool_name="query_metrics")
        case = CaseFactory(diagnosis=session)
        review = TriageFactory(session=session)
        events = {
            EventType.THUMBS: {"comment": "It was DNS."},
            EventType.STAR: {"stars": 2},
            EventType.CORRECTION: {"original": "the pool", "corrected": "the resolver", "userNote": "see tcpdump"},
            EventType.RE_ASK: {"question": "Really, why?", "previousQuestion": "Why?"},
            EventType.EDIT: {"original": "limit 50", "edited": "limit 60"},
        }
        for kind, payload in events.items():
            FeedbackEventFactory(session=session, type=kind, value=-1.0, payload=payload)
        triage.claim(review_id=review.pk, reviewer=as_reviewer)
        page = client.get(page_of(review)).content.decode()
        for text in (
            "Why is it slow?", "Raise <strong>the limit</strong>.", "It was DNS.", "2/5", "the resolver", "see tcpdump",
            "Really, why?", "limit 60", "Exact match found (L0)", "Look at the pool first.", "query_metrics", "Claimed",
            "91%", f"/admin/sessions_app/diagnosissession/{session.pk}/change/",
            f"/admin/cases_app/caselibrary/{case.pk}/change/",
        ):  # fmt: skip
            assert text in page, text

    def test_shows_what_else_is_known_of_the_same(self, client, as_reviewer):
        session = SessionFactory(rejected=True, query="Checkout is slow", conversation_id="talk", scored=True)
        review = TriageFactory(session=session)
        case = CaseFactory(manual=True, published=True, title="Checkout is slow <b>")
        twin = TriageFactory(session=SessionFactory(query="checkout is SLOW"), failure_mode="HALLUCINATION")
        talk = SessionFactory(query="And <i>now</i>?", conversation_id="talk")
        TriageFactory()
        page = client.get(page_of(review))
        assert [one.case for one in page.context["similar_cases"]] == [case]
        assert page.context["same_question"] == [twin]
        assert page.context["same_conversation"] == [talk]
        text = page.content.decode()
        assert "Checkout is slow &lt;b&gt;" in text
        assert "And &lt;i&gt;now&lt;/i&gt;?" in text

    def test_cases_are_shown_only_to_who_may_see_them(self, client):
        person = UserFactory(is_staff=True, permissions=["feedback_app.view_badcasereview"])
        client.force_login(person, backend="django.contrib.auth.backends.ModelBackend")
        CaseFactory(manual=True, published=True, title="Checkout is slow")
        review = TriageFactory(session=SessionFactory(rejected=True, query="Checkout is slow"))
        response = client.get(page_of(review))
        assert response.context["similar_cases"] is None
        assert "Similar cases" not in response.content.decode()

    def test_asks_few_questions_whatever_the_session_s_size(self, client, as_reviewer, django_assert_max_num_queries):
        session = SessionFactory(rejected=True, query="ORA-00060 again", conversation_id="talk", scored=True)
        review = TriageFactory(state="IN_REVIEW", assignee=as_reviewer, session=session)
        client.get(page_of(review))
        for _ in range(30):
            InvocationFactory(step__session=review.session)
            FeedbackEventFactory(session=review.session)
            BadCaseTransition.objects.create(review=review, action="claim", from_state="OPEN", to_state="IN_REVIEW")
        with django_assert_max_num_queries(PAGE_QUERIES):
            client.get(page_of(review))

    @pytest.mark.parametrize("pk", ["4711", "abc", "9" * 40, "1.5", "%20"])
    def test_an_unknown_bad_case_leads_back(self, pk, client, as_reviewer):
        response = client.get(f"{LIST}{pk}/change/")
        assert (response.status_code, response["Location"]) == (302, "/admin/")

    def test_forms_never_write_a_state(self, client, as_lead):
        review = TriageFactory(state="IN_REVIEW", assignee=as_lead)
        press(
            client, review, "save_notes", **VERDICT, state="RESOLVED", assignee="", case="x", resolved_at="2026-01-01"
        )
        review.refresh_from_db()
        assert (review.state, review.assignee, review.resolved_at) == ("IN_REVIEW", as_lead, None)


PAGE_QUERIES = 20


class TestVerdict:
    @pytest.fixture
    def review(self, as_reviewer):
        return TriageFactory(state="IN_REVIEW", assignee=as_reviewer)

    def test_resolve(self, client, review):
        response = press(client, review, "resolve", **VERDICT)
        assert response["Location"] == page_of(review)
        review.refresh_from_db()
        assert {name: getattr(review, name) for name in VERDICT} == VERDICT
        assert review.state == "RESOLVED"
        entry = LogEntry.objects.get()
        assert (entry.object_id, entry.is_change()) == (str(review.pk), True)

    def test_notes_are_saved_with_line_feeds(self, client, review):
        press(client, review, "save_notes", **{**VERDICT, "notes": "one\r\ntwo"})
        review.refresh_from_db()
        assert (review.state, review.notes, review.failure_mode) == ("IN_REVIEW", "one\ntwo", "HALLUCINATION")

    @pytest.mark.parametrize(
        ("action", "lacking", "field", "said"),
        [
            ("resolve", {"failure_mode": ""}, "failure_mode", "Choose what went wrong."),
            ("dismiss", {"notes": ""}, "notes", "Say why nothing is to be done."),
            ("resolve", {"failure_mode": "BAD_LUCK"}, "failure_mode", "BAD_LUCK"),
            ("save_notes", {"notes": "x" * (MAX_TEXT_CHARS + 1)}, "notes", "at most 1048576"),
        ],
    )
    def test_a_fault_is_shown_at_its_field_and_the_text_is_kept(self, action, lacking, field, said, client, review):
        fields = VERDICT | lacking
        response = press(client, review, action, **fields)
        assert response.status_code == 200
        form = response.context["form"]
        assert list(form.errors) == [field]
        assert said in str(form.errors[field])
        assert form["corrected_answer"].value() == "It was DNS."
        review.refresh_from_db()
        assert (review.state, review.notes) == ("IN_REVIEW", "")

    def test_releasing_keeps_what_was_typed(self, client, review):
        press(client, review, "release", **VERDICT)
        review.refresh_from_db()
        assert (review.state, review.assignee, review.notes) == ("OPEN", None, VERDICT["notes"])

    def test_a_verdict_without_fields_is_no_verdict(self, client, review):
        assert press(client, review, "resolve").status_code == 400


class TestTwoPeople:
    def test_a_form_whose_claim_was_released_meanwhile_loses_nothing(self, client, as_reviewer, lead):
        review = TriageFactory(state="IN_REVIEW", assignee=as_reviewer)
        triage.release(review_id=review.pk, reviewer=lead, is_lead=True, reason="Rita is away")
        response = press(client, review, "resolve", **VERDICT)
        page = response.content.decode()
        assert response.status_code == 409
        assert "This bad case is Open; take it first." in page
        for text in VERDICT.values():
            assert text in page
        assert response.context["offers"] == ["claim"]

        response = press(client, review, "claim", **VERDICT)  # the form, sent on by the button that is offered
        assert response.status_code == 200
        assert response.context["form"]["notes"].value() == VERDICT["notes"]
        assert "What you wrote is not saved yet." in response.content.decode()
        assert press(client, review, "resolve", **VERDICT).status_code == 302
        review.refresh_from_db()
        assert (review.state, review.notes) == ("RESOLVED", VERDICT["notes"])

    def test_what_another_saved_meanwhile_is_shown(self, client, as_reviewer, other_reviewer):
        review = TriageFactory(state="IN_REVIEW", assignee=other_reviewer, notes="Otto's notes")
        response = press(client, review, "save_notes", **VERDICT)
        page = response.content.decode()
        assert response.status_code == 409
        assert f"{other_reviewer.username} has taken this bad case." in page
        assert "Otto&#x27;s notes" in page
        assert VERDICT["notes"] in page
        review.refresh_from_db()
        assert review.notes == "Otto's notes"

    def test_a_lead_releases_what_another_holds_and_says_why(self, client, as_lead, reviewer):
        review = TriageFactory(state="IN_REVIEW", assignee=reviewer, notes="Kept")
        assert client.get(page_of(review)).context["offers"] == ["release", "assign"]
        press(client, review, "release", reason="Rita is away")
        review.refresh_from_db()
        assert (review.state, review.notes) == ("OPEN", "Kept")
        row = review.transitions.get()
        assert (row.actor, row.reason) == (as_lead, "Rita is away")


class TestInOtherHands:
    def test_a_lead_assigns_by_the_page(self, client, as_lead, reviewer, operator):
        review = TriageFactory()
        offered = client.get(page_of(review)).context["assign_form"].fields["assignee"].queryset
        assert {person.username for person in offered} == {"lena", "rita"}
        assert press(client, review, "assign", assignee=str(reviewer.pk), reason="Yours").status_code == 302
        review.refresh_from_db()
        assert review.assignee == reviewer
        assert LogEntry.objects.get().object_id == str(review.pk)

    @pytest.mark.parametrize("assignee", ["", "x", "4711", "9" * 40])
    def test_to_nobody_it_goes_not(self, assignee, client, as_lead):
        review = TriageFactory()
        response = press(client, review, "assign", assignee=assignee)
        assert response.status_code == 200
        assert "Choose to whom it is to go." in response.content.decode()
        review.refresh_from_db()
        assert review.state == "OPEN"

    def test_a_reviewer_hands_over_and_what_was_typed_goes_along(self, client, as_reviewer, other_reviewer):
        review = TriageFactory(state="IN_REVIEW", assignee=as_reviewer)
        press(client, review, "assign", assignee=str(other_reviewer.pk), **VERDICT)
        review.refresh_from_db()
        assert (review.assignee, review.notes) == (other_reviewer, VERDICT["notes"])

    def test_a_reviewer_takes_nothing_from_another(self, client, as_reviewer, other_reviewer):
        review = TriageFactory(state="IN_REVIEW", assignee=other_reviewer)
        assert press(client, review, "assign", assignee=str(as_reviewer.pk)).status_code == 409
        review.refresh_from_db()
        assert review.assignee == other_reviewer

    def test_an_expired_claim_is_offered_and_said_to_be_one(self, client, as_reviewer, other_reviewer):
        claimed = timezone.now() - timedelta(hours=9)
        review = TriageFactory(state="IN_REVIEW", assignee=other_reviewer, claimed_at=claimed)
        response = client.get(page_of(review))
        assert response.context["offers"] == ["claim"]
        assert "Claim expired" in response.content.decode()
        assert rows_of(client.get(f"{LIST}?assignee=nobody")) == [review]

    def test_the_page_says_why_it_comes_first(self, client, as_reviewer):
        review = TriageFactory(session=SessionFactory(rejected=True, confidence=95))
        page = client.get(page_of(review)).content.decode()
        assert "Why this early" in page
        assert "+72 h</b> Stated with confidence, and rejected" in page

    def test_who_holds_what(self, client, as_lead, reviewer):
        TriageFactory(state="IN_REVIEW", assignee=reviewer, due_at=timezone.now() - timedelta(hours=1))
        page = client.get(f"{LIST}holders/").content.decode()
        assert f"?assignee={reviewer.pk}" in page
        assert "desk-badge--overdue" in page


class TestEvents:
    ADDRESS = "/admin/feedback_app/agentfeedback/"

    @pytest.mark.parametrize(
        ("query", "found"),
        [
            ("", {"thumb", "star", "correction"}),
            ("type=star", {"star"}),
            ("type=star&type=thumbs", {"star", "thumb"}),
            ("source=system", {"star"}),
            ("agent=pipe", {"correction"}),
            ("comment=yes", {"thumb", "correction"}),
            ("period=24h", {"thumb", "star"}),
            ("q=网关", {"thumb"}),
            ("q=tcpdump", {"correction"}),
            ("q=S-7", {"star"}),
            ("q=%25", set()),
        ],
    )
    def test_lists_and_filters(self, query, found, client, as_reviewer):
        events = {
            "thumb": FeedbackEventFactory(value=-1.0, payload={"comment": "短信网关 <script>"}),
            "star": FeedbackEventFactory(
                type="star", value=0.25, payload={"stars": 2}, source=EventSource.SYSTEM,
                session=SessionFactory(session_id="S-77"),
            ),
            "correction": FeedbackEventFactory(
                type="correction", value=0.5, payload={"original": "a", "corrected": "b", "userNote": "see tcpdump"},
                agent_id="pipeline/1", created_at=timezone.now() - timedelta(days=3),
            ),
        }  # fmt: skip
        response = client.get(f"{self.ADDRESS}?{query}")
        assert {name for name, event in events.items() if event in rows_of(response)} == found
        assert "<script>" not in response.content.decode().split('id="result_list"')[-1].split("</table>")[0]

    def test_shows_one_and_nobody_changes_it(self, client, as_lead):
        event = FeedbackEventFactory(type="edit", value=0.5, payload={"original": "limit 50", "edited": "limit 60"})
        address = f"{self.ADDRESS}{event.pk}/change/"
        assert "limit 60" in client.get(address).content.decode()
        assert client.post(address, {"value": "1"}).status_code == 403
        assert client.get(f"{self.ADDRESS}add/").status_code == 403
        assert client.post(f"{self.ADDRESS}{event.pk}/delete/", {"post": "yes"}).status_code == 403

    def test_asks_the_same_questions_for_one_row_and_for_many(self, client, as_reviewer, django_assert_max_num_queries):
        FeedbackEventFactory()
        client.get(self.ADDRESS)
        with django_assert_max_num_queries(9) as one:
            client.get(self.ADDRESS)
        for _ in range(20):
            FeedbackEventFactory(payload={"comment": "No."})
        with django_assert_max_num_queries(len(one)):
            client.get(self.ADDRESS)


class TestSessionPage:
    def test_leads_to_the_triage_and_the_case(self, client, as_reviewer):
        session = SessionFactory(rejected=True)
        case, review = CaseFactory(diagnosis=session), TriageFactory(session=session)
        FeedbackEventFactory(session=session, value=-1.0, payload={"comment": "It was DNS."})
        page = client.get(f"/admin/sessions_app/diagnosissession/{session.pk}/change/").content.decode()
        assert page_of(review) in page
        assert f"/admin/cases_app/caselibrary/{case.pk}/change/" in page
        assert "It was DNS." in page

    def test_shows_only_what_its_reader_may_see(self, client):
        person = UserFactory(is_staff=True, permissions=["sessions_app.view_diagnosissession"])
        client.force_login(person, backend="django.contrib.auth.backends.ModelBackend")
        session = SessionFactory(rejected=True)
        review = TriageFactory(session=session)
        FeedbackEventFactory(session=session, value=-1.0, payload={"comment": "It was DNS."})
        page = client.get(f"/admin/sessions_app/diagnosissession/{session.pk}/change/").content.decode()
        assert page_of(review) not in page
        assert "It was DNS." not in page
