"""What each kind of feedback event must carry, and the number it becomes. Pure.

Sources: for kinds and values the design document "Сбор и хранение обратной связи", for the wire names contract 1.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import sqrt
from typing import Any, NamedTuple

from django.utils.translation import gettext as _

from feedback_app.difference import edit_distance, unified_diff
from feedback_app.similarity import Similarity, words_and_characters

EVENT_TYPES = ("thumbs", "star", "correction", "re_ask", "edit")

EXPLICIT_TYPES = ("thumbs", "star", "correction")
IMPLICIT_TYPES = ("re_ask", "edit")
"""What somebody said of an answer, and what somebody's behaviour lets us guess. Shown apart, never mixed."""

MAX_EVENT_TEXT_CHARS = 20_000
"""Longest text of an event: two of them compare in about 25 ms."""
MAX_JOINED_CHARS = 200_000
"""Longest of comments that came one after another under one id: of ten, each as long as it may be, none is lost."""

MIN_STARS, MAX_STARS = 1, 5

OPEN, IN_REVIEW, RESOLVED, DISMISSED = "OPEN", "IN_REVIEW", "RESOLVED", "DISMISSED"

TRIAGE_SOURCES: Mapping[str, tuple[str, ...]] = {
    "claim": (OPEN,),
    "assign": (OPEN, IN_REVIEW),
    "hand_over": (IN_REVIEW,),
    "release": (IN_REVIEW,),
    "resolve": (IN_REVIEW,),
    "dismiss": (IN_REVIEW,),
    "reopen": (RESOLVED, DISMISSED),
}
"""Action → the states it may start from."""


class EventError(ValueError):
    """An event does not carry what its kind must. `field` is the wire name."""

    def __init__(self, field: str, message: str) -> None:
        super().__init__(message)
        self.field = field


class Reading(NamedTuple):
    """An event as it is stored."""

    value: float
    payload: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Kind:
    """One kind of event: which payload keys it knows, and how it is read."""

    read: Callable[[Any, dict[str, Any], Similarity], Reading]
    required: tuple[str, ...] = ()
    optional: tuple[str, ...] = ("comment",)


def read_event(
    kind: str, value: Any, payload: Mapping[str, Any], similarity: Similarity = words_and_characters
) -> Reading:
    """The number and payload of one event. Raises EventError naming what is wrong."""
    known = KINDS[kind]
    unknown = set(payload) - {*known.required, *known.optional}
    if unknown:
        raise EventError(f"payload.{min(unknown)}", _("Unknown field."))
    texts = {name: _text(payload, name, required=name in known.required) for name in (*known.required, *known.optional)}
    return known.read(value, {name: text for name, text in texts.items() if text is not None}, similarity)


def _text(payload: Mapping[str, Any], name: str, *, required: bool) -> str | None:
    text = payload.get(name)
    if text is None:
        if required:
            raise EventError(f"payload.{name}", _("This field is required."))
        return None
    if not isinstance(text, str):
        raise EventError(f"payload.{name}", _("Expected a string."))
    if len(text) > MAX_EVENT_TEXT_CHARS:
        raise EventError(f"payload.{name}", _("Longer than %(count)s characters.") % {"count": MAX_EVENT_TEXT_CHARS})
    return text


def _thumbs(value: Any, payload: dict[str, Any], similarity: Similarity) -> Reading:
    if value not in ("up", "down"):
        raise EventError("value", _('A thumbs event has the value "up" or "down".'))
    return Reading(1.0 if value == "up" else -1.0, payload)


def _star(value: Any, payload: dict[str, Any], similarity: Similarity) -> Reading:
    if isinstance(value, bool) or not isinstance(value, int | float) or value != int(value):
        raise EventError("value", _("A star event has a whole value from 1 to 5."))
    if not MIN_STARS <= value <= MAX_STARS:
        raise EventError("value", _("A star event has a whole value from 1 to 5."))
    return Reading((value - 1) / 4.0, {**payload, "stars": int(value)})


def _correction(value: Any, payload: dict[str, Any], similarity: Similarity) -> Reading:
    return Reading(edit_distance(payload["original"], payload["corrected"]), payload)


def _edit(value: Any, payload: dict[str, Any], similarity: Similarity) -> Reading:
    original, edited = payload["original"], payload["edited"]
    return Reading(edit_distance(original, edited), {**payload, "diff": unified_diff(original, edited)})


def _re_ask(value: Any, payload: dict[str, Any], similarity: Similarity) -> Reading:
    return Reading(round(similarity(payload["question"], payload["previousQuestion"]), 4), payload)


KINDS: Mapping[str, Kind] = {
    "thumbs": Kind(_thumbs),
    "star": Kind(_star),
    "correction": Kind(_correction, required=("original", "corrected"), optional=("userNote", "comment")),
    "re_ask": Kind(_re_ask, required=("question", "previousQuestion"), optional=("laterSessionId", "comment")),
    "edit": Kind(_edit, required=("original", "edited")),
}


# -- how sure a share is ----------------------------------------------------------------------------------------------

CONFIDENCE_LEVEL = 95
_Z = 1.959963984540054
"""Quantile of the normal distribution for 95 % on two sides."""


class Bounds(NamedTuple):
    """Between which shares from 0 to 1 the true one lies, with CONFIDENCE_LEVEL."""

    low: float
    high: float


def confidence_bounds(positive: int, total: int) -> Bounds:
    """Wilson's score interval: right for few events too, and never below 0 or above 1.

    E. B. Wilson, "Probable inference, the law of succession, and statistical inference", JASA 22 (1927); recommended
    for small samples by Brown, Cai and DasGupta, "Interval estimation for a binomial proportion", Statistical Science
    16 (2001). It takes events as independent: two thumbs of one person are not, so it may be too narrow.
    `total` is above 0.
    """
    share = positive / total
    scale = 1 + _Z**2 / total
    middle = (share + _Z**2 / (2 * total)) / scale
    reach = _Z * sqrt(share * (1 - share) / total + _Z**2 / (4 * total**2)) / scale
    return Bounds(0.0 if positive == 0 else middle - reach, 1.0 if positive == total else middle + reach)


# -- the weekly report ------------------------------------------------------------------------------------------------

MIN_AGENT_THUMBS = 5
"""An agent with fewer in a week is not ranked: three thumbs say nothing."""
AGENTS_NAMED = 3
"""Most agents among the best, and among the worst."""


def best_and_worst(thumbs: Mapping[str, tuple[int, int]]) -> tuple[list[str], list[str]]:
    """Agents by (thumbs up, all thumbs): those surely good, the best first; those surely bad, the worst first.

    The best are ranked by the lower end of their interval and the worst by the upper one: so nine of ten goes before
    five of five. None is named on both sides.
    """
    bounds = {agent: confidence_bounds(*counts) for agent, counts in thumbs.items() if counts[1] >= MIN_AGENT_THUMBS}
    best = sorted(bounds, key=lambda agent: (-bounds[agent].low, agent))[: min(AGENTS_NAMED, (len(bounds) + 1) // 2)]
    others = [agent for agent in bounds if agent not in best]
    return best, sorted(others, key=lambda agent: (bounds[agent].high, agent))[:AGENTS_NAMED]


# -- judgements of people, that came with a trace --------------------------------------------------------------------

UP_LABELS = frozenset(
    {
        "thumbsup",
        "up",
        "👍",
        "useful",
        "helpful",
        "correct",
        "right",
        "positive",
        "good",
        "like",
        "liked",
        "yes",
        "true",
        "pass",
    }
)
DOWN_LABELS = frozenset(
    {
        "thumbsdown", "down", "👎", "notuseful", "useless", "unhelpful", "nothelpful", "incorrect", "wrong", "negative",
        "bad", "dislike", "disliked", "no", "false", "fail",
    }
)  # fmt: skip
STAR_NAMES = frozenset({"star", "stars", "rating", "starrating", "userrating", "userstars"})
UP_FROM_SCORE = 0.5


class Judgement(NamedTuple):
    """An event that a person's judgement amounts to."""

    type: str
    value: Any
    comment: str


def read_judgement(name: str, score: float | None, label: str, explanation: str) -> Judgement | None:
    """The event of a judgement; None for one that says neither yes nor no.

    Stars where it is named so and its score is a whole number of 1 to 5. Else a thumb: by its label where that is a
    known word, else up from a score of 0.5.
    """
    comment = explanation[:MAX_EVENT_TEXT_CHARS]
    if _plain(name) in STAR_NAMES and score is not None and score == int(score) and MIN_STARS <= score <= MAX_STARS:
        return Judgement("star", int(score), comment)
    word = _plain(label)
    if word in UP_LABELS or word in DOWN_LABELS:
        return Judgement("thumbs", "up" if word in UP_LABELS else "down", comment)
    if score is not None:
        return Judgement("thumbs", "up" if score >= UP_FROM_SCORE else "down", comment or label[:MAX_EVENT_TEXT_CHARS])
    return None


def _plain(word: str) -> str:
    """`Thumbs-Up` and `thumbs_up` are one word."""
    return "".join(char for char in word.lower() if char not in " -_")
