"""Where a suggestion came from, in words."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext_lazy as _

from cases_app.suggestions.clues import Found, Source
from sessions_app.templatetags.desk import excerpt

WHAT_CHARS = 60

PLACES: Mapping[Source, Any] = {
    Source.ALERT: _("alert %(what)s"),
    Source.QUESTION: _("%(what)s in the question"),
    Source.TITLE: _("%(what)s in the title"),
    Source.CAUSE: _("%(what)s in the root cause"),
    Source.ANSWER: _("%(what)s in the answer"),
    Source.METADATA: _("%(what)s in the metadata"),
    Source.TOOL: _("tool %(what)s"),
    Source.AGENT: _("agent %(what)s"),
    Source.ERROR: _("%(what)s in the error of a tool"),
    Source.HEADING: _("below %(what)s in the answer"),
    Source.FIRST_HEADING: _("first heading of the answer"),
}


def place_of(found: Found) -> SafeString:
    """`the piece of text itself` in the question."""
    what = format_html('<code dir="auto">{}</code>', excerpt(found.what, WHAT_CHARS))
    return format_html(str(PLACES[found.source]).replace("%(what)s", "{}"), what)
