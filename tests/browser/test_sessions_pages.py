"""Sessions in a real browser: hostile text is inert, and everything works by keyboard, on a phone, in the dark.

`tests.browsing` fails a test whose page logs an error, opens a dialog, or asks another host for anything.
"""

from __future__ import annotations

from typing import Any

import pytest
from django.conf import settings
from playwright.sync_api import Page, expect

from sessions_app.models import DiagnosisSession
from tests.factories import FeedbackEventFactory, InvocationFactory, SessionFactory, StepFactory

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]
LIST = "/admin/sessions_app/diagnosissession/"
EVIL = "//evil.example"

PAYLOADS = [
    "<script>window.hacked=1;alert(1)</script>",
    "<img src=x onerror=window.hacked=1;alert(1)>",
    f"<img src='{EVIL}/x.png'>",
    "<svg onload=window.hacked=1;alert(1)>",
    "<svg><script>window.hacked=1</script></svg>",
    "<iframe srcdoc='<script>parent.hacked=1</script>'></iframe>",
    f"<iframe src='http:{EVIL}'></iframe>",
    f"<link rel=stylesheet href='http:{EVIL}/x.css'>",
    f"<style>@import url(http:{EVIL}/x.css); body{{display:none}}</style>",
    f"<meta http-equiv=refresh content='0;url=http:{EVIL}'>",
    "<base href='http://evil.example/'>",
    f"<form action='http:{EVIL}'><button>Log in</button></form>",
    "<body onload=window.hacked=1>",
    "<details open ontoggle=window.hacked=1>",
    "<input autofocus onfocus=window.hacked=1>",
    "<video><source onerror=window.hacked=1></video>",
    "<a href='javascript:window.hacked=1'>click</a>",
    "[click](javascript:window.hacked=1) [click](data:text/html,<script>alert(1)</script>)",
    f"![x](http:{EVIL}/x.png) ![y][1]\n\n[1]: http:{EVIL}/y.png",
    f"<http:{EVIL}/?q=<script>alert(1)</script>>",
    '" onmouseover="window.hacked=1" x="',
    "' onfocus='window.hacked=1' autofocus='",
    "`></code></pre><img src=x onerror=window.hacked=1>",
    "--></title></textarea></style></script><script>window.hacked=1</script>",
    "{{ constructor.constructor('window.hacked=1')() }} {% load x %} ${window.hacked=1}",
    "<div x-data x-init='window.hacked=1' hx-get='http://evil.example' hx-trigger='load'></div>",
    "<template x-if='window.hacked=1'></template>",
    "\u202e<img/src/onerror=alert(1)>\u2066 reversed \u200b\ufeff",
    "＜script＞window.hacked=1＜/script＞ \ufffd<scr\u0000ipt>".replace("\u0000", ""),
    "\\u003cscript\\u003ewindow.hacked=1\\u003c/script\\u003e &lt;script&gt;window.hacked=1&lt;/script&gt;",
]
ALL = "\n\n".join(PAYLOADS)


@pytest.fixture(autouse=True)
def _steady_language(browser_language):
    assert browser_language == "en"


ALIEN = "script:not([src^='/static/js/']), iframe, object, base, meta, link, svg, img, video, form[action*=evil]"


def calm(page: Page) -> None:
    """Let what could run, run; then nothing has."""
    page.wait_for_load_state("networkidle")
    assert page.evaluate("window.hacked") is None
    assert page.locator("#content").locator(ALIEN).count() == 0
    assert page.evaluate("[...document.links].every(a => /^https?:|^mailto:/.test(a.href))")


def hostile_session(text: str = ALL) -> DiagnosisSession:
    """A session with `text` wherever a caller may put text."""
    session = SessionFactory(
        query=text,
        answer=text,
        agent_flow=text[:32].strip(),
        metadata={text: [text, {text: text}]},
        self_evaluation={"reasoning": text, "confidence": text, text: text},
        evaluation_error=text,
        feedback="not_useful",
    )
    step = StepFactory(
        session=session,
        agent_name=text[:32].strip(),
        model_name=text[:128],
        thought=text,
        model_input={text: text},
        model_output=text,
    )
    InvocationFactory(
        step=step,
        tool_name=text[:64].strip(),
        input_params={text: [text]},
        output_preview=text[:500],
        output_length=9_999,
        success=False,
        error_message=text,
        retrieval_details={text: text},
    )
    FeedbackEventFactory(session=session, payload={"comment": text, "userNote": text})
    return session


def test_30_payloads_in_every_field_do_nothing(signed_in, admin_user):
    assert len(PAYLOADS) == 30
    for payload in PAYLOADS:
        hostile_session(payload)
    page = signed_in(admin_user)
    page.goto(LIST)
    assert page.locator("#result_list tbody").count() == 30
    calm(page)
    page.get_by_role("button", name="Filters").click()
    calm(page)
    for query in (
        f"?q={ALL[:200]}",
        f"?agent={ALL[:200]}&flow={ALL[:50]}&score_from={ALL[:50]}&day_from={ALL[:50]}&facts={ALL[:50]}",
    ):
        page.goto(LIST + query.replace("\n", " ").replace("#", "%23"))
        calm(page)


def test_all_payloads_at_once_do_nothing_on_the_page(signed_in, admin_user):
    session = hostile_session()
    page = signed_in(admin_user)
    page.goto(f"{LIST}{session.pk}/change/")
    calm(page)
    page.get_by_role("button", name="Plain text").click()
    for fold in page.locator("#content details").all():
        fold.locator("summary").first.click()
    expect(page.locator(".desk-lazy").first).to_contain_text("Model output")
    calm(page)
    assert page.locator(".desk-prose").first.evaluate("e => e.querySelectorAll('a').length") <= 3
    page.goto(f"{LIST}{session.pk}/history/")
    calm(page)


@pytest.mark.parametrize("number", range(0, 30, 3))
def test_each_payload_alone_does_nothing_on_the_page(signed_in, admin_user, number):
    sessions = [hostile_session(payload) for payload in PAYLOADS[number : number + 3]]
    page = signed_in(admin_user)
    for session in sessions:
        page.goto(f"{LIST}{session.pk}/change/")
        for fold in page.locator("#content details").all():
            fold.locator("summary").first.click()
        calm(page)


def chain_session() -> DiagnosisSession:
    """An ordinary session with two steps and three calls."""
    session = SessionFactory(scored=True, query="Why is it slow?", answer="## Cause\n\nThe pool.")
    planner = StepFactory(session=session, agent_name="planner", started_at=session.started_at)
    executor = StepFactory(
        session=session, agent_name="executor", parent_step=planner, model_output={"content": "the reply"}
    )
    InvocationFactory(step=executor, l0_hit=True, input_params={"query": "pool exhausted"})
    InvocationFactory(step=executor, failed=True)
    InvocationFactory(step=None, session=session, tool_name="loose_tool")
    return session


def test_everything_is_reached_by_keyboard(signed_in, reviewer):
    session = chain_session()
    page = signed_in(reviewer)
    page.goto(LIST)
    page.keyboard.press("Tab")
    expect(page.get_by_role("link", name="Skip to the content")).to_be_focused()

    filters = page.get_by_role("button", name="Filters")
    filters.focus()
    page.keyboard.press("Enter")
    expect(page.locator("#changelist-filter :is(input, select)").first).to_be_focused()
    page.keyboard.press("Escape")
    expect(page.locator("#changelist-filter")).to_be_hidden()
    expect(filters).to_be_focused()

    menu = page.get_by_role("button", name="rita")
    menu.focus()
    page.keyboard.press("Enter")
    dark = page.get_by_role("button", name="Dark")
    dark.focus()
    page.keyboard.press("Enter")
    expect(page.locator("html")).to_have_class("dark")
    expect(dark).to_have_attribute("aria-pressed", "true")
    page.keyboard.press("Escape")
    expect(dark).to_be_hidden()
    expect(menu).to_be_focused()

    page.get_by_role("link", name="Why is it slow?").focus()
    page.keyboard.press("Enter")
    page.wait_for_url(f"**{LIST}{session.pk}/change/**")
    call = page.locator("summary").filter(has_text="pool exhausted")
    call.focus()
    page.keyboard.press("Enter")
    expect(page.locator("pre").filter(has_text="pool exhausted")).to_be_visible()
    texts = page.locator("summary").filter(has_text="Model input and output").nth(1)
    texts.focus()
    page.keyboard.press("Enter")
    expect(page.locator("pre").filter(has_text="the reply")).to_be_visible()


def test_the_language_is_switched_and_stays(signed_in, reviewer):
    SessionFactory()
    page = signed_in(reviewer)
    page.goto(LIST)
    for code, native in (("ru", "Русский"), ("zh-hans", "简体中文"), ("en", "English")):
        page.locator("button[aria-controls=desk-person]").click()
        page.get_by_role("button", name=native).click()
        expect(page.locator("html")).to_have_attribute("lang", code)
        assert page.url.endswith(LIST)


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1280, 390])
def test_pages_fit_the_screen(signed_in, reviewer, screenshot, width, scheme):
    session = chain_session()
    hostile = hostile_session("x" * 400 + ALL)
    page = signed_in(reviewer, viewport={"width": width, "height": 900}, color_scheme=scheme)
    for name, url in {
        "list": LIST,
        "detail": f"{LIST}{session.pk}/change/",
        "hostile": f"{LIST}{hostile.pk}/change/",
        "filtered": f"{LIST}?facts=l0&feedback=none&score_from=1",
    }.items():
        page.goto(url)
        page.wait_for_load_state("networkidle")
        assert page.evaluate("document.documentElement.scrollWidth") <= width, name
        screenshot(page, f"{name}-{width}-{scheme}")


FAINT_TEXT = """
() => {
  const canvas = document.createElement('canvas').getContext('2d', {willReadFrequently: true});
  const channel = (v) => v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4;
  const luminance = (...layers) => {
    for (const colour of ['#fff', ...layers]) {
      canvas.fillStyle = colour;
      canvas.fillRect(0, 0, 1, 1);
    }
    const [r, g, b] = [...canvas.getImageData(0, 0, 1, 1).data].slice(0, 3).map(v => channel(v / 255));
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const grounds = (e) => e ? [...grounds(e.parentElement), getComputedStyle(e).backgroundColor] : [];
  const says = (e) => [...e.childNodes].some(n => n.nodeType === 3 && n.textContent.trim());
  const faint = [];
  for (const e of document.querySelectorAll('#content *')) {
    if (!says(e) || !e.checkVisibility() || e.closest('.desk-sr')) continue;
    const [a, b] = [luminance(...grounds(e), getComputedStyle(e).color), luminance(...grounds(e))];
    const ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
    const needed = e.matches('.material-symbols-outlined') ? 3 : 4.5;
    if (ratio < needed) faint.push(`${ratio.toFixed(2)} ${e.className || e.tagName}: ${e.textContent.trim()}`);
  }
  return faint;
}
"""
"""WCAG AA: 4.5:1 for text, 3:1 for symbols, over whatever lies behind."""


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_stands_out_from_its_ground(signed_in, admin_user, scheme):
    session = chain_session()
    for kind in ("l1_hit", "no_hit"):
        InvocationFactory(step=session.steps.first(), **{kind: True}, is_truncated=True)
    for extra in (
        {"owing": True},
        {"evaluation_error": "x"},
        {"running": True},
        {"feedback": "useful"},
        {"rejected": True},
        {"evidence_score": 40},
        {"status": "FAILED", "evidence_score": 0},
    ):
        SessionFactory(**extra)
    page = signed_in(admin_user, color_scheme=scheme)
    for url in (LIST, LIST + "?facts=l0", f"{LIST}{session.pk}/change/", "/admin/sessions_app/apikey/add/"):
        page.goto(url)
        page.wait_for_load_state("networkidle")
        page.evaluate("document.querySelectorAll('#content details').forEach(d => d.open = true)")
        page.wait_for_load_state("networkidle")
        assert page.evaluate(FAINT_TEXT) == [], url


def test_a_new_key_is_copied_and_a_reload_makes_no_second_one(signed_in, admin_user):
    page = signed_in(admin_user)
    page.goto("/admin/sessions_app/apikey/add/")
    page.get_by_label("Name").fill("alerter <img src=x onerror=alert(1)>")
    page.get_by_label("Record sessions").check()
    page.get_by_role("button", name="Make the key").click()
    secret = page.locator("#secret").input_value()
    assert secret.startswith("dk_")
    page.get_by_role("button", name="Copy").click()
    expect(page.get_by_text("Copied.")).to_be_visible()
    page.reload()
    expect(page.get_by_text("alerter <img")).to_have_count(1)
    assert secret not in page.content()
    page.get_by_role("link", name="Revoke").click()
    page.get_by_role("button", name="Revoke the key").click()
    expect(page.get_by_text("Revoked", exact=True)).to_be_visible()


def test_policy_header_names_no_other_host(client, reviewer):
    client.force_login(reviewer, backend="django.contrib.auth.backends.ModelBackend")
    policy: dict[str, Any] = settings.CONTENT_SECURITY_POLICY["DIRECTIVES"]
    header = client.get(LIST).headers["Content-Security-Policy"]
    assert "http" not in header
    assert all(name in header for name in policy)
