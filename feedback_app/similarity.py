"""How alike two questions are. Behind one small interface, so that a sentence encoder can take the place later.

`SIMILARITY` names a callable `(str, str) -> float` from 0 (nothing in common) to 1 (the same). Only `configured` reads
settings; the rest is pure.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterator
from itertools import groupby, pairwise

from django.conf import settings
from django.utils.module_loading import import_string

Similarity = Callable[[str, str], float]

MAX_COMPARED_CHARS = 20_000
"""Of either text: what an event may carry."""

_UNSPACED = (
    "\u0e00-\u0eff"  # Thai, Lao
    "\u1000-\u109f\u1780-\u17ff"  # Burmese, Khmer
    "\u3005\u3007\u3040-\u30ff"  # Japanese kana
    "\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"  # Chinese characters
)
_TOKEN = re.compile(rf"[{_UNSPACED}]+|[^\W{_UNSPACED}]+")
_IS_UNSPACED = re.compile(rf"[{_UNSPACED}]")


def configured() -> Similarity:
    """The callable that `SIMILARITY` names."""
    chosen: Similarity = import_string(settings.SIMILARITY)
    return chosen


def words_and_characters(one: str, other: str) -> float:
    """Jaccard over words; where a script puts no spaces between them, as Chinese, over pairs of characters.

    For spaced scripts this is the design's `simple_similarity`, which case and punctuation no longer disturb. A text of
    both scripts has features of both kinds.
    """
    a, b = features(one), features(other)
    return len(a & b) / len(a | b) if a and b else 0.0


def features(text: str) -> frozenset[str]:
    """What of a text is compared."""
    plain = unicodedata.normalize("NFKC", text[:MAX_COMPARED_CHARS]).casefold()
    return frozenset(_features(plain))


def _features(text: str) -> Iterator[str]:
    """Words, and pairs of characters; punctuation and spaces between such characters do not part them."""
    for is_unspaced, tokens in groupby(_TOKEN.findall(text), key=lambda token: bool(_IS_UNSPACED.match(token))):
        if not is_unspaced:
            yield from tokens
            continue
        characters = "".join(tokens)
        yield from map("".join, pairwise(characters))
        if len(characters) == 1:
            yield characters
