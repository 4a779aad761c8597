"""One session with its decision chain, in order: whole for the API, and as a bounded timeline for the page."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from django.conf import settings
from django.db.models import Prefetch, Q, QuerySet, TextField
from django.db.models.functions import MD5, Cast, Left
from django.utils.translation import gettext

from sessions_app import rules
from sessions_app.errors import UnknownObjectError
from sessions_app.models import AgentStep, DiagnosisSession, ToolInvocation

# -- whole, for the API ----------------------------------------------------------------------------------------------


def session_with_chain(session_id: str) -> DiagnosisSession:
    """The session with `chain` (steps in order, each with its invocations prefetched) and `loose_invocations`.

    The order is that of the steps' start; where none is given, that of arrival. Four queries, whatever the size.
    Raises UnknownObjectError.
    """
    session = DiagnosisSession.objects.filter(session_id=session_id).first()
    if session is None:
        raise UnknownObjectError(gettext("There is no session %(id)s.") % {"id": session_id})
    session.chain = decision_chain(session_id)  # type: ignore[attr-defined]
    session.loose_invocations = list(ToolInvocation.objects.of(session_id).filter(step=None))  # type: ignore[attr-defined]
    return session


def decision_chain(session_id: str) -> list[AgentStep]:
    """All steps of a session in the order in which they happened, each with its invocations in theirs."""
    steps = AgentStep.objects.of(session_id).select_related("parent_step")
    invocations = ToolInvocation.objects.order_by("started_at", "id")
    chain = list(steps.prefetch_related(Prefetch("tool_invocations", invocations)))
    return sorted(chain, key=_moment)


def _moment(row: AgentStep | ToolInvocation) -> tuple[bool, float, int]:
    """Rows without a start keep their order of arrival, after those with one."""
    return (row.started_at is None, row.started_at.timestamp() if row.started_at else 0.0, row.pk)


# -- bounded, for the page -------------------------------------------------------------------------------------------

STEPS_SHOWN = 100
"""Steps on one page of a timeline."""
LOOSE_SHOWN = 200
CLIP_CHARS = 2000
"""Characters of a text that a timeline carries; the rest stays in the database."""
DEEPEST = 6


@dataclass(frozen=True, slots=True)
class Span:
    """Where something stands on the session's time axis, in percent of it."""

    left: float
    width: float


@dataclass(slots=True)
class Call:
    """One tool invocation on the timeline. `marks` are those of `sessions_app.templatetags.desk.ICONS`."""

    row: ToolInvocation
    marks: list[str]
    times: int  # how often the session made this very call: the same tool, the same input
    span: Span | None
    input: str = ""
    output: str = ""
    error: str = ""
    details: str = ""


@dataclass(slots=True)
class StepLine:
    """One step on the timeline, under the step that called it."""

    row: Any  # AgentStep with `thought_head`, `has_input`, `has_output`; never its model input and output
    depth: int
    span: Span | None
    calls: list[Call] = field(default_factory=list)


@dataclass(slots=True)
class Timeline:
    """A decision chain, ready to be drawn."""

    steps: list[StepLine]
    loose: list[Call]
    totals: Counter[str]  # mark → how many calls carry it, in the whole session
    models: list[str]  # names of those that took part, in the whole session
    step_count: int
    call_count: int
    hidden_loose: int
    first: int  # number of the first step shown, from 1
    length_ms: int | None  # of the time axis
    page: int
    pages: int


def timeline(session_id: str, page: int = 1) -> Timeline:
    """The decision chain of a session, at most STEPS_SHOWN steps of it. Three queries, whatever the size."""
    lines = _nest(sorted(_light_steps(session_id), key=_moment))
    invocations = sorted(_light_invocations(session_id), key=_moment)
    axis = _Axis.over([line.row for line in lines], invocations)
    pages = max(1, -(-len(lines) // STEPS_SHOWN))
    page = min(max(1, page), pages)
    first = (page - 1) * STEPS_SHOWN
    shown = lines[first : first + STEPS_SHOWN]
    calls = _calls(invocations, axis)
    by_step: dict[int | None, list[Call]] = defaultdict(list)
    known = {line.row.pk for line in lines}
    for call in calls:
        # The reference has no constraint in the database: a step that is not there leaves its calls loose.
        by_step[call.row.step_id if call.row.step_id in known else None].append(call)
    for line in shown:
        line.calls = by_step[line.row.pk]
        line.span = axis.span(line.row)
    loose = by_step[None] if page == pages else []
    _fill([*(call for line in shown for call in line.calls), *loose[:LOOSE_SHOWN]])
    return Timeline(
        steps=shown,
        loose=loose[:LOOSE_SHOWN],
        totals=Counter(mark for call in calls for mark in call.marks),
        models=sorted({line.row.model_name for line in lines if line.row.model_name}),
        step_count=len(lines),
        call_count=len(calls),
        hidden_loose=max(0, len(loose) - LOOSE_SHOWN),
        first=first + 1,
        length_ms=axis.length_ms,
        page=page,
        pages=pages,
    )


def step_texts(session_id: str, step_id: int) -> AgentStep:
    """One step with its model input, model output and thought whole. Raises UnknownObjectError."""
    step = AgentStep.objects.of(session_id).filter(pk=step_id).first()
    if step is None:
        raise UnknownObjectError(f"Session {session_id} has no step {step_id}.")
    return step


def _light_steps(session_id: str) -> QuerySet[AgentStep]:
    return (
        AgentStep.objects.of(session_id)
        .defer("model_input", "model_output", "thought")
        .annotate(
            thought_head=Left("thought", CLIP_CHARS),
            has_input=Q(model_input__isnull=False),
            has_output=Q(model_output__isnull=False),
        )
    )


def _light_invocations(session_id: str) -> QuerySet[ToolInvocation]:
    return (
        ToolInvocation.objects.of(session_id)
        .defer("input_params", "output_preview", "retrieval_details", "error_message")
        .annotate(input_digest=MD5(_text("input_params")))
    )


def _nest(steps: list[AgentStep]) -> list[StepLine]:
    """Each step followed by those it called, in the given order. Loops of callers, which agents could send, are cut."""
    children: dict[int | None, list[AgentStep]] = defaultdict(list)
    known = {step.pk for step in steps}
    for step in steps:
        children[step.parent_step_id if step.parent_step_id in known else None].append(step)
    lines: list[StepLine] = []
    seen: set[int] = set()

    def walk(roots: Iterable[AgentStep]) -> None:
        stack = [(step, 0) for step in reversed(list(roots))]
        while stack:
            step, depth = stack.pop()
            if step.pk in seen:
                continue
            seen.add(step.pk)
            lines.append(StepLine(step, min(depth, DEEPEST), None))
            stack.extend((child, depth + 1) for child in reversed(children[step.pk]))

    walk(children[None])
    walk(step for step in steps if step.pk not in seen)
    return lines


def _calls(invocations: list[Any], axis: _Axis) -> list[Call]:
    repeats = Counter((row.tool_name, row.input_digest) for row in invocations)
    seen: set[tuple[str, str]] = set()
    calls: list[Call] = []
    for row in invocations:
        key = (row.tool_name, row.input_digest)
        calls.append(Call(row, list(_marks(row, is_repeat=key in seen)), repeats[key], axis.span(row)))
        seen.add(key)
    return calls


def _marks(row: ToolInvocation, *, is_repeat: bool) -> Iterator[str]:
    facts = rules.InvocationFacts(
        row.tool_name, row.success, row.retrieval_layer, row.l0_match_count, row.l1_match_count
    )
    hits = [layer.lower() for layer in ("L0", "L1") if facts.hits(layer)]
    yield from hits
    if not hits and facts.is_retrieval(settings.RETRIEVAL_TOOLS):
        yield "miss"
    if not row.success:
        yield "failed"
    if row.is_truncated:
        yield "truncated"
    if is_repeat:
        yield "repeated"


def _fill(calls: list[Call]) -> None:
    """Add the texts of the calls that are shown, each cut to what a page may carry."""
    by_id = {call.row.pk: call for call in calls}
    texts = ToolInvocation.objects.filter(pk__in=by_id).values_list(
        "pk",
        Left(_text("input_params"), CLIP_CHARS),
        Left("output_preview", CLIP_CHARS),
        Left("error_message", CLIP_CHARS),
        Left(_text("retrieval_details"), CLIP_CHARS),
    )
    for pk, *parts in texts:
        call = by_id[pk]
        call.input, call.output, call.error, call.details = (part or "" for part in parts)


def _text(column: str) -> Cast:
    """A JSON column as the text it is stored as."""
    return Cast(column, TextField())


@dataclass(frozen=True, slots=True)
class _Axis:
    """From the first start to the last end, in seconds since 1970; nothing where no row has a start."""

    start: float = 0.0
    end: float = 0.0

    @classmethod
    def over(cls, *groups: Iterable[Any]) -> _Axis:
        spans = [_seconds(row) for group in groups for row in group if row.started_at]
        return cls(min(start for start, _ in spans), max(end for _, end in spans)) if spans else cls()

    @property
    def length_ms(self) -> int | None:
        return round((self.end - self.start) * 1000) or None

    def span(self, row: AgentStep | ToolInvocation) -> Span | None:
        length = self.end - self.start
        if row.started_at is None or not length:
            return None
        start, end = _seconds(row)
        return Span(round((start - self.start) / length * 100, 2), round((end - start) / length * 100, 2))


def _seconds(row: Any) -> tuple[float, float]:
    start = row.started_at.timestamp()
    return start, start + (row.duration_ms or 0) / 1000
