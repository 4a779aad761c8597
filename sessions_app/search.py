"""Full-text search by a table of our own: which words each object holds, so that any database finds them by an index.

A word is found by its beginning. Scripts without spaces, as Chinese, are kept in pairs of characters. MariaDB's
FULLTEXT knows no Chinese, leaves short words out and keeps those of deleted rows; SQLite's is another one.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from typing import Any

from django.db import models
from django.db.models import Q
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from sessions_app.fields import ExactCharField

READ_CHARS = 20_000
"""Of each text: what comes later is not found."""
MAX_TERMS = 2_000
"""Of one object."""
TERM_CHARS = 48
MAX_WORDS_ASKED = 12
_LAST = "\U0010ffff"

UNSPACED = (
    "\u0e00-\u0eff"  # Thai, Lao
    "\u1000-\u109f\u1780-\u17ff"  # Burmese, Khmer
    "\u3005\u3007\u3040-\u30ff"  # Japanese kana
    "\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"  # Chinese characters
    "\uac00-\ud7af"  # Korean writes endings to its words
)
_WORD = rf"[^\W_{UNSPACED}]+"
_TOKEN = re.compile(rf"[{UNSPACED}]+|{_WORD}(?:[-_./:@]+{_WORD})*")
_IS_UNSPACED = re.compile(rf"[{UNSPACED}]")
_PART = re.compile(_WORD)
_HUMP = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_RUSSIAN_ENDING = re.compile(
    r"(?<=\w{4})(?:иями|ями|ами|ией|иям|ием|иях|ого|его|ому|ему|ыми|ими|ать|ять|ить|еть|ает|яет|ует|ают|уют|"
    r"ия|ья|ие|ье|ии|ий|ый|ой|ей|ая|яя|ое|ее|ые|ою|ею|ых|их|ым|им|ом|ем|ам|ям|ах|ях|ов|ев|ию|ью|ть|ла|ло|ли|"
    r"ет|ит|ут|ют|ат|ят|[аеийоуыьэюя])$"
)
_ENGLISH_ENDING = re.compile(r"(?<=\w{4})(?:(?<!s)s|ed|ing)$")


def terms_of(*texts: str) -> set[str]:
    """The terms by which texts are found: words, their parts, pairs of characters."""
    terms: set[str] = set()
    for text in dict.fromkeys(texts):  # a case that nobody worked on holds its answer twice
        for term in _terms(unicodedata.normalize("NFKC", text[:READ_CHARS])):
            terms.add(term)
            if len(terms) >= MAX_TERMS:
                return terms
    return terms


def _terms(text: str) -> Iterator[str]:
    for token in _TOKEN.findall(text):
        if _IS_UNSPACED.match(token):
            yield from (token[at : at + 2] for at in range(len(token)))  # the last is one character, alone
            continue
        yield _plain(token)
        for part in _PART.finditer(token):
            yield _plain(token[part.start() : part.start() + TERM_CHARS])  # from it on: "key_violation" of ERR_KEY_…
            humps = _HUMP.split(part[0])
            if len(humps) > 1:  # `PoolExhausted` is found by "exhausted"
                yield from map(_plain, humps)


def beginnings_of(query: str) -> list[str]:
    """With what terms must begin that a query asks for; each must be there. Endings that inflect words are left out."""
    found: dict[str, None] = {}
    for token in _TOKEN.findall(unicodedata.normalize("NFKC", query[:READ_CHARS])):
        if _IS_UNSPACED.match(token):
            pairs = [token[at : at + 2] for at in range(len(token) - 1)] or [token]
            found.update(dict.fromkeys(pairs))
        else:
            found[_stem(_plain(token))] = None
    return list(found)[:MAX_WORDS_ASKED]


def _plain(word: str) -> str:
    return word.casefold().replace("ё", "е").lstrip("_")[:TERM_CHARS]


def _stem(word: str) -> str:
    return _ENGLISH_ENDING.sub("", _RUSSIAN_ENDING.sub("", word)) if word.isalpha() else word


class Searchable(models.Model):
    """What is found by its terms. Whoever writes a text of it sets `terms_due_at`, in the same transaction.

    The row is the queue: until `sessions_app.services.indexing` has written the terms, the moment stands there.
    """

    terms_due_at = models.DateTimeField(default=timezone.now, null=True, editable=False, db_index=True)

    class Meta:
        abstract = True


class SearchTerm(models.Model):
    """One term of one object. Concrete tables add the foreign key `owner` to a `Searchable`: terms go with it.

    They have no key but `(term, owner)`: there are many of them, and each is found by both.
    """

    term = ExactCharField(_("term"), max_length=TERM_CHARS)
    owner: Any

    class Meta:
        abstract = True
        default_permissions = ()

    def __str__(self) -> str:
        return str(self.term)


def matching(model: Any, query: str) -> Q:
    """The objects that hold all that a query asks for: all for an empty one, none for mere punctuation."""
    beginnings = beginnings_of(query)
    found = Q() if beginnings or not query.strip() else Q(pk__in=[])
    for beginning in beginnings:
        # A range, not LIKE: SQLite uses no index for Django's LIKE.
        rows = model.objects.filter(term__gte=beginning, term__lt=beginning + _LAST)
        found &= Q(pk__in=rows.values("owner_id"))
    return found
