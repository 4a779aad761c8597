"""Feedback events as people read them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from django import template
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _

from feedback_app.difference import unified_diff
from feedback_app.models import AgentFeedback, EventType
from sessions_app.templatetags.desk import badge, nothing, percent

register = template.Library()

MARKS = {"-": "gone", "+": "new", "@": "place"}
MOST_STARS = 5


@register.filter
def event_value(event: AgentFeedback) -> SafeString:
    """The number an event became, as people say it: a thumb, stars, how much was changed, how much alike."""
    if event.value is None:
        return nothing()
    match event.type:
        case EventType.THUMBS if event.value > 0:
            return badge("useful", _("Useful"))
        case EventType.THUMBS:
            return badge("not_useful", _("Not useful"))
        case EventType.STAR:
            return stars(round(event.value * 4 + 1))
        case EventType.RE_ASK:
            return format_html("{}", _("%(percent)s alike") % {"percent": percent(event.value)})
    return format_html("{}", _("%(percent)s changed") % {"percent": percent(event.value)})


@register.filter
def stars(count: int) -> SafeString:
    """Stars to look at, a number to read."""
    return format_html(
        '<span class="desk-stars"><span aria-hidden="true">{}<i>{}</i></span> <b>{}/{}</b></span>',
        "★" * count,
        "★" * (MOST_STARS - count),
        count,
        MOST_STARS,
    )


class Line(NamedTuple):
    """One line of a difference. `mark` is "gone", "new", "place" (where what follows stands) or "same"."""

    mark: str
    text: str


@register.filter
def changed_lines(event: AgentFeedback) -> list[Line]:
    """What a correction or an edit changed. Edits carry their difference; those of long ago and corrections do not."""
    payload: dict[str, str] = event.payload
    diff = payload.get("diff")
    if diff is None:
        diff = unified_diff(payload.get("original", ""), payload.get("corrected", payload.get("edited", "")))
    return list(_lines(diff))


def _lines(diff: str) -> Iterator[Line]:
    # Not splitlines(): a line may hold what that takes for an end of line.
    for number, line in enumerate(diff.split("\n") if diff else ()):
        if number in (0, 1) and line in ("--- ", "+++ "):
            continue
        mark = MARKS.get(line[:1], "same")
        yield Line(mark, line if mark == "place" else line[1:] if line[:1] in "-+ " else line)
