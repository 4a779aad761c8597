"""How alike two short texts are, in any language: by their pieces of three characters. Pure."""

from __future__ import annotations

import unicodedata

GRAM = 3
READ_CHARS = 1_000


def grams(text: str) -> frozenset[str]:
    """All pieces of GRAM characters of the beginning of a text, without case, punctuation and spaces between words."""
    plain = unicodedata.normalize("NFKC", text[:READ_CHARS]).casefold()
    line = " ".join("".join(char if char.isalnum() else " " for char in plain).split())
    return frozenset(line[at : at + GRAM] for at in range(max(1, len(line) - GRAM + 1))) if line else frozenset()


def likeness(one: frozenset[str], other: frozenset[str]) -> float:
    """Dice's coefficient of two sets of pieces: 0 for nothing in common, 1 for the same."""
    return 2 * len(one & other) / (len(one) + len(other)) if one and other else 0.0
