"""What a caller says of a session, in our own names: the input of the one writer, whatever the door.

Every value may be missing or None, which means "not said".
"""

from __future__ import annotations

import hashlib
import uuid
from collections.abc import Iterator
from datetime import datetime
from typing import Any, NamedTuple, NotRequired, TypedDict


class StepKey(NamedTuple):
    """A step's place in its session."""

    agent_name: str
    step_index: int


class InvocationData(TypedDict):
    """What one tool invocation says. Fields as the columns of `tool_invocation`, but for the first few."""

    tool_name: str
    invocation_id: NotRequired[str | None]  # else its place in its step, else a new one each time
    step: NotRequired[StepKey | None]  # the step that asked, where it is not nested in one
    output: NotRequired[str | None]  # whole: kept are its length and the first 500 characters
    input_params: NotRequired[Any]
    output_preview: NotRequired[str | None]
    output_length: NotRequired[int | None]
    retrieval_layer: NotRequired[str | None]
    l0_match_count: NotRequired[int | None]
    l1_match_count: NotRequired[int | None]
    is_truncated: NotRequired[bool | None]
    retrieval_details: NotRequired[Any]
    duration_ms: NotRequired[int | None]
    success: NotRequired[bool | None]
    error_message: NotRequired[str | None]
    started_at: NotRequired[datetime | None]


class StepData(TypedDict):
    """What one step says. Fields as the columns of `agent_step`, but for the first few."""

    agent_name: str
    step_index: int
    parent_step: NotRequired[StepKey | None]
    tool_invocations: NotRequired[list[InvocationData]]
    model_input: NotRequired[Any]
    model_output: NotRequired[Any]
    thought: NotRequired[str | None]
    has_tool_call: NotRequired[bool | None]
    duration_ms: NotRequired[int | None]
    token_count: NotRequired[int | None]
    input_tokens: NotRequired[int | None]
    output_tokens: NotRequired[int | None]
    model_name: NotRequired[str | None]
    span_id: NotRequired[str | None]
    started_at: NotRequired[datetime | None]


class SessionData(TypedDict):
    """What one call says of one session. Fields as the columns of `diagnosis_session`, but for the first few."""

    session_id: str
    self_evaluation: NotRequired[dict[str, Any] | None]  # the agent's own; the rules' keys are left out
    steps: NotRequired[list[StepData]]
    tool_invocations: NotRequired[list[InvocationData]]
    is_live: NotRequired[bool]  # our clock may stand in for a missing start or end
    is_sanitised: NotRequired[bool]
    # Of a session that is derived from spans: the ids of all spans known. Its steps and invocations then stand for
    # those spans exactly: their rows take these values, empty ones too, and rows of these spans that are not here go.
    span_ids: NotRequired[list[str]]
    former: NotRequired[SessionData]  # what the spans known before told; where it still stands, it goes with them
    query: NotRequired[str | None]
    status: NotRequired[str | None]
    agent_flow: NotRequired[str | None]
    answer: NotRequired[str | None]
    agent_id: NotRequired[str | None]
    conversation_id: NotRequired[str | None]
    user_ref: NotRequired[str | None]
    consent: NotRequired[bool | None]
    started_at: NotRequired[datetime | None]
    finished_at: NotRequired[datetime | None]
    metadata: NotRequired[dict[str, Any] | None]
    total_duration_ms: NotRequired[int | None]
    total_token_count: NotRequired[int | None]
    step_count: NotRequired[int | None]
    tool_call_count: NotRequired[int | None]


class PlacedInvocation(NamedTuple):
    """An invocation with its identity and the step that asked for it."""

    invocation_id: str
    step: StepKey | None
    data: InvocationData


def placed_invocations(item: SessionData) -> Iterator[PlacedInvocation]:
    """All invocations of an item. One without an id is known by its place in its step, or in the session."""
    for step in item.get("steps", ()):
        key = StepKey(step["agent_name"], step["step_index"])
        for position, data in enumerate(step.get("tool_invocations", ())):
            yield PlacedInvocation(data.get("invocation_id") or _place(key, position), data.get("step") or key, data)
    for position, data in enumerate(item.get("tool_invocations", ())):
        caller = data.get("step")
        # Not by its step: the one nested there at the same position is another.
        yield PlacedInvocation(data.get("invocation_id") or f"place:session:{position}", caller, data)


def _place(step: StepKey, position: int) -> str:
    """An id of at most 64 ASCII characters; the agent's name may be of any script, so it goes in as a digest."""
    agent = hashlib.sha256(step.agent_name.encode()).hexdigest()[:16]
    return f"place:{agent}:{step.step_index}:{position}"


def new_invocation_id() -> str:
    """An id for an invocation that is sent on its own without one: such a call is a new one each time."""
    return f"auto:{uuid.uuid4().hex}"


def step_keys(item: SessionData) -> Iterator[StepKey]:
    """Every step an item speaks of."""
    for step in item.get("steps", ()):
        yield StepKey(step["agent_name"], step["step_index"])
        if parent := step.get("parent_step"):
            yield parent
    for invocation in placed_invocations(item):
        if invocation.step:
            yield invocation.step
