"""The unified diff of an edit: in the form of `difflib`, true to both texts, bounded in time and size."""

from __future__ import annotations

import difflib
import re
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from feedback_app.difference import CUT, MAX_DIFF_CHARS, edit_distance, unified_diff

HUNK = re.compile(r"@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@")


def patched(original: str, diff: str) -> list[str]:
    """What `patch` makes of the original; fails where a line of the diff does not stand in it."""
    before, result, place = original.splitlines(), [], 0
    for line in diff.split("\n")[2:] if diff else ():
        if hunk := HUNK.fullmatch(line):
            start, length = int(hunk[1]), int(hunk[2] or 1)
            start -= 1 if length else 0
            result += before[place:start]
            place = start
            assert len(result) == int(hunk[3]) - (1 if int(hunk[4] or 1) else 0)
            continue
        mark, text = line[0], line[1:]
        if mark != "+":
            assert before[place] == text
            place += 1
        if mark != "-":
            result.append(text)
    return result + before[place:]


LINES = st.lists(st.sampled_from(["alpha", "beta", "", "@@", "-", "+++ ", "三", "x y"]), max_size=30).map("\n".join)


@given(LINES, LINES)
def test_the_diff_turns_one_text_into_the_other(original, edited):
    assert patched(original, unified_diff(original, edited)) == edited.splitlines()


@pytest.mark.parametrize(
    ("original", "edited"),
    [
        pytest.param("a\nb\nc", "a\nB\nc", id="one-line"),
        pytest.param("", "a\nb", id="from-nothing"),
        pytest.param("a\nb", "", id="to-nothing"),
        pytest.param("\n".join("abcdefghijklmnop"), "\n".join("aBcdefghijklmnOp"), id="two-hunks"),
        pytest.param("\n".join("abcdefghij"), "\n".join("abXdefgYij"), id="hunks-that-meet"),
        pytest.param("a\r\nb", "a\nc", id="line-ends"),
    ],
)
def test_it_reads_as_difflib_writes_it(original, edited):
    lines = difflib.unified_diff(original.splitlines(), edited.splitlines(), lineterm="")
    assert unified_diff(original, edited) == "\n".join(lines)


def test_nothing_differs():
    assert unified_diff("a\nb", "a\nb") == ""


@pytest.mark.parametrize(
    ("original", "edited"),
    [
        pytest.param("a" * 20_000, "ab" * 10_000, id="one-letter"),
        pytest.param("a\n" * 10_000, "b\n" * 10_000, id="short-lines"),
        pytest.param("\n" * 20_000, "a\n" * 10_000, id="empty-lines"),
        pytest.param("a" * 99, "ab" * 49, id="where-difflib-is-slowest"),
    ],
)
def test_the_longest_texts_take_no_time_and_little_room(original, edited):
    began = time.perf_counter()
    edit_distance(original, edited)
    diff = unified_diff(original, edited)
    assert time.perf_counter() - began < 2  # 30 ms on a quiet machine
    assert len(diff) <= MAX_DIFF_CHARS + 2


def test_what_is_cut_off_says_so():
    assert unified_diff("a\n" * 3_000, "b\n" * 3_000).endswith(f"\n{CUT}")
    assert unified_diff("\n".join(map(str, range(2_500))), "\n".join(map(str, range(2_400)))) == CUT
