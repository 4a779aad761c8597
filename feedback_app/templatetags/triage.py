"""Marks of a triage."""

from __future__ import annotations

from django import template
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.timesince import timeuntil
from django.utils.translation import gettext as _

from feedback_app.models import BadCaseReview
from sessions_app.templatetags.desk import SPANS, badge, moment, nothing, time_element

register = template.Library()


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
    time_left = timeuntil(review.due_at, depth=1, time_strings=SPANS)
    return time_element(review.due_at, _("in %(time)s") % {"time": time_left})
