"""Workbooks that people bring, unpacked within bounds into a copy that whatever parses it can trust. Knows no cells.

What an archive states of its sizes may be a lie, and zipfile unpacks an entry whole when asked for all of it. Small
parts, such as the styles, are parsed into objects that take a hundred times their bytes: so they may be small only, and
of the two kinds that may be large, sheets and the table of strings, the elements are counted too.
"""

from __future__ import annotations

import io
import re
import zipfile
from collections.abc import Iterator
from typing import IO

from django.utils.translation import gettext as _

from sessions_app.errors import InvalidInputError

MAX_ENTRIES = 200
MAX_UNPACKED_BYTES = 50 * 2**20
MAX_PART_BYTES = 2**20
"""Of all but sheets and strings: the styles of a busy workbook take a tenth of it."""
MAX_PART_TAGS = 20_000
MAX_STRING_TAGS = 300_000
MAX_SHEET_TAGS = 1_000_000
MAX_ROW_TAGS = 50_000
PIECE_BYTES = 2**16

_STRINGS = "xl/sharedStrings.xml"
_MANIFEST = "[Content_Types].xml"
_SHEET = re.compile(r"xl/worksheets/[^/]+\.xml")
_XML = re.compile(r".*\.(?:xml|rels)", re.DOTALL)
_ROW = re.compile(rb"<(?:[\w.-]{1,40}:)?row[\s/>]")
_DOCUMENT_TYPE = re.compile(rb"<!\s*(?:DOCTYPE|ENTITY)", re.IGNORECASE)
_OVERRIDE = re.compile(rb"<[^<>]*/xl/worksheets/[^<>]*>")


def repacked(data: bytes) -> IO[bytes]:
    """The XML of a workbook without compression; pictures and the like are left out.

    Raises InvalidInputError for what is too much or no workbook, and what zipfile raises on what is no archive.
    """
    copy, left = io.BytesIO(), MAX_UNPACKED_BYTES
    with zipfile.ZipFile(io.BytesIO(data)) as archive, zipfile.ZipFile(copy, "w") as stored:
        if len(archive.infolist()) > MAX_ENTRIES:
            raise _too_much()
        for entry in archive.infolist():
            if not _XML.fullmatch(entry.filename):
                continue
            if entry.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):  # others unpack without bounds
                raise _no_workbook()
            is_large = entry.filename == _STRINGS or _SHEET.fullmatch(entry.filename)
            content = _unpacked(archive, entry, left if is_large else min(left, MAX_PART_BYTES))
            left -= len(content)
            _check(entry.filename, content.replace(b"\0", b""))  # of UTF-16 every second byte is NUL
            stored.writestr(entry.filename, content)
    copy.seek(0)
    return copy


def _unpacked(archive: zipfile.ZipFile, entry: zipfile.ZipInfo, most: int) -> bytes:
    pieces, size = [], 0
    with archive.open(entry) as packed:
        while piece := packed.read(PIECE_BYTES):
            size += len(piece)
            if size > most:
                raise _too_much()
            pieces.append(piece)
    return b"".join(pieces)


def _check(name: str, content: bytes) -> None:
    """What a parser would make of it. Tags are counted by their bracket, which stands for nothing else in XML."""
    if _DOCUMENT_TYPE.search(content):
        raise _no_workbook()
    tags = content.count(b"<")
    if _SHEET.fullmatch(name):
        if tags > MAX_SHEET_TAGS or any(row.count(b"<") > MAX_ROW_TAGS for row in _rows(content)):
            raise _too_much()
    elif tags > (MAX_STRING_TAGS if name == _STRINGS else MAX_PART_TAGS):
        raise _too_much()
    # The manifest says what a part is: else a large sheet could pass as the table of strings, or as the workbook.
    if name == _MANIFEST and (
        b"&" in content or any(b"worksheet+xml" not in one for one in _OVERRIDE.findall(content))
    ):
        raise _no_workbook()


def _rows(content: bytes) -> Iterator[bytes]:
    """Each row of a sheet, and what stands before the first."""
    start = 0
    for row in _ROW.finditer(content):
        yield content[start : row.start()]
        start = row.start()
    yield content[start:]


def _no_workbook() -> InvalidInputError:
    return InvalidInputError(_("This is no workbook that can be read."))


def _too_much() -> InvalidInputError:
    return InvalidInputError(_("The workbook unpacks to too much."))
