"""Spans into sessions: the ledger of each trace is merged under a lock, and its session is derived from all of it.

Merging takes, of two accounts of one span, each fact's fuller one by a fixed order. So it does not matter in which
order, how often, or cut into which batches spans arrive: the ledger ends the same, and so do the rows.
Locks in one order: traces by id, then sessions by id (`recording.record_sessions`).
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

import msgspec

from sessions_app import signals
from sessions_app.db import in_transaction
from sessions_app.models import DiagnosisSession, OtlpTrace
from sessions_app.otlp import dialects
from sessions_app.otlp.dialects import SpanFacts
from sessions_app.otlp.projection import Spans, explicit_session_id, project
from sessions_app.otlp.spans import Span
from sessions_app.records import SessionData
from sessions_app.services.bulk import insert, upsert
from sessions_app.services.recording import record_sessions

TRACES_A_TRANSACTION = 50
_COMPRESSION = 1

Traces = dict[str, dict[str, SpanFacts]]
"""Trace id → span id → facts."""


class TraceOutcome(NamedTuple):
    """What became of a batch of spans."""

    accepted: int
    rejected: list[str]  # why, one for each span


def record_spans(spans: Iterable[Span]) -> TraceOutcome:
    """Take in spans of any traces, in any order, new or known. What is accepted is committed."""
    traces: Traces = {}
    rejected: list[str] = []
    accepted = 0
    for span in spans:
        try:
            facts = dialects.read(span)
        except ValueError as error:
            rejected.append(f"span {span.span_id}: {error}")
            continue
        accepted += 1
        known = traces.setdefault(span.trace_id, {})
        known[span.span_id] = merge_facts(known.get(span.span_id), facts)
    for chunk in _chunks(traces):
        _store(chunk)
    return TraceOutcome(accepted, rejected)


@in_transaction
def _store(traces: Traces) -> None:
    locked = OtlpTrace.objects.select_for_update().filter(trace_id__in=traces).order_by("trace_id")
    ledgers = {row.trace_id: row for row in locked}
    merged: Traces = {}
    for trace_id, spans in sorted(traces.items()):
        stored = _unpack(ledgers[trace_id]) if trace_id in ledgers else {}
        together = _merge_spans(stored, spans)
        if together != stored:
            merged[trace_id] = together
    if not merged:
        return
    sessions = {trace_id: explicit_session_id(spans) or trace_id for trace_id, spans in merged.items()}
    record_sessions(list(_derive(merged, sessions)))
    _leave_stand_ins(sessions, {trace_id: row.session_id for trace_id, row in ledgers.items()})
    rows = [
        OtlpTrace(trace_id=trace_id, session_id=sessions[trace_id], spans=_pack(spans))
        for trace_id, spans in merged.items()
    ]
    insert(OtlpTrace, [row for row in rows if row.trace_id not in ledgers])
    upsert(OtlpTrace, [row for row in rows if row.trace_id in ledgers], ["session_id", "spans", "updated_at"])
    for trace_id, spans in merged.items():
        judgements = [row for facts in spans.values() for row in facts.get("judgements", [])]
        if judgements:
            signals.people_judged.send(OtlpTrace, session_id=sessions[trace_id], judgements=judgements)


def _derive(merged: Traces, sessions: Mapping[str, str]) -> Iterator[SessionData]:
    """The sessions of these traces, each from all its traces."""
    shared = {session_id for trace_id, session_id in sessions.items() if session_id != trace_id}
    by_session: dict[str, Traces] = {}
    for trace_id, spans in merged.items():
        by_session.setdefault(sessions[trace_id], {})[trace_id] = spans
    if shared:
        others = OtlpTrace.objects.select_for_update().filter(session_id__in=shared).exclude(trace_id__in=merged)
        for row in others.order_by("trace_id"):
            by_session[row.session_id][row.trace_id] = _unpack(row)
    for session_id, traces in sorted(by_session.items()):
        data = project(session_id, _as_one(traces))
        if data is not None:
            yield data


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
            together[names[span_id]] = {**facts, "p": names.get(facts["p"], facts["p"])}
    return together


def _leave_stand_ins(sessions: Mapping[str, str], former: Mapping[str, str]) -> None:
    """A span told the session's id after others had come: the session that stood in for it goes.

    It had the trace's id, which no frontend knows; where somebody spoke of it all the same, it stays.
    """
    left = [trace_id for trace_id, session_id in sessions.items() if former.get(trace_id) == trace_id != session_id]
    if left:
        DiagnosisSession.objects.filter(session_id__in=left, feedback=None).delete()


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
        return (0, f"{value:020}")
    text = value if isinstance(value, str) else msgspec.json.encode(value, order="deterministic").decode()
    return (len(text), text)


def _merge_spans(stored: dict[str, SpanFacts], arrived: dict[str, SpanFacts]) -> dict[str, SpanFacts]:
    return stored | {span_id: merge_facts(stored.get(span_id), facts) for span_id, facts in arrived.items()}


def _pack(spans: dict[str, SpanFacts]) -> bytes:
    return zlib.compress(msgspec.json.encode(spans), _COMPRESSION)


def _unpack(row: OtlpTrace) -> dict[str, SpanFacts]:
    spans: dict[str, SpanFacts] = msgspec.json.decode(zlib.decompress(row.spans))
    return spans


def _chunks(traces: Traces) -> Iterator[Traces]:
    items = sorted(traces.items())
    for start in range(0, len(items), TRACES_A_TRANSACTION):
        yield dict(items[start : start + TRACES_A_TRANSACTION])
