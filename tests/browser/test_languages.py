"""The admin in Chinese and Russian: nothing is left in English, nothing is cut off, and the choice stays."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone
from playwright.sync_api import expect

from cases_app.models import CaseStatus
from feedback_app.models import AlertDelivery, AlertState, TriageState
from feedback_app.selectors.weekly import monday_of
from feedback_app.services import triage
from feedback_app.services.alert_rules import create_rule
from feedback_app.services.alerts import Occurrence, owe
from feedback_app.services.reports import store_report
from sessions_app.services.evaluation import DIED
from sessions_app.services.keys import create_key
from tests.factories import (
    PASSWORD,
    CaseFactory,
    FeedbackEventFactory,
    InvocationFactory,
    SessionFactory,
    StepFactory,
    TriageFactory,
    UserFactory,
)
from tests.feedback_app.test_alerts import data

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]

VISIBLE_TEXTS = """
() => {
  const ours = (node) => !node.parentElement.closest(
    'script, style, bdi, code, pre, q, blockquote, textarea, .material-symbols-outlined, .desk-text, .desk-prose,' +
    '.desk-cell-question');
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  const texts = [];
  while (walker.nextNode()) {
    const node = walker.currentNode;
    const text = node.textContent.trim();
    if (text && node.parentElement.checkVisibility() && ours(node)) texts.push(text);
  }
  for (const e of document.querySelectorAll('[title], [aria-label], [placeholder]'))
    for (const name of ['title', 'aria-label', 'placeholder'])
      if (e.hasAttribute(name)) texts.push(e.getAttribute(name));
  return texts;
}
"""

CUT_OFF = """
() => [...document.querySelectorAll(
  '.desk-badge span, .desk-button, button, dt, th, label, h2, small, .figures-queue__words, #nav-sidebar-apps span')]
  .filter(e => e.checkVisibility() && !e.closest('.desk-sr') && e.scrollWidth > e.clientWidth + 1
    && getComputedStyle(e).overflowX !== 'visible' && getComputedStyle(e).display !== 'inline')
  .map(e => e.innerText)
"""

LATIN = re.compile(r"[A-Za-z]{3,}")
NO_WORDS = re.compile(
    r"[\w.+-]*@[\w.]+|\b(?:session|call|dk)[-_][\w-]+…?|\bUTC\b|\bAPI\b|\bToken\b|\bMarkdown\b|\bEnglish\b|\bCPU\b|\bDNS\b"
    r"|\bPod\b|\b(?:CSV|XLSX|JSONL)\b|\bControl\b|\bCommand\b|\bMac\b|\b[A-Z]+_[A-Z_]+\b|\b(?:CACHE|GENERAL)\b|\b(?:zh-hans|ru|en)\b"
    r"|\b(?:Standard )?Webhooks?\b|\bJSON\b|https://…?|\bops\b|\bmsg_\w+"
    r"|\S*\*{4,}|\bAxes\b|oncall-assistant|planner|lena|rita|admin"
)
"""What stays in Latin letters: ids, names of people, codes, words that both languages write so."""


def english_in(texts: list[str]) -> list[str]:
    return [text for text in texts if LATIN.search(NO_WORDS.sub("", text))]


@pytest.fixture
def addresses(lead: Any) -> dict[str, str]:
    """A page of every kind, over data that say nothing in English."""
    digits = {"query": "1 + 1?", "answer": "2"}
    session = SessionFactory(rejected=True, scored=True, confidence=92, conversation_id="call-1", **digits)
    step = StepFactory(session=session, thought="3", model_input=None, model_output=None)
    for facts in ({"l0_hit": True}, {"l1_hit": True}, {"no_hit": True}, {"failed": True}, {"is_truncated": True}):
        InvocationFactory(step=step, error_message=None, **{**facts, "output_preview": "4"})
    for kind in ("thumbs", "star", "correction", "re_ask", "edit"):
        FeedbackEventFactory(
            session=session,
            type=kind,
            payload={
                "stars": 3, "original": "1", "corrected": "2", "edited": "3", "question": "4", "previousQuestion": "5",
            },
        )  # fmt: skip
    review = TriageFactory(session=session)
    triage.claim(review_id=review.pk, reviewer=lead)
    TriageFactory(session__query="3?", session__answer="4")
    for state in (TriageState.RESOLVED, TriageState.DISMISSED):
        TriageFactory(session__query="5?", state=state, failure_mode="WRONG_ROOT_CAUSE", resolved_at=review.created_at)
    cases = [CaseFactory(diagnosis__query="7?", diagnosis__answer="8", status=status) for status in CaseStatus]
    SessionFactory(running=True, query="9?")
    broken = SessionFactory(query="10?", answer="11", evaluation_error=DIED, evaluation_attempts=5)
    owing = SessionFactory(query="12?", answer="13", owing=True)
    last_week = timezone.now() - timedelta(days=7)
    told = SessionFactory(query="14?", answer="15", created_at=last_week)
    FeedbackEventFactory.create_batch(6, session=told, created_at=last_week)
    texts = {"question": "14?", "previousQuestion": "14?", "laterSessionId": session.session_id}
    again = FeedbackEventFactory(session=told, type="re_ask", source="system", payload=texts, created_at=last_week)
    TriageFactory(session=told, state=TriageState.RESOLVED, failure_mode="WRONG_ROOT_CAUSE", resolved_at=last_week)
    report = store_report(monday_of(timezone.localdate(last_week)))
    key, _ = create_key(name="1", scopes=["ingest", "feedback", "read"], owner=lead)
    sessions, bad, library = (
        f"/admin/{name}/" for name in
        ("sessions_app/diagnosissession", "feedback_app/badcasereview", "cases_app/caselibrary")
    )  # fmt: skip
    rule, _ = create_rule(**data(name="1", kind="satisfaction_low", threshold=60, period_days=7, min_votes=5))
    mailed, _ = create_rule(**data(name="2", kind="queue_overdue", threshold=1, channel="email"))
    for number, state in enumerate(AlertState):
        owe(rule, rule.kind, [Occurrence(f"{number}", {})])
        AlertDelivery.objects.filter(state="waiting").update(state=state, failure="timeout", attempts=number)
    told_of = AlertDelivery.objects.get(state=AlertState.GIVEN_UP)
    return {
        "alerts": "/admin/feedback_app/alertrule/",
        "new-alert": "/admin/feedback_app/alertrule/add/",
        "alert": f"/admin/feedback_app/alertrule/{rule.pk}/change/",
        "alert-by-mail": f"/admin/feedback_app/alertrule/{mailed.pk}/change/",
        "told": "/admin/feedback_app/alertdelivery/",
        "told-one": f"/admin/feedback_app/alertdelivery/{told_of.pk}/change/",
        "overview": "/admin/",
        "sessions": sessions,
        "no-session": f"{sessions}?q=0",
        **{f"session-{each.pk}": f"{sessions}{each.pk}/change/" for each in (session, broken, owing)},
        "queue": bad,
        "queue-all": f"{bad}?state=all",
        "bad-case": f"{bad}{review.pk}/change/",
        "library": f"{library}?queue=all",
        **{f"case-{case.status.lower()}": f"{library}{case.pk}/change/" for case in cases},
        "new-case": f"{library}add/",
        "events": "/admin/feedback_app/agentfeedback/",
        "event": f"/admin/feedback_app/agentfeedback/{again.pk}/change/",
        "session-asked-again": f"{sessions}{told.pk}/change/",
        "reports": "/admin/feedback_app/weeklyreport/",
        "report": f"/admin/feedback_app/weeklyreport/{report.pk}/change/",
        "metrics": "/admin/metrics/",
        "keys": "/admin/sessions_app/apikey/",
        "new-key": "/admin/sessions_app/apikey/add/",
        "revoke": f"/admin/sessions_app/apikey/{key.pk}/revoke/",
        "users": "/admin/auth/user/",
        "user": f"/admin/auth/user/{lead.pk}/change/",
        "group": f"/admin/auth/group/{lead.groups.get().pk}/change/",
        "password": "/admin/password_change/",
    }


@pytest.mark.parametrize("width", [1280, 390])
@pytest.mark.parametrize("browser_language", ["zh-hans", "ru"])
def test_nothing_is_in_english_and_nothing_is_cut_off(
    browser_language, width, addresses, signed_in, admin_user, screenshot
):
    page = signed_in(admin_user, viewport={"width": width, "height": 900})
    faults: dict[str, list[str]] = {}
    for name, address in addresses.items():
        page.goto(address)
        expect(page.locator("html")).to_have_attribute("lang", browser_language)
        expect(page.locator("#content")).to_be_visible()  # a fault in a template can leave an empty page
        found = [*english_in(page.evaluate(VISIBLE_TEXTS)), *page.evaluate(CUT_OFF)]
        if page.evaluate("document.documentElement.scrollWidth") > width:
            found.append("wider than the window")
        if found:
            faults[name] = found
        screenshot(page, f"{name}-{browser_language}-{width}")
    assert faults == {}


@pytest.mark.parametrize("browser_language", ["zh-hans"])
def test_the_choice_made_before_signing_in_outlives_it_and_the_browser(new_context):
    UserFactory(username="rita", is_staff=True, role="Reviewer")
    context = new_context()
    page = context.new_page()
    page.goto("/admin/login/?next=/admin/metrics/")
    expect(page.get_by_role("button", name="登录")).to_be_visible()
    page.get_by_role("button", name="Русский").click()
    expect(page.locator("html")).to_have_attribute("lang", "ru")
    assert page.url.endswith("/admin/login/?next=/admin/metrics/")
    page.get_by_label("Имя пользователя").fill("rita")
    page.get_by_label("Пароль").fill(PASSWORD)
    page.get_by_role("button", name="Войти").click()
    expect(page.get_by_role("heading", name="Показатели")).to_be_visible()
    [cookie] = [each for each in context.cookies() if each["name"] == "django_language"]
    assert cookie["expires"] > 0  # not only for as long as the browser runs
    page.locator("button[aria-controls=desk-person]").click()
    page.get_by_role("button", name="Выйти").click()
    page.goto("/admin/")
    expect(page.get_by_role("button", name="Войти")).to_be_visible()
