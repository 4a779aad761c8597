"""Spans into sessions: the ledger of each trace is merged under a lock, and its session is derived from all of it.

Merging takes, of two accounts of one span, each fact's fuller one by a fixed order. So it does not matter in which
order, how often, or cut into which batches spans arrive: the ledger ends the same, and so do the rows.

Locks in one order: traces by id, then sessions by id. A session that several traces tell of is locked before the other
traces are read, so of two at once the second sees what the first wrote.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import msgspec
import zstandard
from django.db import DatabaseError, connection

from sessions_app import signals
from sessions_app.db import in_transaction, is_passing
from sessions_app.errors import DomainError
from sessions_app.models import AgentStep, DiagnosisSession, OtlpTrace, ToolInvocation
from sessions_app.otlp import dialects
from sessions_app.otlp.dialects import SpanFacts
from sessions_app.otlp.projection import Spans, explicit_session_id, project
from sessions_app.otlp.spans import Span
from sessions_app.records import SessionData
from sessions_app.rules import RULE_KEYS
from sessions_app.services.bulk import insert, new_row, select, upsert
from sessions_app.services.erasing import erased_among
from sessions_app.services.recording import lock_sessions, record_sessions

TRACES_A_TRANSACTION = 50
MAX_SPANS = 10_000
"""Of one trace. Its session is derived anew from all of them whenever more come."""
MAX_LEDGER_BYTES = 8 * 1024 * 1024
"""Of one trace, compressed: half of the packet that MariaDB takes."""

_own = threading.local()  # a compressor takes as long to make as to use, and serves one thread

Traces = dict[str, dict[str, SpanFacts]]
"""Trace id → span id → facts."""


class TraceOutcome(NamedTuple):
    """What became of a batch of spans."""

    accepted: int
    rejected: list[str]  # why, one for each span


def record_spans(spans: Iterable[Span]) -> TraceOutcome:
    """Take in spans of any traces, in any order, new or known. What is accepted is committed."""
    traces: Traces = {}
    counts: dict[str, int] = {}
    rejected: list[str] = []
    for span in spans:
        try:
            facts = dialects.read(span)
        except ValueError as error:
            rejected.append(f"span {span.span_id}: {error}")
            continue
        known = traces.setdefault(span.trace_id, {})
        known[span.span_id] = merge_facts(known.get(span.span_id), facts)
        counts[span.trace_id] = counts.get(span.trace_id, 0) + 1
    accepted = sum(counts.values())
    for chunk in _chunks(traces):
        for trace_id, reason in _store_what_can_be(chunk).items():
            accepted -= counts[trace_id]
            rejected += [f"trace {trace_id}: {reason}"] * counts[trace_id]
    return TraceOutcome(accepted, rejected)


# -- one transaction -------------------------------------------------------------------------------------------------


def _store_what_can_be(traces: Traces) -> dict[str, str]:
    """Store these traces; one that is refused never sinks its neighbours. Returns why, for those refused."""
    try:
        return _store(traces)
    except DomainError as error:
        if len(traces) == 1:
            return dict.fromkeys(traces, error.message)
    except DatabaseError as error:
        if is_passing(error):
            raise
        if len(traces) == 1:
            return dict.fromkeys(traces, f"The database refused it: {type(error).__name__}.")
    refused: dict[str, str] = {}
    for trace_id, spans in traces.items():
        refused |= _store_what_can_be({trace_id: spans})
    return refused


@in_transaction
def _store(traces: Traces) -> dict[str, str]:
    book = _Ledgers.open(traces)
    book.refuse_closed_sessions()
    if book.merged:
        record_sessions(book.derived(), locked=book.locked)
        book.save()
    return book.refused


@dataclass
class _Ledgers:
    """The ledgers that one transaction touches."""

    rows: dict[str, OtlpTrace]  # that exist, locked
    stored: Traces = field(default_factory=dict)
    merged: Traces = field(default_factory=dict)  # those only to which something was added
    packed: dict[str, bytes] = field(default_factory=dict)
    sessions: dict[str, str] = field(default_factory=dict)  # trace id → session id
    locked: dict[str, DiagnosisSession] = field(default_factory=dict)  # those of the sessions that exist
    others: dict[str, Traces] = field(default_factory=dict)  # session id → its other traces
    refused: dict[str, str] = field(default_factory=dict)
    left: set[str] = field(default_factory=set)  # sessions that no trace tells of any more

    @classmethod
    def open(cls, traces: Traces) -> _Ledgers:
        """Lock the ledgers that exist, merge what arrived."""
        book = cls({row.trace_id: row for row in select(OtlpTrace, "trace_id", traces, lock=True)})
        for trace_id, spans in sorted(traces.items()):
            book._take(trace_id, spans)
        book.locked = lock_sessions(book._affected)
        book._refuse_erased()  # now, for whoever erases a session holds its lock
        book._read_others()
        return book

    def _take(self, trace_id: str, arrived: dict[str, SpanFacts]) -> None:
        row = self.rows.get(trace_id)
        if row and row.closed_at:
            self.refused[trace_id] = f"It was closed at {row.closed_at:%Y-%m-%d %H:%M} UTC."
            return
        stored = _unpack(row) if row else {}
        merged = _merge_spans(stored, arrived)
        if merged == stored:
            return
        packed = _pack(merged)
        if len(merged) > MAX_SPANS or len(packed) > MAX_LEDGER_BYTES:
            self.refused[trace_id] = f"It holds more than {MAX_SPANS} spans or {MAX_LEDGER_BYTES} bytes."
            return
        self.stored[trace_id], self.merged[trace_id], self.packed[trace_id] = stored, merged, packed
        self.sessions[trace_id] = explicit_session_id(merged) or trace_id

    def _refuse_erased(self) -> None:
        """Refuse late spans of a session that was erased, also those that do not name it."""
        erased = erased_among({name for each in self.sessions.items() for name in each})
        for trace_id in [each for each in self.merged if each in erased or self.sessions[each] in erased]:
            self.refused[trace_id] = "Its session was erased."
            del self.stored[trace_id], self.merged[trace_id], self.packed[trace_id], self.sessions[trace_id]

    def _former(self, trace_id: str) -> str | None:
        return self.rows[trace_id].session_id if trace_id in self.rows else None

    @property
    def _affected(self) -> set[str]:
        former = (self._former(trace_id) for trace_id in self.merged)
        return {session_id for session_id in (*self.sessions.values(), *former) if session_id}

    def _read_others(self) -> None:
        for row in select(OtlpTrace, "session_id", self._affected):
            if row.trace_id not in self.merged:
                self.others.setdefault(row.session_id, {})[row.trace_id] = {} if row.closed_at else _unpack(row)

    def refuse_closed_sessions(self) -> None:
        """A session cannot be derived from a part of its traces."""
        closed = {session_id for session_id, traces in self.others.items() if not all(traces.values())}
        for trace_id in [trace_id for trace_id in self.merged if self.sessions[trace_id] in closed]:
            self.refused[trace_id] = f"The session {self.sessions[trace_id]} was closed."
            del self.merged[trace_id], self.sessions[trace_id]

    def derived(self) -> list[SessionData]:
        """The sessions of these traces, each from all its traces, and those that traces left."""
        items: list[SessionData] = []
        for session_id in sorted(self._affected):
            others = self.others.get(session_id, {})
            now = others | {key: spans for key, spans in self.merged.items() if self.sessions[key] == session_id}
            before = others | {key: self.stored[key] for key in self.merged if self._former(key) == session_id}
            spans, former_spans = _as_one(now), _as_one(before)
            data, former = project(session_id, spans), project(session_id, former_spans)
            if data is None:
                if former is None or _is_spoken_of(session_id):
                    continue
                self.left.add(session_id)
            item: SessionData = data or {"session_id": session_id}
            bare = (span_id for traces in (now, before) for facts in traces.values() for span_id in facts)
            item["span_ids"] = list({*spans, *former_spans, *bare})
            if former:
                item["former"] = former
            items.append(item)
        return items

    def save(self) -> None:
        """Write the ledgers, let the sessions go that stood in, tell what people judged."""
        new = [new_row(OtlpTrace, trace_id=trace_id) for trace_id in self.merged if trace_id not in self.rows]
        old = [self.rows[trace_id] for trace_id in self.merged if trace_id in self.rows]
        for row in (*new, *old):
            row.session_id, row.spans = self.sessions[row.trace_id], self.packed[row.trace_id]
        insert(OtlpTrace, new)
        upsert(OtlpTrace, old, ["session_id", "spans", "updated_at"])
        for session_id in sorted(self.left):
            _delete_blank(session_id)
        for trace_id, spans in self.merged.items():
            judgements = [row for facts in spans.values() for row in facts.get("judgements", [])]
            if judgements and any(facts.get("k") for facts in spans.values()):
                signals.people_judged.send(OtlpTrace, session_id=self.sessions[trace_id], judgements=judgements)


def _as_one(traces: Traces) -> Spans:
    """The spans of all traces of a session; an id that stands in two of them is told apart by its trace."""
    if len(traces) == 1:
        return next(iter(traces.values()))
    owners: dict[str, int] = {}
    for spans in traces.values():
        for span_id in spans:
            owners[span_id] = owners.get(span_id, 0) + 1
    together: dict[str, SpanFacts] = {}
    for trace_id, spans in sorted(traces.items()):
        names = {span_id: span_id if owners[span_id] == 1 else f"{trace_id}:{span_id}" for span_id in spans}
        for span_id, facts in spans.items():
            parent = facts["p"] and names.get(facts["p"], f"{trace_id}:{facts['p']}")
            together[names[span_id]] = {**facts, "p": parent}
    return together


def _is_spoken_of(session_id: str) -> bool:
    """Whether an app above holds something about a session: feedback, a case, a triage."""
    relations: Any = DiagnosisSession._meta.related_objects  # noqa: SLF001 - Django's documented face
    return any(
        relation.related_model.objects.filter(**{relation.field.name: session_id}).exists()
        for relation in relations
        if relation.related_model not in (AgentStep, ToolInvocation)
    )


def _delete_blank(session_id: str) -> None:
    """Delete a session that stood in until a span told the right id, and of which nothing else is known."""
    session = DiagnosisSession.objects.filter(session_id=session_id, query="", metadata={}).first()
    if session is None or session.answer or set(session.self_evaluation or {}) - set(RULE_KEYS):
        return
    if not session.steps.exists() and not session.tool_invocations.exists():
        # Without the signal, at which the ledgers of a session go: spans that are nothing of ours may stay behind.
        DiagnosisSession.objects.filter(pk=session.pk)._raw_delete(connection.alias)  # noqa: SLF001


def merge_facts(one: SpanFacts | None, other: SpanFacts) -> SpanFacts:
    """Of two accounts of one span each fact's fuller one, and of equal ones the greater: in any order the same."""
    if one is None:
        return other
    merged: dict[str, Any] = dict(one)
    for name, value in other.items():
        if name not in merged or _fullness(value) > _fullness(merged[name]):
            merged[name] = value
    facts: Any = merged
    result: SpanFacts = facts
    return result


def _fullness(value: Any) -> tuple[int, str]:
    if isinstance(value, int | float):
        return (0, f"{value:020}{type(value).__name__}")
    text = value if isinstance(value, str) else msgspec.json.encode(value, order="deterministic").decode()
    return (len(text), text)


def _merge_spans(stored: dict[str, SpanFacts], arrived: dict[str, SpanFacts]) -> dict[str, SpanFacts]:
    return stored | {span_id: merge_facts(stored.get(span_id), facts) for span_id, facts in arrived.items()}


def _pack(spans: dict[str, SpanFacts]) -> bytes:
    if (compressor := getattr(_own, "compressor", None)) is None:
        compressor = _own.compressor = zstandard.ZstdCompressor()
    packed: bytes = compressor.compress(dialects.encoded(spans))
    return packed


def _unpack(row: OtlpTrace) -> dict[str, SpanFacts]:
    spans: dict[str, SpanFacts] = msgspec.json.decode(zstandard.decompress(row.spans))
    return spans


def _chunks(traces: Traces) -> Iterator[Traces]:
    items = sorted(traces.items())
    for start in range(0, len(items), TRACES_A_TRANSACTION):
        yield dict(items[start : start + TRACES_A_TRANSACTION])
