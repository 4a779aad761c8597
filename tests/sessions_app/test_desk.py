"""What the reviewers' pages share: marks, figures, moments, excerpts."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.template import Context, Template
from django.utils import timezone, translation

from sessions_app import rules
from sessions_app.models import DiagnosisSession, Status
from sessions_app.services.evaluation import DIED, evaluate_session
from sessions_app.services.recording import record_sessions
from sessions_app.templatetags import desk
from tests.factories import SessionFactory


@pytest.mark.parametrize(
    ("ms", "said"),
    [(None, "–"), (0, "0 ms"), (850, "850 ms"), (12_861, "12.9 s"), (185_000, "3 min 5 s"), (3_725_000, "1 h 2 min"),
     (400 * 3_600_000_000, "400,000 h 0 min")],
)  # fmt: skip
def test_durations_are_said_as_people_say_them(ms, said):
    assert desk.duration(ms) == said


def test_figures_have_separators():
    assert (desk.number(1234567), desk.number(None), desk.percent(0.655), desk.percent(None)) == (
        "1,234,567",
        "–",
        "66%",
        "–",
    )
    assert (desk.signed(30), desk.signed(-20), desk.signed(0)) == ("+30", "−20", "0")


def test_an_excerpt_is_one_line_of_what_can_be_seen():
    assert desk.excerpt("a\n\tb\u202eevil\u2066\x00 c\u200b d") == "a b evil c d"
    assert desk.excerpt("x" * 500, 10) == "x" * 10 + "…"
    assert desk.excerpt(None) == ""
    assert desk.excerpt("👩\u200d🚒 नमस्ते") == "👩\u200d🚒 नमस्ते"
    assert desk.excerpt(" " * 5000 + "late") == "…"


def test_moments_are_relative_with_the_exact_time_beside():
    html = desk.moment(timezone.now() - timedelta(hours=3, minutes=20))
    assert ">3\xa0hours ago</time>" in html
    assert 'title="20' in html
    assert desk.moment(timezone.now() + timedelta(days=2)).count(":") >= 4
    assert "just now" in desk.moment(timezone.now())
    assert desk.NOTHING in desk.moment(None)


def test_json_is_pretty_and_what_is_no_json_stays():
    assert desk.pretty_json({"б": [1]}) == '{\n  "б": [\n    1\n  ]\n}'
    assert desk.pretty_json('{"a":1}') == '{\n  "a": 1\n}'
    assert desk.pretty_json('{"a":') == '{"a":'
    assert desk.pretty_json("plain <b>") == "plain <b>"
    assert desk.pretty_json("[" * 5000) == "[" * 5000
    assert len(desk.pretty_json({"a": "x" * 500_000})) == desk.MAX_PRETTY_CHARS + 1


def test_badges_escape_text_and_title():
    html = desk.badge("open", "<b>", '"onmouseover="x')
    assert "&lt;b&gt;" in html
    assert 'title="&quot;onmouseover=&quot;x"' in html
    assert "desk-badge--open" in html


def test_every_rule_has_a_name_in_the_interface():
    assert {rule.name for rule in rules.RULES} == set(desk.FACTOR_LABELS)
    assert desk.factor_name("a_rule_of_tomorrow") == "a_rule_of_tomorrow"


@pytest.mark.parametrize(
    ("score", "band"), [(0, "weak"), (29, "weak"), (30, "partial"), (59, "partial"), (60, "strong"), (100, "strong")]
)
def test_bands_begin_where_the_table_says(score, band):
    assert rules.band_of(score) == band
    assert band in desk.score_bars(score)


def test_the_mark_of_a_score_says_why_there_is_none():
    pending = DiagnosisSession(status=Status.SUCCESS, evaluation_due_at=timezone.now(), evidence_score=65)
    failed = DiagnosisSession(status=Status.SUCCESS, evaluation_error="KeyError: 'x' <b>")
    assert "Pending" in desk.score_mark(pending)
    assert "65" not in desk.score_mark(pending)
    assert "KeyError: &#x27;x&#x27; &lt;b&gt;" in desk.score_mark(failed)
    assert desk.NOTHING in desk.score_mark(DiagnosisSession(status=Status.RUNNING))


@pytest.mark.django_db
def test_the_evidence_shows_the_sum_before_the_clamp():
    record_sessions(
        [
            {
                "session_id": "s",
                "status": "SUCCESS",
                "tool_invocations": [{"tool_name": "lookup_knowledge", "success": False}],
            }
        ]
    )
    evaluate_session("s")
    evidence = desk.evidence(DiagnosisSession.objects.get())
    assert (evidence.score, evidence.total) == (0, -30)
    assert [factor.name for factor in evidence.factors] == ["retrieval_no_hit", "all_tool_calls_failed"]
    assert [(factor.left, factor.width) for factor in evidence.factors] == [(0, 0), (0, 0)]


def test_a_value_that_is_no_object_hides_nothing_else():
    session = DiagnosisSession(self_evaluation=["not", "an", "object"], evaluation_error="AttributeError")
    assert (desk.evidence(session), desk.said(session)) == (None, {})


def test_what_the_agent_said_stands_apart_from_the_rules():
    session = DiagnosisSession(
        self_evaluation={"confidence": 90, "evidence_score": 65, "factors": [], "source": "rule", "mood": "calm"}
    )
    assert desk.said(session) == {"confidence": 90, "mood": "calm"}


@pytest.mark.django_db
def test_a_long_answer_is_shown_to_its_end():
    answer = "# Report\n\n" + "a line of it\n" * 4000 + "<b>the end</b>"
    html = Template("{% load desk %}{{ session.answer|markdown }}").render(
        Context({"session": SessionFactory(answer=answer)})
    )
    assert "<h3>Report</h3>" in html
    assert html.rstrip().endswith("&lt;b&gt;the end&lt;/b&gt;</pre>")


# -- in each language ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("language", "said"),
    [
        ("zh-hans", ("1,248,312", "12.9 秒", "21\xa0分钟前")),
        ("ru", ("1\xa0248\xa0312", "12,9 с", "21\xa0минуту назад")),  # not 21 минута назад
    ],
)
def test_figures_and_moments_follow_the_language(language, said):
    with translation.override(language):
        moment = desk.moment(timezone.now() - timedelta(minutes=21))
        assert (desk.number(1_248_312), desk.duration(12_861)) == said[:2]
        assert said[2] in moment


@pytest.mark.parametrize(
    ("count", "said"),
    [(1, "1 вызов инструмента"), (3, "3 вызова инструментов"), (11, "11 вызовов инструментов"), (21, "21 вызов")],
)
def test_a_factor_counts_its_calls_in_russian(count, said):
    factor = desk.FactorLine("has_successful_tool_call", 30, f"有成功的工具调用({count}次)", 0, 30)
    with translation.override("ru"):
        assert desk.factor_name(factor.name) == "Есть успешный вызов инструмента"
        assert desk.factor_detail(factor).startswith(said)


def test_a_factor_without_a_count_needs_no_detail_and_an_unknown_rule_speaks_for_itself():
    assert desk.factor_detail(desk.FactorLine("l0_exact_match", 35, "L0 精确匹配命中", 0, 35)) == ""
    assert desk.factor_detail(desk.FactorLine("rule_of_tomorrow", 5, "明天的规则(2次)", 0, 5)) == "明天的规则(2次)"


def test_our_own_reason_for_no_score_is_translated_and_an_error_is_left_alone():
    with translation.override("ru"):
        assert desk.why_unscored(DiagnosisSession(evaluation_error=DIED)).startswith("При каждой попытке")
        assert desk.why_unscored(DiagnosisSession(evaluation_error="KeyError: 'x'")) == "KeyError: 'x'"
        assert desk.why_unscored(DiagnosisSession()) == ""
