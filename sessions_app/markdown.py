"""Markdown from agents and people, as HTML that is safe to show: no raw HTML, no images, links that leave no trace.

markdown-it-py never passes HTML through when `html` is off. What it still could do is bounded here: where links lead,
how large tables grow (a row of two characters may become hundreds of cells), and how much text is parsed at all.
"""

from __future__ import annotations

import re
from functools import cache
from typing import Any

from markdown_it import MarkdownIt
from markdown_it.rules_block import StateBlock
from markdown_it.rules_block.table import table
from markdown_it.rules_core import StateCore
from markdown_it.rules_inline import StateInline

MAX_CHARS = 20_000
"""Longest text that is parsed: its worst case takes half a second. What follows is shown as plain text."""

MAX_TABLE_CELLS = 10_000
DEEPEST_HEADING = 6
HEADING_SHIFT = 2
"""An answer stands below the page's own two levels of headings."""

_LINK = re.compile(r"(?:https?://|mailto:)", re.IGNORECASE)
_BREAK = re.compile(r"<br\s{0,4}/?>", re.IGNORECASE)


def split_markdown(text: str) -> tuple[str, str]:
    """The part that is parsed, cut at the end of a line, and the rest."""
    if len(text) <= MAX_CHARS:
        return text, ""
    end = text.rfind("\n", MAX_CHARS // 2, MAX_CHARS) + 1 or MAX_CHARS
    return text[:end], text[end:]


def render_markdown(text: str) -> str:
    """HTML of at most MAX_CHARS characters of Markdown."""
    html: str = _parser().render(text[:MAX_CHARS])
    return html.replace("<pre>", '<pre tabindex="0">')  # what scrolls must be reachable by keyboard


@cache
def _parser() -> MarkdownIt:
    parser = MarkdownIt("commonmark", {"html": False, "maxNesting": 20})
    parser.enable(["table", "strikethrough"]).disable(["image", "html_block", "html_inline"])
    parser.block.ruler.at("table", _bounded_table, {"alt": ["paragraph", "reference"]})
    parser.inline.ruler.before("autolink", "line_break_tag", _line_break_tag)
    parser.core.ruler.push("shift_headings", _shift_headings)
    parser.add_render_rule("link_open", _link_open)
    parser.validateLink = _may_link  # type: ignore[method-assign]  # the documented way to narrow it
    return parser


def _may_link(url: str) -> bool:
    return _LINK.match(url) is not None


def _link_open(renderer: Any, tokens: Any, index: int, options: Any, env: Any) -> str:
    tokens[index].attrSet("rel", "noopener noreferrer nofollow")
    tokens[index].attrSet("target", "_blank")
    html: str = renderer.renderToken(tokens, index, options, env)
    return html


def _bounded_table(state: StateBlock, start: int, end: int, silent: bool) -> bool:  # noqa: FBT001 - markdown-it's call
    """A table, unless the lines that follow could become too many cells."""
    columns = state.src.count("|", state.bMarks[start], state.eMarks[start]) + 1
    if columns * (end - start) > MAX_TABLE_CELLS:
        return False
    return table(state, start, end, silent)


def _line_break_tag(state: StateInline, silent: bool) -> bool:  # noqa: FBT001 - markdown-it's call
    """`<br>`, the one tag that models write into their tables, as a line break."""
    found = _BREAK.match(state.src, state.pos)
    if found is None:
        return False
    if not silent:
        state.push("hardbreak", "br", 0)
    state.pos = found.end()
    return True


def _shift_headings(state: StateCore) -> None:
    for token in state.tokens:
        if token.type in {"heading_open", "heading_close"}:
            token.tag = f"h{min(DEEPEST_HEADING, int(token.tag[1:]) + HEADING_SHIFT)}"
