"""The one writer of sessions, steps and tool invocations. REST, batch, commands and OTLP all call `record_sessions`.

The rows that result do not depend on the order or the number of times the same facts arrive:

1. Every session of the call is locked, in the order of `session_id`, or inserted. Whoever writes a session or scores
   it holds this lock, so the rest needs no other.
2. What arrived is merged into what stands there. A value never becomes emptier: `None`, `""`, `{}` and `[]` mean
   "not said". A status never goes back. A step that is only spoken of gets its row now and its content later.
3. New rows are inserted, changed ones upserted, each table in one statement a chunk.
4. Totals the caller did not send follow the rows. A finished session whose evidence changed owes a score.

A session derived from spans (`span_ids`, see `sessions_app.records`) is exact instead of merged: the spans known so far
are all there is, so its rows may also lose what they said, and rows of spans that moved elsewhere are deleted. The
session's own row may have been told of by REST too, so of it goes what still stands as the former spans told it.

A race for a new session's key, and a deadlock, run the whole transaction again (`sessions_app.db`).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import cache
from typing import Any, Generic, NamedTuple, TypeVar

from django.conf import settings
from django.db import DatabaseError, models
from django.db.models import Count, Sum
from django.utils import timezone
from django.utils.translation import gettext

from sessions_app import rules, signals
from sessions_app.db import in_transaction, is_passing
from sessions_app.errors import DomainError, InvalidInputError, UnknownObjectError
from sessions_app.models import FINISHED, AgentStep, DiagnosisSession, Status, ToolInvocation
from sessions_app.records import PlacedInvocation, SessionData, StepData, StepKey, placed_invocations, step_keys
from sessions_app.services.bulk import insert, new_row, select, upsert
from sessions_app.services.erasing import ErasedError, erased_among
from sessions_app.text import UnstorableJSONError, clean_json

BATCH_SESSIONS = 50
"""Most sessions in one transaction: enough to spread its cost, few enough that locks are short."""

TOTALS = ("total_duration_ms", "total_token_count", "step_count", "tool_call_count")
_STATUS_RANK = {Status.PENDING: 0, Status.RUNNING: 1, Status.SUCCESS: 2, Status.FAILED: 2}
_EVIDENCE = {"tool_name", "success", "retrieval_layer", "l0_match_count", "l1_match_count"}
_CLOCK_SKEW = timedelta(minutes=5)


class Recorded(NamedTuple):
    """What became of one session."""

    session_id: str
    is_new: bool


class Refused(NamedTuple):
    """A session that was not taken though its form was right, and why."""

    session_id: str
    reason: str


@in_transaction
def record_sessions(
    items: Sequence[SessionData], *, must_exist: bool = False, locked: dict[str, DiagnosisSession] | None = None
) -> list[Recorded]:
    """Write `items` in one transaction; the same session may stand in several.

    `locked` are those of their sessions that exist, where the caller has locked them (`lock_sessions`) and knows that
    none of the others was erased.
    Raises UnknownObjectError when `must_exist` and a session does not, ErasedError when it was erased.
    """
    session_ids = {item["session_id"] for item in items}
    if locked is None:
        locked = lock_sessions(session_ids)
        if erased := erased_among(session_ids - locked.keys()):
            raise ErasedError(min(erased))
    book = _Book.open(session_ids, locked, must_exist=must_exist)
    book.load_children(items)
    for item in items:
        book.take(item)
    book.save()
    return [Recorded(item["session_id"], item["session_id"] in book.new_ids) for item in items]


def lock_sessions(session_ids: Collection[str]) -> dict[str, DiagnosisSession]:
    """Those of these sessions that exist, locked in the order of their ids."""
    return {row.session_id: row for row in select(DiagnosisSession, "session_id", session_ids, lock=True)}


def record_batch(items: Sequence[SessionData]) -> Iterator[Recorded | Refused]:
    """Write any number of sessions, some at a time; one that the database refuses never sinks its neighbours.

    Yields an outcome for each item, in order. What was yielded as Recorded is committed.
    """
    for start in range(0, len(items), BATCH_SESSIONS):
        chunk = items[start : start + BATCH_SESSIONS]
        try:
            yield from record_sessions(chunk)
        except (DomainError, DatabaseError) as error:
            if isinstance(error, DatabaseError) and is_passing(error):
                raise
            yield from map(_record_alone, chunk)


def _record_alone(item: SessionData) -> Recorded | Refused:
    try:
        return record_sessions([item])[0]
    except DomainError as error:
        return Refused(item["session_id"], error.message)
    except DatabaseError as error:
        if is_passing(error):
            raise
        reason = gettext("The database refused it: %(error)s.") % {"error": type(error).__name__}
        return Refused(item["session_id"], reason)


# -- the book of one call --------------------------------------------------------------------------------------------

Row = TypeVar("Row", AgentStep, ToolInvocation)
M = TypeVar("M", bound=models.Model)
Key = tuple[Any, ...]
"""A child's session and its place there: (session_id, StepKey) or (session_id, invocation_id)."""


@dataclass
class _Shelf(Generic[Row]):
    """Rows of one child table by key: all that this call speaks of, and those of them to insert or to update.

    Insertion keeps the order of arrival, which is the order of a chain whose steps carry no times.
    """

    rows: dict[Key, Row] = field(default_factory=dict)
    new: dict[Key, Row] = field(default_factory=dict)
    changed: dict[Key, Row] = field(default_factory=dict)

    def add(self, key: Key, row: Row) -> None:
        """Put a row that does not stand in the database yet."""
        self.rows[key] = self.new[key] = row

    def mark(self, key: Key) -> None:
        """Note that a row differs from what the database holds."""
        if key not in self.new:
            self.changed[key] = self.rows[key]


@dataclass
class _Book:
    """All rows that one call of `record_sessions` touches."""

    now: datetime
    sessions: dict[str, DiagnosisSession]
    new_ids: set[str]
    steps: _Shelf[AgentStep] = field(default_factory=_Shelf)
    invocations: _Shelf[ToolInvocation] = field(default_factory=_Shelf)
    parents: dict[Key, StepKey | None] = field(default_factory=dict)
    callers: dict[Key, StepKey | None] = field(default_factory=dict)
    spans: dict[str, set[str]] = field(default_factory=dict)
    touched: set[str] = field(default_factory=set)
    with_new_evidence: set[str] = field(default_factory=set)
    with_new_answer: set[str] = field(default_factory=set)
    with_new_question: set[str] = field(default_factory=set)

    @classmethod
    def open(cls, session_ids: set[str], locked: Mapping[str, DiagnosisSession], *, must_exist: bool) -> _Book:
        """Begin with the sessions that exist, and new ones for the others."""
        now = timezone.now()
        sessions = dict(locked)
        missing = session_ids - sessions.keys()
        if missing and must_exist:
            raise UnknownObjectError(gettext("There is no session %(id)s.") % {"id": min(missing)})
        for session_id in missing:
            sessions[session_id] = new_row(
                DiagnosisSession, session_id=session_id, status=Status.PENDING, created_at=now
            )
        return cls(now, sessions, missing)

    def load_children(self, items: Sequence[SessionData]) -> None:
        """Read those stored steps and invocations that `items` speak of."""
        known = [item for item in items if item["session_id"] not in self.new_ids]
        steps = {(item["session_id"], key) for item in known for key in step_keys(item)}
        invocations = {(item["session_id"], each.invocation_id) for item in known for each in placed_invocations(item)}
        if steps:
            for step in AgentStep.objects.filter(
                session_id__in={sid for sid, _ in steps}, step_index__in={key.step_index for _, key in steps}
            ):
                key = (step.session_id, StepKey(step.agent_name, step.step_index))
                if key in steps:
                    self.steps.rows[key] = step
        if invocations:
            for row in ToolInvocation.objects.filter(
                session_id__in={sid for sid, _ in invocations}, invocation_id__in={iid for _, iid in invocations}
            ):
                self.invocations.rows[row.session_id, row.invocation_id] = row

    # -- taking what arrived -----------------------------------------------------------------------------------------

    def take(self, item: SessionData) -> None:
        """Merge one item into the book."""
        session = self.sessions[item["session_id"]]
        asked = _asked(session)
        if former := item.get("former"):
            self._take_back(session, former, item)
            self._take_session(_news(item, former))
        else:
            self._take_session(item)
        if _asked(session) not in (asked, None):
            self.with_new_question.add(session.session_id)
        is_exact = "span_ids" in item
        if is_exact:
            self.spans.setdefault(item["session_id"], set()).update(item["span_ids"])
        for step in item.get("steps", ()):
            self._take_step(item["session_id"], step, is_exact=is_exact)
        for invocation in placed_invocations(item):
            self._take_invocation(item["session_id"], invocation, is_exact=is_exact)

    def _take_session(self, item: SessionData) -> None:
        session = self.sessions[item["session_id"]]
        was_finished, old_status = session.is_finished, session.status
        old_case_text = (session.query, session.answer)
        values: dict[str, Any] = {name: item.get(name) for name in _SESSION_FIELDS}
        if metadata := item.get("metadata"):
            values["metadata"] = _bounded("metadata", {**session.metadata, **metadata})
        if said := item.get("self_evaluation"):
            merged = rules.merge_self_evaluation(session.self_evaluation, said)
            values["self_evaluation"] = _bounded("selfEvaluation", merged)
        totals = {name: item.get(name) for name in TOTALS if item.get(name) is not None}
        if totals:
            values["reported_totals"] = {**session.reported_totals, **totals}
        if item.get("is_sanitised"):
            values["is_sanitised"] = True
        if status := _next_status(session, item):
            values["status"] = status
        if item.get("is_live"):
            if session.session_id in self.new_ids and session.started_at is None:
                values["started_at"] = item.get("started_at") or self.now
            if not was_finished and values.get("status") in FINISHED and session.finished_at is None:
                values["finished_at"] = item.get("finished_at") or self.now
        if started := values.get("started_at"):
            values["created_at"] = min(started, self.now) if started <= self.now + _CLOCK_SKEW else session.created_at
        values["consent"] = session.consent and item.get("consent")  # one no, whenever it came, is a no
        if _merge(session, values):
            self.touched.add(session.session_id)
        session.confidence = rules.stated_confidence(session.self_evaluation)
        adoption = rules.stated_adoption(session.self_evaluation)
        session.tools_proposed, session.tools_accepted = adoption or (None, None)
        if session.status != old_status:
            self.with_new_evidence.add(session.session_id)
        if session.answer and (session.query, session.answer) != old_case_text:
            self.with_new_answer.add(session.session_id)

    def _take_back(self, session: DiagnosisSession, former: SessionData, item: SessionData) -> None:
        """Undo what former spans told, now tell no more, and nobody else changed since."""
        told: Any = former
        said: Any = item
        values: dict[str, Any] = {
            name: getattr(_blank(DiagnosisSession), name)
            for name in _SESSION_FIELDS
            if _is_said(told.get(name)) and not _is_said(said.get(name)) and getattr(session, name) == told[name]
        }
        for name in ("metadata", "self_evaluation"):
            stored, old, new = getattr(session, name) or {}, told.get(name) or {}, said.get(name) or {}
            ours = (key for key in old if key not in new and (name == "metadata" or key not in rules.RULE_KEYS))
            gone = {key for key in ours if stored.get(key) == old[key]}
            if gone:
                kept = {key: value for key, value in stored.items() if key not in gone}
                values[name] = kept or getattr(_blank(DiagnosisSession), name)
        if told.get("is_sanitised") and not said.get("is_sanitised"):
            values["is_sanitised"] = False
        if session.status == (told.get("status") or Status.RUNNING):
            values["status"] = said.get("status") or Status.RUNNING
        for name, value in values.items():
            if getattr(session, name) != value:
                setattr(session, name, value)
                self.touched.add(session.session_id)
                if name == "status":
                    self.with_new_evidence.add(session.session_id)

    def _step(self, session_id: str, key: StepKey) -> AgentStep:
        """The step's row; a new one where it is only spoken of so far."""
        row = self.steps.rows.get((session_id, key))
        if row is None:
            row = new_row(AgentStep, session_id=session_id, agent_name=key.agent_name, step_index=key.step_index)
            self.steps.add((session_id, key), row)
            self.touched.add(session_id)
        return row

    def _take_step(self, session_id: str, data: StepData, *, is_exact: bool) -> None:
        key = StepKey(data["agent_name"], data["step_index"])
        row = self._step(session_id, key)
        values: dict[str, Any] = {name: data.get(name) for name in _STEP_FIELDS}
        # A row that called a tool keeps saying so; see `_take_invocation`.
        values["has_tool_call"] = data.get("has_tool_call") or (row.has_tool_call and not is_exact)
        if data.get("token_count") is None:
            values["token_count"] = _summed_tokens(_blank(AgentStep) if is_exact else row, data)
        if _merge(row, values, is_exact=is_exact):
            self._mark(self.steps, session_id, key)
        parent = data.get("parent_step")
        if parent and parent != key:
            self._step(session_id, parent)
            self.parents[session_id, key] = parent
        elif is_exact:
            self.parents[session_id, key] = None

    def _take_invocation(self, session_id: str, placed: PlacedInvocation, *, is_exact: bool) -> None:
        data, place = placed.data, placed.invocation_id
        row = self.invocations.rows.get((session_id, place))
        if row is None:
            row = new_row(ToolInvocation, session_id=session_id, invocation_id=place)
            self.invocations.add((session_id, place), row)
            self.touched.add(session_id)
            self.with_new_evidence.add(session_id)
        values: dict[str, Any] = {name: data.get(name) for name in _INVOCATION_FIELDS}
        output = data.get("output")
        if output or (output is not None and row.output_length is None):
            values["output_length"] = len(output)
            values["output_preview"] = output
        if preview := values["output_preview"]:
            values["output_preview"] = preview[: ToolInvocation.PREVIEW_CHARS]
        if changed := _merge(row, values, is_exact=is_exact):
            self._mark(self.invocations, session_id, place)
            if changed & _EVIDENCE:
                self.with_new_evidence.add(session_id)
        if placed.step is not None:
            step = self._step(session_id, placed.step)
            if _merge(step, {"has_tool_call": True}):
                self._mark(self.steps, session_id, placed.step)
            self.callers[session_id, place] = placed.step
        elif is_exact:
            self.callers[session_id, place] = None

    def _mark(self, shelf: _Shelf[Any], session_id: str, place: object) -> None:
        self.touched.add(session_id)
        shelf.mark((session_id, place))

    # -- saving ------------------------------------------------------------------------------------------------------

    def save(self) -> None:
        """Write what is new and what changed, and tell the other apps."""
        self._drop_moved_spans()
        new = [self.sessions[session_id] for session_id in sorted(self.new_ids)]
        old = [self.sessions[session_id] for session_id in sorted(self.touched - self.new_ids)]
        self._settle(new, self._sums_in_hand())
        insert(DiagnosisSession, new)
        self._save_steps()
        self._save_invocations()
        if old:
            for session in old:
                session.anonymised_at = None  # what came may hold personal data again
            self._settle(old, _sums_stored([session.session_id for session in old]))
            upsert(DiagnosisSession, old, _SESSION_SAVED)
        self._announce()

    def _drop_moved_spans(self) -> None:
        """Delete rows of known spans that are now told elsewhere, or are not rows at all."""
        stored = {session_id: spans for session_id, spans in self.spans.items() if session_id not in self.new_ids}
        if not stored:
            return
        columns = ("pk", "session_id", "agent_name", "step_index", "span_id")
        steps: Any = AgentStep.objects.of(*stored).exclude(span_id=None).values_list(*columns)
        stale = [
            (pk, session_id)
            for pk, session_id, agent_name, step_index, span_id in steps
            if span_id in stored[session_id] and (session_id, StepKey(agent_name, step_index)) not in self.steps.rows
        ]
        invocations: Any = ToolInvocation.objects.of(*stored).values_list("pk", "session_id", "invocation_id")
        gone = [
            (pk, session_id)
            for pk, session_id, place in invocations
            if place in stored[session_id] and (session_id, place) not in self.invocations.rows
        ]
        AgentStep.objects.filter(pk__in=[pk for pk, _ in stale]).delete()
        ToolInvocation.objects.filter(pk__in=[pk for pk, _ in gone]).delete()
        self.touched.update(session_id for _, session_id in (*stale, *gone))
        self.with_new_evidence.update(session_id for _, session_id in gone)

    def _save_steps(self) -> None:
        insert(AgentStep, list(self.steps.new.values()))
        upsert(AgentStep, list(self.steps.changed.values()), _STEP_SAVED)
        self._read_step_keys()
        moved: list[AgentStep] = []
        for key, parent in self.parents.items():
            row = self.steps.rows[key]
            parent_id = self.steps.rows[key[0], parent].pk if parent else None
            if row.parent_step_id != parent_id:
                row.parent_step_id = parent_id
                moved.append(row)
        upsert(AgentStep, moved, ["parent_step"])

    def _read_step_keys(self) -> None:
        """MySQL, unlike MariaDB and SQLite, does not return the keys of inserted rows."""
        blank = {key for key, row in self.steps.new.items() if row.pk is None}
        if not blank:
            return
        found = AgentStep.objects.of(*{session_id for session_id, _ in blank})
        for pk, session_id, agent_name, step_index in found.values_list("pk", "session_id", "agent_name", "step_index"):
            key = (session_id, StepKey(agent_name, step_index))
            if key in blank:
                self.steps.rows[key].pk = pk

    def _save_invocations(self) -> None:
        for key, step in self.callers.items():
            row, step_id = self.invocations.rows[key], self.steps.rows[key[0], step].pk if step else None
            if row.step_id != step_id:
                row.step_id = step_id
                self._mark(self.invocations, *key)
        insert(ToolInvocation, list(self.invocations.new.values()))
        upsert(ToolInvocation, list(self.invocations.changed.values()), _INVOCATION_SAVED)

    def _settle(self, sessions: Iterable[DiagnosisSession], sums: dict[str, _Sums]) -> None:
        """Fill the totals the caller did not send, and the debt of a score."""
        for session in sessions:
            own = sums.get(session.session_id, _Sums())
            filled = {
                "step_count": own.steps,
                "tool_call_count": own.invocations,
                "total_token_count": own.tokens,
                "total_duration_ms": _duration_ms(session, own),
            }
            for name, value in {**filled, **session.reported_totals}.items():
                setattr(session, name, value)
            if session.session_id in self.with_new_evidence:
                self._owe_score(session)

    def _owe_score(self, session: DiagnosisSession) -> None:
        """Now, of a finished session; once the spans have been quiet, where the one that ends it may never come."""
        if session.is_finished:
            session.evaluation_due_at = self.now
        elif session.session_id in self.spans:
            session.evaluation_due_at = self.now + timedelta(seconds=settings.OTLP_QUIET_SECONDS)
        else:
            return
        session.evaluation_attempts = 0
        session.evaluation_error = ""

    def _sums_in_hand(self) -> dict[str, _Sums]:
        """Sums of new sessions, all of whose rows are in the book."""
        sums = {session_id: _Sums() for session_id in self.new_ids}
        for (session_id, _), step in self.steps.rows.items():
            if session_id in sums:
                sums[session_id].add_step(step.token_count, step.duration_ms)
        for session_id, _ in self.invocations.rows:
            if session_id in sums:
                sums[session_id].invocations += 1
        return sums

    def _announce(self) -> None:
        for signal, session_ids in (
            (signals.questions_asked, self.with_new_question),
            (signals.answers_changed, self.with_new_answer - self.new_ids),
            (signals.facts_changed, {sid for sid in self.with_new_evidence if self.sessions[sid].is_finished}),
        ):
            if session_ids:
                signal.send(DiagnosisSession, session_ids=sorted(session_ids))


# -- pieces ----------------------------------------------------------------------------------------------------------

_SESSION_FIELDS = (
    "query", "agent_flow", "answer", "agent_id", "conversation_id", "user_ref", "consent", "started_at", "finished_at",
)  # fmt: skip
_SESSION_SAVED = [
    *_SESSION_FIELDS, *TOTALS, "status", "metadata", "self_evaluation", "reported_totals", "is_sanitised", "confidence",
    "tools_proposed", "tools_accepted", "created_at", "updated_at",
    "evaluation_due_at", "evaluation_attempts", "evaluation_error", "anonymised_at",
]  # fmt: skip
_STEP_FIELDS = (
    "model_input", "model_output", "thought", "duration_ms", "token_count", "input_tokens", "output_tokens",
    "model_name", "span_id", "started_at",
)  # fmt: skip
_STEP_SAVED = [*_STEP_FIELDS, "has_tool_call"]
_INVOCATION_FIELDS = (
    "tool_name", "input_params", "output_preview", "output_length", "retrieval_layer", "l0_match_count",
    "l1_match_count", "is_truncated", "retrieval_details", "duration_ms", "success", "error_message", "started_at",
)  # fmt: skip
_INVOCATION_SAVED = [*_INVOCATION_FIELDS, "step"]


@dataclass
class _Sums:
    """What a session's own rows add up to."""

    steps: int = 0
    invocations: int = 0
    tokens: int | None = None
    duration_ms: int | None = None

    def add_step(self, tokens: int | None, duration_ms: int | None) -> None:
        self.steps += 1
        if tokens is not None:
            self.tokens = (self.tokens or 0) + tokens
        if duration_ms is not None:
            self.duration_ms = (self.duration_ms or 0) + duration_ms


def _sums_stored(session_ids: list[str]) -> dict[str, _Sums]:
    sums = {session_id: _Sums() for session_id in session_ids}
    steps = AgentStep.objects.of(*session_ids).order_by().values_list("session_id")
    totals: Any = steps.annotate(Count("id"), Sum("token_count"), Sum("duration_ms"))
    for session_id, *own in totals:
        sums[session_id] = _Sums(own[0], 0, own[1], own[2])
    invocations = ToolInvocation.objects.of(*session_ids).order_by().values_list("session_id")
    counts: Any = invocations.annotate(Count("id"))
    for session_id, count in counts:
        sums[session_id].invocations = count
    return sums


def _duration_ms(session: DiagnosisSession, own: _Sums) -> int | None:
    """From start to end; where a clock is missing, the sum of the steps; null where the clocks contradict."""
    if not session.is_finished:
        return None
    if session.started_at is None or session.finished_at is None:
        return own.duration_ms
    duration = (session.finished_at - session.started_at) // timedelta(milliseconds=1)
    return duration if duration >= 0 else None


def _summed_tokens(row: AgentStep, data: StepData) -> int | None:
    """What input and output add up to; None where neither was said, or where the caller gave a count of its own."""
    said = (data.get("input_tokens"), data.get("output_tokens"))
    stored = (row.input_tokens, row.output_tokens)
    is_own = row.token_count is not None and row.token_count != sum(part or 0 for part in stored)
    if is_own or said == (None, None):
        return None
    return sum((new if new is not None else old) or 0 for new, old in zip(said, stored, strict=True))


@cache
def _blank(model: type[M]) -> M:
    """A row of nothing but defaults. Only read."""
    return model()


def _asked(session: DiagnosisSession) -> tuple[Any, ...] | None:
    """What was asked, by whom and when; None where that is not known, or the session is nobody's."""
    if not session.query or session.started_at is None or not (session.conversation_id or session.user_ref):
        return None
    return (session.query, session.conversation_id, session.user_ref, session.started_at)


def _next_status(session: DiagnosisSession, item: SessionData) -> str | None:
    """The status that an item brings; None where it stays. It never goes back.

    Of a session that somebody said is finished, spans do not say otherwise; what spans said, `_take_back` undoes.
    """
    if session.is_finished and ("span_ids" in item or not item.get("status")):
        return None
    status = Status(item.get("status") or Status.RUNNING)
    return status if _STATUS_RANK[status] >= _STATUS_RANK[Status(session.status)] else None


def _news(item: SessionData, former: SessionData) -> SessionData:
    """What spans tell of the session now and did not before: what REST said meanwhile of the rest, stays."""
    said: Any = item
    told: Any = former
    news: Any = {name: value for name, value in said.items() if name not in _SESSION_FIELDS or value != told.get(name)}
    for name in ("metadata", "self_evaluation"):
        old = told.get(name) or {}
        news[name] = {
            key: value for key, value in (said.get(name) or {}).items() if key not in old or old[key] != value
        }
    if said.get("status") == told.get("status"):
        news.pop("status", None)
    result: SessionData = news
    return result


def _bounded(field_name: str, merged: dict[str, Any]) -> dict[str, Any]:
    """A merged object, unless the parts sent one by one have grown past what one column may hold."""
    try:
        clean_json(merged)
    except UnstorableJSONError as error:
        raise InvalidInputError(str(error), errors={field_name: [str(error)]}) from error
    return merged


def _is_said(value: Any) -> bool:
    return value is not None and value not in ("", {}, [])


def _merge(row: models.Model, values: dict[str, Any], *, is_exact: bool = False) -> set[str]:
    """Set what was said and differs; returns the names of the fields set. Nothing becomes emptier, unless exact."""
    changed: set[str] = set()
    stored = row.__dict__
    for name, said in values.items():
        value = said
        if not said and not _is_said(said):
            if not is_exact:
                continue
            value = getattr(_blank(type(row)), name) if said is None else said
        if stored[name] != value:
            stored[name] = value
            changed.add(name)
    return changed
