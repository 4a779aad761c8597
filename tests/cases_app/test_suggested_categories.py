"""Which categories a session suggests."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cases_app.suggestions.categories import rank_categories
from cases_app.suggestions.clues import READ_CHARS, Clues, Found, Source

KEYWORDS = {
    "MEMORY_OOM": ["oom", "gc", "out of mem", "内存", "память"],
    "DB_CONNECTION": ["hikari", "连接池", "пул соединений"],
    "CACHE": ["redis", "缓存", "кэш"],
    "NETWORK_DNS": ["dns"],
}


def ranked(keywords=None, **clues):
    return [suggestion.code for suggestion in rank_categories(Clues(**clues), keywords or KEYWORDS)]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        pytest.param("HikariPool-1 is exhausted", ["DB_CONNECTION"], id="beginning-of-a-word"),
        pytest.param("moved to gcp, roomy", [], id="short-words-stand-alone"),
        pytest.param("Full GC!", ["MEMORY_OOM"], id="any-case"),
        pytest.param("redis 缓存失效, 内存 ok", ["CACHE", "MEMORY_OOM"], id="more-hits-first"),
        pytest.param("Прогрев кэша", ["CACHE"], id="russian-ending"),
        pytest.param("утечка памяти", ["MEMORY_OOM"], id="russian-declension"),
        pytest.param("в пуле соединений", ["DB_CONNECTION"], id="russian-phrase"),
        pytest.param("Вспамятовал, некэшируемый", [], id="russian-inside-a-word"),
        pytest.param("用redis存", ["CACHE"], id="latin-between-chinese"),
        pytest.param("last state OOMKilled", ["MEMORY_OOM"], id="humps-are-words"),
        pytest.param("out-of_mem\nis near", ["MEMORY_OOM"], id="whatever-is-between-words"),
        pytest.param("gc hikari redis dns", ["CACHE", "DB_CONNECTION", "MEMORY_OOM"], id="three-at-most"),
        pytest.param("", [], id="nothing"),
        pytest.param("x" * READ_CHARS + " dns", [], id="only-the-beginning"),
    ],
)
def test_keywords_suggest(text, found):
    assert ranked(question=text) == found


def test_an_empty_keyword_suggests_nothing():
    assert ranked({"CACHE": ["", " ", "-"]}, question="anything - goes") == []


def test_the_question_weighs_more_than_the_answer():
    assert ranked(question="Is it dns?", answer="No: redis, gc.") == ["NETWORK_DNS", "CACHE", "MEMORY_OOM"]


def test_the_cause_weighs_more_than_the_rest_of_the_answer():
    assert ranked(cause="redis", answer="dns, then redis")[0] == "CACHE"


def test_what_points_faintly_beside_what_points_plainly_is_left_out():
    assert ranked(question="redis 缓存", cause="redis", answer="dns") == ["CACHE"]


def test_a_phrase_weighs_more_than_a_word():
    assert ranked({"SLOW": ["slow"], "DB": ["slow query"]}, question="a slow query") == ["DB", "SLOW"]


def test_names_of_alerts_agents_and_tools_are_read_as_words_and_named_whole():
    suggestion = rank_categories(
        Clues(
            metadata={"alerts": [{"alert_name": "NodeOutOfMem"}]},
            tools=["gc_log_reader", "query_metrics"],
            agents=["OomExpert", "planner"],
        ),
        KEYWORDS,
    )[0]
    assert suggestion.code == "MEMORY_OOM"
    assert suggestion.evidence == (
        Found("NodeOutOfMem", Source.ALERT), Found("OomExpert", Source.AGENT), Found("gc_log_reader", Source.TOOL),
    )  # fmt: skip


def test_the_evidence_names_the_keyword_and_where_it_stands_the_weightiest_first():
    suggestion = rank_categories(Clues(question="缓存?", answer="redis and 缓存"), KEYWORDS)[0]
    assert suggestion.evidence == (
        Found("缓存", Source.QUESTION), Found("redis", Source.ANSWER), Found("缓存", Source.ANSWER),
    )  # fmt: skip


@given(st.text(), st.lists(st.text() | st.integers() | st.none()))
def test_no_text_and_no_keyword_is_too_strange(text, words):
    rank_categories(Clues(question=text, tools=[text], metadata={"alert": text}), {"A": words, "B": [text]})
