"""An alert in a browser: the form asks for what counts, the secret is shown once, a test shows what was answered."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

from tests.receiver import receiver

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]


def test_a_webhook_is_made_and_tried_by_keyboard(signed_in, lead, settings):
    settings.ALERT_ALLOWED_PRIVATE_HOSTS = ["127.0.0.1"]
    page = signed_in(lead)
    page.goto("/admin/feedback_app/alertrule/add/")
    percent, overdue = page.get_by_label("Below how many percent"), page.get_by_label("From how many overdue")
    address, people = page.get_by_label("Address"), page.get_by_role("group", name="Recipients")
    expect(percent).to_be_hidden()
    expect(people).to_be_hidden()
    page.get_by_label("What is told").select_option("satisfaction_low")
    expect(percent).to_be_visible()
    expect(overdue).to_be_hidden()
    page.get_by_label("How", exact=True).select_option("email")
    expect(people).to_be_visible()
    expect(address).to_be_hidden()
    page.get_by_label("How", exact=True).select_option("webhook")
    page.get_by_label("What is told").select_option("queue_overdue")
    expect(overdue).to_be_visible()
    expect(page.get_by_label("Agent")).to_be_hidden()
    page.get_by_label("Name").fill("On call")
    with receiver() as server:
        server.reply(200, "<b>thanks</b>")
        address.fill(server.url)
        page.keyboard.press("Enter")
        secret = page.locator("#secret").input_value()
        assert secret.startswith("whsec_")
        page.reload()  # leads to the alert: nobody makes a second one
        expect(page.get_by_role("heading", name="Test and secret")).to_be_visible()
        assert secret not in page.content()
        page.get_by_role("button", name="Send a test").press("Enter")
        expect(page.get_by_text("The test has arrived.")).to_be_visible()
        expect(page.get_by_text("<b>thanks</b>")).to_be_visible()
        assert len(server.requests) == 1
    page.get_by_label("From how many overdue").fill("0")
    page.get_by_role("button", name="Save", exact=True).press("Enter")
    expect(page.get_by_text("A whole number from 1 to 10000.")).to_be_visible()
