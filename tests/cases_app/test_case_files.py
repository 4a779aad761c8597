"""Files of cases: what is read of each kind, and what hostile ones are refused for."""

import contextlib
import io
import json
import struct
import time
import tracemalloc
import zipfile
import zlib

import openpyxl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from openpyxl.styles import Font

from cases_app import case_files, workbooks
from cases_app.case_files import read_cases
from sessions_app.errors import InvalidInputError
from sessions_app.sheets import CUT, MAX_CELL_CHARS, csv_lines, json_lines, xlsx_file

COLUMNS = ["title", "error_code", "fault_category", "root_cause", "solution"]
ROW = ("Pool runs dry", "ERR_POOL", "SLOW_RESPONSE", "=too small", "- raise it\n- test it")

UNPACKED = 30 * 2**20


def read(name, data):
    return list(read_cases(name, io.BytesIO(data if isinstance(data, bytes) else data.encode())))


def refused(name, data):
    with pytest.raises(InvalidInputError) as refusal:
        read(name, data)
    return refusal.value.message


def workbook(*rows):
    book = openpyxl.Workbook()
    for row in rows:
        book.active.append(row)
    file = io.BytesIO()
    book.save(file)
    return file.getvalue()


@pytest.mark.parametrize("kind", ["csv", "xlsx", "jsonl"])
def test_what_was_exported_is_read_back(kind):
    write = {
        "csv": lambda: "".join(csv_lines(COLUMNS, [ROW])).encode(),
        "xlsx": lambda: xlsx_file(COLUMNS, [ROW]).read(),
        "jsonl": lambda: "".join(json_lines(COLUMNS, [ROW])).encode(),
    }[kind]
    (row,) = read(f"Cases.{kind.upper()}", write())
    assert row.values == dict(zip(COLUMNS, ROW, strict=True))
    assert row.reason == ""


def test_csv_of_excel_with_semicolons():
    (row,) = read("x.csv", "\ufefftitle;error_code\r\nA, b;X\r\n")
    assert row.values == {"title": "A, b", "error_code": "X"}


@pytest.mark.parametrize(
    ("name", "data", "words"),
    [
        ("x.exe", "title\nA", "Known are files"),
        ("csv", "title\nA", "Known are files"),
        ("x.csv", b"title\n\xff\xfe", "not UTF-8"),
        ("x.csv", "", "must name the columns"),
        ("x.csv", "error_code\nA", "must name the columns"),
        ("x.csv", "title,title\nA,B", "there twice"),
        ("x.csv", "title,secret\nA,B", "Unknown column: secret"),
        ("x.csv", 'title\n"A"b\n', "Line 2 is no CSV"),
        ("x.csv", 'title\n"A\n', "is no CSV"),
        ("x.xlsx", b"no zip", "no workbook"),
        ("x.xlsx", b"PK\x03\x04" + b"\x00" * 40, "no workbook"),
        ("x.md", "no heading\n", "no heading of the first level"),
        ("x.md", "```\n# comment\n```\n", "no heading of the first level"),
    ],
)
def test_a_file_that_cannot_be_read_is_refused(name, data, words):
    assert words in refused(name, data)


@pytest.mark.parametrize(
    ("name", "data", "words"),
    [
        ("x.csv", "title\nA,B", "More cells"),
        ("x.csv", f"title\n{'x' * 201}", "title: longer than 200"),
        ("x.csv", f"title,error_code\nA,{'x' * 129}", "error_code: longer than 128"),
        ("x.jsonl", "{", "no JSON"),
        ("x.jsonl", "[" * 5000, "no JSON"),
        ("x.jsonl", "[]", "Expected an object"),
        ("x.jsonl", '{"title": 5}', "title: expected a string"),
        ("x.jsonl", '{"title": "A", "secret": 1}', "Unknown field: secret"),
        ("x.md", "# A\n\nJust text.\n", "No heading says"),
    ],
)
def test_a_row_that_cannot_be_read_says_why_and_spares_its_neighbours(name, data, words):
    good = {"x.csv": "\nGood", "x.jsonl": '\n{"title": "Good"}', "x.md": "\n# Good\n## Solution\nDo.\n"}
    bad, fine = read(name, data + good[name])
    assert words in bad.reason
    assert fine.reason == ""
    assert fine.values["title"] == "Good"


def test_unstorable_characters_become_marks():
    (row,) = read("x.jsonl", '{"title": "a\\u0000b\\ud800"}')
    assert row.values["title"] == "a\ufffdb\ufffd"


def test_a_text_that_an_export_cut_is_not_taken_for_the_whole():
    (row,) = read("x.jsonl", json.dumps({"title": "A", "solution": "x" * (MAX_CELL_CHARS - len(CUT)) + CUT}))
    assert "was cut" in row.reason


def test_where_a_case_stands_is_read_over():
    (row,) = read("x.csv", "title,status,reviewed_by\nA,PUBLISHED,root")
    assert row.values == {"title": "A"}


class TestRunbooks:
    TEXT = """
# Pool runs dry

Error code: `ERR_POOL`
**Category:** SLOW_RESPONSE

## Root cause
The pool is too small.

## Solution
1. Raise it.

# 磁盘已满

错误码：DISK-1

## 根因
日志没有轮转。

## 解决方案
```
# a comment, no case
logrotate -f
```
# Диск полон
## Причина
Журналы.
## Решение
Удалить.
"""

    def test_each_heading_of_the_first_level_is_a_case(self):
        rows = read("book.md", self.TEXT)
        assert [row.reason for row in rows] == ["", "", ""]
        first, second, third = (row.values for row in rows)
        assert first == {
            "title": "Pool runs dry", "error_code": "ERR_POOL", "fault_category": "SLOW_RESPONSE",
            "root_cause": "The pool is too small.", "solution": "1. Raise it.",
        }  # fmt: skip
        assert (second["title"], second["error_code"], second["root_cause"]) == ("磁盘已满", "DISK-1", "日志没有轮转。")
        assert "# a comment, no case" in second["solution"]
        assert (third["root_cause"], third["solution"]) == ("Журналы.", "Удалить.")
        assert [row.number for row in rows] == [2, 13, 25]


class TestBounds:
    def test_bytes(self, monkeypatch):
        monkeypatch.setattr(case_files, "MAX_BYTES", 100)
        assert "larger than" in refused("x.csv", "title\n" + "x" * 200)

    @pytest.mark.parametrize("kind", ["csv", "jsonl", "xlsx", "md"])
    def test_rows(self, kind, monkeypatch):
        monkeypatch.setattr(case_files, "MAX_ROWS", 3)
        data = {
            "csv": "title\n" + "A\n" * 4,
            "jsonl": '{"title": "A"}\n' * 4,
            "xlsx": workbook(["title"], *[["A"]] * 4),
            "md": "# A\n## Solution\nDo.\n" * 4,
        }[kind]
        assert "more than 3 rows" in refused(f"x.{kind}", data)

    @pytest.fixture
    def traced(self):
        tracemalloc.start()
        yield lambda: tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()

    def bomb(self, packing=zipfile.ZIP_DEFLATED):
        file = io.BytesIO()
        with zipfile.ZipFile(file, "w", packing) as archive:
            archive.writestr("xl/workbook.xml", b" " * UNPACKED)
            return file, archive.infolist()[0].CRC

    def test_a_bomb_is_refused_before_it_is_unpacked(self, monkeypatch, traced):
        monkeypatch.setattr(workbooks, "MAX_UNPACKED_BYTES", 2**20)
        file, _ = self.bomb()
        assert len(file.getvalue()) < UNPACKED // 500
        tracemalloc.reset_peak()
        assert "unpacks to too much" in refused("x.xlsx", file.getvalue())
        assert traced() < 4 * 2**20

    @pytest.mark.parametrize("is_consistent", [False, True])
    def test_a_bomb_that_lies_about_its_size_is_no_workbook(self, is_consistent, traced):
        file, whole = self.bomb()
        lying = file.getvalue().replace(struct.pack("<I", UNPACKED), struct.pack("<I", 100))
        if is_consistent:  # a sum that fits the beginning
            lying = lying.replace(struct.pack("<I", whole), struct.pack("<I", zlib.crc32(b" " * 100)))
        tracemalloc.reset_peak()
        assert "no workbook" in refused("x.xlsx", lying)
        assert traced() < 4 * 2**20

    @pytest.mark.parametrize("packing", [zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
    def test_what_cannot_be_unpacked_within_bounds_is_not(self, packing, traced):
        file, _ = self.bomb(packing)
        tracemalloc.reset_peak()
        assert "no workbook" in refused("x.xlsx", file.getvalue())
        assert traced() < 4 * 2**20

    @pytest.mark.parametrize(
        ("part", "content"),
        [
            ("xl/styles.xml", f"<styleSheet><cellXfs>{'<xf/>' * 100_000}</cellXfs></styleSheet>"),
            ("xl/styles.xml", f"<styleSheet>{' ' * 2**20}</styleSheet>"),
            ("xl/workbook.xml", f"<workbook><sheets>{'<sheet/>' * 50_000}</sheets></workbook>"),
            ("[Content_Types].xml", f"<Types>{'<Default/>' * 50_000}</Types>"),
            ("docProps/core.xml", f"<x>{'<y/>' * 50_000}</x>"),
            ("xl/sharedStrings.xml", f"<sst>{'<si/>' * 300_001}</sst>"),
            ("xl/worksheets/sheet1.xml", f"<worksheet><sheetData><row>{'<c/>' * 50_001}</row></sheetData></worksheet>"),
            ("xl/worksheets/sheet1.xml", f"<worksheet><x:sheetData>{'<x:row/>' * 1_000_001}</x:sheetData></worksheet>"),
        ],
        ids=["styles", "blanks", "sheets", "types", "properties", "strings", "one-row", "rows"],
    )
    def test_a_part_that_is_parsed_into_a_hundred_times_its_size(self, part, content):
        file = self.replaced(part, content)
        assert len(file) < 2**17
        started = time.process_time()
        assert "unpacks to too much" in refused("x.xlsx", file)
        assert time.process_time() - started < 2

    def test_a_sheet_does_not_pass_as_another_part(self):
        types = "<Types><Override PartName='/xl/worksheets/sheet1.xml' ContentType='x.sharedStrings+xml'/></Types>"
        assert "no workbook" in refused("x.xlsx", self.replaced("[Content_Types].xml", types))
        assert "no workbook" in refused("x.xlsx", self.replaced("[Content_Types].xml", types.replace("w", "&#119;")))

    def test_what_a_busy_workbook_holds_is_read(self):
        book = openpyxl.Workbook()
        book.active.append(["title", "solution"])
        for number in range(4_000):
            book.active.append([f"A {number}", f"B {number}"])
            if number < 500:
                book.active.cell(number + 2, 1).font = Font(color=f"{number:06X}", bold=True)
                book.active.cell(number + 2, 2).number_format = f"0.{number}"
        book.create_sheet("other").append(["x"])
        file = io.BytesIO()
        book.save(file)
        with zipfile.ZipFile(file, "a") as archive:
            archive.writestr("xl/media/picture.png", b"\0" * 3 * 2**20)
        assert len(read("x.xlsx", file.getvalue())) == 4_000

    def replaced(self, part, content):
        """A workbook with a part put in, in place of its own where it has one."""
        file, whole = io.BytesIO(), io.BytesIO(workbook(["title"], ["A"]))
        with zipfile.ZipFile(whole) as old, zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as new:
            for entry in old.infolist():
                if entry.filename != part:
                    new.writestr(entry.filename, old.read(entry))
            new.writestr(part, content)
        return file.getvalue()

    def test_many_entries(self):
        file = io.BytesIO()
        with zipfile.ZipFile(file, "w") as archive:
            for n in range(300):
                archive.writestr(f"{n}.xml", "")
        assert "unpacks to too much" in refused("x.xlsx", file.getvalue())

    @pytest.mark.parametrize("encoding", ["utf-8", "utf-16"])
    def test_no_document_type_is_read(self, encoding):
        whole, file = workbook(["title"], ["A"]), io.BytesIO()
        bomb = '<?xml version="1.0"?><!DOCTYPE x [<!ENTITY a "aaaa"><!ENTITY b "&a;&a;">]><x>&b;</x>'
        with zipfile.ZipFile(io.BytesIO(whole)) as old, zipfile.ZipFile(file, "w") as new:
            for entry in old.infolist():
                is_sheet = "sheet1" in entry.filename
                new.writestr(entry.filename, bomb.encode(encoding) if is_sheet else old.read(entry))
        assert "no workbook" in refused("x.xlsx", file.getvalue())

    def test_a_sheet_that_claims_a_million_rows_and_columns(self):
        book = openpyxl.Workbook()
        book.active["A1"] = "title"
        book.active["A2"] = "A"
        book.active["XFD1048576"] = "far"
        file = io.BytesIO()
        book.save(file)
        (row,) = read("x.xlsx", file.getvalue())
        assert row.values == {"title": "A"}

    def test_formulas_of_a_workbook_are_never_calculated(self):
        (row,) = read("x.xlsx", workbook(["title", "solution"], ["A", "=1+1"]))
        assert row.values["solution"] == ""  # the value that Excel stored: none


@given(st.binary(max_size=300), st.sampled_from(["x.csv", "x.xlsx", "x.jsonl", "x.md"]))
def test_any_bytes_are_read_or_refused(data, name):
    with contextlib.suppress(InvalidInputError):
        read(name, data)


@given(st.text(max_size=300), st.sampled_from(["x.csv", "x.jsonl", "x.md"]))
def test_any_text_is_read_or_refused(text, name):
    try:
        rows = read(name, f"title\n{text}".encode(errors="replace"))
    except InvalidInputError:
        return
    assert all(row.reason or row.values.keys() <= case_files.COLUMNS for row in rows)
