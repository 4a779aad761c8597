"""What quotes a person who is erased, in rows that stay: found by reading them all, some at a time, and blanked.

- Rows apart from sessions, such as reports: an id, the beginning of a question or answer, a value that holds one.
- What reviewers wrote about other sessions and in cases of their own: ids, and whole questions, answers and comments.
  Nothing else of their writing is touched, and nothing that the row's own session says too: that is no quote.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.contrib.admin.models import LogEntry
from django.contrib.contenttypes.models import ContentType
from django.db import models
from django.db.models import F
from django.utils import timezone

from cases_app.models import CaseLibrary
from cases_app.services import terms as case_terms
from feedback_app.models import AgentFeedback, BadCaseReview
from feedback_app.selectors import subjects
from feedback_app.services import terms
from sessions_app.db import in_transaction
from sessions_app.models import DiagnosisSession
from sessions_app.search import SearchTerm
from sessions_app.services import indexing

ERASED = "[ERASED]"
ROWS_A_PAGE = 500
SESSIONS_AT_ONCE = 200
MIN_QUOTE_CHARS = 12
"""A shorter text could stand anywhere by chance."""
MIN_ID_CHARS = 6
"""A shorter id, such as `7` or `user`, is blanked only where it is the whole value."""
_WORD = re.compile(r"[\w-]+", re.ASCII)  # of ids: in Chinese, letters of a sentence touch them


@dataclass(frozen=True, slots=True)
class Quotes:
    """What a row elsewhere may quote of a person. `texts` are sorted; `heads` are the first words of long ids."""

    short_ids: frozenset[str]
    ids: re.Pattern[str]
    heads: frozenset[str]
    texts: tuple[str, ...]

    @classmethod
    def of(cls, user_ref: str, session_ids: Sequence[str]) -> Quotes:
        """Of this person's sessions, read before they go."""
        names = {user_ref, *session_ids}
        long = sorted((name for name in names if len(name) >= MIN_ID_CHARS), key=len, reverse=True)
        pattern = "|".join(map(re.escape, long)) or r"(?!)"
        heads = (_WORD.search(name) for name in long)
        return cls(
            frozenset(names.difference(long)),
            re.compile(rf"(?<![\w-])(?:{pattern})(?![\w-])", re.ASCII),
            frozenset(head[0] for head in heads if head),
            tuple(sorted(set(_texts_of(session_ids)))),
        )

    def blanked(self, value: Any) -> Any:
        """A value of a row apart without what it quotes; one that holds a text is blanked whole."""
        match value:
            case str():
                is_quote = self._begins_one(value) or any(text in value for text in self._that_fit(value))
                return ERASED if is_quote else self._without_ids(value)
            case dict():
                return {self.blanked(key): self.blanked(item) for key, item in value.items()}
            case list():
                return [self.blanked(item) for item in value]
        return value

    def taken_out(self, value: str, own: Collection[str]) -> str:
        """What a reviewer wrote without what it quotes. `own`: what the row's own session says."""
        if self._begins_one(value) and not any(text.startswith(_beginning(value)) for text in own):
            return ERASED
        for text in sorted((text for text in self._that_fit(value) if text in value), key=len, reverse=True):
            if not any(text in said for said in own):
                value = value.replace(text, ERASED)
        return self._without_ids(value)

    def _without_ids(self, value: str) -> str:
        if value.strip() in self.short_ids:
            return ERASED
        return value if self.heads.isdisjoint(_WORD.findall(value)) else self.ids.sub(ERASED, value)

    def _begins_one(self, value: str) -> bool:
        beginning = _beginning(value)
        at = bisect_left(self.texts, beginning)
        return len(beginning) >= MIN_QUOTE_CHARS and at < len(self.texts) and self.texts[at].startswith(beginning)

    def _that_fit(self, value: str) -> Iterator[str]:
        return (text for text in self.texts if len(text) <= len(value))


def blank_log(tables: Mapping[type[models.Model], Any]) -> int:
    """Who did what and when stays in the admin's log; what it calls the objects goes: cases are called by questions."""
    blanked = 0
    for model, rows in tables.items():
        if issubclass(model, SearchTerm):  # there are thousands, and no log speaks of them
            continue
        entries = LogEntry.objects.filter(
            content_type=ContentType.objects.get_for_model(model),
            object_id__in=[str(pk) for pk in rows.values_list("pk", flat=True)],
        )
        blanked += entries.update(object_repr=ERASED, change_message="")
    return blanked


def blank_rows_apart(quotes: Quotes) -> Counter[str]:
    """Blank what tables apart from sessions quote; table → how many rows."""
    counts: Counter[str] = Counter()
    for model, columns in subjects.tables_apart().items():
        for pk, *values in _rows(model, columns):
            changed = {
                column: cleaned
                for column, value in zip(columns, values, strict=True)
                if (cleaned := quotes.blanked(value)) != value
            }
            if changed:
                subjects.all_of(model).filter(pk=pk).update(**changed)
                counts[subjects.table_of(model)] += 1
    return counts


def written_quotes(quotes: Quotes, session_ids: Sequence[str]) -> Iterator[Callable[[], bool]]:
    """For each row that stays and in which a reviewer quotes the person: what blanks it."""
    gone: dict[type[models.Model], set[Any]] = {CaseLibrary: set(), BadCaseReview: set()}
    for chunk in chunks(session_ids, SESSIONS_AT_ONCE):
        gone[CaseLibrary].update(subjects.cases_of(chunk).values_list("pk", flat=True))
        gone[BadCaseReview].update(
            BadCaseReview.objects.filter(session__session_id__in=chunk).values_list("pk", flat=True)
        )
    for written in subjects.written_by_reviewers():
        for pk, root_id, question, answer, *values in _rows(written.model, written.read):
            if root_id in gone[written.root] or not _changes(quotes, written.columns, values, (question, answer)):
                continue
            yield lambda written=written, pk=pk: _blank(quotes, written, pk)  # type: ignore[misc]


@in_transaction
def _blank(quotes: Quotes, written: subjects.Written, pk: Any) -> bool:
    """Blank the quotes of one row as it stands now. Its object counts a version: an open form is out of date."""
    row = subjects.all_of(written.model).filter(pk=pk)
    root_id: Any = row.values_list(written.root_path, flat=True).first()
    roots = subjects.all_of(written.root).filter(pk=root_id)
    indexing.lock(roots)
    found = row.values_list(*written.read).first()
    if found is None:
        return False
    _root, question, answer, *values = found
    row.update(**_changes(quotes, written.columns, values, (question, answer)))
    roots.update(version=F("version") + 1, updated_at=timezone.now())
    blank_log({written.root: roots})
    if written.root is CaseLibrary:
        case_terms.refresh([root_id])
    else:
        terms.refresh(roots.values_list("session_id", flat=True).get())
    return True


def _changes(
    quotes: Quotes, columns: Sequence[str], values: Sequence[str], own: Sequence[str | None]
) -> dict[str, str]:
    said = [text.strip() for text in own if text]
    return {
        column: cleaned
        for column, value in zip(columns, values, strict=True)
        if value and (cleaned := quotes.taken_out(value, said)) != value
    }


def _texts_of(session_ids: Sequence[str]) -> Iterator[str]:
    """Questions, answers and comments. Forms of browsers end lines with two characters."""
    for chunk in chunks(session_ids, SESSIONS_AT_ONCE):
        told: list[str | None] = []
        for row in DiagnosisSession.objects.filter(session_id__in=chunk).values_list("query", "answer"):
            told += row
        events = AgentFeedback.objects.with_words().filter(session__session_id__in=chunk)
        for payload in events.values_list("payload", flat=True):
            told += [str(payload.get(name) or "") for name in ("comment", "userNote")]
        for text in filter(None, told):
            if len(stripped := text.strip()) >= MIN_QUOTE_CHARS:
                yield stripped
                yield stripped.replace("\r\n", "\n").replace("\n", "\r\n")


def _beginning(value: str) -> str:
    return value.strip().rstrip("….").rstrip()


def _rows(model: type[models.Model], columns: Sequence[str]) -> Iterator[Any]:
    """Key and columns of all rows of a table, read some at a time."""
    rows = subjects.all_of(model).order_by("pk").values_list("pk", *columns)
    page = list(rows[:ROWS_A_PAGE])
    while page:
        yield from page
        page = list(rows.filter(pk__gt=page[-1][0])[:ROWS_A_PAGE])


def chunks(ids: Sequence[str], size: int) -> Iterator[Sequence[str]]:
    """Ids, so many at a time."""
    for start in range(0, len(ids), size):
        yield ids[start : start + size]
