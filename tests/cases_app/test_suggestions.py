"""Which categories a text suggests."""

import pytest

from cases_app.rules import rank_by_keywords

KEYWORDS = {
    "MEMORY_OOM": ["oom", "gc", "内存", "память"],
    "DB_CONNECTION": ["hikari", "连接池"],
    "CACHE": ["redis", "缓存", "кэш"],
    "NETWORK_DNS": ["dns"],
}


@pytest.mark.parametrize(
    ("text", "codes"),
    [
        pytest.param("HikariPool-1 is exhausted", ["DB_CONNECTION"], id="beginning-of-a-word"),
        pytest.param("moved to gcp, roomy", [], id="short-words-stand-alone"),
        pytest.param("Full GC!", ["MEMORY_OOM"], id="any-case"),
        pytest.param("redis 缓存失效, 内存 ok", ["CACHE", "MEMORY_OOM"], id="more-hits-first"),
        pytest.param("Прогрев кэша", ["CACHE"], id="russian"),
        pytest.param("gc hikari redis dns", ["CACHE", "DB_CONNECTION", "MEMORY_OOM"], id="three-at-most"),
        pytest.param("", [], id="nothing"),
        pytest.param("x" * 20_000 + " dns", [], id="only-the-beginning"),
    ],
)
def test_keywords_suggest(text, codes):
    assert rank_by_keywords(text, "", KEYWORDS) == codes


def test_an_empty_keyword_suggests_nothing():
    assert rank_by_keywords("anything", "", {"CACHE": ["", " "]}) == []


def test_the_question_weighs_more_than_the_answer():
    assert rank_by_keywords("Is it dns?", "No: redis, gc.", KEYWORDS) == ["NETWORK_DNS", "CACHE", "MEMORY_OOM"]
