"""Which bad case deserves attention first. Pure: no queries, no clock.

The queue is ordered by `attention_at`: the due date, made earlier by so many hours for each fact of the table. So a
bad case grows older by itself, an hour in an hour, and nothing has to be counted again as time goes by; what does
change an order is a fact, and whoever writes one has it counted anew (`feedback_app.services.priority`).
"""

from __future__ import annotations

import hashlib
import unicodedata
from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from typing import NamedTuple

from sessions_app.rules import BANDS, CONFIDENT_ABOVE, STRONG

STRONG_FROM = dict(BANDS)[STRONG]
MOST_RE_ASKS = 3
MOST_REPEATS = 8
"""What comes above it adds nothing: neither to a priority, nor to the rows that are counted for it."""

NO_QUESTION = "-"


class Facts(NamedTuple):
    """All that the table may know of a bad case."""

    confidence: float | None = None
    evidence_score: int | None = None
    has_correction: bool = False
    has_words: bool = False
    re_asks: int = 0
    repeats: int = 0  # other bad cases with the same question


class Rule(NamedTuple):
    """One line of the table: how many hours earlier, how often, and how often at most."""

    name: str
    hours: int
    times: Callable[[Facts], int]
    most: int = 1


RULES: tuple[Rule, ...] = (
    # The worst an agent can do: to be sure, and wrong.
    Rule("confident", 72, lambda f: int(f.confidence is not None and f.confidence > CONFIDENT_ABOVE)),
    Rule("strong_evidence", 24, lambda f: int(f.evidence_score is not None and f.evidence_score >= STRONG_FROM)),
    # What somebody took the trouble to write is quick to judge, and worth the most.
    Rule("correction", 24, lambda f: int(f.has_correction)),
    Rule("words", 12, lambda f: int(f.has_words)),
    Rule("re_asks", 12, lambda f: f.re_asks, MOST_RE_ASKS),
    Rule("repeats", 6, lambda f: f.repeats, MOST_REPEATS),
)


def hours_by_rule(facts: Facts) -> dict[str, int]:
    """The rules that apply, in the table's order, and how many hours each is worth."""
    return {rule.name: rule.hours * times for rule in RULES if (times := min(rule.times(facts), rule.most))}


def attention_at(due_at: datetime, hours: Mapping[str, int]) -> datetime:
    """When its turn comes: the earliest is the first."""
    return due_at - timedelta(hours=sum(hours.values()))


def question_key(question: str) -> str:
    """The same for one question, however it is spaced, punctuated and capitalised."""
    plain = "".join(char for char in unicodedata.normalize("NFKC", question).casefold() if char.isalnum())
    return hashlib.sha256(plain.encode()).hexdigest()[:32] if plain else NO_QUESTION
