"""In which language a question is asked, told from its letters. Pure."""

from __future__ import annotations

import re

ZH, RU, EN, OTHER = "zh", "ru", "en", "other"
READ_CHARS = 2_000

# What a letter weighs: in a Chinese or Russian question names and log lines in Latin letters are many.
_SCRIPTS = (
    (ZH, re.compile(r"[\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff]"), 4),
    (RU, re.compile(r"[А-Яа-яЁё]"), 2),
    (EN, re.compile(r"[A-Za-z]"), 1),
)
_LETTER = re.compile(r"[^\W\d_]")
_KANA = re.compile(r"[\u3040-\u30ff]")


def language_of(question: str) -> str:
    """`zh`, `ru`, `en` or `other`: whose letters weigh most. Kana make Chinese characters Japanese."""
    text = question[:READ_CHARS]
    weights = {language: weight * len(letters.findall(text)) for language, letters, weight in _SCRIPTS}
    known = sum(len(letters.findall(text)) for _, letters, _ in _SCRIPTS)
    weights[OTHER] = 4 * (len(_LETTER.findall(text)) - known)
    if _KANA.search(text):
        weights[OTHER] += weights.pop(ZH)
    likeliest = max(weights, key=lambda language: weights[language])
    return likeliest if weights[likeliest] else OTHER
