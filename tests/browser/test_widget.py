"""The feedback widget in Chromium: on a page of another origin, by keyboard, with closing tabs and absent servers."""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from html import escape
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from django.core.management import call_command
from playwright.sync_api import BrowserContext, Page, expect

from feedback_app.models import AgentFeedback
from sessions_app.models import DiagnosisSession
from sessions_app.services.recording import record_sessions
from sessions_app.services.tokens import feedback_token
from tests.proxy import Proxy

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]

ANSWER = "The pool was exhausted.\nRaise it to 50."
WITHOUT_STORAGE = "Object.defineProperty(window, 'localStorage', {get() { throw new Error('closed'); }});"


@dataclass
class Host:
    """A site of another origin with a strict policy; its page is what the query string `body` says."""

    url: str
    api: str

    def page(self, *widgets: str, script: str = "", lang: str = "en") -> str:
        """The address of a page with these widgets; `{api}` stands for the product."""
        return f"{self.url}/?" + "&".join(
            f"{name}={_quoted(value)}" for name, value in (("body", "".join(widgets)), ("js", script), ("lang", lang))
        )

    def widget(self, session_id: str = "s0", **attributes: str) -> str:
        """The element as a site writes it."""
        given = {"session-id": session_id, "api": self.api, **attributes}
        text = " ".join(f'{name.rstrip("_")}="{escape(value)}"' for name, value in given.items())
        return f"<diagnosis-feedback {text}></diagnosis-feedback>"


def _quoted(text: str) -> str:
    from urllib.parse import quote

    return quote(text, safe="")


def _serve(api: str) -> Iterator[Host]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked = {name: values[0] for name, values in parse_qs(urlsplit(self.path).query).items()}
            is_script = urlsplit(self.path).path == "/page.js"
            policy = (
                f"default-src 'none'; script-src {api} {host.url}; connect-src {api}; style-src 'none';"
                " base-uri 'none'; form-action 'none'; require-trusted-types-for 'script'; trusted-types 'none'"
            )
            html = (
                f'<!doctype html><html lang="{asked.get("lang", "en")}"><title>Host</title>'
                f'<script src="{api}/widget.js" defer></script>'
                + (f'<script src="/page.js?js={_quoted(asked["js"])}" defer></script>' if asked.get("js") else "")
                + f'<h1>Host</h1><a href="#">before</a><div id="answer">{escape(ANSWER).replace(chr(10), "<br>")}</div>'
                f"{asked.get('body', '')}<a href='#'>after</a></html>"
            )
            self.send_response(200 if urlsplit(self.path).path in ("/", "/page.js") else 404)
            self.send_header("Content-Type", "text/javascript" if is_script else "text/html; charset=utf-8")
            self.send_header("Content-Security-Policy", policy)
            self.end_headers()
            self.wfile.write((asked.get("js", "") if is_script else html).encode())

        def log_message(self, *_: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    host = Host(f"http://127.0.0.1:{server.server_port}", api)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield host
    server.shutdown()
    server.server_close()


@pytest.fixture
def host(live_server: Any, settings: Any, watch: Any) -> Iterator[Host]:
    """A site that the product allows to post feedback."""
    for host in _serve(live_server.url):
        settings.CORS_ALLOWED_ORIGINS = [host.url]
        watch.expect(f"foreign request: {re.escape(host.url)}/")
        yield host


@pytest.fixture
def sessions() -> None:
    record_sessions([{"session_id": f"s{n}", "status": "SUCCESS", "answer": ANSWER} for n in range(60)])


@pytest.fixture
def context(new_context: Callable[..., BrowserContext]) -> BrowserContext:
    return new_context()


@pytest.fixture
def page(context: BrowserContext) -> Page:
    return context.new_page()


def stored(count: int, seconds: float = 10) -> list[AgentFeedback]:
    """All events, in the order they came, once there are so many."""
    deadline = time.monotonic() + seconds
    while AgentFeedback.objects.count() < count and time.monotonic() < deadline:
        time.sleep(0.05)
    events = list(AgentFeedback.objects.order_by("created_at"))
    assert len(events) == count
    return events


def button(page: Page, name: str) -> Any:
    return page.get_by_role("button", name=name, exact=True)


# -- what it does ------------------------------------------------------------------------------------------------------


def test_a_page_of_another_origin_under_a_strict_policy_posts(page, host, sessions):
    page.goto(host.page(host.widget()))
    button(page, "Useful").click()
    expect(page.get_by_role("status")).to_have_text("Recorded, thank you.")
    [event] = stored(1)
    assert (event.type, event.value, event.session_id, event.turn_id, event.payload) == ("thumbs", 1.0, "s0", "s0", {})
    assert event.client_event_id
    assert DiagnosisSession.objects.get(session_id="s0").feedback == "useful"
    expect(button(page, "Useful")).to_have_attribute("aria-pressed", "true")
    expect(button(page, "Not useful")).to_have_attribute("aria-pressed", "false")


def test_a_key_goes_through_a_preflight(page, host, sessions, new_key):
    asked = []
    page.on("request", lambda request: asked.append((request.method, request.headers.get("authorization", ""))))
    key = new_key("feedback")
    page.goto(host.page(host.widget(key=key)))
    button(page, "Not useful").click()
    expect(page.get_by_role("status")).to_have_text("Recorded, thank you.")
    assert ("POST", f"Bearer {key}") in asked
    assert stored(1)[0].value == -1.0


def test_where_tokens_are_demanded_only_the_sessions_own_is_taken(page, host, sessions, settings):
    settings.FEEDBACK_AUTH = "token"
    page.goto(host.page(host.widget("s0", token=feedback_token("s0")), host.widget("s1", token=feedback_token("s0"))))
    button(page, "Useful").nth(1).click()
    expect(page.get_by_role("status").nth(1)).to_have_text("Saved; it will be sent later.")
    button(page, "Useful").nth(0).click()
    expect(page.get_by_role("status").nth(0)).to_have_text("Recorded, thank you.")
    assert [event.session_id for event in stored(1)] == ["s0"]


def test_stars_comment_and_correction_become_events(page, host, sessions):
    page.goto(host.page(host.widget(for_="answer")))
    button(page, "Not useful").click()
    page.get_by_role("radio", name="2/5").check()
    page.get_by_label("Comment").fill("It was the cache.  ")
    button(page, "Send").click()
    expect(page.get_by_role("status")).to_have_text("Recorded, thank you.")
    _thumb, star = stored(2)
    assert (star.type, star.payload) == ("star", {"stars": 2, "comment": "It was the cache."})
    button(page, "Not useful").click()
    expect(page.get_by_role("radio", name="2/5")).to_be_checked()
    page.get_by_text("Correct the answer").click()
    correction = page.get_by_role("textbox", name="Correct the answer")
    assert correction.input_value() == ANSWER
    correction.fill("The cache was cold.")
    page.get_by_label("Comment").fill("Seen in the metrics")
    button(page, "Send").click()
    event = stored(3)[2]
    assert (event.type, event.payload) == (
        "correction",
        {"original": ANSWER, "corrected": "The cache was cold.", "userNote": "Seen in the metrics"},
    )
    assert 0 < event.value <= 1


def test_a_comment_alone_joins_its_thumb_and_an_empty_form_sends_nothing(page, host, sessions):
    page.goto(host.page(host.widget()))
    button(page, "Useful").click()
    stored(1)
    button(page, "Send").click()
    for comment in ("Saved my night", "And my morning"):
        button(page, "Useful").click()
        page.get_by_label("Comment").fill(comment)
        with page.expect_response("**/api/feedback/events"):
            button(page, "Send").click()
        expect(page.get_by_role("status")).to_have_text("Recorded, thank you.")
        page.reload()
    [event] = stored(1)
    assert (event.type, event.value, event.comment) == ("thumbs", 1.0, "Saved my night\n\nAnd my morning")


def test_a_comment_joins_its_thumb_also_when_both_had_to_wait(page, way, away, sessions):
    page.goto(away.page(away.widget()))
    way.cut()
    button(page, "Not useful").click()
    page.get_by_label("Comment").fill("Wrong host")
    button(page, "Send").click()
    expect(page.get_by_role("status")).to_have_text("Saved; it will be sent later.")
    way.mend()
    page.reload()
    deadline = time.monotonic() + 15
    while not (event := AgentFeedback.objects.first()) or not event.comment:
        assert time.monotonic() < deadline
        time.sleep(0.1)
    assert (event.value, event.comment, AgentFeedback.objects.count()) == (-1.0, "Wrong host", 1)


def test_without_the_answers_text_no_correction_is_offered(page, host, sessions):
    page.goto(host.page(host.widget()))
    button(page, "Useful").click()
    expect(page.get_by_label("Comment")).to_be_visible()
    expect(page.get_by_text("Correct the answer")).to_have_count(0)


def test_who_changes_their_mind_is_heard_and_a_second_click_says_nothing_new(page, host, sessions):
    page.goto(host.page(host.widget()))
    button(page, "Useful").dblclick()
    button(page, "Useful").click()
    button(page, "Not useful").click()
    assert [event.value for event in stored(2)] == [1.0, -1.0]
    page.wait_for_timeout(500)
    stored(2)
    assert DiagnosisSession.objects.get(session_id="s0").feedback == "not_useful"


def test_the_last_word_counts_however_slow_the_server_takes_the_first(page, host, sessions):
    """Requests overtake one another; the widget sends the next only when the last has been answered."""
    held: list[Any] = []
    page.route("**/api/feedback/events", lambda route: route.continue_() if held else held.append(route))
    page.goto(host.page(host.widget()))
    button(page, "Useful").click()
    button(page, "Not useful").click()
    page.wait_for_timeout(500)
    assert not AgentFeedback.objects.exists()
    with page.expect_request_finished(lambda _request: bool(held) and AgentFeedback.objects.count() > 1):
        held[0].continue_()
    assert [event.value for event in stored(2)] == [1.0, -1.0]
    assert DiagnosisSession.objects.get(session_id="s0").feedback == "not_useful"


def test_the_last_word_counts_when_the_first_has_to_be_sent_again(page, way, away, sessions):
    page.goto(away.page(away.widget()))
    way.cut()
    button(page, "Useful").click()
    expect(page.get_by_role("status")).to_have_text("Saved; it will be sent later.")
    way.mend()
    button(page, "Not useful").click()
    stored(2)
    assert DiagnosisSession.objects.get(session_id="s0").feedback == "not_useful"


def test_it_remembers_what_was_said_and_tells_other_widgets_and_tabs(page, context, host, sessions):
    address = host.page(host.widget(), host.widget(), host.widget("s1"))
    other = context.new_page()
    for each in (page, other):
        each.goto(address)
    button(page, "Useful").first.click()
    stored(1)
    for each in (page, other):
        expect(button(each, "Useful").nth(0)).to_have_attribute("aria-pressed", "true")
        expect(button(each, "Useful").nth(1)).to_have_attribute("aria-pressed", "true")
        expect(button(each, "Useful").nth(2)).to_have_attribute("aria-pressed", "false")
    button(other, "Useful").first.click()
    page.reload()
    expect(button(page, "Useful").first).to_have_attribute("aria-pressed", "true")
    page.wait_for_timeout(300)
    stored(1)


def test_the_site_hears_of_it(page, host, sessions):
    script = "addEventListener('diagnosis-feedback', (event) => { document.title = JSON.stringify(event.detail); });"
    page.goto(host.page(host.widget(), script=script))
    button(page, "Useful").click()
    expect(page).to_have_title('{"type":"thumbs","value":"up","state":"sent"}')


# -- for everybody -----------------------------------------------------------------------------------------------------


def test_the_keyboard_alone_does_everything(page, host, sessions):
    page.goto(host.page(host.widget(for_="answer")))

    def focused() -> str:
        script = """() => { const e = document.activeElement.shadowRoot?.activeElement || document.activeElement;
            return e.getAttribute('aria-label') || e.textContent.trim(); }"""
        return str(page.evaluate(script))

    walked = []
    for _ in range(3):
        page.keyboard.press("Tab")
        walked.append(focused())
    assert walked == ["before", "Useful", "Not useful"]
    page.keyboard.press("Space")
    walked = []
    for _ in range(2):
        page.keyboard.press("Tab")
        walked.append(focused())
    assert walked[1] == "Comment"
    page.keyboard.press("Shift+Tab")
    page.keyboard.press("Space")
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowRight")
    assert focused() == "3/5"
    page.keyboard.press("Tab")
    page.keyboard.type("Too slow")
    walked = []
    for _ in range(3):
        page.keyboard.press("Tab")
        walked.append(focused())
    assert walked == ["Correct the answer", "Send", "Close"]
    page.keyboard.press("Shift+Tab")
    page.keyboard.press("Enter")
    assert focused() == "Not useful"
    expect(page.get_by_role("status")).to_have_text("Recorded, thank you.")
    assert [(event.type, event.comment) for event in stored(2)] == [("thumbs", ""), ("star", "Too slow")]
    page.keyboard.press("Enter")
    page.keyboard.press("Tab")
    page.keyboard.press("Escape")
    assert focused() == "Not useful"
    expect(button(page, "Send")).to_be_hidden()
    page.keyboard.press("Tab")
    assert focused() == "after"


def test_what_a_screen_reader_finds(page, host, sessions):
    page.goto(host.page(host.widget(for_="answer")))
    button(page, "Useful").click()
    group = page.get_by_role("group", name="Was this answer useful?")
    expect(group).to_match_aria_snapshot("""
        - group "Was this answer useful?":
          - button "Useful" [pressed]
          - button "Not useful"
          - group "Rating":
            - radio "1/5"
            - radio "2/5"
            - radio "3/5"
            - radio "4/5"
            - radio "5/5"
          - textbox "Comment"
          - group: Correct the answer
          - button "Send"
          - button "Close"
          - status: Recorded, thank you.
    """)


@pytest.mark.parametrize(
    ("document", "own", "expected"),
    [
        ("en", None, "Useful"), ("zh-Hans", None, "有用"), ("ru-RU", None, "Полезен"), ("fr", None, "Useful"),
        ("en", "ru", "Полезен"), ("ru", "ZH", "有用"), ("ru", "xx", "Useful"),
    ],
)  # fmt: skip
def test_it_speaks_the_language_of_its_element_else_of_the_page(page, host, document, own, expected):
    page.goto(host.page(host.widget(**({"lang": own} if own else {})), lang=document))
    expect(button(page, expected)).to_be_visible()
    page.evaluate("document.querySelector('diagnosis-feedback').lang = 'ru'")
    expect(button(page, "Полезен")).to_be_visible()


def test_a_site_gives_it_colours(page, host):
    style = """const sheet = new CSSStyleSheet(); document.adoptedStyleSheets = [sheet];
        sheet.replaceSync('diagnosis-feedback { --df-accent: rgb(120, 0, 90); --df-on-accent: rgb(1, 2, 3) }');"""
    page.goto(host.page(host.widget(), script=style))
    button(page, "Useful").click()
    colours = "(e) => [getComputedStyle(e).backgroundColor, getComputedStyle(e).color]"
    assert button(page, "Useful").evaluate(colours) == ["rgb(120, 0, 90)", "rgb(1, 2, 3)"]


# -- trouble -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("has_storage", "has_key"), [(True, False), (False, True)], ids=["kept", "not-kept-with-key"])
def test_of_fifty_clicks_before_a_closing_tab_none_is_lost_or_doubled(
    context, host, sessions, new_key, has_storage, has_key
):
    if not has_storage:
        context.add_init_script(WITHOUT_STORAGE)
    options = {"key": new_key("feedback")} if has_key else {}
    for number in range(50):
        page = context.new_page()
        page.goto(host.page(host.widget(f"s{number}", **options)))
        button(page, "Useful").click()
        page.close()
    deadline = time.monotonic() + 20
    while AgentFeedback.objects.count() < 50 and time.monotonic() < deadline:
        time.sleep(0.1)
    time.sleep(1)
    said = list(AgentFeedback.objects.values_list("session_id", flat=True))
    assert len(said) == len(set(said))
    assert len(said) >= 49


@pytest.fixture
def way(live_server: Any) -> Iterator[Proxy]:
    """A way to the product that can be cut."""
    parts = urlsplit(live_server.url)
    proxy = Proxy(parts.hostname or "localhost", parts.port or 80)
    yield proxy
    proxy.cut()


@pytest.fixture
def away(way: Proxy, settings: Any, watch: Any) -> Iterator[Host]:
    """A site that reaches the product only by that way."""
    api = f"http://127.0.0.1:{way.port}"
    for host in _serve(api):
        settings.CORS_ALLOWED_ORIGINS = [host.url]
        watch.expect(f"foreign request: {re.escape(host.url)}/")
        watch.expect(f"foreign request: {re.escape(api)}/(widget.js|api/feedback/events)")
        watch.expect("net::ERR_|status of 503")
        yield host


def test_a_server_that_was_away_gets_all_of_it_when_it_is_back(page, way, away, sessions):
    page.goto(away.page(away.widget("s0"), away.widget("s1")))
    way.cut()
    button(page, "Useful").nth(0).click()
    expect(page.get_by_role("status").nth(0)).to_have_text("Saved; it will be sent later.")
    button(page, "Not useful").nth(1).click()
    expect(page.get_by_role("status").nth(1)).to_have_text("Saved; it will be sent later.")
    assert not AgentFeedback.objects.exists()
    way.mend()
    expect(page.get_by_role("status").nth(0)).to_have_text("Recorded, thank you.", timeout=15_000)
    expect(page.get_by_role("status").nth(1)).to_have_text("Recorded, thank you.", timeout=15_000)
    events = stored(2)
    assert {(event.session_id, event.value) for event in events} == {("s0", 1.0), ("s1", -1.0)}
    page.wait_for_timeout(3000)
    stored(2)
    assert page.evaluate("localStorage.getItem('diagnosis-feedback:outbox')") == "[]"


def test_what_was_said_to_a_closed_tab_of_an_absent_server_comes_with_the_next_visit(context, way, away, sessions):
    page = context.new_page()
    page.goto(away.page(away.widget("s0")))
    way.cut()
    button(page, "Useful").click()
    expect(page.get_by_role("status")).to_have_text("Saved; it will be sent later.")
    said_at = time.time()
    page.close()
    time.sleep(2)
    way.mend()
    later = context.new_page()
    later.goto(away.page(away.widget("s1")))
    [event] = stored(1, 15)
    assert (event.session_id, event.value) == ("s0", 1.0)
    assert abs(event.created_at.timestamp() - said_at) < 3


def test_two_tabs_deliver_one_outbox_once(context, way, away, sessions):
    pages = [context.new_page() for _ in range(3)]
    sent = []
    for page in pages:
        page.goto(away.page(*(away.widget(f"s{n}") for n in range(4))))
        page.on("request", lambda request: sent.append(request.method))
    way.cut()
    for number in range(4):
        button(pages[0], "Useful").nth(number).click()
    expect(pages[0].get_by_role("status").nth(3)).to_have_text("Saved; it will be sent later.")
    way.mend()
    stored(4, 20)
    pages[0].wait_for_timeout(2000)
    stored(4)


def test_too_much_at_once_is_said_later(page, host, sessions, settings, watch):
    watch.expect("status of 429")
    settings.FEEDBACK_RATES = {**settings.FEEDBACK_RATES, "address": (1, 3)}
    page.goto(host.page(host.widget("s0"), host.widget("s1")))
    button(page, "Useful").nth(0).click()
    stored(1)
    button(page, "Useful").nth(1).click()
    expect(page.get_by_role("status").nth(1)).to_have_text("Saved; it will be sent later.")
    expect(page.get_by_role("status").nth(1)).to_have_text("Recorded, thank you.", timeout=15_000)
    stored(2)


def test_a_session_that_is_recorded_a_moment_later_gets_what_was_said_of_it(page, host):
    page.goto(host.page(host.widget("late")))
    button(page, "Useful").click()
    expect(page.get_by_role("status")).to_have_text("Saved; it will be sent later.")
    record_sessions([{"session_id": "late", "status": "SUCCESS", "answer": ANSWER}])
    expect(page.get_by_role("status")).to_have_text("Recorded, thank you.", timeout=10_000)
    stored(1)


def test_what_is_refused_for_good_is_not_tried_again_and_can_be_said_anew(page, host, sessions):
    page.goto(host.page(host.widget()))
    page.evaluate("""() => { crypto.getRandomValues = (a) => a.fill(7); }""")
    button(page, "Useful").click()
    stored(1)
    page.goto(host.page(host.widget("s1")))
    page.evaluate("""() => { crypto.getRandomValues = (a) => a.fill(7); }""")
    button(page, "Useful").click()  # the same id of an event, for another session
    expect(page.get_by_role("status")).to_have_text("The server did not accept this.")
    expect(button(page, "Useful")).to_have_attribute("aria-pressed", "false")
    assert page.evaluate("localStorage.getItem('diagnosis-feedback:outbox')") == "[]"
    stored(1)


def test_without_local_storage_it_works_as_long_as_the_page_lives(context, host, sessions):
    context.add_init_script(WITHOUT_STORAGE)
    page = context.new_page()
    page.goto(host.page(host.widget(), host.widget()))
    button(page, "Useful").first.click()
    expect(page.get_by_role("status").first).to_have_text("Recorded, thank you.")
    expect(button(page, "Useful").nth(1)).to_have_attribute("aria-pressed", "true")
    stored(1)


@pytest.mark.parametrize(
    "kept",
    ["no json", "{}", "[1, null, {}]", '[{"place": 5}]', '[{"place": "x", "born": 1e15, "url": "javascript:1"}]'],
)
def test_a_spoilt_store_harms_nobody(context, host, sessions, kept):
    context.add_init_script(
        f"for (const name of ['said', 'outbox']) try {{ localStorage['diagnosis-feedback:' + name] = {kept!r} }} "
        "catch { /* a page of no origin */ }"
    )
    page = context.new_page()
    page.goto(host.page(host.widget()))
    button(page, "Useful").click()
    expect(page.get_by_role("status")).to_have_text("Recorded, thank you.")
    stored(1)


@pytest.mark.parametrize(
    "attributes",
    [
        {"api": "javascript:document.title='run'"}, {"api": "data:text/html,x"}, {"api": "http://"}, {"api": "//["},
        {"session_id": ""}, {"session_id": "a b"}, {"session_id": "x" * 65}, {"session_id": "сессия"},
    ],
)  # fmt: skip
def test_attributes_that_make_no_sense_show_nothing(page, host, attributes):
    given = {"session_id": "s0"} | attributes
    page.goto(host.page(host.widget(**given)))
    assert page.evaluate("customElements.get('diagnosis-feedback') !== undefined")
    expect(page.get_by_role("button")).to_have_count(0)
    assert page.title() == "Host"


HOSTILE = "\"><img src=x onerror=document.title='run'><script>document.title='run'</script>"


def test_hostile_attributes_and_answers_stay_text(page, host, sessions):
    script = f"document.querySelector('diagnosis-feedback').answer = {HOSTILE!r};"
    attributes = dict.fromkeys(("token", "lang", "for", "theme", "class"), HOSTILE)
    page.goto(host.page(host.widget(**attributes), script=script))
    button(page, "Useful").click()
    page.get_by_text("Correct the answer").click()
    assert page.get_by_role("textbox", name="Correct the answer").input_value() == HOSTILE
    page.get_by_role("textbox", name="Correct the answer").fill("fixed " + HOSTILE)
    button(page, "Send").click()
    stored(2)
    assert page.title() == "Host"
    assert page.locator("img").count() == 0


def test_an_ids_every_letter_is_sent_as_it_stands(page, host):
    wild = "!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~"
    record_sessions([{"session_id": wild}])
    page.goto(host.page(host.widget(wild)))
    button(page, "Useful").click()
    assert stored(1)[0].session_id == wild


def test_a_page_that_forbids_the_way_and_loads_it_twice_hears_no_error(context, host, sessions, watch):
    watch.expect("Content Security Policy|violates the following")
    page = context.new_page()
    faults: list[str] = []
    page.on("pageerror", lambda fault: faults.append(str(fault)))
    again = f'<script src="{host.api}/widget.js?again" defer></script>'
    page.goto(host.page(host.widget(api="http://localhost:9/"), again))
    button(page, "Useful").click()
    expect(page.get_by_role("status")).to_have_text("Saved; it will be sent later.")
    assert faults == []


# -- the demo ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1280, 390])
def test_the_demo_takes_feedback_in_any_light_and_width(new_context, settings, screenshot, scheme, width):
    settings.DEMO = True
    call_command("load_samples", verbosity=0)
    before = AgentFeedback.objects.count()
    page = new_context(color_scheme=scheme, viewport={"width": width, "height": 900}).new_page()
    page.goto("/demo")
    screenshot(page, f"demo-{width}-{scheme}-closed")
    button(page, "Not useful").click()
    expect(page.get_by_role("status")).to_have_text("Recorded, thank you.")
    page.get_by_role("radio", name="3/5").check()
    page.get_by_text("Correct the answer").click()
    screenshot(page, f"demo-{width}-{scheme}-open")
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    assert AgentFeedback.objects.count() == before + 1


def test_the_demo_speaks_three_languages(new_context, settings, screenshot):
    settings.DEMO = True
    call_command("load_samples", verbosity=0)
    page = new_context(viewport={"width": 390, "height": 900}).new_page()
    page.goto("/demo")
    for language, useful in (("Русский", "Полезен"), ("简体中文", "有用"), ("English", "Useful")):
        button(page, language).click()
        button(page, useful).click()
        expect(button(page, useful)).to_have_attribute("aria-pressed", "true")
        screenshot(page, f"demo-{language}")
