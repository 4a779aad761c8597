"""What differs between two texts, line by line, for people."""

from __future__ import annotations

from itertools import groupby
from typing import NamedTuple

from rapidfuzz.distance import Indel

MAX_LINES = 2000
SHOWN_LINES = 200
SHOWN_CHARS = 2000


class Line(NamedTuple):
    """One line. `mark` is "same", "gone" or "new"."""

    mark: str
    text: str


class Difference(NamedTuple):
    """The lines of both texts in order; what is the same for long is left out."""

    lines: list[Line]
    is_cut: bool


def compare(then: str, now: str) -> Difference:
    """How `then` became `now`; of very long texts only the beginning."""
    before, after = then.split("\n"), now.split("\n")
    is_cut = max(len(before), len(after)) > MAX_LINES
    before, after = before[:MAX_LINES], after[:MAX_LINES]
    lines: list[Line] = []
    for is_equal, group in groupby(Indel.opcodes(before, after), key=lambda step: step.tag == "equal"):
        steps = list(group)
        gone = [text for step in steps for text in before[step.src_start : step.src_end]]
        if is_equal:
            lines += _context(gone)
            continue
        lines += [Line("gone", text) for text in gone]
        lines += [Line("new", text) for step in steps for text in after[step.dest_start : step.dest_end]]
    is_cut = is_cut or len(lines) > SHOWN_LINES or any(len(line.text) > SHOWN_CHARS for line in lines)
    return Difference([Line(mark, text[:SHOWN_CHARS]) for mark, text in lines[:SHOWN_LINES]], is_cut)


def _context(lines: list[str]) -> list[Line]:
    if len(lines) <= 3:  # noqa: PLR2004 - a line on either side of a change, and one that stands for the rest
        return [Line("same", text) for text in lines]
    return [Line("same", lines[0]), Line("same", "…"), Line("same", lines[-1])]
