"""A Lead erases a person and downloads an export, in a browser."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from feedback_app.models import Erasure
from sessions_app.models import DiagnosisSession
from tests.factories import CaseFactory, FeedbackEventFactory, InvocationFactory, SessionFactory, StepFactory

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]

REF = "planted-ref-7731"
SIZES = {"wide": {"width": 1280, "height": 900}, "narrow": {"width": 390, "height": 844}}
TOO_WIDE = "document.documentElement.scrollWidth > document.documentElement.clientWidth"


def populate():
    session = SessionFactory(user_ref=REF, feedback="useful", query="Why? I am jane@example.com")
    InvocationFactory(step=StepFactory(session=session))
    FeedbackEventFactory(session=session)
    CaseFactory(diagnosis=session)


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("size", SIZES)
def test_a_lead_erases_a_person(signed_in, lead, screenshot, size, theme):
    populate()
    page = signed_in(lead, viewport=SIZES[size], color_scheme=theme)

    def look(name):
        assert not page.evaluate(TOO_WIDE), name
        screenshot(page, f"{name}-{size}-{theme}")

    page.goto("/admin/feedback_app/erasure/add/")
    page.get_by_label("User").fill("nobody")
    page.keyboard.press("Enter")
    page.get_by_text("Nothing is stored of this person.").wait_for()
    look("unknown")
    page.get_by_label("User").fill(REF)
    page.get_by_role("button", name="Look first").click()
    page.get_by_text("It cannot be undone").wait_for()
    assert REF not in page.url
    look("preview")
    assert DiagnosisSession.objects.count() == 1
    page.get_by_role("button", name="Erase for good").click()
    page.get_by_text("The person is erased.").wait_for()
    look("erased")
    assert not DiagnosisSession.objects.exists()
    assert Erasure.objects.get().actor == lead


@pytest.mark.parametrize("size", SIZES)
def test_a_lead_downloads_an_export(signed_in, lead, screenshot, size):
    populate()
    page = signed_in(lead, viewport=SIZES[size])
    page.goto("/admin/feedback_app/agentfeedback/")
    screenshot(page, f"events-{size}")
    page.get_by_role("link", name="Export for training").click()
    assert not page.evaluate(TOO_WIDE)
    screenshot(page, f"export-{size}")
    page.get_by_label("Useful answers").check()
    with page.expect_download() as waited:
        page.get_by_role("button", name="Download").click()
    lines = Path(waited.value.path()).read_text("utf-8").splitlines()
    assert [json.loads(line)["prompt"] for line in lines] == ["Why? I am [EMAIL]"]
    assert waited.value.suggested_filename.startswith("feedback-sft-")
