"""Reviewers at work in a browser: two at once, by keyboard alone, and with hostile text on the desk."""

import io
import json
import re

import pytest

from cases_app.models import CaseLibrary
from cases_app.services import enrichment
from cases_app.services.importing import prepare_import
from feedback_app.models import BadCaseReview, SecondReview
from feedback_app.services import submission, triage
from tests import hostile
from tests.factories import CaseFactory, InvocationFactory, SessionFactory, StepFactory, TriageFactory

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]

QUEUE = "/admin/feedback_app/badcasereview/"
LIBRARY = "/admin/cases_app/caselibrary/"
HOSTILE = hostile.ALL
TRACES = """
(() => {
    const odd = (e, name) => {
        const value = e.getAttribute(name).trim();
        if (name.startsWith("on")) return value.includes("alert");
        if (name === "x-data" || name === "x-init" || name.startsWith("hx-")) return /alert|evil/.test(value);
        if (e.tagName === "A") return !/^(https?|mailto):$/.test(e.protocol);
        return ["src", "srcset", "srcdoc", "data", "action", "formaction", "href", "xlink:href"].includes(name)
            && /evil|javascript:|data:text/i.test(value);
    };
    return [...document.querySelectorAll("*")].flatMap((e) =>
        e.getAttributeNames().filter((name) => odd(e, name)).map((name) => `${e.tagName} ${name}`));
})()
"""
"""What of it became more than text: handlers, directives, links that run, things fetched from elsewhere."""


def as_typed(text):
    """What a field of a form holds of a text: one kind of line end."""
    return text.replace("\r\n", "\n").replace("\r", "\n")


def page_of(thing):
    address = QUEUE if isinstance(thing, BadCaseReview) else LIBRARY
    return f"{address}{thing.pk}/change/"


def tab_to(page, name, *, limit=120):
    """Press Tab until what has the focus is called `name`, as somebody without a mouse does."""
    for _ in range(limit):
        page.keyboard.press("Tab")
        focused = page.evaluate(
            "(() => { const e = document.activeElement, name = e.cloneNode(true);"
            " name.querySelectorAll('kbd').forEach((key) => key.remove());"  # shown, not read out
            " return ((e.labels && e.labels[0] && e.labels[0].innerText) || name.innerText || '').trim(); })()"
        )
        if focused == name:
            return
    pytest.fail(f"Tab never reached {name!r}.")


def write(page, name, text):
    """Put `text` in place of what stands in a field."""
    tab_to(page, name)
    page.keyboard.press("Control+a")
    page.keyboard.insert_text(text)


def press(page, name):
    tab_to(page, name)
    with page.expect_navigation():
        page.keyboard.press("Enter")


class TestTwoReviewers:
    def test_one_gets_the_bad_case_and_the_other_is_told_who_has_it(
        self, signed_in, reviewer, other_reviewer, watch, screenshot
    ):
        watch.expect("status of 409")
        review = TriageFactory()
        hers, his = signed_in(reviewer), signed_in(other_reviewer)
        for page in (hers, his):
            page.goto(page_of(review))
        hers.get_by_role("button", name="Claim").click()
        hers.get_by_text("You have taken this bad case.").wait_for()
        his.get_by_role("button", name="Claim").click()
        his.get_by_text("rita has taken this bad case.").wait_for()
        screenshot(his, "taken")
        assert his.get_by_role("button", name="Resolve").count() == 0
        review.refresh_from_db()
        assert review.assignee == reviewer

    def test_from_the_list_likewise(self, signed_in, reviewer, other_reviewer):
        review = TriageFactory()
        hers, his = signed_in(reviewer), signed_in(other_reviewer)
        for page in (hers, his):
            page.goto(f"{QUEUE}?assignee=nobody")
        hers.get_by_role("button", name="Claim").click()
        hers.get_by_text("You have taken this bad case.").wait_for()
        assert hers.url.endswith("?assignee=nobody")
        his.get_by_role("button", name="Claim").click()
        his.get_by_text("rita has taken this bad case.").wait_for()
        review.refresh_from_db()
        assert review.assignee == reviewer

    def test_a_claim_released_meanwhile_loses_no_word(self, signed_in, reviewer, lead, watch, screenshot):
        watch.expect("status of 409")
        review = TriageFactory()
        triage.claim(review_id=review.pk, reviewer=reviewer)
        page = signed_in(reviewer)
        page.goto(page_of(review))
        page.get_by_label("Notes").fill("Half a verdict")
        triage.release(review_id=review.pk, reviewer=lead, is_lead=True)
        page.get_by_role("button", name="Save notes").click()
        page.get_by_text("This bad case is Open; take it first.").wait_for()
        assert page.get_by_label("Notes").input_value() == "Half a verdict"
        screenshot(page, "released-meanwhile")
        page.get_by_role("button", name="Claim").click()
        page.get_by_text("What you wrote is not saved yet.").wait_for()
        page.get_by_role("button", name="Save notes").click()
        page.get_by_text("Your notes are saved.").wait_for()
        review.refresh_from_db()
        assert (review.notes, review.assignee) == ("Half a verdict", reviewer)

    def test_a_stale_case_shows_what_changed_and_is_saved_knowingly(
        self, signed_in, reviewer, other_reviewer, watch, screenshot
    ):
        watch.expect("status of 409")
        case = CaseFactory(enriched=True, solution="Raise the limit.\nWatch it.")
        page = signed_in(reviewer)
        page.goto(page_of(case))
        page.get_by_label("Title").fill("Mine")
        enrichment.enrich_case(
            case_id=case.pk,
            content={
                "fault_category": "SLOW_RESPONSE", "error_code": "", "title": case.title,
                "root_cause": case.root_cause, "solution": "Raise the limit.\nWatch it closely.",
            },
            version=0,
            reviewer=other_reviewer,
        )  # fmt: skip
        page.get_by_role("button", name="Save", exact=True).click()
        page.get_by_text("Changed since you opened it").wait_for()
        assert page.locator("ins").inner_text().strip() == "Watch it closely."
        assert page.get_by_label("Title").input_value() == "Mine"
        screenshot(page, "stale")
        page.get_by_role("button", name="Save over it").click()
        page.get_by_text("The case is saved.").wait_for()
        case.refresh_from_db()
        assert (case.title, case.solution) == ("Mine", "Raise the limit.\nWatch it.")


class TestByKeyboard:
    def test_a_whole_triage(self, signed_in, reviewer):
        review = TriageFactory()
        page = signed_in(reviewer)
        page.goto(QUEUE)
        press(page, "Take next")
        assert page.url.endswith(page_of(review))
        tab_to(page, "What went wrong")
        page.keyboard.type("Halluc")
        write(page, "Notes", "Made up a metric.")
        write(page, "Corrected answer", "It was DNS.")
        press(page, "Resolve")
        page.get_by_text("The bad case is resolved.").wait_for()
        review.refresh_from_db()
        assert (review.state, review.failure_mode) == ("RESOLVED", "HALLUCINATION")
        assert (review.notes, review.corrected_answer) == ("Made up a metric.", "It was DNS.")

    def test_a_whole_enrichment_and_publication(self, signed_in, reviewer):
        case = CaseFactory(diagnosis=SessionFactory(feedback="useful", query="redis 缓存雪崩", answer="One TTL."))
        page = signed_in(reviewer)
        page.goto(LIBRARY)
        press(page, "Next to enrich")
        assert page.url.endswith(page_of(case))
        tab_to(page, "Fault category")
        page.keyboard.type("Cache")
        write(page, "Error code", "REDIS_TIMEOUT")
        write(page, "Title", "Keys expire all at once")
        write(page, "Root cause", "One TTL for all keys.")
        write(page, "Solution", "Spread the TTLs.")
        press(page, "Save and publish")
        page.get_by_text("The case is published").wait_for()
        case.refresh_from_db()
        assert (case.status, case.fault_category_id, case.error_code) == ("PUBLISHED", "CACHE", "REDIS_TIMEOUT")
        assert (case.title, case.solution) == ("Keys expire all at once", "Spread the TTLs.")

    def test_an_enrichment_by_accepting_what_is_suggested(self, signed_in, reviewer):
        session = SessionFactory(
            feedback="useful", query="redis 缓存雪崩", metadata={"alert": {"name": "CacheMissHigh"}},
            answer="# Keys expire at once\n## 根因\nOne TTL & <b>all</b>.\n\n## 解决方案\nSpread them.\n",
        )  # fmt: skip
        case = CaseFactory(diagnosis=session)
        page = signed_in(reviewer)
        page.goto(page_of(case))
        before = page.get_by_label("Solution", exact=True).input_value()
        page.keyboard.press("5")
        assert page.get_by_label("Solution", exact=True).input_value() == "Spread them."
        page.keyboard.press("5")  # taken back
        assert page.get_by_label("Solution", exact=True).input_value() == before
        page.keyboard.press("0")
        tab_to(page, "Save and publish")
        assert page.get_by_role("button", name="Take Spread them.").get_attribute("aria-pressed") == "true"
        with page.expect_navigation():
            page.keyboard.press("Enter")
        page.get_by_text("The case is published").wait_for()
        case.refresh_from_db()
        assert (case.status, case.fault_category_id, case.error_code) == ("PUBLISHED", "CACHE", "CacheMissHigh")
        assert (case.title, case.solution) == ("Keys expire at once", "Spread them.")
        assert case.root_cause == "One TTL & <b>all</b>."

    def test_keys_do_nothing_where_somebody_writes(self, signed_in, reviewer):
        case = CaseFactory(diagnosis=SessionFactory(query="redis", answer="## Cause\nx\n## Fix\ny"))
        page = signed_in(reviewer)
        page.goto(page_of(case))
        title = page.get_by_label("Title", exact=True)
        title.focus()
        page.keyboard.press("End")
        page.keyboard.type("0 4 5")
        assert title.input_value() == "redis0 4 5"
        assert page.get_by_label("Root cause", exact=True).input_value() == ""  # of an answer that nobody split
        page.keyboard.press("Control+a")
        page.get_by_role("button", name="Take x").press("Enter")
        assert page.get_by_label("Root cause", exact=True).input_value() == "x"
        page.get_by_label("Root cause", exact=True).press("End")
        page.keyboard.type("!")  # written on: no longer to be taken back
        page.get_by_role("button", name="Take x").press("Enter")
        page.get_by_role("button", name="Take x").press("Enter")
        assert page.get_by_label("Root cause", exact=True).input_value() == "x!"

    def test_enter_in_a_field_decides_nothing(self, signed_in, reviewer):
        case = CaseFactory()
        page = signed_in(reviewer)
        page.goto(page_of(case))
        page.get_by_label("Title").fill("Renamed")
        with page.expect_navigation():
            page.keyboard.press("Enter")
        case.refresh_from_db()
        assert (case.title, case.status) == ("Renamed", "ENRICHED")

    def test_leaving_with_unsaved_text_is_asked_about(self, signed_in, reviewer, watch):
        watch.expect("dialog")
        case = CaseFactory()
        page = signed_in(reviewer)
        page.goto(page_of(case))
        page.get_by_label("Title").press_sequentially(" and more")
        page.get_by_role("link", name="Back to the list").click()
        page.wait_for_timeout(300)
        assert watch.faults
        assert page.url.endswith(page_of(case))


class TestHostileText:
    @pytest.fixture
    def things(self, reviewer, other_reviewer):
        """A bad case and a case with hostile text in every field that anybody may write."""
        one, other, code, formula, braces = hostile.IDS
        session = SessionFactory(
            session_id=one, agent_id=other, conversation_id=code, user_ref=formula, agent_flow=braces,
            query=HOSTILE, answer=HOSTILE, metadata={"title": HOSTILE, HOSTILE[:60]: [HOSTILE]},
            confidence=95, scored=True, evaluation_error=HOSTILE,
        )  # fmt: skip
        step = StepFactory(
            session=session, agent_name=other, model_name=HOSTILE[:60], thought=HOSTILE,
            model_input={"messages": [{"content": HOSTILE}]}, model_output={HOSTILE[:60]: HOSTILE},
        )  # fmt: skip
        InvocationFactory(
            step=step, tool_name=other, input_params={HOSTILE[:60]: HOSTILE}, output_preview=HOSTILE,
            success=False, error_message=HOSTILE, retrieval_details={"x": HOSTILE},
        )  # fmt: skip
        say = {"session_id": session.session_id}
        submission.submit_verdict(**say, verdict="useful", comment=HOSTILE)
        case = CaseLibrary.objects.get()
        texts = {"error_code": HOSTILE[:128], "title": HOSTILE[:200], "root_cause": HOSTILE, "solution": HOSTILE[3:]}
        enrichment.enrich_case(
            case_id=case.pk, content={"fault_category": "CACHE", **texts}, version=case.version, reviewer=reviewer
        )
        enrichment.retire_case(case_id=case.pk, reviewer=reviewer, reason=HOSTILE)
        enrichment.restore_case(case_id=case.pk, reviewer=reviewer)
        submission.submit_verdict(**say, verdict="not_useful", comment=HOSTILE)
        for kind, payload in {
            "correction": {"original": HOSTILE, "corrected": HOSTILE[5:], "userNote": HOSTILE},
            "re_ask": {"question": HOSTILE, "previousQuestion": HOSTILE},
            "edit": {"original": HOSTILE, "edited": HOSTILE[5:]},
        }.items():
            submission.record_event({**say, "type": kind, "payload": payload})
        review = BadCaseReview.objects.get()
        triage.claim(review_id=review.pk, reviewer=other_reviewer)
        triage.save_notes(review_id=review.pk, reviewer=other_reviewer, notes=HOSTILE, corrected_answer=HOSTILE)
        triage.release(review_id=review.pk, reviewer=other_reviewer, reason=HOSTILE)
        for text in hostile.TEXTS:  # each at the beginning of a row, a preview, a difference
            CaseFactory(manual=True, enriched=True, title=text[:200], error_code=text[:128], created_by=text[:150])
        return session, review, case

    def test_nothing_of_it_runs(self, signed_in, lead, reviewer, things, watch):
        session, review, case = things
        page = signed_in(lead)
        event = session.feedback_events.first()
        twin = CaseFactory(title=case.title, diagnosis=SessionFactory(query=HOSTILE, answer=HOSTILE))
        judged = TriageFactory(session=SessionFactory(rejected=True, query=HOSTILE, answer=HOSTILE), notes=HOSTILE)
        second = SecondReview.objects.create(
            review=judged, state="DISAGREED", first_mode="HALLUCINATION", mode="INCOMPLETE", notes=HOSTILE,
            first_reviewer=reviewer, reviewer=reviewer,
        )  # fmt: skip
        rows = [{"title": text[:200], "solution": text} for text in hostile.TEXTS]
        rows.append({"case_id": str(case.pk), "root_cause": HOSTILE[9:]})
        file = io.BytesIO("\n".join(json.dumps(row) for row in rows).encode())
        job = prepare_import(name=f"{hostile.IDS[0]}.jsonl", file=file, actor=lead)
        for address in (
            QUEUE, f"{QUEUE}?q=script", page_of(review), f"{QUEUE}{review.pk}/history/", f"{QUEUE}holders/",
            f"{LIBRARY}?queue=all", page_of(case), f"{LIBRARY}{case.pk}/history/", page_of(twin),
            f"{LIBRARY}{case.pk}/versions/", f"{LIBRARY}{case.pk}/merge/{twin.pk}/",
            f"/admin/cases_app/bulkjob/{job.pk}/change/", f"/admin/feedback_app/secondreview/{second.pk}/change/",
            "/admin/feedback_app/agentfeedback/", f"/admin/feedback_app/agentfeedback/{event.pk}/change/",
            "/admin/sessions_app/diagnosissession/", "/admin/",
            f"/admin/sessions_app/diagnosissession/{session.pk}/change/",
        ):  # fmt: skip
            answer = page.goto(address)
            assert answer.status == 200, address
            page.wait_for_timeout(150)
            assert page.evaluate(TRACES) == [], address
            assert "49" not in re.findall(r"\{\{ ?7\*7 ?\}\}|\b49\b", page.locator("body").inner_text()), address
        assert watch.faults == []

    def test_nor_while_it_is_worked_on(self, signed_in, lead, reviewer, things, watch):
        watch.expect("status of 409")
        _session, review, case = things
        page = signed_in(lead)
        page.goto(page_of(review))
        page.get_by_role("button", name="Claim").click()
        page.get_by_text("You have taken this bad case.").wait_for()
        typed = as_typed(HOSTILE)
        assert page.get_by_label("Notes").input_value() == typed
        page.get_by_role("button", name="Resolve").click()
        page.get_by_text("Choose what went wrong.").first.wait_for()
        page.get_by_label("What went wrong").select_option("HALLUCINATION")
        page.get_by_role("button", name="Resolve").click()
        page.get_by_text("The bad case is resolved.").wait_for()

        page.goto(page_of(case))
        enrichment.retire_case(case_id=case.pk, reviewer=reviewer, reason=HOSTILE)
        enrichment.restore_case(case_id=case.pk, reviewer=reviewer, reason=HOSTILE)
        case.refresh_from_db()
        enrichment.enrich_case(
            case_id=case.pk,
            content={
                "fault_category": "CACHE",
                "error_code": "",
                "title": "x",
                "root_cause": "y\n" + HOSTILE,
                "solution": "",
            },
            version=case.version,
            reviewer=reviewer,
        )
        page.get_by_role("button", name="Save", exact=True).click()
        page.get_by_text("Changed since you opened it").wait_for()
        page.get_by_role("button", name="Save over it").click()
        page.get_by_text("The case is saved.").wait_for()
        case.refresh_from_db()
        assert case.root_cause == typed
        assert [fault for fault in watch.faults if "409" not in fault] == []


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("width", [1280, 390])
def test_pages_fit_their_window(width, theme, signed_in, lead, screenshot):
    session = SessionFactory(
        rejected=True, scored=True, confidence=92, query="缓存雪崩 " * 30, metadata={"alert": {"name": "Cache" * 25}},
        answer=f"# Keys expire\n## Cause\n| a | b |\n|-|-|\n|1|2|\n## {'Solution ' * 8}\n" + "Spread the TTLs. " * 40,
    )  # fmt: skip
    InvocationFactory(step__session=session, l0_hit=True)
    review, case = TriageFactory(session=session), CaseFactory(diagnosis=session, error_code="X" * 120, title="y" * 200)
    triage.claim(review_id=review.pk, reviewer=lead)
    page = signed_in(lead, viewport={"width": width, "height": 900}, color_scheme=theme)
    for name, address in {
        "queue": QUEUE,
        "bad-case": page_of(review),
        "holders": f"{QUEUE}holders/",
        "library": LIBRARY,
        "case": page_of(case),
        "new-case": f"{LIBRARY}add/",
        "events": "/admin/feedback_app/agentfeedback/",
        "categories": "/admin/cases_app/faultcategory/",
    }.items():
        page.goto(address)
        assert page.evaluate("document.documentElement.scrollWidth") <= width, name
        screenshot(page, f"{name}-{width}-{theme}")
