"""How one text became another: as a number, and line by line. Pure, and bounded in time and size for any text."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher
from itertools import groupby
from typing import NamedTuple

from rapidfuzz.distance import Indel

EXACT_BELOW_CHARS = 100
"""Two texts shorter than this compare as the design's example does. The time of `difflib` grows with the cube of the
length (25 ms here at worst), and from 200 characters on it leaves out the letters that occur often: nearly all."""

MAX_DIFF_LINES = 2_000
"""Of either text; lines beyond are not compared."""
MAX_DIFF_CHARS = 60_000
CONTEXT_LINES = 3
CUT = "…"
"""The last line of a diff that was cut off."""

DECIMALS = 4


def edit_distance(original: str, edited: str) -> float:
    """0 (unchanged) to 1 (nothing left): 1 − 2·M / (len + len), M being the characters that both share in order.

    M is that of `difflib` (matching blocks) for short texts, and the longest common subsequence for others.
    """
    if max(len(original), len(edited)) < EXACT_BELOW_CHARS:
        return round(1.0 - SequenceMatcher(None, original, edited).ratio(), DECIMALS)
    return round(float(Indel.normalized_distance(original, edited)), DECIMALS)


class _Change(NamedTuple):
    """Lines `start` to `end` of the one text became lines `new_start` to `new_end` of the other."""

    start: int
    end: int
    new_start: int
    new_end: int


def unified_diff(original: str, edited: str) -> str:
    """The difference as `diff -u` writes it, under empty file names; "" where no line differs.

    The form is that of `difflib.unified_diff(…, lineterm="")`; rapidfuzz matches the lines, in bounded time.
    """
    before, after = original.splitlines(), edited.splitlines()
    is_cut = max(len(before), len(after)) > MAX_DIFF_LINES
    before, after = before[:MAX_DIFF_LINES], after[:MAX_DIFF_LINES]
    lines = ["--- ", "+++ "]
    for hunk in _hunks(_changes(before, after)):
        lines += _hunk_lines(hunk, before, after)
    if len(lines) == 2:  # noqa: PLR2004 - nothing but the two names
        return CUT if is_cut else ""
    diff = "\n".join([*lines, CUT] if is_cut else lines)
    return diff if len(diff) <= MAX_DIFF_CHARS else f"{diff[:MAX_DIFF_CHARS]}\n{CUT}"


def _changes(before: Sequence[str], after: Sequence[str]) -> list[_Change]:
    """The stretches of lines that differ."""
    changes = []
    for is_equal, group in groupby(Indel.opcodes(before, after), key=lambda step: step.tag == "equal"):
        steps = list(group)
        if not is_equal:
            changes.append(
                _Change(steps[0].src_start, steps[-1].src_end, steps[0].dest_start, steps[-1].dest_end),
            )
    return changes


def _hunks(changes: Sequence[_Change]) -> Iterator[list[_Change]]:
    """Changes that stand so near that their contexts meet, together."""
    hunk: list[_Change] = []
    for change in changes:
        if hunk and change.start - hunk[-1].end > 2 * CONTEXT_LINES:
            yield hunk
            hunk = []
        hunk.append(change)
    if hunk:
        yield hunk


def _hunk_lines(hunk: Sequence[_Change], before: Sequence[str], after: Sequence[str]) -> Iterator[str]:
    first, last = hunk[0], hunk[-1]
    lead = min(CONTEXT_LINES, first.start)
    tail = min(CONTEXT_LINES, len(before) - last.end)
    old = _range(first.start - lead, last.end + tail)
    new = _range(first.new_start - lead, last.new_end + tail)
    yield f"@@ -{old} +{new} @@"
    place = first.start - lead
    for change in hunk:
        yield from (f" {line}" for line in before[place : change.start])
        yield from (f"-{line}" for line in before[change.start : change.end])
        yield from (f"+{line}" for line in after[change.new_start : change.new_end])
        place = change.end
    yield from (f" {line}" for line in before[place : place + tail])


def _range(start: int, stop: int) -> str:
    """A stretch of lines as POSIX writes it: counted from 1, of one line without its length."""
    length = stop - start
    if length == 1:
        return str(start + 1)
    return f"{start + 1 if length else start},{length}"
