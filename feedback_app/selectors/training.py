"""What people's feedback teaches, for training: anonymised always, and only of those who did not refuse.

Rows are read by primary key, a page at a time, so that the export of a large table costs no more memory than that of a
small one, no page costs more than the first, and no cursor stays open for as long as somebody downloads.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, date
from typing import Any

from django.db.models import Exists, OuterRef, Q, QuerySet, TextChoices
from django.utils.translation import gettext_lazy as _

from feedback_app.models import AgentFeedback, BadCaseReview, EventType, SecondState, TriageState
from sessions_app.fields import dumps
from sessions_app.models import DiagnosisSession, Verdict
from sessions_app.privacy import anonymise
from sessions_app.selectors.slices import Period

PAGE_EVENTS = 200
PAGE_ANSWERS = 50
"""An answer may have a million characters, a text of an event 20,000."""
FIRST_DAY, LAST_DAY = date(1970, 1, 1), date(9998, 1, 1)


class TrainingFormat(TextChoices):
    """What a line holds."""

    SFT = "sft", _("Useful answers: prompt, completion (SFT)")
    DPO = "dpo", _("Corrections: prompt, rejected, chosen (DPO)")
    JSONL = "jsonl", _("Every feedback event")


@dataclass(frozen=True, slots=True)
class Selection:
    """Which feedback: days in the server's time zone, both included; of one agent or of all."""

    first: date | None = None
    last: date | None = None
    agent_id: str | None = None

    def during(self, column: str) -> Q:
        """The condition that `column` lies in these days."""
        if self.first is None and self.last is None:
            return Q()
        return Period.of_days(self.first or FIRST_DAY, self.last or LAST_DAY).covers(column)

    def by_agent(self, column: str) -> Q:
        """The condition that `column` names the agent."""
        return Q((column, self.agent_id)) if self.agent_id else Q()


Record = dict[str, Any]


def _nobody(_page: list[Any]) -> set[Any]:
    return set()


@dataclass(frozen=True, slots=True)
class _Source:
    """Rows of one table, and the record that a row becomes; None where it teaches nothing."""

    rows: QuerySet[Any]
    columns: tuple[str, ...]
    read: Callable[..., Record | None]
    page: int
    refused: Callable[[list[Any]], set[Any]] = _nobody  # the keys of rows that quote who refused


def _quoting_refused(page: list[Any]) -> set[Any]:
    """Re-asks hold the question of a later session too, whose consent may have been taken back since."""
    later = {row[0]: payload.get("laterSessionId") for row in page if isinstance(payload := row[6], dict)}
    named = {session_id for session_id in later.values() if session_id}
    sessions = DiagnosisSession.objects.filter(session_id__in=named, consent=False)
    without = set(sessions.values_list("session_id", flat=True))
    return {key for key, session_id in later.items() if session_id in without}


def count_rows(form: TrainingFormat, selection: Selection) -> int:
    """How many rows will be looked at: not fewer than there will be records."""
    return sum(source.rows.count() for source in _SOURCES[form](selection))


def training_lines(
    form: TrainingFormat, selection: Selection, *, on_row: Callable[[], object] = lambda: None
) -> Iterator[str]:
    """The export, a line of JSON for each record. `on_row` is called for each row that was looked at."""
    for source in _SOURCES[form](selection):
        last: Any = None
        while page := _page(source, last):
            refused = source.refused(page)
            for key, *values in page:
                record = None if key in refused else source.read(*values)
                if record is not None:
                    yield f"{dumps(record)}\n"
                on_row()
                last = key


def _page(source: _Source, last: Any) -> list[Any]:
    rows = source.rows if last is None else source.rows.filter(pk__gt=last)
    return list(rows.order_by("pk").values_list("pk", *source.columns)[: source.page])


# -- useful answers --------------------------------------------------------------------------------------------------


def _useful_answers(selection: Selection) -> list[_Source]:
    """Of sessions whose reader finds the answer useful, and said so with consent."""
    refused = AgentFeedback.objects.filter(session_id=OuterRef("session_id"), type=EventType.THUMBS, consent=False)
    sessions = (
        DiagnosisSession.objects.answered()
        .filter(selection.during("created_at"), selection.by_agent("agent_id"), feedback=Verdict.USEFUL, consent=True)
        .exclude(query="")
        .exclude(Exists(refused))
    )
    return [_Source(sessions, ("session_id", "query", "answer"), _completion, PAGE_ANSWERS)]


def _completion(session_id: str, query: str, answer: str) -> Record | None:
    return _pair(session_id, prompt=query, completion=answer)


# -- corrections -----------------------------------------------------------------------------------------------------


def _corrections(selection: Selection) -> list[_Source]:
    """What readers wrote in place of an answer, and what reviewers did."""
    events = AgentFeedback.objects.filter(
        selection.during("created_at"),
        selection.by_agent("agent_id"),
        type=EventType.CORRECTION,
        consent=True,
        session__consent=True,
    )
    reviews = BadCaseReview.objects.filter(
        selection.during("resolved_at"),
        selection.by_agent("session__agent_id"),
        state=TriageState.RESOLVED,
        session__consent=True,
    ).exclude(corrected_answer="")
    reviews = reviews.exclude(second__state=SecondState.WAITING)  # not confirmed yet, and not to be seen
    told = ("session__session_id", "session__query")
    return [
        _Source(events, (*told, "payload"), _readers_correction, PAGE_EVENTS),
        _Source(reviews, (*told, "session__answer", "corrected_answer"), _preference, PAGE_ANSWERS),
    ]


def _readers_correction(session_id: str, query: str, payload: Any) -> Record | None:
    return _preference(session_id, query, payload.get("original"), payload.get("corrected"))


def _preference(session_id: str, query: str, rejected: str | None, chosen: str | None) -> Record | None:
    if rejected == chosen:
        return None
    return _pair(session_id, prompt=query, rejected=rejected, chosen=chosen)


def _pair(session_id: str, **texts: str | None) -> Record | None:
    """Anonymised; None where a text is missing, for which nothing could be learned."""
    if not all(text and text.strip() for text in texts.values()):
        return None
    record = anonymise({"session_id": session_id, **texts})
    del record["session_id"]
    return record


# -- events ----------------------------------------------------------------------------------------------------------


def _events(selection: Selection) -> list[_Source]:
    """All that people and the server said."""
    events = AgentFeedback.objects.filter(
        selection.during("created_at"), selection.by_agent("agent_id"), consent=True, session__consent=True
    )
    columns = ("session_id", "turn_id", "agent_id", "type", "value", "payload", "source", "created_at")
    return [_Source(events, columns, _event, PAGE_EVENTS, _quoting_refused)]


def _event(
    session_id: str, turn_id: str, agent_id: str | None, kind: str, value: float, payload: Any, source: str, at: Any
) -> Record:
    """Named as on the wire. The client's own id of the event is left out, and the moment told to the minute."""
    return anonymise(
        {
            "sessionId": session_id,
            "turnId": turn_id,
            "agentId": agent_id,
            "type": kind,
            "value": value,
            "payload": payload,
            "source": source,
            "createdAt": at.astimezone(UTC).strftime("%Y-%m-%dT%H:%MZ"),
        }
    )


_SOURCES: dict[TrainingFormat, Callable[[Selection], list[_Source]]] = {
    TrainingFormat.SFT: _useful_answers,
    TrainingFormat.DPO: _corrections,
    TrainingFormat.JSONL: _events,
}
