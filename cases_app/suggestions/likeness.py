"""How alike two short texts are, in any language: by their pieces of three characters. Pure."""

from __future__ import annotations

import re
import unicodedata

GRAM = 3
READ_CHARS = 1_000
_BETWEEN_WORDS = re.compile(r"[\W_]+")


def grams(text: str) -> frozenset[str]:
    """All pieces of GRAM characters of the beginning of a text, without case, punctuation and spaces between words."""
    plain = unicodedata.normalize("NFKC", text[:READ_CHARS]).casefold()
    line = _BETWEEN_WORDS.sub(" ", plain).strip()
    return frozenset(line[at : at + GRAM] for at in range(max(1, len(line) - GRAM + 1))) if line else frozenset()


def likeness(one: frozenset[str], other: frozenset[str]) -> float:
    """Dice's coefficient of two sets of pieces: 0 for nothing in common, 1 for the same."""
    return 2 * len(one & other) / (len(one) + len(other)) if one and other else 0.0
