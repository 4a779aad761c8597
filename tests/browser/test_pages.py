"""Every page as people see it: in their language, on a phone, in the dark, with little sight or without a mouse.

Nothing is left in English, nothing is cut off or wider than the window, no page is empty, axe-core finds nothing grave.
By default in two looks; `--every-look` takes all twelve, `--pictures FOLDER` keeps what was seen.
"""

from __future__ import annotations

import re
from typing import Any

import pytest
from axe_playwright_python.sync_playwright import Axe
from django.utils import translation
from playwright.sync_api import Error, Page, expect

from tests.browser.pages import EVERY_LOOK, USUAL_LOOKS, Look, Seen, all_pages, empty_pages
from tests.factories import UserFactory

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]

GRAVE = ("serious", "critical")
RULES = {"runOnly": ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "best-practice"], "resultTypes": ["violations"]}
AXE_LOOKS = (*USUAL_LOOKS, Look("en", 1280, "dark"), Look("en", 390, "light"))
"""What axe-core sees differs by width and scheme, hardly by language."""

VISIBLE_TEXTS = """
() => {
  const ours = (node) => !node.parentElement.closest(
    'script, style, bdi, code, pre, q, blockquote, textarea, .material-symbols-outlined, .desk-text, .desk-prose,' +
    '.desk-cell-question, .demo-card [lang], #result_list .field-name');
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
    r"|\b(?:Standard )?Webhooks?\b|\bJSON\b|https://…?|\bops\b|\bmsg_\w+|\bEsc\b|\bEnter\b|\bCohen's kappa\b"
    r"|\S*\*{4,}|\bAxes\b|oncall-assistant|planner|lena|rita|admin"
    r"|\b(?:Lead|Operator|Reviewer|HALLUCINATION|INCOMPLETE|SFT|DPO|LDAP|SSO|case_id|userRef|Cookie)\b|\.jsonl\b"
)
"""What stays in Latin letters: ids, names of people, codes, words that both languages write so."""


def english_in(texts: list[str]) -> list[str]:
    return [text for text in texts if LATIN.search(NO_WORDS.sub("", text))]


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """A test for each look."""
    if "look" in metafunc.fixturenames:
        looks = EVERY_LOOK if metafunc.config.getoption("every_look") else USUAL_LOOKS
        metafunc.parametrize("look", [pytest.param(look, id=str(look)) for look in looks])


@pytest.fixture
def browser_language(look: Look) -> str:
    return look.language


@pytest.fixture
def visitors(look: Look, admin_user: Any, signed_in: Any, new_context: Any, watch: Any) -> dict[str, Any]:
    """Who comes to the pages → a function that opens a window for them."""
    watch.expect("status of [45]")
    options = {"viewport": {"width": look.width, "height": 900}, "color_scheme": look.scheme}
    lead, nobody = UserFactory(username="2", is_staff=True, role="Lead"), UserFactory(username="1", is_staff=True)
    return {
        "admin": lambda: signed_in(admin_user, **options),
        "lead": lambda: signed_in(lead, **options),
        "nobody": lambda: signed_in(nobody, **options),
        "stranger": lambda: new_context(**options).new_page(),
    }


def faults_of(page: Page, look: Look, *, is_ours: bool) -> list[str]:
    """What is wrong with what somebody sees."""
    found: list[str] = list(page.evaluate(CUT_OFF))
    if page.evaluate("document.documentElement.scrollWidth") > look.width:
        found.append("wider than the window")
    if look.language != "en" and is_ours:
        found += english_in(page.evaluate(VISIBLE_TEXTS))
    if look in AXE_LOOKS and is_ours:
        found += violations(page)
    return found


def violations(page: Page) -> list[str]:
    """What axe-core calls serious or critical, with the first places of each."""
    found = Axe().run(page, options=RULES).response["violations"]
    return [
        f"{each['id']}: {' | '.join(node['html'][:160] for node in each['nodes'][:3])}"
        for each in found
        if each["impact"] in GRAVE
    ]


def look_at(page: Page, seen: Seen, look: Look, *, is_ours: bool) -> list[str]:
    """Open a page, do there what is to be done, and say what is wrong with it."""
    answer = page.goto(seen.address)
    assert answer is not None
    assert answer.status == seen.status
    if seen.act:
        seen.act(page)
    if not is_ours:
        return faults_of(page, look, is_ours=False)
    expect(page.locator("html")).to_have_attribute("lang", look.language)
    expect(page.locator("#content, main, h1").first).to_be_visible()  # a fault in a template can leave an empty page
    return faults_of(page, look, is_ours=is_ours)


def walk(pages: dict[str, Seen], look: Look, visitors: dict[str, Any], screenshot: Any) -> None:
    """Look at all pages; then fail with what is wrong, by name."""
    faults: dict[str, list[str]] = {}
    window = visitors["admin"]()
    for name, seen in pages.items():
        page = window.context.new_page() if seen.by == "admin" else visitors[seen.by]()
        try:
            found = look_at(page, seen, look, is_ours=name != "api")
        except (Error, AssertionError) as failure:
            found = [str(failure)[:500]]
        if found:
            faults[name] = found
        screenshot(page, f"{name}--{look}")
        page.close()
    assert not faults, "\n".join(f"{name}: {found}" for name, found in faults.items())


def test_every_page(look, visitors, admin_user, lead, reviewer, monkeypatch, screenshot, settings):
    settings.DEMO, settings.DATA_UPLOAD_MAX_NUMBER_FIELDS = True, 1_000
    with translation.override(look.language):
        pages = all_pages(admin=admin_user, lead=lead, reviewer=reviewer, monkeypatch=monkeypatch)
    walk(pages, look, visitors, screenshot)


def test_a_product_that_nobody_has_used_yet(look, visitors, screenshot):
    walk(empty_pages(), look, visitors, screenshot)
