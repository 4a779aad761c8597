"""Spans as one session. A pure function of the spans known so far, so the order of their arrival cannot matter.

- Agents are named by the nearest agent span above. Model spans are steps, numbered by their start within their agent;
  a model span inside another one is the same call, told by a second instrumentation: its facts fill gaps. So is a tool
  span inside one of the same tool.
- A tool or retriever span is an invocation of the model call above it; else of the step whose output asked for its
  call id; else of the step its agent took last before; else of the last one in the nearest span around both.
- A step of an agent that another agent called is a child of the step that called.
- The span that ends the run is the innermost agent or chain around all agents, models and tools; it gives status and
  times. Where several agents stand side by side under none, the first asks, the last answers. Where they carry no text,
  the first question to a model and the last answer of one stand in.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Literal

from sessions_app.otlp.dialects import AGENT, CHAIN, MODEL, RETRIEVER, TOOL, SpanFacts
from sessions_app.otlp.messages import Message, text_of
from sessions_app.otlp.names import short_name
from sessions_app.records import InvocationData, SessionData, StepData, StepKey
from sessions_app.text import is_id

AGENT_NAME_CHARS = 32
TOOL_NAME_CHARS = 64
UNNAMED_AGENT = "agent"
MAX_OBJECT_CHARS = 300_000
MAX_AGENT_NAMES = 100
MAX_LINEAGE = 64
"""How far up the step of a tool is looked for: a bound on the work that a made-up trace can cause."""

Spans = Mapping[str, SpanFacts]
"""All spans of one session by id; `p` names a parent among them, or one that is not known."""

Rank = tuple[int, str]
"""Start and id of a span: the order of the chain."""


def project(session_id: str, spans: Spans) -> SessionData | None:
    """The session these spans tell of; None while none of them is of an agent, model or tool."""
    tree = _Tree(spans)
    if not tree.order:
        return None
    run = _run(tree)
    steps = _steps(tree)
    loose = _place_tools(tree, steps)
    ordered = steps.ordered
    starts = [spans[key]["s"] for key in tree.order if spans[key]["s"]]
    session: SessionData = {
        "session_id": session_id,
        "query": _question(run, ordered),
        "answer": _answer(run, ordered),
        "status": run.status,
        "started_at": _moment(run.start or min(starts, default=0)),
        "finished_at": _moment(run.end),
        "agent_id": _first(tree, "agent_id"),
        "agent_flow": _first(tree, "agent_flow"),
        "conversation_id": _first(tree, "conversation"),
        "user_ref": _first(tree, "user"),
        "self_evaluation": _merged_objects(tree, "self_evaluation"),
        "metadata": _metadata(tree, run, ordered),
        "is_sanitised": any(facts.get("is_sanitised") for facts in spans.values()),
        "steps": [step.data for step in ordered],
        "tool_invocations": loose,
        "span_ids": list(spans),
    }
    if any(facts.get("consent") is False for facts in spans.values()):
        session["consent"] = False
    return session


def explicit_session_id(spans: Spans) -> str | None:
    """The id that the spans themselves give the session; the earliest span's where they disagree."""
    named = [(facts["s"], key) for key, facts in spans.items() if facts.get("session_id")]
    return spans[min(named)[1]]["session_id"] if named else None


# -- who stands above whom -------------------------------------------------------------------------------------------


class _Tree:
    """The spans that count (of agents, chains, models, tools), in order, each with what stands above it.

    All others are only links. Parents that are not known, and the earliest span's in a circle of parents, are none.
    """

    def __init__(self, spans: Spans) -> None:
        self.spans = spans
        counted = [key for key, facts in spans.items() if facts.get("k")]
        self.order = sorted(counted, key=self.rank)
        self.links = sorted((key for key, facts in spans.items() if not facts.get("k")), key=self.rank)
        self._parents = self._without_circles()
        self._above: dict[str, str | None] = {}
        self.depth: dict[str, int] = {}
        self.agent: dict[str, str] = {}  # the nearest agent span above, "" for none
        self.caller: dict[str, str] = {}  # the nearest agent, model or tool span above, "" for none
        self.call: dict[str, str] = {}  # of a model span the outermost one around it that is the same call
        for key in self.order:
            self._look_up(key)

    def rank(self, key: str) -> Rank:
        return (self.spans[key]["s"], key)

    def kind(self, key: str) -> str:
        return self.spans[key].get("k", "")

    def above(self, key: str) -> str | None:
        """The nearest span above that counts."""
        return self._above[key]

    def lineage(self, key: str) -> Iterable[str]:
        """The spans above that count, the nearest first; no more than any agent nests."""
        above = self._above[key]
        for _ in range(MAX_LINEAGE):
            if above is None:
                return
            yield above
            above = self._above[above]

    def outermost(self, *kinds: str) -> list[str]:
        """The spans of these kinds that have none of them above, in order."""
        inside: set[str] = set()
        found: list[str] = []
        for key in sorted(self.order, key=lambda key: self.depth[key]):
            above = self._above[key]
            if above in inside or (above is not None and self.kind(above) in kinds):
                inside.add(key)
            elif self.kind(key) in kinds:
                found.append(key)
        return sorted(found, key=self.rank)

    def common(self, keys: Iterable[str], *kinds: str) -> str | None:
        """The innermost span of these kinds that is around all of `keys` or one of them itself."""
        found: str | None = None
        for number, key in enumerate(keys):
            found = key if number == 0 else self._meet(found, key)
        while found is not None and self.kind(found) not in kinds:
            found = self._above[found]
        return found

    def _meet(self, one: str | None, other: str | None) -> str | None:
        while one != other:
            if one is None or other is None:
                return None
            if self.depth[one] >= self.depth[other]:
                one = self._above[one]
            else:
                other = self._above[other]
        return one

    def _without_circles(self) -> dict[str, str | None]:
        parents = {key: facts["p"] if facts["p"] in self.spans else None for key, facts in self.spans.items()}
        settled: set[str] = set()
        for start in self.spans:
            path: dict[str, None] = {}
            key: str | None = start
            while key is not None and key not in settled and key not in path:
                path[key] = None
                key = parents[key]
            if key is not None and key in path:
                circle = [key]
                while (other := parents[circle[-1]]) is not None and other != key:
                    circle.append(other)
                parents[min(circle, key=self.rank)] = None
            settled.update(path)
        return parents

    def _look_up(self, key: str) -> None:
        """Settle what is above `key` and all on the way up, each once."""
        path: list[str] = []
        current: str | None = key
        while current is not None and current not in self._above:
            path.append(current)
            current = self._parents[current]
        for each in reversed(path):
            parent = self._parents[each]
            above = parent if parent is None or self.kind(parent) else self._above[parent]
            self._above[each] = above
            self.depth[each] = 0 if above is None else self.depth[above] + 1
            if above is None:
                self.agent[each] = self.caller[each] = ""
            else:
                kind = self.kind(above)
                self.agent[each] = above if kind == AGENT else self.agent[above]
                self.caller[each] = above if kind in (AGENT, MODEL, TOOL) else self.caller[above]
            is_inner = self.kind(each) == MODEL and above is not None and self.kind(above) == MODEL
            self.call[each] = self.call[above] if is_inner and above else each

    def agent_name(self, key: str) -> str:
        """The full name of the agent a span belongs to."""
        own = self.spans[key].get("agent")
        if own:
            return own
        agent = key if self.kind(key) == AGENT else self.agent[key]
        if not agent:
            return self.spans[key].get("service") or UNNAMED_AGENT
        facts = self.spans[agent]
        named: str = _AGENT_SPAN.sub(r"\1", facts.get("name", ""))
        return facts.get("agent") or named or UNNAMED_AGENT


_AGENT_SPAN = re.compile(r"^(?:invoke_agent\b\s*|agent_run \[(?=.*\]$))(.*?)\]?$", re.DOTALL)
"""How conventions make the name of an agent's span out of the agent's name."""


# -- the run ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Run:
    """What the spans tell of the run as a whole."""

    asking: list[SpanFacts] = field(default_factory=list)  # that may hold the question, the likeliest first
    answering: list[SpanFacts] = field(default_factory=list)
    start: int = 0
    end: int = 0
    is_known: bool = False  # whether a span tells when the run was over
    failed: bool = False
    error: str = ""

    @property
    def status(self) -> str | None:
        """None while it lasts, or nothing tells."""
        if not self.is_known or not self.end:
            return None
        return "FAILED" if self.failed else "SUCCESS"


def _run(tree: _Tree) -> _Run:
    agents = tree.outermost(AGENT)
    steps = tree.outermost(AGENT, MODEL, TOOL, RETRIEVER)
    around = tree.common(steps or tree.order, AGENT, CHAIN)
    chains = [] if agents else tree.outermost(CHAIN)
    tops = agents or chains
    if around is not None:
        return _run_of([around], [key for key in tops if key != around], tree)
    if tops:
        return _run_of(tops, [], tree)
    parentless = next((key for key in tree.links if not tree.spans[key]["p"]), None)
    if parentless:
        return _run_of([parentless], [], tree)
    models = tree.outermost(MODEL)
    return _run_of(models, [], tree) if len(models) == 1 else _Run()


def _run_of(spans: list[str], inner: list[str], tree: _Tree) -> _Run:
    """Starts with the first of `spans`, ends with the last one to end, which says how. `inner` may help with texts."""
    facts = [tree.spans[key] for key in spans]
    others = [tree.spans[key] for key in inner]
    last = max(facts, key=lambda each: (_end(each) or 2**63, each["s"]))
    starts = [each["s"] for each in facts if each["s"]]
    return _Run(
        asking=[*facts, *others],
        answering=[*reversed(facts), *reversed(others)],
        start=min(starts, default=0),
        end=_end(last),
        is_known=True,
        failed=bool(last.get("failed")),
        error=last.get("error", ""),
    )


# -- steps -----------------------------------------------------------------------------------------------------------


@dataclass(slots=True)
class _Step:
    """A step in the making."""

    data: StepData
    key: StepKey
    rank: Rank
    span: str
    full_name: str
    question: list[Message]
    output: list[Message]


class _Steps:
    """Steps by the id of their span, and by who might have asked for a tool."""

    def __init__(self) -> None:
        self.by_span: dict[str, _Step] = {}
        self._by_call: dict[str, list[_Step]] = {}
        self._by_agent: dict[str, list[_Step]] = {}
        self._inside: dict[str, list[_Step]] = {}
        self.ordered: list[_Step] = []

    def add(self, step: _Step, tree: _Tree) -> None:
        """Take a step; they come in order."""
        self.ordered.append(step)
        self.by_span[step.span] = step
        for message in step.output:
            for call in message.get("tool_calls", ()):
                self._by_call.setdefault(call["id"], []).append(step)
        self._by_agent.setdefault(tree.agent[step.span], []).append(step)
        for above in tree.lineage(step.span):
            self._inside.setdefault(above, []).append(step)

    def asking(self, call_id: str, moment: int) -> _Step | None:
        """The step that asked for a call: the last before a moment, since some models count their calls anew."""
        asked = self._by_call.get(call_id, []) if call_id else []
        return _last_before(asked, moment) or (asked[0] if asked else None)

    def last_of_agent(self, agent: str, moment: int) -> _Step | None:
        """The step that an agent took last before a moment."""
        return _last_before(self._by_agent.get(agent, []), moment)

    def last_around(self, tree: _Tree, key: str) -> _Step | None:
        """The last step before `key` in the nearest span around both."""
        moment = tree.spans[key]["s"]
        for above in tree.lineage(key):
            if step := _last_before(self._inside.get(above, []), moment):
                return step
        return None


def _last_before(steps: list[_Step], moment: int) -> _Step | None:
    place = bisect_right(steps, moment, key=lambda step: step.rank[0])
    return steps[place - 1] if place else None


def _steps(tree: _Tree) -> _Steps:
    """Outermost model spans as steps."""
    inner: dict[str, list[str]] = {}
    outer: list[str] = []
    for key in tree.order:
        if tree.kind(key) == MODEL:
            top = tree.call[key]
            if top == key:
                outer.append(key)
            else:
                inner.setdefault(top, []).append(key)
    counters: dict[str, int] = {}
    steps = _Steps()
    for key in outer:
        full_name = tree.agent_name(key).strip() or UNNAMED_AGENT
        name = short_name(full_name, AGENT_NAME_CHARS)
        index = counters.get(name, 0)
        counters[name] = index + 1
        facts = _merged(tree.spans, key, inner.get(key, []))
        steps.add(_step(key, facts, StepKey(name, index), full_name), tree)
    for step in steps.ordered:
        parent = _calling_step(tree, step.span, steps)
        step.data["parent_step"] = parent.key if parent else None
    return steps


def _step(key: str, facts: SpanFacts, place: StepKey, full_name: str) -> _Step:
    output = facts.get("output", [])
    calls = [call for message in output for call in message.get("tool_calls", [])]
    text = "\n".join(message["content"] for message in output if message["content"])
    data: StepData = {
        "agent_name": place.agent_name,
        "step_index": place.step_index,
        "span_id": key if is_id(key) else None,
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
        data["token_count"] = facts.get("total_tokens")
    return _Step(data, place, (facts["s"], key), key, full_name, facts.get("input", []), output)


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


def _calling_step(tree: _Tree, key: str, steps: _Steps) -> _Step | None:
    """The step of another agent under which this step's agent was called."""
    agent = tree.agent[key]
    above = tree.caller[agent] if agent else ""
    if not above:
        return None
    kind = tree.kind(above)
    if kind == MODEL:
        return steps.by_span[tree.call[above]]
    if kind == TOOL:  # an agent called as a tool
        return _asking_step(tree, above, steps)
    return steps.last_of_agent(above, tree.spans[agent]["s"])


# -- tools -----------------------------------------------------------------------------------------------------------


def _place_tools(tree: _Tree, steps: _Steps) -> list[InvocationData]:
    """Put each invocation under its step; returns those without one."""
    loose: list[InvocationData] = []
    for key, facts in _tools(tree).items():
        step = _asking_step(tree, key, steps)
        data = _invocation(key, facts)
        if step is None:
            loose.append(data)
        else:
            step.data["tool_invocations"].append(data)
            step.data["has_tool_call"] = True
    return loose


def _tools(tree: _Tree) -> dict[str, SpanFacts]:
    """The tool and retriever spans; one inside another of the same tool is the same call, told again."""
    found: dict[str, SpanFacts] = {}
    owners: dict[str, str] = {}
    inner: dict[str, list[str]] = {}
    for key in sorted(tree.order, key=lambda key: tree.depth[key]):
        facts = tree.spans[key]
        if tree.kind(key) not in (TOOL, RETRIEVER):
            continue
        above = tree.above(key)
        if above in owners and tree.spans[above].get("tool") == facts.get("tool"):
            owners[key] = owners[above]
            inner.setdefault(owners[key], []).append(key)
        else:
            owners[key] = key
    for key in tree.order:
        if owners.get(key) == key:
            found[key] = _merged_tool(tree, key, sorted(inner.get(key, []), key=tree.rank))
    return found


def _merged_tool(tree: _Tree, outer: str, inner: list[str]) -> SpanFacts:
    facts = _merged(tree.spans, outer, inner)
    failed = next((tree.spans[key] for key in inner if tree.spans[key].get("failed")), None)
    if failed and not facts.get("failed"):
        facts["failed"] = True
        facts["error"] = failed.get("error", "")
    return facts


def _asking_step(tree: _Tree, key: str, steps: _Steps) -> _Step | None:
    facts = tree.spans[key]
    agent = tree.agent[key]
    for above in tree.lineage(key):
        if above == agent:
            break
        if tree.kind(above) == MODEL:
            return steps.by_span[tree.call[above]]
    asked = steps.asking(facts.get("call_id", ""), facts["s"])
    return asked or steps.last_of_agent(agent, facts["s"]) or steps.last_around(tree, key)


def _invocation(key: str, facts: SpanFacts) -> InvocationData:
    failed = bool(facts.get("failed"))
    details: dict[str, Any] | None = facts.get("retrieval_details")
    tool = facts.get("tool", "").strip() or facts["k"]
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


def _question(run: _Run, steps: list[_Step]) -> str:
    asked = [facts.get("input", []) for facts in run.asking] + [step.question for step in steps]
    for messages in asked:
        found = [message["content"] for message in messages if message["role"] == "user" and message["content"]]
        if found:
            return found[-1]
    return ""


def _answer(run: _Run, steps: list[_Step]) -> str:
    said = [facts.get("output", []) for facts in run.answering] + [step.output for step in reversed(steps)]
    for messages in said:
        found = [message["content"] for message in messages if message["content"]]
        if found:
            return found[-1]
    return ""


def _merged_objects(tree: _Tree, name: Literal["metadata", "self_evaluation"]) -> dict[str, Any]:
    """What all spans say; of what several say the earliest, which is the outermost, has the word."""
    merged: dict[str, Any] = {}
    left = MAX_OBJECT_CHARS
    for key in (*tree.order, *tree.links):
        for field_name, value in tree.spans[key].get(name, {}).items():
            chars = len(field_name) + len(text_of(value))
            if field_name not in merged and chars <= left:
                merged[field_name] = value
                left -= chars
    return merged


def _metadata(tree: _Tree, run: _Run, steps: list[_Step]) -> dict[str, Any]:
    merged = _merged_objects(tree, "metadata")
    if run.error:
        merged["error"] = run.error
    names = {step.key.agent_name: step.full_name for step in steps if step.key.agent_name != step.full_name}
    if names:
        merged["agent_names"] = dict(list(names.items())[:MAX_AGENT_NAMES])
    return merged


def _first(tree: _Tree, name: str) -> Any:
    """What the earliest span that says it says; mere links come after all others."""
    for key in (*tree.order, *tree.links):
        if name in tree.spans[key]:
            return tree.spans[key][name]  # type: ignore[literal-required]
    return None


# -- values ----------------------------------------------------------------------------------------------------------


def _duration_ms(facts: SpanFacts) -> int | None:
    if not facts["s"] or not facts["e"]:
        return None
    return min((_end(facts) - facts["s"]) // 1_000_000, 2**31 - 1)


def _end(facts: SpanFacts) -> int:
    """When a span ended, never before it started; 0 while it lasts."""
    return max(facts["e"], facts["s"]) if facts["e"] else 0


def _moment(ns: int) -> datetime | None:
    """A time in UTC, to the microsecond; None where a clock said nothing."""
    return datetime.fromtimestamp(ns // 1000 / 1_000_000, tz=UTC) if ns else None
