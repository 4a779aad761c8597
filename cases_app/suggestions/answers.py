"""An answer split at its headings: its title, the root cause, the solution.

A heading is a line of Markdown (`## Cause`, `**Cause**`, underlined), numbered (`一、根因分析`), in brackets
(`【根因】`), a label with its text behind it (`Причина: …`), or the first cell of a row of a table; `headings` reads
what it says. Each part is a piece of the answer as it stands there. Lines are read once, and only their beginnings.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice, zip_longest

from cases_app.suggestions.headings import MAX_CHARS, NUMBER, PLAIN, Meaning, Role, meaning_of, plain

MAX_TITLE_CHARS = 200
"""As long as `CaseLibrary.title`."""


MAX_LINES = 20_000
"""Lines in which headings are looked for; a longer answer is a dump of something."""
MAX_HEADINGS = 300


@dataclass(frozen=True, slots=True)
class Part:
    """A piece of an answer: `raw` is `answer[start : start + len(raw)]`, `heading` what stands above it."""

    raw: str
    start: int
    heading: str
    is_cell: bool = False  # of a table, where lines end with `<br>`

    @property
    def text(self) -> str:
        """For people to go on with: a cell of a table as the lines it was made of."""
        if not self.is_cell:
            return self.raw
        return _CELL_BREAK.sub("\n", self.raw).replace("\\|", "|").strip()


@dataclass(frozen=True, slots=True)
class Split:
    """The parts that were found."""

    title: Part | None = None
    root_cause: Part | None = None
    solution: Part | None = None


def split_answer(answer: str) -> Split:
    """The parts of `answer` that its headings name; a part that none names is None, and so is one without text."""
    headings = list(islice(_headings(answer), MAX_HEADINGS))
    title = _first_is_title(answer, headings)
    if title:
        headings[0] = replace(headings[0], meaning=Meaning())
    cause, solution = (_choose(answer, headings, role) for role in (Role.CAUSE, Role.SOLUTION))
    return Split(
        title=_title(answer, headings, first_is_title=title),
        root_cause=_part(answer, headings, cause, solution) if cause is not None else None,
        solution=_part(answer, headings, solution, cause) if solution is not None else None,
    )


# -- choosing --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Heading:
    level: int
    label: str
    start: int  # of its line
    body: int  # where its text begins: behind a label in the same line, else the next line
    end: int | None  # of its text, where the line tells: a cell
    meaning: Meaning

    @property
    def role(self) -> Role | None:
        return self.meaning.role


def _choose(answer: str, headings: Sequence[_Heading], role: Role) -> int | None:
    """Which heading begins the part: one that says so plainly, then the higher one, then the first.

    Parts of one kind in a row (`## Now`, `## Later`) are taken together.
    """
    able = [place for place, one in enumerate(headings) if one.role == role and _text_below(answer, headings, place)]
    if not able:
        return None

    def worth(place: int) -> tuple[bool, bool, int, int]:
        one = headings[place]
        return (one.meaning.surety >= PLAIN, one.level <= BOLD, one.meaning.surety, -one.level)

    best = max(able, key=worth)
    level = headings[best].level
    for place in range(best - 1, -1, -1):
        one = headings[place]
        if one.level > level:
            continue
        if one.level < level or one.role != role or one.meaning.surety < PLAIN or one.end is not None:
            break
        best = place
    return best


def _text_below(answer: str, headings: Sequence[_Heading], place: int) -> bool:
    one = headings[place]
    end = one.end if one.end is not None else _end(answer, headings, place)
    return _TEXT.search(answer, one.body, end) is not None


def _end(answer: str, headings: Sequence[_Heading], place: int, other: int | None = None) -> int:
    """Where the text below a heading ends: at the next one that stands as high and is of another kind."""
    one = headings[place]
    for later in range(place + 1, len(headings)):
        following = headings[later]
        if later == other or (following.level <= one.level and following.role != one.role):
            return following.start
    return len(answer)


def _part(answer: str, headings: Sequence[_Heading], place: int, other: int | None) -> Part | None:
    one = headings[place]
    text = answer[one.body : one.end if one.end is not None else _end(answer, headings, place, other)]
    raw = text.lstrip("\r\n")
    start = one.body + len(text) - len(raw)
    raw = raw.rstrip()
    return Part(raw, start, plain(one.label), is_cell=one.end is not None) if _TEXT.search(raw) else None


def _first_is_title(answer: str, headings: Sequence[_Heading]) -> bool:
    """Whether the answer begins with a heading that stands above the others, and is not the only one of its part.

    `# Analysis of the CPU alert` above `## Root cause` is a title, though it speaks of an analysis.
    """
    if not headings or answer[: headings[0].start].strip():
        return False
    first, others = headings[0], headings[1:]
    if first.level > BOLD or first.meaning.is_exact:
        return False
    if any(one.level <= first.level for one in others if one.role or one is others[0]):
        return False
    return first.meaning.surety < PLAIN or any(one.role == first.role and one.meaning.surety >= PLAIN for one in others)


def _title(answer: str, headings: Sequence[_Heading], *, first_is_title: bool) -> Part | None:
    """What is labelled as the title, or the first heading."""
    for one, following in zip_longest(headings[:TITLE_AMONG], headings[1:TITLE_AMONG]):
        if one.role == Role.TITLE and not (following and following.start == one.body):
            end = answer.find("\n", one.body)
            return _title_at(answer, one.body, end if end >= 0 else len(answer), plain(one.label))
    if not first_is_title:
        return None
    at = answer.find(headings[0].label, headings[0].start)
    return _title_at(answer, at, at + len(headings[0].label), "")


def _title_at(answer: str, start: int, end: int, heading: str) -> Part | None:
    text = answer[start:end]
    if label := TITLE_LABEL.match(text):
        start, text = start + label.end(), text[label.end() :]
    start += len(text) - len(text.lstrip(_MARKUP))
    raw = answer[start : min(end, start + MAX_TITLE_CHARS)].rstrip(_MARKUP)
    return Part(raw, start, heading) if raw and not _GENERIC.fullmatch(raw.lower()) else None


TITLE_AMONG = 5
_TEXT = re.compile(r"[^\s=_*|#-]")
_MARKUP = " \t\r#*_`"
TITLE_LABEL = re.compile(r"[ \t#*_]{0,9}(?:标题|题目|title|заголовок|тема)[ \t*_]{0,4}[:：][ \t*_]{0,4}", re.IGNORECASE)
_GENERIC = re.compile(
    r"(?:(?:incident|alert|diagnosis|diagnostic|root cause|fault|analysis|final) ){0,3}"
    r"(?:report|analysis|answer|result)s?|"
    r"(?:故障|告警|问题|诊断|根因|分析|最终|智能|运维|异常|事件)*(?:报告|分析|结果|结论|回答)|"
    r"(?:отчет|отчёт|анализ|разбор|ответ|результат)\w*(?: (?:об?|по) (?:инциденте?|анализе?|диагностике)\w*)?"
)
"""Titles that say nothing of this case."""


# -- reading ---------------------------------------------------------------------------------------------------------

BOLD, NUMBERED, LABEL, CELL = 7, 8, 9, 10
"""Levels below the six of Markdown: what stands lower does not end what stands higher."""

_FENCE = re.compile(r"[ \t>]{0,12}(?P<fence>`{3,}|~{3,})(?P<rest>[^\n]*)")
_ATX = re.compile(r"[ \t]{0,3}(?P<marks>#{1,6})[ \t]{0,4}(?P<label>[^\s#][^\n]*)")
_UNDERLINE = re.compile(r"[ \t]{0,3}(?:(?P<one>={2,})|-{2,})[ \t\r]{0,9}")
_ROW = re.compile(r"[ \t]{0,3}\|(?P<label>[^|\n]{1,80})\|[ \t]{0,40}")
_BULLET = re.compile(r"[ \t]{0,8}(?:[-*+•][ \t]{1,4}|>[ \t]{0,4}){0,2}")
_HIGH_NUMBER = re.compile(r"第?[一二三四五六七八九十IVX]")
_BOLD = re.compile(r"(?P<mark>\*\*|__)(?P<label>[^*_\n]{1,80})(?P=mark)(?P<colon>[ \t]{0,2}[:：—–])?[ \t]{0,4}")
_BRACKETS = re.compile(r"[【\[「〖](?P<label>[^】\]」〗\n]{1,60})[】\]」〗](?!\()[ \t]{0,2}[:：]?[ \t]{0,4}")
_COLON = re.compile(r"(?P<label>[^:：\n|`]{1,60})[:：][ \t]{0,4}")
_CELL_BREAK = re.compile(r"[ \t]{0,9}<br[ \t]{0,4}/?>[ \t]?", re.IGNORECASE)


def _headings(answer: str) -> Iterator[_Heading]:
    """Each heading in turn; what stands in a fence is code, and a comment there is none."""
    fence, start, above = "", 0, (0, "")
    for _ in range(MAX_LINES):
        if start >= len(answer):
            return
        end = answer.find("\n", start)
        end = len(answer) if end < 0 else end
        head = answer[start : min(end, start + 4 * MAX_CHARS)]
        mark = _FENCE.match(head)
        is_text = not fence and not mark and bool(head.strip())
        if mark:
            if not fence:
                fence = mark["fence"]
            elif mark["fence"].startswith(fence) and not mark["rest"].strip():
                fence = ""
        elif is_text and (found := _underlined(head, above, end) or _heading(answer, head, start, end)):
            yield found
        above = (start, head if is_text else "")
        start = end + 1


def _heading(answer: str, head: str, start: int, end: int) -> _Heading | None:
    below = min(end + 1, len(answer))
    if atx := _ATX.fullmatch(head):
        return _named(len(atx["marks"]), atx["label"], start, below)
    if row := _ROW.match(head):
        said = meaning_of(row["label"], is_sentence=True)
        body = start + row.end()
        return _Heading(CELL, row["label"], start, body, _end_of_cell(answer, body, end), said) if said.role else None
    bullet = _BULLET.match(head)
    at = bullet.end() if bullet else 0
    number = NUMBER.match(head, at)
    is_inner = at > 0 or (number is not None and not _HIGH_NUMBER.match(number.group()))
    at = number.end() if number else at
    level = NUMBERED if number else BOLD
    if bold := _BOLD.match(head, at):
        return _bold(bold, head, level, start, below, is_inner=is_inner)
    if brackets := _BRACKETS.match(head, at):
        rest = head[brackets.end() :].strip()
        found = _named(level, brackets["label"], start, start + brackets.end() if rest else below)
        return found if found.role else None
    if (colon := _COLON.match(head, at)) and head[colon.end() :].strip():
        return _label(LABEL, colon["label"], start, start + colon.end())
    if number and not is_inner and len(head) <= MAX_CHARS:
        return _named(NUMBERED, head[at:], start, below)
    return _label(NUMBERED if number else LABEL, head[at:], start, below)


def _bold(bold: re.Match[str], head: str, level: int, start: int, below: int, *, is_inner: bool) -> _Heading | None:
    """Alone in its line it is a heading; before a colon a label; within a sentence neither."""
    label = bold["label"]
    if not head[bold.end() :].strip():
        found = _named(level, label, start, below)
        return found if found.role or not is_inner else None
    has_colon = bold["colon"] or label.rstrip().endswith((":", "："))
    said = meaning_of(label, is_sentence=not has_colon)
    if said.role is None and (is_inner or not has_colon):
        return None
    return _Heading(LABEL, label, start, start + bold.end(), None, said)


def _underlined(head: str, above: tuple[int, str], end: int) -> _Heading | None:
    start, label = above
    mark = _UNDERLINE.fullmatch(head)
    if mark and 0 < len(label.strip()) <= MAX_CHARS and not label.lstrip().startswith(("#", "|")):
        return _named(1 if mark["one"] else 2, label, start, end + 1)
    return None


def _named(level: int, label: str, start: int, body: int) -> _Heading:
    """A heading by its form, whatever it says."""
    return _Heading(level, label, start, body, None, meaning_of(label, is_sentence=False))


def _label(level: int, label: str, start: int, body: int) -> _Heading | None:
    """A heading only if it says just what a heading would."""
    if len(label) > MAX_CHARS:
        return None
    said = meaning_of(label, is_sentence=True)
    return _Heading(level, label, start, body, None, said) if said.role else None


def _end_of_cell(answer: str, start: int, end: int) -> int:
    """Where the last cell of a row ends. Models forget to escape bars in it: it is taken up to the bar at the end."""
    line_end = start + len(answer[start:end].rstrip())
    return line_end - 1 if line_end > start and answer[line_end - 1] == "|" else line_end
