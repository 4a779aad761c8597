"""How two texts are shown to differ."""

import pytest

from cases_app.admin.differences import SHOWN_CHARS, compare


@pytest.mark.parametrize(
    ("then", "now", "lines"),
    [
        pytest.param("a", "a", [("same", "a")], id="same"),
        pytest.param("a", "b", [("gone", "a"), ("new", "b")], id="gone-before-new"),
        pytest.param("a\nb", "a\nb\nc", [("same", "a"), ("same", "b"), ("new", "c")], id="added"),
        pytest.param(
            "1\n2\n3\n4\n5\nx", "1\n2\n3\n4\n5\ny",
            [("same", "1"), ("same", "…"), ("same", "5"), ("gone", "x"), ("new", "y")], id="long-sameness-is-left-out",
        ),
        pytest.param("", "a", [("gone", ""), ("new", "a")], id="from-nothing"),
    ],
)  # fmt: skip
def test_lines(then, now, lines):
    difference = compare(then, now)
    assert [tuple(line) for line in difference.lines] == lines
    assert not difference.is_cut


@pytest.mark.parametrize(
    ("then", "now"),
    [
        pytest.param("", "x" * 10**6, id="one-endless-line"),
        pytest.param("a\n" * 10**5, "b\n" * 10**5, id="many-lines"),
    ],
)
def test_long_texts_are_cut(then, now):
    difference = compare(then, now)
    assert difference.is_cut
    assert sum(len(line.text) for line in difference.lines) <= 200 * SHOWN_CHARS
