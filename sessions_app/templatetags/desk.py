"""What the reviewers' pages share: marks, scores, durations, moments, excerpts, JSON, Markdown.

Text that comes in is data: every function escapes it. A mark is a colour, an icon and a word together, so that none of
them stands alone; `static/css/desk.css` gives each mark its colours.
"""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django import template
from django.utils import timezone
from django.utils.formats import number_format
from django.utils.html import format_html
from django.utils.safestring import SafeString, mark_safe
from django.utils.timesince import timesince
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext, npgettext_lazy

from sessions_app import rules
from sessions_app.fields import dumps
from sessions_app.markdown import render_markdown, split_markdown
from sessions_app.models import AgentFlow, DiagnosisSession, Status, Verdict
from sessions_app.paging import MOST_COUNTED
from sessions_app.selectors.chain import CLIP_CHARS, Call
from sessions_app.text import loads_strict

register = template.Library()

NOTHING = "–"
EXCERPT_CHARS = 120
MAX_PRETTY_CHARS = 20_000

# -- marks -----------------------------------------------------------------------------------------------------------

ICONS: Mapping[str, str] = {
    # how a run went
    "pending": "hourglass_empty",
    "running": "progress_activity",
    "success": "check",
    "failed": "error",
    # what its reader said
    "useful": "thumb_up",
    "not_useful": "thumb_down",
    # retrieval
    "l0": "adjust",
    "l1": "join_inner",
    "miss": "search_off",
    # what happened to a call
    "truncated": "content_cut",
    "repeated": "repeat",
    "sanitised": "healing",
    # triage
    "open": "inbox",
    "in_review": "person",
    "resolved": "task_alt",
    "dismissed": "do_not_disturb_on",
    "overdue": "alarm",
    "mine": "person",
    "confident": "priority_high",
    # kinds of feedback
    "star": "star",
    "correction": "spellcheck",
    "re_ask": "replay",
    "edit": "edit",
    # cases
    "draft": "edit_note",
    "enriched": "library_add_check",
    "published": "public",
    "retired": "archive",
    "flagged": "flag",
    # keys
    "valid": "key",
    "revoked": "key_off",
}
"""Mark → icon. Each has its colours in `desk.css` under `.desk-badge--<mark>`."""


@register.simple_tag
def badge(mark: object, text: object, title: object = "") -> SafeString:
    """`text` with the colour and icon of a mark: `{% badge review.state review.get_state_display %}`."""
    name = str(mark).lower()
    tooltip = format_html(' title="{}"', title) if title else ""
    return format_html(
        '<span class="desk-badge desk-badge--{}"{}>{}<span>{}</span></span>', name, tooltip, icon(ICONS.get(name)), text
    )


def icon(name: str | None) -> SafeString:
    """A symbol beside a word; never read aloud."""
    if not name:
        return mark_safe("")
    return format_html('<span class="material-symbols-outlined desk-icon" aria-hidden="true">{}</span>', name)


@register.filter
def status_badge(status: str) -> SafeString:
    """How the run went."""
    return badge(status, Status(status).label)


@register.filter
def verdict_badge(verdict: str | None) -> SafeString:
    """What the reader said."""
    return badge(verdict, Verdict(verdict).label) if verdict else nothing()


@register.simple_tag
def nothing() -> SafeString:
    """Stands where a value is missing."""
    return format_html('<span class="desk-nothing">{}</span>', NOTHING)


# -- evidence --------------------------------------------------------------------------------------------------------

BAND_LABELS: Mapping[str, Any] = {
    rules.STRONG: gettext_lazy("Strong evidence"),
    rules.PARTIAL: gettext_lazy("Partial evidence"),
    rules.WEAK: gettext_lazy("Weak evidence"),
}

FACTOR_LABELS: Mapping[str, Any] = {
    "no_tool_call": gettext_lazy("No tool was called"),
    "execution_failed": gettext_lazy("The run failed"),
    "has_successful_tool_call": gettext_lazy("A tool call succeeded"),
    "l0_exact_match": gettext_lazy("Exact match found (L0)"),
    "l1_semantic_match": gettext_lazy("Match by meaning found (L1)"),
    "retrieval_no_hit": gettext_lazy("Retrieval found nothing"),
    "all_tool_calls_failed": gettext_lazy("Every tool call failed"),
}


@register.filter
def factor_name(name: str) -> str:
    """A rule of evidence in the reader's language; a rule we do not know by its own name."""
    return str(FACTOR_LABELS.get(name, name))


_TIMES = re.compile(r"\((\d+)次\)$")


@register.filter
def factor_detail(factor: FactorLine) -> str:
    """What a factor tells beyond its name: of how many calls; of a rule we do not know, what it says of itself.

    Descriptions are stored in the words of the design, which are Chinese.
    """
    if factor.name not in FACTOR_LABELS:
        return factor.description
    times = _TIMES.search(factor.description)
    if times is None:
        return ""
    n = int(times[1])
    return ngettext("%(n)s tool call", "%(n)s tool calls", n) % {"n": number(n)}


@register.filter
def band(score: int) -> str:
    """Name of the band a score falls into."""
    return rules.band_of(score)


@register.filter
def band_name(score: int) -> str:
    """The band in words."""
    return str(BAND_LABELS[rules.band_of(score)])


@register.filter
def score_mark(session: DiagnosisSession) -> SafeString:
    """The evidence score as number and band, or why there is none: pending, failed, not owed yet."""
    if session.evaluation_due_at is not None:
        return badge("pending", _("Pending"), _("The worker has not scored this session yet."))
    if session.evaluation_error:
        return badge("failed", _("No score"), why_unscored(session))
    if session.evidence_score is None:
        return nothing()
    return score_bars(session.evidence_score)


@register.filter
def why_unscored(session: DiagnosisSession) -> str:
    """The reason on record: our own sentence in the reader's language, an error as it was caught."""
    return _(session.evaluation_error) if session.evaluation_error else ""


@register.filter
def score_bars(score: int) -> SafeString:
    """A number with one, two or three bars for its band."""
    return format_html(
        '<span class="desk-score desk-score--{}" title="{}"><span class="desk-score__bars" aria-hidden="true"><i></i>'
        '<i></i><i></i></span><b>{}</b><span class="desk-sr"> {}</span></span>',
        rules.band_of(score),
        band_name(score),
        score,
        band_name(score),
    )


@register.filter
def signed(value: int) -> str:
    """A difference with its sign; minus as a minus."""
    return f"+{value}" if value > 0 else str(value).replace("-", "−")


# -- figures and moments ---------------------------------------------------------------------------------------------

SECOND, MINUTE, HOUR = 1000, 60_000, 3_600_000

SPANS: dict[str, Any] = {
    "year": npgettext_lazy("ago or in", "%(num)d year", "%(num)d years", "num"),
    "month": npgettext_lazy("ago or in", "%(num)d month", "%(num)d months", "num"),
    "week": npgettext_lazy("ago or in", "%(num)d week", "%(num)d weeks", "num"),
    "day": npgettext_lazy("ago or in", "%(num)d day", "%(num)d days", "num"),
    "hour": npgettext_lazy("ago or in", "%(num)d hour", "%(num)d hours", "num"),
    "minute": npgettext_lazy("ago or in", "%(num)d minute", "%(num)d minutes", "num"),
}
"""For `timesince` and `timeuntil`: in the case that "ago" and "in" ask for (1 минуту назад, not Django's 1 минута)."""


@register.filter
def duration(milliseconds: int | None) -> str:
    """Milliseconds as people say them: 850 ms, 12.9 s, 3 min 5 s, 1 h 2 min."""
    if milliseconds is None:
        return NOTHING
    if milliseconds < SECOND:
        return _("%(ms)s ms") % {"ms": milliseconds}
    if milliseconds < MINUTE:
        seconds = number_format(round(milliseconds / SECOND, 1), decimal_pos=1)  # it cuts, where people round
        return _("%(s)s s") % {"s": seconds}
    if milliseconds < HOUR:
        minutes, rest = divmod(milliseconds // SECOND, 60)
        return _("%(min)s min %(s)s s") % {"min": minutes, "s": rest}
    hours, rest = divmod(milliseconds // MINUTE, 60)
    return _("%(h)s h %(min)s min") % {"h": number(hours), "min": rest}


@register.filter
def number(value: float | None) -> str:
    """A figure with the reader's thousands separators."""
    return NOTHING if value is None else str(number_format(value, use_l10n=True, force_grouping=True))


@register.filter
def bounded(count: int) -> str:
    """What `sessions_app.paging.bounded_count` counted: `1,000+` where there are more."""
    return f"{number(MOST_COUNTED)}+" if count > MOST_COUNTED else number(count)


@register.filter
def percent(share: float | None) -> str:
    """A share from 0 to 1."""
    return NOTHING if share is None else f"{round(share * 100)}%"  # number_format would cut, not round


@register.filter
def moment(value: datetime | None) -> SafeString:
    """How long ago; the exact time is in the tooltip."""
    if value is None:
        return nothing()
    return time_element(value, _ago(value))


@register.filter
def exact_moment(value: datetime | None) -> SafeString:
    """Date and time in the reader's zone, to the second."""
    return nothing() if value is None else time_element(value, _exact(value))


def time_element(value: datetime, text: str) -> SafeString:
    """`text` for a moment, with the moment itself for machines and in the tooltip."""
    return format_html('<time datetime="{}" title="{}">{}</time>', value.isoformat(), _exact(value), text)


def _exact(value: datetime) -> str:
    return f"{timezone.localtime(value):%Y-%m-%d %H:%M:%S %Z}"


def _ago(value: datetime) -> str:
    age = timezone.now() - value
    if age < timedelta(0):
        return _exact(value)
    if age < timedelta(minutes=1):
        return _("just now")
    return _("%(time)s ago") % {"time": timesince(value, depth=1, time_strings=SPANS)}


# -- text ------------------------------------------------------------------------------------------------------------

_UNSEEN = {"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"}
_JOINERS = "\u200c\u200d"  # hold scripts and emoji together


@register.filter
def excerpt(value: object, chars: int = EXCERPT_CHARS) -> str:
    """The beginning of a text in one line, without characters that cannot be seen or that turn the line round."""
    text = "" if value is None else str(value)
    head = text[: chars * 4]
    seen = "".join(c if unicodedata.category(c) not in _UNSEEN or c in _JOINERS else " " for c in head)
    line = " ".join(seen.split())
    return line if len(line) <= chars and len(head) == len(text) else f"{line[:chars].rstrip()}…"


@register.filter
def markdown(text: str | None) -> SafeString:
    """Markdown without HTML and images; what is too long follows as plain text."""
    parsed, rest = split_markdown(text or "")
    html = mark_safe(render_markdown(parsed))
    if not rest:
        return html
    note = ngettext("%(n)s more character, as plain text:", "%(n)s more characters, as plain text:", len(rest))
    return format_html(
        '{}<p class="desk-note">{}</p><pre class="desk-text">{}</pre>', html, note % {"n": number(len(rest))}, rest
    )


@register.filter
def pretty_json(value: object) -> str:
    """JSON, indented; text that holds JSON likewise, other text as it is. What is very long is cut."""
    if isinstance(value, str):
        value = _parsed(value)
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, indent=2)
    return text if len(text) <= MAX_PRETTY_CHARS else f"{text[:MAX_PRETTY_CHARS]}…"


def _parsed(text: str) -> object:
    if not re.match(r"\s*[\[{]", text) or len(text) > MAX_PRETTY_CHARS:
        return text
    try:
        return loads_strict(text.encode())
    except ValueError:
        return text


@register.filter
def one_line_json(value: object) -> str:
    """The beginning of a JSON value in one line, for the summary of a fold."""
    return excerpt(value if isinstance(value, str) else dumps(value))


# -- what stands in `self_evaluation` --------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class FactorLine:
    """One rule that applied, and the part of the 0–100 scale it moved the sum over."""

    name: str
    delta: int
    description: str
    left: int
    width: int


@dataclass(frozen=True, slots=True)
class Evidence:
    """The rules' verdict, ready to be shown. `total` is the sum before the clamp."""

    score: int
    total: int
    factors: list[FactorLine]


@register.filter
def evidence(session: DiagnosisSession) -> Evidence | None:
    """The score of a session, factor by factor; None while there is none."""
    if session.evidence_score is None:
        return None
    lines: list[FactorLine] = []
    total = 0
    for factor in _evaluation(session).get("factors", ()):
        before, total = total, total + factor["delta"]
        left, right = sorted(max(rules.MIN_SCORE, min(rules.MAX_SCORE, end)) for end in (before, total))
        lines.append(FactorLine(factor["name"], factor["delta"], factor["description"], left, right - left))
    return Evidence(session.evidence_score, total, lines)


@register.filter
def gains(verdict: Evidence) -> list[rules.Gain]:
    """What would have raised the score."""
    return rules.possible_gains([factor.name for factor in verdict.factors])


@register.filter
def said(session: DiagnosisSession) -> dict[str, Any]:
    """What the agent said of itself, without what the rules wrote over it."""
    return {key: value for key, value in _evaluation(session).items() if key not in rules.RULE_KEYS}


def _evaluation(session: DiagnosisSession) -> dict[str, Any]:
    """A session that cannot be scored may hold anything here, and its page must open all the same."""
    evaluation: Any = session.self_evaluation
    return evaluation if isinstance(evaluation, dict) else {}


SAID_LABELS: Mapping[str, Any] = {
    "confidence": gettext_lazy("Confidence"),
    "reasoning": gettext_lazy("Reasoning"),
    "evidence_count": gettext_lazy("Pieces of evidence"),
    "tools_proposed": gettext_lazy("Tools proposed"),
    "tools_accepted": gettext_lazy("Tools accepted"),
}


@register.filter
def said_name(key: str) -> str:
    """One of the design's keys in the reader's language; any other as the agent wrote it."""
    return str(SAID_LABELS.get(key) or excerpt(key))


# -- pieces of the decision chain ------------------------------------------------------------------------------------

CALL_LABELS: Mapping[str, Any] = {
    "l0": gettext_lazy("L0"),
    "l1": gettext_lazy("L1"),
    "miss": gettext_lazy("No hit"),
    "failed": gettext_lazy("Failed"),
    "truncated": gettext_lazy("Truncated"),
    "repeated": gettext_lazy("Repeated"),
}
"""Marks of a tool invocation, in the order in which they are read."""

CALL_TITLES: Mapping[str, Any] = {
    "l0": gettext_lazy("Retrieval hit by exact key"),
    "l1": gettext_lazy("Retrieval hit by meaning"),
    "miss": gettext_lazy("Retrieval was called and hit nothing"),
    "truncated": gettext_lazy("The result was cut off before the model saw all of it"),
    "repeated": gettext_lazy("The same tool was called with the same input before"),
}


@register.filter
def totals(counter: Mapping[str, int]) -> list[tuple[str, int]]:
    """Marks that occur, with how often, in the order in which they are read."""
    return [(mark, counter[mark]) for mark in CALL_LABELS if counter[mark]]


@register.simple_tag
def call_badge(mark: str, times: int) -> SafeString:
    """A mark and how many calls carry it."""
    return badge(mark, f"{CALL_LABELS[mark]}: {number(times)}", CALL_TITLES.get(mark, ""))


@register.simple_tag
def call_mark(call: Call, mark: str) -> SafeString:
    """One mark of one call; a hit with its count where the agent gave one."""
    text = str(CALL_LABELS[mark])
    matches = {"l0": call.row.l0_match_count, "l1": call.row.l1_match_count}.get(mark)
    return badge(mark, f"{text} ×{number(matches)}" if matches else text, CALL_TITLES.get(mark, ""))


@register.filter
def is_clipped(text: str) -> bool:
    """Whether a text of the timeline is as long as it may be, so that there is more of it."""
    return len(text) >= CLIP_CHARS


@register.filter
def pages(count: int) -> range:
    """Page numbers from 1."""
    return range(1, count + 1)


# -- lists -----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ActiveFilter:
    """One thing a change list is narrowed to. `without` is the list without it."""

    title: str
    value: str
    without: str


@register.simple_tag
def active_filters(changelist: Any) -> list[ActiveFilter]:
    """The filters in use, for any change list whose filters are `SimpleListFilter`s or have fields of their own."""
    found: list[ActiveFilter] = []
    for spec in changelist.filter_specs:
        names = [name for name in spec.expected_parameters() if changelist.filter_params.get(name)]
        for name in names:
            for value in changelist.filter_params[name]:
                rest = [other for other in changelist.filter_params[name] if other != value]
                found.append(
                    ActiveFilter(
                        str(spec.title), _words(spec, name, value), changelist.get_query_string({name: rest or None})
                    )
                )
    return [active for active in found if active.value]


def _words(spec: Any, name: str, value: str) -> str:
    """A chosen value as its filter calls it; of a range, with the end it is."""
    labels = {str(key): str(label) for key, label in getattr(spec, "lookup_choices", ())}
    sign = {"_from": "≥ ", "_to": "≤ "}.get(name.removeprefix(str(getattr(spec, "parameter_name", ""))), "")
    return sign + (labels.get(value) or excerpt(value))


@register.filter
def flow_name(flow: str) -> str:
    """A flow of the design in the reader's language; any other as the agent wrote it."""
    return str(dict(AgentFlow.choices).get(flow, flow))
