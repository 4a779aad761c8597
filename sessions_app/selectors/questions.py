"""The six questions of the design (section 5.1 of the session storage document), answered from the tables.

The fourth, a session's decision chain in order, is `selectors.chain.decision_chain`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

from django.conf import settings
from django.db.models import Count, Q, QuerySet, Sum

from sessions_app import rules
from sessions_app.models import DiagnosisSession, ToolInvocation, Verdict
from sessions_app.selectors.chain import decision_chain
from sessions_app.selectors.slices import Average, Rate, Slice

__all__ = [
    "Retrievals",
    "StepDuration",
    "ToolUse",
    "confident_but_rejected",
    "decision_chain",
    "retrievals",
    "step_durations",
    "tools_of_session",
]


class ToolUse(NamedTuple):
    """One tool in one session."""

    tool_name: str
    calls: int
    failed: int
    duration_ms: int | None  # of all calls that said how long they took


def tools_of_session(session_id: str) -> list[ToolUse]:
    """1. Which tools did a session use, and how often? By name; empty for a session without any."""
    tools: Any = (
        ToolInvocation.objects.of(session_id)
        .order_by("tool_name")
        .values_list("tool_name")
        .annotate(calls=Count("id"), failed=Count("id", filter=Q(success=False)), duration=Sum("duration_ms"))
    )
    return [ToolUse(*row) for row in tools]


@dataclass(frozen=True, slots=True)
class Retrievals:
    """2. Where did the retrievals hit, and 5. how many were cut off? The first five kinds add up to all of them."""

    l0_only: int
    l1_only: int
    both: int
    miss: int  # said where it looked or how much it found, and found nothing
    unsaid: int  # a call of a retrieval tool that said neither
    truncated: int

    @property
    def total(self) -> int:
        """All retrievals."""
        return self.l0_only + self.l1_only + self.both + self.miss + self.unsaid

    @property
    def l0_hit_rate(self) -> Rate:
        """Share of retrievals that hit by exact key."""
        return Rate(self.l0_only + self.both, self.total)

    @property
    def truncation_rate(self) -> Rate:
        """Share of retrievals whose result was cut off."""
        return Rate(self.truncated, self.total)


def retrievals(of: Slice) -> Retrievals:
    """2 and 5. What counts as a retrieval and as a hit is said by `rules`, as for the evidence score."""
    l0, l1 = rules.hits("L0"), rules.hits("L1")
    said_nothing = ~Q(retrieval_layer__gt="") & Q(l0_match_count=None, l1_match_count=None)
    counts = (
        of.invocations()
        .filter(rules.is_retrieval(settings.RETRIEVAL_TOOLS))
        .aggregate(
            total=Count("*"),
            l0=Count("pk", filter=l0),
            l1=Count("pk", filter=l1),
            both=Count("pk", filter=l0 & l1),
            unsaid=Count("pk", filter=said_nothing),
            truncated=Count("pk", filter=Q(is_truncated=True)),
        )
    )
    l0_only, l1_only = counts["l0"] - counts["both"], counts["l1"] - counts["both"]
    hit = l0_only + l1_only + counts["both"]
    return Retrievals(
        l0_only=l0_only,
        l1_only=l1_only,
        both=counts["both"],
        miss=counts["total"] - hit - counts["unsaid"],
        unsaid=counts["unsaid"],
        truncated=counts["truncated"],
    )


class StepDuration(NamedTuple):
    """How long one agent thinks."""

    agent_name: str
    duration_ms: Average


def step_durations(of: Slice) -> list[StepDuration]:
    """3. How long does a step take on average, agent by agent? By name; agents that never said are left out."""
    rows: Any = (
        of.steps()
        .exclude(duration_ms=None)
        .order_by("agent_name")
        .values_list("agent_name")
        .annotate(total=Sum("duration_ms"), count=Count("id"))
    )
    return [StepDuration(name, Average(total, count)) for name, total, count in rows]


def confident_but_rejected(of: Slice) -> QuerySet[DiagnosisSession]:
    """6. Which sessions were more than 80 % sure of themselves, and yet rejected? Newest first."""
    return (
        of.sessions()
        .filter(confidence__gt=rules.CONFIDENT_ABOVE, feedback=Verdict.NOT_USEFUL)
        .order_by("-created_at", "-id")
    )
