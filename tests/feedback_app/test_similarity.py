"""How alike two questions are: words, Chinese, both together; and the seam where an encoder will come."""

from __future__ import annotations

import time

import pytest

from feedback_app.checks import check_similarity
from feedback_app.similarity import configured, words_and_characters


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [
        pytest.param("How do I reset my password please", "How do I reset my password", 6 / 7, id="design"),
        pytest.param("How do I RESET my password?!", "how do i reset my password", 1, id="case-and-punctuation"),
        pytest.param("Почему заказы падают?", "почему заказы — падают", 1, id="russian"),
        pytest.param("Почему заказы падают", "Где посмотреть журнал", 0, id="russian-apart"),
        pytest.param("数据库连接池满了", "数据库连接池满了怎么办", 0.7, id="chinese"),  # 7 pairs of 10
        pytest.param("数据库连接池满了？", "数据库，连接池满了！", 1, id="chinese-comma"),
        pytest.param("数据库连接池满了。", "数据库连接池满了！", 1, id="chinese-punctuation"),
        pytest.param("Redis 内存满了", "redis内存满了", 1, id="mixed"),
        pytest.param("Redis 内存满了", "MySQL 内存满了", 3 / 5, id="mixed-other-word"),
        pytest.param("ＲＥＤＩＳ ５０３", "redis 503", 1, id="full-width"),
        pytest.param("慢", "慢", 1, id="one-character"),
        pytest.param("慢", "慢查询", 0, id="one-character-in-a-word"),
        pytest.param("データベースが遅い", "データベースが遅いです", 8 / 10, id="japanese"),
        pytest.param("", "", 0, id="empty"),
        pytest.param("???", "???", 0, id="no-words"),
    ],
)
def test_alike(one, other, expected):
    assert words_and_characters(one, other) == pytest.approx(expected)
    assert words_and_characters(other, one) == words_and_characters(one, other)


def test_a_megabyte_takes_no_time():
    began = time.perf_counter()
    words_and_characters("数" * 1_000_000, "a b " * 250_000)
    assert time.perf_counter() - began < 1


def test_another_measure_may_take_the_place(settings):
    assert configured() is words_and_characters
    settings.SIMILARITY = "operator.eq"
    assert configured()("a", "a") is True


@pytest.mark.parametrize(
    ("values", "ids"),
    [
        pytest.param({}, [], id="as-it-comes"),
        pytest.param({"SIMILARITY": "no.such.module"}, ["feedback_app.E001"], id="nothing-there"),
        pytest.param({"SIMILARITY": "math.pi"}, ["feedback_app.E001"], id="not-to-be-called"),
        pytest.param({"RE_ASK_THRESHOLD": 0.0}, ["feedback_app.E002"], id="everything-alike"),
        pytest.param({"RE_ASK_THRESHOLD": 70.0}, ["feedback_app.E002"], id="percent"),
    ],
)
def test_a_mistaken_setting_is_told_at_the_start(values, ids, settings):
    for name, value in values.items():
        setattr(settings, name, value)
    assert [each.id for each in check_similarity()] == ids
