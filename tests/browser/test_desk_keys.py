"""The desk by keyboard alone: keys and page loads are counted."""

import pytest

from cases_app.models import CaseLibrary
from feedback_app.services import submission, triage
from tests.factories import SessionFactory, StepFactory, TriageFactory

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]

QUEUE = "/admin/feedback_app/badcasereview/"


class Hands:
    """Somebody at a keyboard: counts keys, and the pages that were loaded meanwhile."""

    def __init__(self, page):
        self.page, self.keys, self.loads = page, 0, 0
        page.on("domcontentloaded", lambda _: self.count_load())

    def count_load(self):
        self.loads += 1

    def begin(self):
        self.keys = self.loads = 0

    def press(self, *keys):
        for key in keys:
            self.keys += 1
            self.page.keyboard.press(key)

    def press_and_wait(self, key):
        with self.page.expect_navigation():
            self.press(key)


def rejected(**columns):
    session = SessionFactory(**columns)
    StepFactory(session=session)
    StepFactory(session=session)
    submission.submit_verdict(session_id=session.session_id, verdict="not_useful")
    submission.record_event(
        {
            "session_id": session.session_id,
            "type": "correction",
            "payload": {"original": session.answer, "corrected": "## Root cause\nDNS.\n## Solution\nRestart it."},
        }
    )
    return session.triage


def test_a_triage_with_a_case_and_on_to_the_next(signed_in, reviewer):
    first, second = rejected(confidence=95), rejected()
    page = signed_in(reviewer)
    hands = Hands(page)
    page.goto(QUEUE)
    hands.begin()
    hands.press_and_wait("n")
    assert page.url.endswith(f"{first.pk}/change/")
    hands.press("t", "2", "b", "ArrowDown", "Escape", "v", "h", "Escape")
    hands.press_and_wait("m")
    page.get_by_text("a case is made of the correction").wait_for()
    assert (hands.keys, hands.loads) == (10, 2)
    assert hands.keys <= 12
    first.refresh_from_db()
    case = CaseLibrary.objects.get()
    assert (first.state, first.failure_mode, first.blamed_step, first.severity, first.case) == (
        "RESOLVED", "HALLUCINATION", "planner/0", "HIGH", case,
    )  # fmt: skip
    assert (case.root_cause, case.solution) == ("DNS.", "Restart it.")

    hands.press_and_wait("n")
    assert page.url.endswith(f"{second.pk}/change/")
    hands.press("1")
    hands.press_and_wait("r")
    second.refresh_from_db()
    assert (second.state, second.failure_mode) == ("RESOLVED", "WRONG_ROOT_CAUSE")


def test_the_queue_by_keys(signed_in, reviewer, other_reviewer):
    one, two = TriageFactory(), TriageFactory()
    page = signed_in(reviewer)
    page.goto(QUEUE)
    page.keyboard.press("c")  # of no row: nothing
    page.keyboard.press("j")
    page.keyboard.press("j")
    with page.expect_navigation():
        page.keyboard.press("c")
    two.refresh_from_db()
    one.refresh_from_db()
    assert (one.assignee, two.assignee) == (None, reviewer)
    page.keyboard.press("j")
    with page.expect_navigation():
        page.keyboard.press("Enter")
    assert page.url.split("?")[0].endswith(f"{one.pk}/change/")
    with page.expect_navigation():
        page.keyboard.press("l")
    page.keyboard.press("/")
    page.keyboard.type("n c")
    assert page.locator("#searchbar").input_value() == "n c"


def test_the_keys_are_shown_and_count_nowhere_while_they_are(signed_in, reviewer):
    review = triage.claim(review_id=TriageFactory().pk, reviewer=reviewer)
    page = signed_in(reviewer)
    page.goto(f"{QUEUE}{review.pk}/change/")
    page.keyboard.press("?")
    dialog = page.get_by_role("dialog", name="Keys")
    dialog.wait_for()
    for key in page.locator("[data-key]").evaluate_all("all => all.map(one => one.dataset.key)"):
        assert dialog.locator("kbd", has_text=key).count() or key == "f", key
    page.keyboard.press("d")
    page.keyboard.press("2")
    assert page.get_by_label("What went wrong").input_value() == ""
    page.keyboard.press("Escape")
    page.keyboard.press("2")
    assert page.get_by_label("What went wrong").input_value() == "HALLUCINATION"


def test_keys_are_text_where_somebody_writes(signed_in, reviewer):
    review = triage.claim(review_id=TriageFactory().pk, reviewer=reviewer)
    page = signed_in(reviewer)
    page.goto(f"{QUEUE}{review.pk}/change/")
    page.keyboard.press("e")
    page.keyboard.type("nrd 123?")
    assert page.get_by_label("Notes").input_value() == "nrd 123?"
    assert page.get_by_label("What went wrong").input_value() == ""
    page.keyboard.press("Escape")
    with page.expect_navigation():
        page.keyboard.press("d")
    review.refresh_from_db()
    assert (review.state, review.notes) == ("DISMISSED", "nrd 123?")


def test_two_windows_lose_no_update(signed_in, reviewer, watch):
    watch.expect("status of 409")
    review = triage.claim(review_id=TriageFactory().pk, reviewer=reviewer)
    here, there = signed_in(reviewer), signed_in(reviewer)
    for page in (here, there):
        page.goto(f"{QUEUE}{review.pk}/change/")
    here.get_by_label("Notes").fill("From here")
    here.get_by_role("button", name="Save notes").click()
    here.get_by_text("Your notes are saved.").wait_for()
    there.get_by_label("Notes").fill("From there")
    there.get_by_role("button", name="Save notes").click()
    there.get_by_text("This was changed since you opened it.").wait_for()
    assert there.locator("ins").inner_text().strip() == "From here"
    assert there.locator("del").inner_text().strip() == "From there"
    review.refresh_from_db()
    assert review.notes == "From here"
    there.get_by_role("button", name="Save notes").click()
    there.get_by_text("Your notes are saved.").wait_for()
    review.refresh_from_db()
    assert review.notes == "From there"


def useful(**columns):
    """A session whose answer tells its parts, and the AUTO case that its reader's thumb made."""
    session = SessionFactory(
        query="订单缓存雪崩, REDIS_TIMEOUT in the log",
        answer="# Keys expire all at once\n\n## Root cause\nOne TTL for all keys.\n\n## Solution\nSpread the TTLs.",
        **columns,
    )
    submission.submit_verdict(session_id=session.session_id, verdict="useful")
    return session.case


def test_from_a_triage_that_is_done_to_a_case_that_is_published(signed_in, reviewer):
    first, case, another = rejected(), useful(), useful()
    page = signed_in(reviewer)
    page.goto(f"{QUEUE}{first.pk}/change/")
    hands = Hands(page)
    hands.press_and_wait("c")
    hands.press("1")
    hands.press_and_wait("r")

    hands.begin()
    hands.press_and_wait("g")
    assert page.url.split("?")[0].endswith(f"{case.pk}/change/")
    hands.press("0")
    hands.press_and_wait("p")
    page.get_by_text("The case is published").wait_for()
    assert (hands.keys, hands.loads) == (3, 2)
    case.refresh_from_db()
    assert (case.status, case.error_code, case.title) == ("PUBLISHED", "REDIS_TIMEOUT", "Keys expire all at once")
    assert (case.root_cause, case.solution) == ("One TTL for all keys.", "Spread the TTLs.")
    assert case.fault_category_id == "CACHE"

    hands.begin()
    hands.press_and_wait("n")
    assert page.url.split("?")[0].endswith(f"{another.pk}/change/")
    hands.press(*"12345", "5", "v", "End", "!", "Escape", "5")
    hands.press_and_wait("p")
    page.get_by_text("The case is published").wait_for()
    assert hands.keys <= 15
    assert hands.loads <= 2
    another.refresh_from_db()
    assert (another.status, another.solution[-18:]) == ("PUBLISHED", "Spread the TTLs.")


@pytest.mark.parametrize(
    "address",
    [
        QUEUE,
        "/admin/cases_app/caselibrary/",
        "/admin/sessions_app/diagnosissession/",
        "/admin/feedback_app/agentfeedback/",
    ],
)
def test_a_view_is_kept_by_keys_in_every_list(address, signed_in, reviewer):
    useful()
    page = signed_in(reviewer)
    page.goto(f"{address}?q=redis")
    page.keyboard.press("?")
    page.get_by_role("dialog", name="Keys").get_by_text("Keep what is shown as a view").wait_for()
    page.keyboard.press("Escape")
    page.keyboard.press("v")
    page.keyboard.type("Mine")
    with page.expect_navigation():
        page.keyboard.press("Enter")
    view = page.get_by_role("navigation", name="Saved views").get_by_role("link", name="Mine")
    assert view.get_attribute("aria-current") == "page"
    assert page.url.endswith(f"{address}?q=redis")
