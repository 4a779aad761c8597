"""Cases in files that people bring: CSV, XLSX, JSONL and runbooks in Markdown, read within bounds. Knows no database.

A file may be hostile: its size, its rows and what a workbook unpacks to are limited before anything is read whole, and
no XML with a document type is read at all. A row that cannot be read is given with the reason, so that its neighbours
can be taken; a file that cannot be read is refused.
"""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import PurePath
from typing import IO, Any

from django.utils.translation import gettext as _
from openpyxl import load_workbook

from cases_app.suggestions.answers import split_answer
from cases_app.workbooks import repacked
from sessions_app.errors import InvalidInputError
from sessions_app.sheets import CUT, MAX_CELL_CHARS, unguarded
from sessions_app.text import MAX_TEXT_CHARS, clean_text

FIELDS = ("fault_category", "error_code", "title", "root_cause", "solution")
KNOWN_ONLY = frozenset(
    {"diagnosis_id", "source_type", "status", "created_by", "reviewed_by", "reviewed_at", "created_at", "updated_at"}
)
"""Columns of our own export that say where a case stands. They are read over: only services move cases."""
COLUMNS = frozenset({"case_id", *FIELDS})

MAX_BYTES = 10 * 2**20
MAX_ROWS = 5_000
MAX_COLUMNS = 40
MAX_CHARS: Mapping[str, int] = {
    "case_id": 64, "fault_category": 32, "error_code": 128, "title": 200, "root_cause": MAX_TEXT_CHARS,
    "solution": MAX_TEXT_CHARS,
}  # fmt: skip
KINDS = (".csv", ".xlsx", ".jsonl", ".md")

_FENCE = re.compile(r"\s{0,3}(?:```|~~~)")
_HEADING = re.compile(r"#\s+(\S.*)")
_LABEL = re.compile(
    r"[\s>*_-]*(?:(?P<error>error[ _]code|错误码|код\s+ошибки)|(?P<category>fault[ _]category|category|故障类别|"
    r"категория(?:\s+сбоя)?)|(?P<id>case[ _]id))[*_`\s]*[:：][*_`\s]*(?P<said>[^`*\r\n]{1,200}?)[*_`\s]*",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class FileRow:
    """One case as a file gives it: its place, the fields that it has, and what is wrong with it."""

    number: int
    values: Mapping[str, str] = field(default_factory=dict)
    reason: str = ""


def read_cases(name: str, file: IO[bytes]) -> Iterator[FileRow]:
    """The rows of a file, by the end of its name. Raises InvalidInputError, perhaps after some rows."""
    kind = PurePath(name).suffix.lower()
    if kind not in _READERS:
        raise InvalidInputError(_("Known are files named %(kinds)s.") % {"kinds": ", ".join(KINDS)})
    data = file.read(MAX_BYTES + 1)
    if len(data) > MAX_BYTES:
        raise InvalidInputError(_("The file is larger than %(count)s MB.") % {"count": MAX_BYTES // 2**20})
    for count, row in enumerate(_READERS[kind](data)):
        if count >= MAX_ROWS:
            raise InvalidInputError(_("The file has more than %(count)s rows.") % {"count": MAX_ROWS})
        yield row


def _text_of(data: bytes) -> str:
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InvalidInputError(_("The file is not UTF-8.")) from error


def _csv(data: bytes) -> Iterator[FileRow]:
    text = _text_of(data)
    first = text.partition("\n")[0]
    # Excel writes semicolons where the comma is for decimals.
    delimiter = max((",", ";", "\t"), key=first.count)
    csv.field_size_limit(MAX_TEXT_CHARS + 2)
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True)
    try:
        head = _head(next(reader, []))
        for cells in reader:
            if any(cells):
                yield _row(reader.line_num, head, [unguarded(cell) for cell in cells])
    except csv.Error as error:
        raise InvalidInputError(_("Line %(line)s is no CSV.") % {"line": reader.line_num}) from error


def _xlsx(data: bytes) -> Iterator[FileRow]:
    refusal = InvalidInputError(_("This is no workbook that can be read."))
    try:
        sheet: Any = load_workbook(repacked(data), read_only=True, data_only=True, keep_links=False).worksheets[0]
        sheet.reset_dimensions()  # which a file may state as it likes
        rows = sheet.iter_rows(max_row=MAX_ROWS + 2, max_col=MAX_COLUMNS, values_only=True)
        head = _head(["" if cell is None else str(cell) for cell in next(rows, ())])
        for number, cells in enumerate(rows, start=2):
            texts = ["" if cell is None else str(cell) for cell in cells]
            if any(texts):
                yield _row(number, head, texts)
    except InvalidInputError:
        raise
    except Exception as error:  # zipfile, zlib and openpyxl raise what they like on what is no workbook
        raise refusal from error


def _jsonl(data: bytes) -> Iterator[FileRow]:
    for number, line in enumerate(_text_of(data).split("\n"), start=1):
        if not line.strip():
            continue
        try:
            told = json.loads(line)
        except (ValueError, RecursionError):
            yield FileRow(number, reason=_("This is no JSON."))
            continue
        if not isinstance(told, dict):
            yield FileRow(number, reason=_("Expected an object."))
            continue
        if unknown := set(told) - COLUMNS - KNOWN_ONLY:
            yield FileRow(number, reason=_("Unknown field: %(name)s.") % {"name": clean_text(min(unknown)[:40])[0]})
            continue
        values = {name: told[name] for name in COLUMNS if told.get(name) is not None}
        if wrong := [name for name, value in values.items() if not isinstance(value, str)]:
            yield FileRow(number, reason=_("%(name)s: expected a string.") % {"name": min(wrong)})
            continue
        yield _checked(number, values)


def _markdown(data: bytes) -> Iterator[FileRow]:
    """Each heading of the first level begins a case; what stands below it is split as an answer is."""
    for number, title, body in _chapters(_text_of(data)):
        values = {"title": " ".join(title.split())}
        lines = body.split("\n")
        for line in lines[:20]:
            if found := _LABEL.fullmatch(line):
                name = "error_code" if found["error"] else "fault_category" if found["category"] else "case_id"
                values.setdefault(name, found["said"].strip())
        split = split_answer(body)
        for name, part in (("root_cause", split.root_cause), ("solution", split.solution)):
            if part and part.text.strip():
                values[name] = part.text.strip()
        if not {"root_cause", "solution"} & set(values):
            yield FileRow(number, values, _("No heading says where the root cause or the solution stands."))
            continue
        yield _checked(number, values)


def _chapters(text: str) -> Iterator[tuple[int, str, str]]:
    body: list[str] = []
    start, title, is_code = 0, "", False
    for number, line in enumerate(text.replace("\r\n", "\n").split("\n"), start=1):
        is_code ^= bool(_FENCE.match(line))
        if not is_code and (found := _HEADING.fullmatch(line.rstrip())):
            if title:
                yield start, title, "\n".join(body)
            start, title, body = number, found[1].rstrip("# "), []
        else:
            body.append(line)
    if not title:
        raise InvalidInputError(_("The runbook has no heading of the first level, such as “# Title”."))
    yield start, title, "\n".join(body)


_READERS = {".csv": _csv, ".xlsx": _xlsx, ".jsonl": _jsonl, ".md": _markdown}


def _head(cells: list[str]) -> list[str]:
    head = [cell.strip().lower() for cell in cells]
    while head and not head[-1]:
        head.pop()
    if unknown := [name for name in head if name not in COLUMNS | KNOWN_ONLY]:
        raise InvalidInputError(_("Unknown column: %(name)s.") % {"name": unknown[0][:40] or "—"})
    if len(set(head)) < len(head):
        raise InvalidInputError(_("A column is there twice."))
    if not {"case_id", "title"} & set(head):
        raise InvalidInputError(_("The first row must name the columns, among them title or case_id."))
    return head


def _row(number: int, head: list[str], cells: list[str]) -> FileRow:
    if any(cells[len(head) :]):
        return FileRow(number, reason=_("More cells than columns."))
    values = {name: cell for name, cell in zip(head, cells, strict=False) if name in COLUMNS}
    return _checked(number, values)


def _checked(number: int, values: dict[str, str]) -> FileRow:
    texts = {name: clean_text(text.replace("\r\n", "\n"))[0] for name, text in values.items()}
    for name in ("case_id", "fault_category", "error_code", "title"):
        if name in texts:
            texts[name] = texts[name].strip()
    for name, text in texts.items():
        if len(text) > MAX_CHARS[name]:
            said = {"name": name, "count": MAX_CHARS[name]}
            return FileRow(number, reason=_("%(name)s: longer than %(count)s characters.") % said)
        if len(text) == MAX_CELL_CHARS and text.endswith(CUT):
            return FileRow(number, reason=_("%(name)s was cut when it was exported; take CSV.") % {"name": name})
    if not texts.get("case_id"):
        texts.pop("case_id", None)
    return FileRow(number, texts)
