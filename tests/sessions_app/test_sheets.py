"""Tables as files, read back as a spreadsheet would read them."""

import csv
import io
import json
from datetime import UTC, datetime

import openpyxl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sessions_app import sheets
from sessions_app.sheets import csv_lines, guarded, json_lines, printable, unguarded, xlsx_file

FORMULAS = [
    "=1+1",
    "+1",
    "-1",
    "@SUM(A1)",
    "\t=1",
    "\r=1",
    "\n=1",
    "  =1+1",
    "＝1+1",
    "＋1",
    "－1",
    "＠SUM(A1)",
    "\u200b=1",
    "\ufeff=1",
    "\u202e=1",
    "=cmd|' /C calc'!A0",
    '=HYPERLINK("http://evil.example","x")',
    "'=1",
    "-",
]
TEXTS = [*FORMULAS, "plain", "a,b", 'say "x"', "two\nlines", "数据库 Ошибка 😀", "'quoted'", "", "a\x00b\x1bc\ufffe"]


def read_csv(lines):
    data = "".join(lines)
    assert data.startswith("\ufeff")
    return list(csv.reader(io.StringIO(data[1:], newline="")))


@pytest.mark.parametrize("text", FORMULAS)
def test_a_formula_is_guarded(text):
    assert guarded(text) == f"'{text}"


@pytest.mark.parametrize("text", ["plain", "a=b", "5 - 3", "'quoted'", "", "数据库"])
def test_other_text_is_not(text):
    assert guarded(text) == text == unguarded(text)


@given(st.text(alphabet=st.sampled_from("'=+-@ \t\r\nab＝\u200b")))
def test_what_is_guarded_can_be_read_back(text):
    assert unguarded(guarded(text)) == text
    assert not guarded(text).startswith(("=", "+", "-", "@", "\t", "\r", "＝"))


def test_csv_holds_every_text_and_breaks_nowhere():
    rows = read_csv(csv_lines(["text", "n"], [(text, 7) for text in TEXTS]))
    assert rows[0] == ["text", "n"]
    assert [row[1] for row in rows[1:]] == ["7"] * len(TEXTS)
    assert [unguarded(row[0]) for row in rows[1:]] == [printable(text) for text in TEXTS]
    assert not any(row[0].lstrip().startswith(("=", "+", "-", "@")) for row in rows[1:])


def test_a_number_is_no_formula():
    assert read_csv(csv_lines(["n"], [(-5,), (None,), (0.5,)]))[1:] == [["-5"], [""], ["0.5"]]


def test_xlsx_holds_texts_as_texts_and_no_formula():
    book = openpyxl.load_workbook(xlsx_file(["text", "n"], [(text, -7) for text in TEXTS]))
    rows = list(book.active.iter_rows(min_row=2))
    assert [(row[0].value or "") for row in rows] == [printable(text).replace("\r", "\n") for text in TEXTS]
    for row, text in zip(rows, TEXTS, strict=True):
        assert row[0].data_type in {"s", "inlineStr"}, text
        assert row[0].quotePrefix == (text in FORMULAS), text
        assert row[1].value == -7


def test_a_text_too_long_for_a_cell_says_that_it_is_cut():
    whole = "x" * 40_000
    (cell,) = next(openpyxl.load_workbook(xlsx_file(["t"], [(whole,)])).active.iter_rows(min_row=2))
    assert len(cell.value) == sheets.MAX_CELL_CHARS
    assert cell.value.endswith(sheets.CUT)
    assert read_csv(csv_lines(["t"], [(whole,)]))[1] == [whole]


def test_json_lines_say_exactly_what_there_is():
    at = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
    lines = list(json_lines(["text", "at", "none"], [(text, at, None) for text in TEXTS]))
    assert [json.loads(line) for line in lines] == [
        {"text": text, "at": "2026-01-02T03:04:05+00:00", "none": None} for text in TEXTS
    ]
    assert all(line.count("\n") == 1 for line in lines)
