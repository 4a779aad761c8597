"""The mail of a weekly report in windows as wide as mail programs have, without scripts and style sheets."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta

import pytest

from feedback_app.reports.mail import as_html
from feedback_app.reports.words import words_of
from feedback_app.services.reports import build_report
from tests.factories import FeedbackEventFactory, SessionFactory, TriageFactory

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]

MONDAY = date(2026, 11, 9)
LONG = "a-very-long-name-of-an-agent-that-does-not-end/2026.11.30-rc1"


@pytest.mark.parametrize("width", [640, 390])
def test_it_fits_and_its_bars_are_as_long_as_they_say(width, new_context, screenshot):
    for agent, up in ((LONG, 3), ("good", 9), ("other", 6)):
        for number in range(10):
            moment = datetime(2026, 11, 9, 12, tzinfo=UTC) + timedelta(days=number % 7)
            session = SessionFactory(agent_id=agent, created_at=moment, query="W" * 200)
            value = 1.0 if number < up else -1.0
            FeedbackEventFactory(session=session, value=value, created_at=moment)
            payload = {"question": "Why?", "previousQuestion": "W" * 200}
            FeedbackEventFactory(session=session, type="re_ask", value=1.0, created_at=moment, payload=payload)
    for mode in ("MISSING_KNOWLEDGE", "MISSING_KNOWLEDGE", "HALLUCINATION"):
        TriageFactory(state="RESOLVED", failure_mode=mode, resolved_at=datetime(2026, 11, 10, tzinfo=UTC))
    report = build_report(MONDAY)
    page = new_context(viewport={"width": width, "height": 900}).new_page()
    page.set_content(as_html(report, words_of(report, is_shared=True)))
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    good, bad = page.evaluate(
        """names => names.map(name => [...document.querySelectorAll('tr')]
          .find(row => row.cells[0].innerText.trim() === name)
          .querySelector('[bgcolor]').getBoundingClientRect().width)""",
        ["good", LONG],
    )
    assert good / bad == pytest.approx(3, rel=0.1), "9 of 10 beside 3 of 10"
    screenshot(page, f"weekly-mail-{width}")
