"""Which fault categories the keywords of the taxonomy point to."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache

from cases_app.suggestions.clues import Clues, Found, Source

SUGGESTIONS = 3
EVIDENCE = 4
WEAKEST_SHARE = 4
"""A category with less than a fourth of the best one's weight is noise."""

WEIGHTS: Mapping[Source, int] = {
    Source.ALERT: 4,
    Source.QUESTION: 3,
    Source.TITLE: 2,
    Source.CAUSE: 2,
    Source.ERROR: 1,
    Source.TOOL: 1,
    Source.AGENT: 1,
    Source.ANSWER: 1,
}
"""What one keyword counts, by where it stands. One of several words counts twice: it is seldom there by chance."""

_NAMES = (Source.ALERT, Source.TOOL, Source.AGENT)


@dataclass(frozen=True, slots=True)
class CategorySuggestion:
    """A category, and what points to it, the weightiest first."""

    code: str
    weight: int
    evidence: tuple[Found, ...]


def rank_categories(clues: Clues, keywords: Mapping[str, Iterable[str]]) -> list[CategorySuggestion]:
    """The SUGGESTIONS categories whose keywords weigh most.

    A keyword counts once for each source, however often it stands there. A Latin keyword counts at the beginning of a
    word, a short one only as a word of its own: `hikari` is in `HikariPool-1`, `gc` is not in `gcp`. A Russian one
    counts in every case of its declension, a Chinese one anywhere. Names are read as words: `NodeOutOfMem` holds
    `out of mem`, `cpu_match_knowledge` holds `cpu`.
    """
    texts = [(source, text, _readable(text)) for source, text in clues.texts()]
    ranked = []
    for code, words in keywords.items():
        found: dict[tuple[str, Source], tuple[int, Found]] = {}
        for word in words:
            keyword = _keyword(str(word))
            if keyword is None:
                continue
            for source, text, readable in texts:
                if (word, source) not in found and keyword.is_in(readable):
                    one = Found(text if source in _NAMES else str(word), source)
                    found[word, source] = (WEIGHTS[source] * keyword.weight, one)
        if found:
            best = sorted(found.values(), key=lambda item: -item[0])
            evidence = tuple(dict.fromkeys(one for _, one in best))[:EVIDENCE]
            ranked.append(CategorySuggestion(code, sum(weight for weight, _ in best), evidence))
    ranked.sort(key=lambda suggestion: (-suggestion.weight, suggestion.code))
    return [one for one in ranked if one.weight * WEAKEST_SHARE >= ranked[0].weight][:SUGGESTIONS]


# -- words -----------------------------------------------------------------------------------------------------------

SHORT = 4
"""A Latin keyword with fewer letters stands for itself alone."""
_LETTER = "0-9a-zа-я"
_BETWEEN_WORDS = re.compile(r"[\s_-]+")
_HUMP = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
_CYRILLIC = re.compile("[а-я]")
_CHINESE = re.compile("[\u2e80-\u9fff\uf900-\ufaff\U00020000-\U0003ffff]")
_ENDING = re.compile("[аеиоуыэюяйь]{1,2}$")
_STEM = 5
"""A Russian word of at least so many letters is compared without its ending."""


@dataclass(frozen=True, slots=True)
class _Keyword:
    first: str  # is in every text that holds the keyword: a quick look before the exact one
    pattern: re.Pattern[str] | None  # None: `first` says it all
    weight: int

    def is_in(self, text: str) -> bool:
        return self.first in text and (self.pattern is None or self.pattern.search(text) is not None)


@lru_cache(maxsize=4096)
def _keyword(word: str) -> _Keyword | None:
    word = _normal(word[:200]).strip()
    words = word.split(" ")
    if not word:
        return None
    if _CHINESE.search(word):
        return _Keyword(word, None, 2 if len(word) > 2 else 1)  # noqa: PLR2004 - most Chinese words have two characters
    weight = min(len(words), 2)
    if _CYRILLIC.search(word):
        stems = [_ENDING.sub("", one) if len(one) >= _STEM else one for one in words]
        between = "[а-я]{0,6} "
        return _Keyword(stems[0], re.compile(f"(?<![{_LETTER}])" + between.join(map(re.escape, stems))), weight)
    end = f"(?![{_LETTER}])" if len(word) < SHORT else ""
    return _Keyword(word, re.compile(f"(?<![{_LETTER}]){re.escape(word)}{end}"), weight)


def _readable(text: str) -> str:
    """As it is compared: `CrashLoopBackOff` both as it stands and as four words."""
    return _normal(f"{text}\n{_HUMP.sub(' ', text)}")


def _normal(text: str) -> str:
    return _BETWEEN_WORDS.sub(" ", text.lower().replace("ё", "е"))
