"""Tables as files: CSV, XLSX and JSONL, written as they are read, so that a large table costs no more memory.

Spreadsheets run what begins like a formula, and who opens a file trusts it. In CSV such a text gets an apostrophe
before it, as OWASP advises ("CSV Injection"); whoever reads the file back takes it off again (`unguarded`). In XLSX a
text is typed as text, and marked with what Excel itself stores for a leading apostrophe, so that it stays text when
somebody edits the cell. JSONL goes to programs and is left as it is.
"""

from __future__ import annotations

import csv
import re
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime
from typing import IO, Any

from django.db.models import QuerySet, TextChoices
from django.http import FileResponse, HttpResponseBase, StreamingHttpResponse
from django.utils import timezone
from openpyxl import Workbook
from openpyxl.cell import WriteOnlyCell

from sessions_app.fields import dumps
from sessions_app.text import REPLACEMENT

PAGE_ROWS = 200
MAX_SHEET_ROWS = 50_000
"""Of XLSX, which is sent when it is whole: more take longer than a browser waits."""
MAX_CELL_CHARS = 32_767
"""What Excel holds in one cell. A longer text ends with CUT there; the other formats hold all of it."""
CUT = " […]"

_BLANK = r"[\s\u00ad\u180e\u200b-\u200f\u2028-\u202e\u2060-\u2064\ufeff]"
_FORMULA = re.compile(rf"'*(?:[\t\r]|{_BLANK}*[=+\-@＝＋－﹣﹢＠﹦﹫−])")
_UNPRINTABLE = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\ud800-\udfff\ufffe\uffff]")
_LINE_ENDS = {0x85: "\\u0085", 0x2028: "\\u2028", 0x2029: "\\u2029"}
"""Characters that JSON holds in texts alone, where they may be escaped."""
BYTE_ORDER_MARK = "\ufeff"


class SheetFormat(TextChoices):
    """How a table is written."""

    CSV = "csv", "CSV"
    XLSX = "xlsx", "XLSX"
    JSONL = "jsonl", "JSONL"


CONTENT_TYPES = {
    SheetFormat.CSV: "text/csv; charset=utf-8",
    SheetFormat.XLSX: "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
    SheetFormat.JSONL: "application/x-ndjson",
}


def guarded(text: str) -> str:
    """`text`, with an apostrophe before it where a spreadsheet could take it for a formula."""
    return f"'{text}" if _FORMULA.match(text) else text


def unguarded(text: str) -> str:
    """What `guarded` was given."""
    return text[1:] if text.startswith("'") and _FORMULA.match(text[1:]) else text


def printable(text: str) -> str:
    """`text` without characters that no XML holds and no terminal should get; line ends as line feeds."""
    return _UNPRINTABLE.sub(REPLACEMENT, text.replace("\r\n", "\n"))


def rows_by_key(rows: QuerySet[Any], columns: Sequence[str]) -> Iterator[tuple[Any, ...]]:
    """The rows by primary key, a page at a time: no cursor stays open and no page costs more than the first."""
    last: Any = None
    ordered = rows.order_by("pk").values_list("pk", *columns)
    while page := list((ordered if last is None else ordered.filter(pk__gt=last))[:PAGE_ROWS]):
        for key, *values in page:
            yield tuple(values)
            last = key


def sheet_response(
    form: SheetFormat, name: str, columns: Sequence[str], rows: Iterable[Sequence[Any]]
) -> HttpResponseBase:
    """The table as a download: `rows` are read while it is sent; of XLSX, before."""
    response: HttpResponseBase
    kind = CONTENT_TYPES[form]
    match form:
        case SheetFormat.CSV:
            response = StreamingHttpResponse(csv_lines(columns, rows), content_type=kind)
        case SheetFormat.JSONL:
            response = StreamingHttpResponse(json_lines(columns, rows), content_type=kind)
        case SheetFormat.XLSX:
            response = FileResponse(xlsx_file(columns, rows), content_type=kind)
    response["Content-Disposition"] = f'attachment; filename="{name}-{timezone.localdate():%Y-%m-%d}.{form.value}"'
    response["Cache-Control"] = "no-store"
    return response


class _Line:
    """Where `csv` writes: gives each line back."""

    def write(self, line: str) -> str:
        return line


def csv_lines(columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> Iterator[str]:
    """CSV of RFC 4180, every cell quoted. The byte order mark tells Excel that it is UTF-8."""
    writer: Any = csv.writer(_Line(), quoting=csv.QUOTE_ALL)
    yield BYTE_ORDER_MARK + writer.writerow(columns)
    for row in rows:
        yield writer.writerow([_csv_cell(_plain(value)) for value in row])


def json_lines(columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> Iterator[str]:
    """One object a line, also for readers that end lines where Unicode does."""
    for row in rows:
        yield f"{dumps(dict(zip(columns, map(_plain, row), strict=True))).translate(_LINE_ENDS)}\n"


def xlsx_file(columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> IO[bytes]:
    """A workbook of one sheet, in a temporary file."""
    book = Workbook(write_only=True)
    sheet = book.create_sheet()
    sheet.freeze_panes = "A2"
    sheet.append(list(columns))
    for row in rows:
        sheet.append([_xlsx_cell(sheet, _plain(value)) for value in row])
    file = tempfile.TemporaryFile()  # noqa: SIM115 - the response closes it
    book.save(file)
    file.seek(0)
    return file


def _plain(value: Any) -> Any:
    """Numbers and texts as they are, moments in UTC, other things by their text."""
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, datetime):
        return value.astimezone(UTC).isoformat(timespec="seconds")
    return str(value)


def _csv_cell(value: Any) -> Any:
    return guarded(printable(value)) if isinstance(value, str) else value


def _xlsx_cell(sheet: Any, value: Any) -> Any:
    if not isinstance(value, str):
        return value
    text = printable(value).replace("\r", "\n")
    if len(text) > MAX_CELL_CHARS:
        text = text[: MAX_CELL_CHARS - len(CUT)] + CUT
    cell = WriteOnlyCell(sheet, text)
    cell.data_type = "s"  # openpyxl would make a formula of what begins with "="
    cell.quotePrefix = bool(_FORMULA.match(text))
    return cell
