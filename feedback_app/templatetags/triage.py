"""Marks of a triage."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any, NamedTuple

from django import template
from django.utils import timezone
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.timesince import timeuntil
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from feedback_app import priority
from feedback_app.models import BadCaseReview
from sessions_app.templatetags.desk import SPANS, badge, moment, nothing, signed, time_element

register = template.Library()

RULE_LABELS: Mapping[str, Any] = {
    "confident": gettext_lazy("Stated with confidence, and rejected"),
    "strong_evidence": gettext_lazy("Strong evidence, and rejected"),
    "correction": gettext_lazy("Somebody wrote a correction"),
    "words": gettext_lazy("Somebody wrote a comment"),
    "re_asks": gettext_lazy("Asked again"),
    "repeats": gettext_lazy("The same question in other bad cases"),
}


class PriorityLine(NamedTuple):
    """A rule in words: by how many hours it brings a bad case forward, and how often at most."""

    name: str
    hours: str
    most: int = 1


@register.filter
def priority_lines(review: BadCaseReview) -> list[PriorityLine]:
    """Why a bad case comes before others that are due when it is."""
    given = review.priority_hours.items()
    return [PriorityLine(str(RULE_LABELS.get(name, name)), _hours(hours)) for name, hours in given]


def priority_rules() -> list[PriorityLine]:
    """The whole table."""
    return [PriorityLine(str(RULE_LABELS[rule.name]), _hours(rule.hours), rule.most) for rule in priority.RULES]


@register.filter
def priority_mark(review: BadCaseReview) -> SafeString:
    """By how many hours it is brought forward, in one figure; why is in the tooltip. Of what is closed, nothing."""
    lines = priority_lines(review)
    if review.resolved_at or not lines:
        return format_html("{}", "")
    why = "\n".join(f"{line.hours}: {line.name}" for line in lines)
    return format_html('<small title="{}">{}</small>', why, _hours(sum(review.priority_hours.values())))


def _hours(hours: int) -> str:
    return _("%(hours)s h") % {"hours": signed(hours)}


@register.filter
def named(code: str, names: Mapping[str, str]) -> str:
    """What a code is called; itself where nobody knows."""
    return names.get(code, code)


@register.filter
def due_mark(review: BadCaseReview) -> SafeString:
    """Until when a bad case waits, or since when it is overdue or closed."""
    if review.resolved_at:
        return format_html('{} <span class="desk-quiet">{}</span>', _("Closed"), moment(review.resolved_at))
    if review.due_at is None:
        return nothing()
    if review.is_overdue:
        return format_html(
            '{} <span class="desk-quiet">{}</span>', badge("overdue", _("Overdue")), moment(review.due_at)
        )
    return until(review.due_at)


@register.filter
def until(due_at: datetime) -> SafeString:
    """A moment to come, or how long ago it was."""
    if due_at < timezone.now():
        return moment(due_at)
    return time_element(due_at, _("in %(time)s") % {"time": timeuntil(due_at, depth=1, time_strings=SPANS)})
