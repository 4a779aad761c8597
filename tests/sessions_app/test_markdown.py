"""Markdown of agents as HTML that is safe to show, in bounded time."""

from __future__ import annotations

import time

import pytest

from sessions_app.markdown import MAX_CHARS, render_markdown, split_markdown


def test_what_answers_are_made_of_is_rendered():
    html = render_markdown(
        "## Cause\n\n1. **Pool** ~~small~~\n\n| a | b |\n|---|---|\n| x<br>y | `z` |\n\n```sql\nSELECT 1\n```"
    )
    for expected in (
        "<h4>Cause</h4>",
        "<ol>",
        "<strong>Pool</strong>",
        "<s>small</s>",
        "<td>x<br />",
        "<code>z</code>",
    ):
        assert expected in html


@pytest.mark.parametrize(
    "text",
    [
        "<script>alert(1)</script>",
        "<img src=x onerror=alert(1)>",
        "<svg/onload=alert(1)>",
        "<div x-data=\"{a: alert(1)}\" x-init='alert(1)'>",
        '<a href="javascript:alert(1)">x</a>',
        "```<script>\n</script>\n```",
        '```"><img src=x onerror=alert(1)>\nx\n```',
        '[x](http://a.example "\\"onmouseover=\\"alert(1)")',
        "<br onload=alert(1)>",
        "<!-- --><script>alert(1)</script>",
    ],
)
def test_html_stays_text(text):
    html = render_markdown(text)
    for forbidden in ("<script", "<img", "<svg", "<div", '<a href="javascript', "onload=alert(1)>\n", "<!--"):
        assert forbidden not in html.replace("&lt;", "‹")
    assert ' onmouseover="' not in html
    assert ' onerror="' not in html


@pytest.mark.parametrize(
    "target",
    [
        "javascript:alert(1)",
        "JaVaScRiPt:alert(1)",
        "java&#115;cript:alert(1)",
        "data:text/html,<script>alert(1)</script>",
        "vbscript:x",
        "file:///etc/passwd",
        "//evil.example/x",
        "/admin/logout/",
        "?delete=1",
    ],
)
def test_links_lead_to_web_and_mail_only(target):
    assert "href" not in render_markdown(f"[x]({target}) <{target}>\n\n[y]: {target}\n[y]")


def test_links_leave_no_trace():
    html = render_markdown("[runbook](https://wiki.example/a?b=c&d) <mailto:a@b.example>")
    assert html.count('rel="noopener noreferrer nofollow"') == 2
    assert 'href="https://wiki.example/a?b=c&amp;d"' in html


def test_images_are_not_fetched():
    assert "<img" not in render_markdown(
        "![x](https://evil.example/x.png) ![y](data:image/png;base64,AA==)\n\n![z][1]\n\n[1]: http://evil.example/z.png"
    )


@pytest.mark.parametrize(
    "unit",
    [
        "[",
        "![a](",
        "*a ",
        "**a",
        "_a_",
        "`a``",
        "> ",
        "- a\n",
        "|a|b|\n|-|-|\n",
        "<br",
        "a\n=\n",
        "~~a",
        "&amp;",
        "[a]: b\n",
        "\\[",
    ],
)
def test_time_is_bounded(unit):
    started = time.thread_time()  # of the processor: another test beside it does not count
    render_markdown(unit * MAX_CHARS)
    assert time.thread_time() - started < 3  # a tenth of that on an idle machine


def test_a_table_cannot_grow_out_of_a_few_characters():
    text = "|" + "a|" * 1000 + "\n|" + "-|" * 1000 + "\n" + "|a\n" * 3000
    assert len(render_markdown(text)) < 2 * len(text)


def test_a_long_text_is_parsed_up_to_the_end_of_a_line_and_none_of_it_is_lost():
    text = "line of an answer\n" * 3000
    parsed, rest = split_markdown(text)
    assert parsed + rest == text
    assert parsed.endswith("\n")
    assert len(parsed) <= MAX_CHARS
    assert split_markdown("short") == ("short", "")
    assert split_markdown("x" * (MAX_CHARS + 5)) == ("x" * MAX_CHARS, "x" * 5)


def test_code_that_may_scroll_can_be_reached_by_keyboard_and_text_cannot_feign_it():
    html = render_markdown("```\nSELECT 1\n```\n\n<pre>\n\n    code")
    assert html.count('<pre tabindex="0">') == 2
    assert html.count("<pre") == 2
    assert "&lt;pre&gt;" in html
