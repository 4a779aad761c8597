"""One session with its decision chain, in order."""

from __future__ import annotations

from django.db.models import Prefetch

from sessions_app.errors import UnknownObjectError
from sessions_app.models import AgentStep, DiagnosisSession, ToolInvocation


def session_with_chain(session_id: str) -> DiagnosisSession:
    """The session with `chain` (steps in order, each with its invocations prefetched) and `loose_invocations`.

    The order is that of the steps' start; where none is given, that of arrival. Four queries, whatever the size.
    Raises UnknownObjectError.
    """
    session = DiagnosisSession.objects.filter(session_id=session_id).first()
    if session is None:
        raise UnknownObjectError(f"There is no session {session_id}.")
    session.chain = decision_chain(session_id)  # type: ignore[attr-defined]
    session.loose_invocations = list(ToolInvocation.objects.of(session_id).filter(step=None))  # type: ignore[attr-defined]
    return session


def decision_chain(session_id: str) -> list[AgentStep]:
    """All steps of a session in the order in which they happened, each with its invocations in theirs."""
    steps = AgentStep.objects.of(session_id).select_related("parent_step")
    invocations = ToolInvocation.objects.order_by("started_at", "id")
    chain = list(steps.prefetch_related(Prefetch("tool_invocations", invocations)))
    return sorted(chain, key=_moment)


def _moment(step: AgentStep) -> tuple[bool, float, int]:
    """Steps without a start keep their order of arrival, after those with one."""
    return (step.started_at is None, step.started_at.timestamp() if step.started_at else 0.0, step.pk)
