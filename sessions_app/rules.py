"""Evidence rules (DESIGN contract 2): how sufficiently evidence was gathered, 0-100. Pure: no queries, no clock.

One table, read top to bottom. A rule with `is_final` ends the reading with score 0; all others add their delta.
The sum is clamped to 0-100. Source: the design document "证据评分与用户反馈架构", section two.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass, replace
from typing import NamedTuple, NotRequired, TypedDict

from django.db.models import Q

MIN_SCORE, MAX_SCORE = 0, 100

STRONG, PARTIAL, WEAK = "strong", "partial", "weak"
BANDS: tuple[tuple[str, int], ...] = ((STRONG, 60), (PARTIAL, 30), (WEAK, MIN_SCORE))
"""How people read a score, and where each band begins: an exact hit is strong, tools that ran are partial."""

CONFIDENT_ABOVE = 80
"""From the design's question: which sessions were this sure of themselves, and yet rejected?"""

MAX_TOOLS = 10_000
"""Most tools that one session can have proposed; more is no count of tools, and would drown all others in a sum."""

RULE_KEYS = ("evidence_score", "source", "factors", "llm_opinion")
"""Keys of `self_evaluation` that are ours. An agent's own values under these names are not taken over."""


class Factor(TypedDict):
    """One rule that applied."""

    name: str
    delta: int
    description: str  # in the words of the design, Chinese


class RuleVerdict(TypedDict):
    """What the rules write into `self_evaluation`."""

    evidence_score: int
    source: str
    factors: list[Factor]
    llm_opinion: NotRequired[object]  # reserved: a separate voice that never changes the score


@dataclass(frozen=True, slots=True)
class InvocationFacts:
    """What one `tool_invocation` row says about evidence."""

    tool_name: str
    success: bool
    retrieval_layer: str | None = None  # "L0", "L1", "L0+L1"
    l0_match_count: int | None = None
    l1_match_count: int | None = None

    def is_retrieval(self, retrieval_tools: Collection[str]) -> bool:
        """A retrieval has a layer, a match count, or the name of a retrieval tool."""
        return (
            bool(self.retrieval_layer)
            or self.l0_match_count is not None
            or self.l1_match_count is not None
            or self.tool_name in retrieval_tools
        )

    def hits(self, layer: str) -> bool:
        """Whether `layer` ("L0" or "L1") was hit: by its count, or, where none was given, by the layer's name."""
        count = self.l0_match_count if layer == "L0" else self.l1_match_count
        if count is None:
            return layer in (self.retrieval_layer or "").split("+")
        return count > 0


def is_retrieval(retrieval_tools: Collection[str]) -> Q:
    """`InvocationFacts.is_retrieval` as a condition on `tool_invocation`."""
    return (
        Q(retrieval_layer__gt="")
        | Q(l0_match_count__isnull=False)
        | Q(l1_match_count__isnull=False)
        | Q(tool_name__in=list(retrieval_tools))
    )


def hits(layer: str) -> Q:
    """`InvocationFacts.hits` as a condition on `tool_invocation`."""
    count = f"{layer.lower()}_match_count"
    return Q((f"{count}__gt", 0)) | Q((f"{count}__isnull", True), retrieval_layer__in=(layer, "L0+L1"))


@dataclass(frozen=True, slots=True)
class SessionFacts:
    """All that the rules may know of a session."""

    is_failed: bool
    total: int
    succeeded: int
    retrievals: int
    l0_hits: int
    l1_hits: int

    @classmethod
    def of(cls, status: str, invocations: Iterable[InvocationFacts], retrieval_tools: Collection[str]) -> SessionFacts:
        """Add up the rows; their order does not matter."""
        rows = list(invocations)
        return cls(
            is_failed=status == "FAILED",
            total=len(rows),
            succeeded=sum(row.success for row in rows),
            retrievals=sum(row.is_retrieval(retrieval_tools) for row in rows),
            l0_hits=sum(row.hits("L0") for row in rows),
            l1_hits=sum(row.hits("L1") for row in rows),
        )


@dataclass(frozen=True, slots=True)
class Rule:
    """One line of the table."""

    name: str
    delta: int
    applies: Callable[[SessionFacts], bool]
    describe: Callable[[SessionFacts], str]
    is_final: bool = False


RULES: tuple[Rule, ...] = (
    Rule("no_tool_call", 0, lambda f: f.total == 0, lambda _: "无任何工具调用", is_final=True),
    Rule("execution_failed", 0, lambda f: f.is_failed, lambda _: "执行失败", is_final=True),
    Rule("has_successful_tool_call", 30, lambda f: f.succeeded > 0, lambda f: f"有成功的工具调用({f.succeeded}次)"),
    Rule("l0_exact_match", 35, lambda f: f.l0_hits > 0, lambda _: "L0 精确匹配命中"),
    Rule("l1_semantic_match", 20, lambda f: f.l0_hits == 0 and f.l1_hits > 0, lambda _: "L1 语义匹配命中"),
    Rule(
        "retrieval_no_hit",
        -10,
        lambda f: f.retrievals > 0 and f.l0_hits == 0 and f.l1_hits == 0,
        lambda f: f"有检索调用但无任何命中({f.retrievals}次)",
    ),
    Rule("all_tool_calls_failed", -20, lambda f: f.succeeded == 0, lambda f: f"全部工具调用失败({f.total}次)"),
)


def band_of(score: int) -> str:
    """The band a score falls into."""
    return next(band for band, lowest in BANDS if score >= lowest)


def judge(facts: SessionFacts) -> RuleVerdict:
    """Apply the table. The factors add up to the score before the clamp."""
    factors: list[Factor] = []
    for rule in RULES:
        if rule.applies(facts):
            factors.append({"name": rule.name, "delta": rule.delta, "description": rule.describe(facts)})
            if rule.is_final:
                break
    total = sum(factor["delta"] for factor in factors)
    return {"evidence_score": max(MIN_SCORE, min(MAX_SCORE, total)), "source": "rule", "factors": factors}


class Gain(NamedTuple):
    """A rule that did not apply, and by how much the score would be higher if it had."""

    name: str
    points: int


def possible_gains(applied: Collection[str]) -> list[Gain]:
    """What would have raised a score, by the names of the rules that made it: each alone, the most first.

    A run that failed could have gained nothing: whatever it finds, its score is 0.
    """
    facts = SessionFacts(
        is_failed="execution_failed" in applied,
        total=int("no_tool_call" not in applied),
        succeeded=int("has_successful_tool_call" in applied),
        retrievals=int(any(name in applied for name in ("l0_exact_match", "l1_semantic_match", "retrieval_no_hit"))),
        l0_hits=int("l0_exact_match" in applied),
        l1_hits=int("l1_semantic_match" in applied),
    )
    # What finds something is a call that succeeds.
    success = replace(facts, total=1, succeeded=1)
    better = {
        "has_successful_tool_call": success,
        "l0_exact_match": replace(success, retrievals=1, l0_hits=1),
        "l1_semantic_match": replace(success, retrievals=1, l1_hits=1),
    }
    score = judge(facts)["evidence_score"]
    gains = [Gain(name, judge(facts_then)["evidence_score"] - score) for name, facts_then in better.items()]
    return sorted((gain for gain in gains if gain.points > 0), key=lambda gain: -gain.points)


def merge_verdict(said: dict[str, object] | None, verdict: RuleVerdict) -> dict[str, object]:
    """The rules' verdict over what the agent said of itself, which stays; a model's opinion stays too."""
    return {**(said or {}), **verdict}


def merge_self_evaluation(stored: dict[str, object] | None, sent: dict[str, object]) -> dict[str, object]:
    """What the agent says now over what it said before; the rules' own keys are out of its reach."""
    return {**(stored or {}), **{key: value for key, value in sent.items() if key not in RULE_KEYS}}


def stated_confidence(self_evaluation: dict[str, object] | None) -> float | None:
    """The agent's confidence in percent, when it gave a number from 0 to 100."""
    value = (self_evaluation or {}).get("confidence")
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= 100:  # noqa: PLR2004
        return None
    return float(value)


class Adoption(NamedTuple):
    """How many tools an agent proposed in a session, and how many of them were accepted."""

    proposed: int
    accepted: int


def stated_adoption(self_evaluation: dict[str, object] | None) -> Adoption | None:
    """What the agent said of its tools, when it gave both numbers and 0 ≤ accepted ≤ proposed ≤ 10,000."""
    said = self_evaluation or {}
    proposed, accepted = _whole(said.get("tools_proposed")), _whole(said.get("tools_accepted"))
    if proposed is None or accepted is None or not 0 <= accepted <= proposed <= MAX_TOOLS:
        return None
    return Adoption(proposed, accepted)


def _whole(value: object) -> int | None:
    """A JSON number without a fraction: 4 and 4.0, but not true."""
    if isinstance(value, float) and value.is_integer():
        return int(value)
    return value if isinstance(value, int) and not isinstance(value, bool) else None
