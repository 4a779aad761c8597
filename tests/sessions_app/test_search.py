"""By which terms texts are found, and which terms a query asks for."""

import time

import pytest

from sessions_app.search import MAX_TERMS, READ_CHARS, TERM_CHARS, beginnings_of, terms_of


def finds(query, text):
    terms = terms_of(text)
    asked = beginnings_of(query)
    return bool(asked) and all(any(term.startswith(each) for term in terms) for each in asked)


@pytest.mark.parametrize(
    ("query", "text"),
    [
        pytest.param("退款", "客户要求退款，系统报错", id="two-chinese-characters"),
        pytest.param("款", "客户要求退款", id="one-character-at-the-end"),
        pytest.param("客", "客户要求退款", id="one-character"),
        pytest.param("连接池耗尽", "数据库连接池耗尽，请扩容", id="a-phrase-within-a-sentence"),
        pytest.param("iPhone退款", "退款：iphone 15", id="two-scripts"),
        pytest.param("返金", "返金をお願いします", id="japanese"),
        pytest.param("환불", "환불해주세요", id="korean"),
        pytest.param("ПАМЯТЬ", "не хватает памяти", id="russian-case-and-ending"),
        pytest.param("соединения", "оборвано соединение", id="russian-ending"),
        pytest.param("елка", "Ёлка", id="yo"),
        pytest.param("timeout", "Timeouts everywhere", id="plural"),
        pytest.param("timeouts", "a timeout", id="plural-asked-for"),
        pytest.param("exhaust", "PoolExhaustedError", id="part-of-a-name"),
        pytest.param("err_pool", "raised ERR_POOL_FULL", id="beginning-of-a-code"),
        pytest.param("KEY_VIOLATION", "raised ERR_KEY_VIOLATION", id="end-of-a-code"),
        pytest.param("checkout-api", "prod/checkout-api:8080", id="middle-of-a-name"),
        pytest.param("ORA-00060", "ORA-00060: deadlock", id="vendor-code"),
        pytest.param("00060", "ORA-00060: deadlock", id="number-of-a-code"),
        pytest.param("ｐｏｏｌ", "pool", id="full-width"),
        pytest.param("s-77", "s-7731", id="beginning-of-an-id"),
        pytest.param("pool timeout", "timeout of the pool", id="words-in-any-order"),
    ],
)
def test_finds(query, text):
    assert finds(query, text)


@pytest.mark.parametrize(
    ("query", "text"),
    [
        pytest.param("%", "100%", id="per-cent"),
        pytest.param("_", "a_b", id="underscore"),
        pytest.param("' OR 1=1 --", "pool", id="sql"),
        pytest.param("款退", "退款", id="characters-the-other-way-round"),
        pytest.param("雪缓", "雪 缓", id="characters-apart"),
        pytest.param("ERR_POOL_7", "ERR_POOL 7", id="another-code"),
        pytest.param("pool timeout", "pool", id="one-word-of-two"),
        pytest.param("", "pool", id="nothing"),
    ],
)
def test_does_not_find(query, text):
    assert not finds(query, text)


@pytest.mark.parametrize("text", ["_" * READ_CHARS, "a" + "_" * READ_CHARS, "a_" * READ_CHARS, "中_" * READ_CHARS])
def test_no_text_takes_long(text):
    started = time.thread_time()
    terms_of(text)
    assert time.thread_time() - started < 1  # a tenth of that on an idle machine


def test_no_text_is_too_long():
    assert len(terms_of(" ".join(map(str, range(100_000))))) <= MAX_TERMS
    assert {len(term) for term in terms_of("x" * 1000)} == {TERM_CHARS}
    assert finds("x" * 1000, "x" * 1000)
    assert len(beginnings_of(" ".join(map(str, range(1000))))) <= 12
