"""The evidence rules (DESIGN contract 2), without a database."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sessions_app import rules
from sessions_app.rules import (
    InvocationFacts,
    SessionFacts,
    judge,
    merge_self_evaluation,
    merge_verdict,
    stated_confidence,
)

RETRIEVAL_TOOLS = ["lookup_knowledge"]


def verdict(*invocations: InvocationFacts, status: str = "SUCCESS"):
    return judge(SessionFacts.of(status, invocations, RETRIEVAL_TOOLS))


def tool(*, success=True, name="query_logs", layer=None, l0=None, l1=None) -> InvocationFacts:
    return InvocationFacts(name, success, layer, l0, l1)


@pytest.mark.parametrize(
    ("status", "invocations", "score", "names"),
    [
        pytest.param("SUCCESS", [], 0, ["no_tool_call"], id="no-tool-call"),
        pytest.param("FAILED", [], 0, ["no_tool_call"], id="no-tool-call-comes-first"),
        pytest.param("FAILED", [tool(l0=3)], 0, ["execution_failed"], id="a-failed-run-scores-nothing-else"),
        pytest.param("SUCCESS", [tool()], 30, ["has_successful_tool_call"], id="one-success"),
        pytest.param("SUCCESS", [tool(success=False)], 0, ["all_tool_calls_failed"], id="clamped-at-zero"),
        pytest.param("SUCCESS", [tool(l0=1)], 65, ["has_successful_tool_call", "l0_exact_match"], id="l0-hit-by-count"),
        pytest.param(
            "SUCCESS", [tool(layer="L0")], 65, ["has_successful_tool_call", "l0_exact_match"], id="l0-by-name"
        ),
        pytest.param(
            "SUCCESS", [tool(l1=2)], 50, ["has_successful_tool_call", "l1_semantic_match"], id="l1-hit-by-count"
        ),
        pytest.param(
            "SUCCESS",
            [tool(l0=1), tool(l1=9)],
            65,
            ["has_successful_tool_call", "l0_exact_match"],
            id="l0-takes-the-place-of-l1",
        ),
        pytest.param(
            "SUCCESS",
            [tool(layer="L0+L1", l0=0, l1=0)],
            20,
            ["has_successful_tool_call", "retrieval_no_hit"],
            id="a-count-of-zero-outweighs-the-layer",
        ),
        pytest.param(
            "SUCCESS",
            [tool(layer="L0+L1", l0=0)],
            50,
            ["has_successful_tool_call", "l1_semantic_match"],
            id="each-layer-has-its-own-count",
        ),
        pytest.param(
            "SUCCESS",
            [tool(name="lookup_knowledge")],
            20,
            ["has_successful_tool_call", "retrieval_no_hit"],
            id="a-retrieval-tool-by-name",
        ),
        pytest.param(
            "SUCCESS",
            [tool(success=False, l0=0)],
            0,
            ["retrieval_no_hit", "all_tool_calls_failed"],
            id="no-hit-and-all-failed",
        ),
        pytest.param(
            "SUCCESS",
            [tool(success=False, l0=1)],
            15,
            ["l0_exact_match", "all_tool_calls_failed"],
            id="a-hit-counts-though-the-call-failed",
        ),
        pytest.param("RUNNING", [tool()], 30, ["has_successful_tool_call"], id="a-running-session-scores-as-it-stands"),
    ],
)
def test_each_rule_applies_when_the_contract_says(status, invocations, score, names):
    result = verdict(*invocations, status=status)
    assert result["evidence_score"] == score
    assert [factor["name"] for factor in result["factors"]] == names


def test_the_designs_own_example_scores_65_with_exactly_its_two_factors():
    calls = [tool() for _ in range(19)] + [tool(name="lookup_knowledge", layer="L0", l0=1, l1=0)]
    assert verdict(*calls) == {
        "evidence_score": 65,
        "source": "rule",
        "factors": [
            {"name": "has_successful_tool_call", "delta": 30, "description": "有成功的工具调用(20次)"},
            {"name": "l0_exact_match", "delta": 35, "description": "L0 精确匹配命中"},
        ],
    }


def test_the_zero_rules_carry_no_delta():
    assert verdict()["factors"][0]["delta"] == 0
    assert verdict(tool(), status="FAILED")["factors"][0]["delta"] == 0


invocations = st.builds(
    InvocationFacts,
    tool_name=st.sampled_from(["lookup_knowledge", "query_logs", "search"]),
    success=st.booleans(),
    retrieval_layer=st.sampled_from([None, "L0", "L1", "L0+L1"]),
    l0_match_count=st.none() | st.integers(0, 5),
    l1_match_count=st.none() | st.integers(0, 5),
)


@given(
    status=st.sampled_from(["PENDING", "RUNNING", "SUCCESS", "FAILED"]),
    rows=st.lists(invocations, max_size=12),
    seed=st.randoms(use_true_random=False),
)
def test_any_mix_in_any_order_scores_the_same_and_adds_up(status, rows, seed):
    shuffled = rows.copy()
    seed.shuffle(shuffled)
    first, second = verdict(*rows, status=status), verdict(*shuffled, status=status)
    assert first == second
    total = sum(factor["delta"] for factor in first["factors"])
    assert first["evidence_score"] == max(0, min(100, total))
    assert first["factors"], "a score without a reason tells nobody anything"
    names = {factor["name"] for factor in first["factors"]}
    assert not {"l0_exact_match", "l1_semantic_match"} <= names
    assert not {"has_successful_tool_call", "all_tool_calls_failed"} <= names
    assert len(names) == 1 or not names & {"no_tool_call", "execution_failed"}


def test_the_verdict_goes_over_what_the_agent_said_which_stays():
    said = {"confidence": 90, "reasoning": "both dashboards agree", "llm_opinion": {"has_root_cause": True}}
    merged = merge_verdict(said, verdict(tool()))
    assert merged["confidence"] == 90
    assert merged["llm_opinion"] == {"has_root_cause": True}
    assert merged["evidence_score"] == 30


def test_an_agent_cannot_write_the_rules_keys():
    stored = {"evidence_score": 30, "source": "rule", "factors": []}
    merged = merge_self_evaluation(stored, {"evidence_score": 100, "source": "me", "factors": [1], "confidence": 5})
    assert merged == {"evidence_score": 30, "source": "rule", "factors": [], "confidence": 5}


@pytest.mark.parametrize(
    ("said", "confidence"),
    [(None, None), ({}, None), ({"confidence": 81}, 81.0), ({"confidence": 0}, 0.0), ({"confidence": "81"}, None),
     ({"confidence": True}, None), ({"confidence": 101}, None), ({"confidence": [1]}, None)],
)  # fmt: skip
def test_a_confidence_is_a_number_of_percent_or_none(said, confidence):
    assert stated_confidence(said) == confidence


@pytest.mark.parametrize(
    ("applied", "gains"),
    [
        pytest.param(
            ["no_tool_call"],
            [("l0_exact_match", 65), ("l1_semantic_match", 50), ("has_successful_tool_call", 30)],
            id="nothing-was-called",
        ),
        pytest.param(
            ["has_successful_tool_call", "retrieval_no_hit"],
            [("l0_exact_match", 45), ("l1_semantic_match", 30)],
            id="found-nothing",
        ),
        pytest.param(
            ["all_tool_calls_failed"],
            [("l0_exact_match", 65), ("l1_semantic_match", 50), ("has_successful_tool_call", 30)],
            id="all-failed",
        ),
        pytest.param(["has_successful_tool_call", "l1_semantic_match"], [("l0_exact_match", 15)], id="by-meaning"),
        pytest.param(["has_successful_tool_call", "l0_exact_match"], [], id="nothing-left-to-gain"),
        pytest.param(["execution_failed"], [], id="a-failed-run-gains-nothing"),
    ],
)
def test_what_would_have_raised_a_score(applied, gains):
    assert rules.possible_gains(applied) == gains
