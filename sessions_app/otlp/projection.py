"""Spans as one session. A pure function of the spans known so far, so the order of their arrival cannot matter.

- Agents are named by the nearest agent span above. Model spans are steps, numbered by their start within their agent;
  a model span inside another one is the same call, told by a second instrumentation: its facts fill gaps.
- A tool or retriever span is an invocation of the model call above it; else of the step whose output asked for its
  call id; else of the step its agent took last before.
- The outermost agent (else chain, else model) span gives question, answer, status and times. Where it carries no text,
  the first question to a model and the last answer of one stand in.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from sessions_app.otlp.dialects import AGENT, CHAIN, MODEL, RETRIEVER, TOOL, Message, SpanFacts
from sessions_app.records import InvocationData, SessionData, StepData, StepKey

AGENT_NAME_CHARS = 32
TOOL_NAME_CHARS = 64
UNNAMED_AGENT = "agent"

Spans = Mapping[str, SpanFacts]
"""All spans of one session by id; `p` names a parent among them, or one that is not known."""


def project(session_id: str, spans: Spans) -> SessionData | None:
    """The session these spans tell of; None while none of them is of an agent, model or tool."""
    tree = _Tree(spans)
    if not tree.order:
        return None
    root_id = tree.root()
    root: SpanFacts = spans[root_id] if root_id else {}
    steps = _steps(tree)
    loose = _place_tools(tree, steps)
    ordered = sorted(steps.values(), key=lambda step: step.rank)
    session: SessionData = {
        "session_id": session_id,
        "query": _question(root, ordered),
        "answer": _answer(root, ordered),
        "status": ("FAILED" if root.get("failed") else "SUCCESS") if root else None,
        "started_at": _moment(root["s"] if root else min(spans[key]["s"] for key in tree.order)),
        "finished_at": _moment(root["e"]) if root else None,
        "agent_id": _first(tree, "agent_id"),
        "agent_flow": _first(tree, "agent_flow"),
        "conversation_id": _first_of(spans, "conversation"),
        "user_ref": _first(tree, "user"),
        "self_evaluation": _self_evaluation(tree),
        "metadata": _metadata(tree, root, ordered),
        "is_sanitised": any(spans[key].get("is_sanitised") for key in tree.order),
        "steps": [step.data for step in ordered],
        "tool_invocations": loose,
        "span_ids": list(spans),
    }
    if any(spans[key].get("consent") is False for key in tree.order):
        session["consent"] = False
    return session


def explicit_session_id(spans: Spans) -> str | None:
    """The id that the spans themselves give the session; the earliest span's where they disagree."""
    named = [(facts["s"], key) for key, facts in spans.items() if facts.get("session_id")]
    return spans[min(named)[1]]["session_id"] if named else None


class _Tree:
    """The spans that count, and who stands above whom when all others are left out."""

    def __init__(self, spans: Spans) -> None:
        self.spans = spans
        counted = [key for key, facts in spans.items() if facts.get("k")]
        self.order = sorted(counted, key=lambda key: (spans[key]["s"], key))
        self._above: dict[str, str | None] = {}

    def kind(self, key: str) -> str:
        return self.spans[key]["k"]

    def above(self, key: str) -> str | None:
        """The nearest span above that counts."""
        if key not in self._above:
            seen = {key}
            parent = self.spans[key]["p"]
            while parent in self.spans and parent not in seen and not self.spans[parent].get("k"):
                seen.add(parent)
                parent = self.spans[parent]["p"]
            self._above[key] = parent if parent in self.spans and parent not in seen else None
        return self._above[key]

    def lineage(self, key: str) -> list[str]:
        """All spans above that count, the nearest first; a circle of parents ends where it closes."""
        found: list[str] = []
        seen = {key}
        above = self.above(key)
        while above is not None and above not in seen:
            seen.add(above)
            found.append(above)
            above = self.above(above)
        return found

    def root(self) -> str | None:
        """The outermost agent, else chain; else the trace's own first span; else a model call on its own.

        None while nothing tells when the run was over.
        """
        for kind in (AGENT, CHAIN):
            if tops := self._outermost(kind):
                return tops[0]
        parentless = [key for key, facts in self.spans.items() if not facts["p"] and not facts.get("k")]
        if parentless:
            return min(parentless, key=lambda key: (self.spans[key]["s"], key))
        models = self._outermost(MODEL)
        return models[0] if len(models) == 1 else None

    def _outermost(self, kind: str) -> list[str]:
        """The spans of a kind that have none of the same kind above them, in order."""
        return [
            key
            for key in self.order
            if self.kind(key) == kind and not any(self.kind(above) == kind for above in self.lineage(key))
        ]

    def agent_of(self, key: str) -> str:
        """The id of the nearest agent span above, "" for none."""
        return next((above for above in self.lineage(key) if self.kind(above) == AGENT), "")

    def agent_name(self, key: str) -> str:
        """The full name of the agent a span belongs to."""
        own = self.spans[key].get("agent")
        if own:
            return own
        agent = key if self.kind(key) == AGENT else self.agent_of(key)
        if agent:
            facts = self.spans[agent]
            return facts.get("agent") or facts.get("name", "").removeprefix("invoke_agent ").strip() or UNNAMED_AGENT
        return self.spans[key].get("service") or UNNAMED_AGENT


@dataclass(slots=True)
class _Step:
    """A step in the making."""

    data: StepData
    key: StepKey
    rank: tuple[int, str]  # start, span id: the order of the chain
    agent: str  # id of its agent span
    full_name: str
    calls: set[str]  # ids of the tool calls it asked for
    question: list[Message]
    output: list[Message]


def _steps(tree: _Tree) -> dict[str, _Step]:
    """Outermost model spans by id, as steps."""
    inner: dict[str, list[str]] = {}
    outer: list[str] = []
    for key in tree.order:
        if tree.kind(key) != MODEL:
            continue
        top = key
        for above in tree.lineage(key):
            if tree.kind(above) != MODEL:
                break
            top = above
        if top == key:
            outer.append(key)
        else:
            inner.setdefault(top, []).append(key)
    counters: dict[str, int] = {}
    steps: dict[str, _Step] = {}
    for key in outer:
        full_name = tree.agent_name(key)
        name = short_name(full_name, AGENT_NAME_CHARS)
        index = counters.get(name, 0)
        counters[name] = index + 1
        facts = _merged(tree.spans, key, inner.get(key, []))
        steps[key] = _step(key, facts, StepKey(name, index), tree.agent_of(key), full_name)
    for key, step in steps.items():
        parent = _calling_step(tree, key, steps)
        step.data["parent_step"] = parent.key if parent else None
    return steps


def _step(key: str, facts: SpanFacts, place: StepKey, agent: str, full_name: str) -> _Step:
    output = facts.get("output", [])
    calls = [call for message in output for call in message.get("tool_calls", [])]
    text = "\n".join(message["content"] for message in output if message["content"])
    tokens = facts.get("total_tokens")
    data: StepData = {
        "agent_name": place.agent_name,
        "step_index": place.step_index,
        "span_id": key if len(key) <= 64 else None,  # noqa: PLR2004
        "model_name": facts.get("model"),
        "model_input": facts.get("input"),
        "model_output": {"text": text, **({"tool_calls": calls} if calls else {})} if output else None,
        "thought": facts.get("thought"),
        "has_tool_call": bool(calls),
        "duration_ms": _duration_ms(facts),
        "input_tokens": facts.get("input_tokens"),
        "output_tokens": facts.get("output_tokens"),
        "started_at": _moment(facts["s"]),
        "tool_invocations": [],
    }
    if "input_tokens" not in facts and "output_tokens" not in facts:
        data["token_count"] = tokens
    asked = {call["id"] for call in calls if call["id"]}
    return _Step(data, place, (facts["s"], key), agent, full_name, asked, facts.get("input", []), output)


def _merged(spans: Spans, outer: str, inner: list[str]) -> SpanFacts:
    """The outer span's facts, with what only the inner ones know. Tokens are the outer's where it counts any."""
    merged: dict[str, Any] = dict(spans[outer])
    tokens = ("input_tokens", "output_tokens", "total_tokens")
    if not any(name in merged for name in tokens):
        for name in tokens:
            counts = [spans[key][name] for key in inner if name in spans[key]]  # type: ignore[literal-required]
            if counts:
                merged[name] = sum(counts)
    for key in inner:
        for name, value in spans[key].items():
            if name not in tokens and name not in ("p", "s", "e", "k", "failed", "error"):
                merged.setdefault(name, value)
    facts: Any = merged
    result: SpanFacts = facts
    return result


def _calling_step(tree: _Tree, key: str, steps: Mapping[str, _Step]) -> _Step | None:
    """The step of another agent under which this step's agent was called."""
    agent = tree.agent_of(key)
    if not agent:
        return None
    for above in tree.lineage(agent):
        if above in steps:
            return steps[above]
    caller = tree.agent_of(agent)
    return _last_before(steps, caller, tree.spans[agent]["s"]) if caller else None


def _last_before(steps: Mapping[str, _Step], agent: str, moment: int) -> _Step | None:
    """The step that an agent took last before a moment."""
    own = [step for step in steps.values() if step.agent == agent and step.rank[0] <= moment]
    return max(own, key=lambda step: step.rank) if own else None


def _place_tools(tree: _Tree, steps: Mapping[str, _Step]) -> list[InvocationData]:
    """Put each invocation under its step; returns those without one."""
    loose: list[InvocationData] = []
    for key in tree.order:
        if tree.kind(key) not in (TOOL, RETRIEVER):
            continue
        facts = tree.spans[key]
        step = _asking_step(tree, key, steps)
        data = _invocation(key, facts)
        if step is None:
            loose.append(data)
        else:
            step.data["tool_invocations"].append(data)
            step.data["has_tool_call"] = True
    return loose


def _asking_step(tree: _Tree, key: str, steps: Mapping[str, _Step]) -> _Step | None:
    facts = tree.spans[key]
    agent = tree.agent_of(key)
    for above in tree.lineage(key):
        if above == agent:
            break
        if above in steps:
            return steps[above]
    call_id = facts.get("call_id")
    if call_id:
        asked = [step for step in steps.values() if call_id in step.calls]
        if asked:
            return min(asked, key=lambda step: step.rank)
    return _last_before(steps, agent, facts["s"])


def _invocation(key: str, facts: SpanFacts) -> InvocationData:
    failed = bool(facts.get("failed"))
    details: dict[str, Any] | None = facts.get("retrieval_details")
    tool = facts.get("tool", "")
    name = short_name(tool, TOOL_NAME_CHARS)
    if name != tool:
        details = {**(details or {}), "tool_name": tool}
    return {
        "invocation_id": key,
        "tool_name": name,
        "input_params": facts.get("arguments", {}),
        "output_preview": facts.get("result"),
        "output_length": facts.get("result_length"),
        "retrieval_layer": facts.get("layer"),
        "l0_match_count": facts.get("l0"),
        "l1_match_count": facts.get("l1"),
        "is_truncated": facts.get("truncated", False),
        "retrieval_details": details,
        "duration_ms": _duration_ms(facts),
        "success": not failed,
        "error_message": facts.get("error") if failed else None,
        "started_at": _moment(facts["s"]),
    }


# -- the session's own facts -----------------------------------------------------------------------------------------


def _question(root: SpanFacts, steps: list[_Step]) -> str:
    for messages in (root.get("input", []), *(step.question for step in steps)):
        asked = [message["content"] for message in messages if message["role"] == "user" and message["content"]]
        if asked:
            return asked[-1]
    return ""


def _answer(root: SpanFacts, steps: list[_Step]) -> str:
    for messages in (root.get("output", []), *(step.output for step in reversed(steps))):
        said = [message["content"] for message in messages if message["content"]]
        if said:
            return said[-1]
    return ""


def _self_evaluation(tree: _Tree) -> dict[str, Any]:
    merged: dict[str, Any] = {}
    for key in reversed(tree.order):  # the earliest, which is the outermost, has the last word
        merged |= tree.spans[key].get("self_evaluation", {})
    return merged


def _metadata(tree: _Tree, root: SpanFacts, steps: list[_Step]) -> dict[str, Any]:
    merged: dict[str, Any] = {}
    for key in reversed(tree.order):
        merged |= tree.spans[key].get("metadata", {})
    if root.get("error"):
        merged["error"] = root["error"]
    names = {step.key.agent_name: step.full_name for step in steps if step.key.agent_name != step.full_name}
    if names:
        merged["agent_names"] = names
    return merged


def _first(tree: _Tree, name: str) -> Any:
    """What the earliest span that says it says."""
    return next((tree.spans[key][name] for key in tree.order if name in tree.spans[key]), None)  # type: ignore[literal-required]


def _first_of(spans: Spans, name: str) -> Any:
    """The same over all spans, those too that are only links."""
    said = [(facts["s"], key) for key, facts in spans.items() if name in facts]
    return spans[min(said)[1]][name] if said else None  # type: ignore[literal-required]


# -- values ----------------------------------------------------------------------------------------------------------


def short_name(name: str, limit: int) -> str:
    """`name`, or its beginning with a mark and a digest: two long names stay two."""
    name = name.strip() or UNNAMED_AGENT
    if len(name) <= limit:
        return name
    digest = hashlib.sha256(name.encode()).hexdigest()[:7]
    return f"{name[: limit - 8]}…{digest}"


def _duration_ms(facts: SpanFacts) -> int | None:
    if not facts["s"] or not facts["e"]:
        return None
    return min((facts["e"] - facts["s"]) // 1_000_000, 2**31 - 1)


def _moment(ns: int) -> datetime | None:
    """A time in UTC, to the microsecond; None where a clock said nothing."""
    return datetime.fromtimestamp(ns // 1000 / 1_000_000, tz=UTC) if ns else None
