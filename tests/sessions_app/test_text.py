"""Ids and hostile text, without a database."""

from __future__ import annotations

import json
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sessions_app.text import MAX_JSON_CHARS, UnstorableJSONError, clean_json, clean_text, is_id, loads_strict


@pytest.mark.parametrize("value", ["a", "x" * 64, "d-bot/GPT4-0613", "~!@#$%^&*()", "2026-11-30T10:00:00Z"])
def test_printable_ascii_without_spaces_is_an_id(value):
    assert is_id(value)


@pytest.mark.parametrize(
    "value", ["", "x" * 65, "a b", " a", "a ", "a\n", "é", "会话", "a\x00", "\ud83d", 12, None, True]
)
def test_anything_else_is_not(value):
    assert not is_id(value)


def test_nul_and_surrogates_become_replacement_characters_and_are_told():
    assert clean_text("a\x00b\ud83dc") == ("a\ufffdb\ufffdc", True)
    assert clean_text("👩‍👩‍👧‍👦 𠮷 🇩🇪") == ("👩‍👩‍👧‍👦 𠮷 🇩🇪", False)


json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**63) | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(codec=None, exclude_categories=())),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner, max_size=4),
    max_leaves=20,
)  # fmt: skip


@given(json_values)
def test_clean_json_can_be_stored_and_is_not_changed_without_need(value):
    cleaned, changed = clean_json(value)
    text = json.dumps(cleaned, ensure_ascii=False, allow_nan=False)
    text.encode("utf-8")
    assert "\x00" not in json.loads(text) if isinstance(cleaned, str) else True
    if not changed:
        assert cleaned == value


def nested(depth: int):
    value: object = 1
    for _ in range(depth):
        value = [value]
    return value


def test_json_of_thirty_levels_is_kept_and_deeper_refused():
    assert clean_json(nested(29))[0] == nested(29)
    with pytest.raises(UnstorableJSONError, match="deeper than 30"):
        clean_json(nested(31))


@pytest.mark.parametrize(
    "value", [float("inf"), float("nan"), 10**30, "x" * (MAX_JSON_CHARS + 1), {"k" * MAX_JSON_CHARS: "v"}]
)
def test_values_no_database_of_ours_holds_are_refused(value):
    with pytest.raises(UnstorableJSONError):
        clean_json(value)


@pytest.mark.parametrize(
    "body",
    [b"NaN", b"[Infinity]", b'{"a":-Infinity}', b"1e999", b"\xff", b"{", b"", b"[" * 100_000, b'"\xed\xa0\x80"'],
)  # fmt: skip
def test_what_is_not_json_is_refused_with_a_sentence_at_once(body):
    start = time.monotonic()
    with pytest.raises(ValueError, match="The body"):
        loads_strict(body)
    assert time.monotonic() - start < 1
