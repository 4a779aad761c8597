"""What people thought of an answer, on its way to `/api/feedback/events`."""

from __future__ import annotations

import asyncio
import json
import logging
import uuid
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timezone
from typing import Any

from diagnosis_client import _content as content
from diagnosis_client._guard import guarded
from diagnosis_client._http import Reply, Server
from diagnosis_client._outbox import Limits, Outbox, Outcome

logger = logging.getLogger("diagnosis_client")

PATH = "/api/feedback/events"
HEADERS = {"Content-Type": "application/json"}
MAX_EVENTS = 500
MAX_PAYLOAD_CHARS = 20_000
"""Longest text of an event that the server takes."""
MAX_NAMED = 3
HTTP_TOO_LARGE, HTTP_SERVER_ERROR = 413, 500
MAX_REFUSALS = 8
"""Times that one event may be refused for what may pass: a session not there yet, a fault of the server."""


@dataclass(frozen=True)
class _Event:
    body: bytes  # JSON, written when it was recorded
    label: str  # for the log
    refusals: int = 0


class FeedbackCollector:
    """Gathers feedback and sends it in the background. Never blocks and never raises into its caller.

    Make one for each process. Up to `capacity` events wait; then the oldest make room, and `dropped` counts them.
    Sending one twice is harmless: each carries its own `clientEventId`.
    """

    def __init__(
        self,
        endpoint: str = "http://127.0.0.1:8000",
        api_key: str | None = None,
        agent_id: str | None = None,
        *,
        capacity: int = 1_000,
        flush_seconds: float = 30.0,
        timeout_seconds: float = 10.0,
        exit_seconds: float = 3.0,
    ) -> None:
        self._server = Server(endpoint, api_key)
        self._agent_id = None if agent_id is None else content.safe_id(agent_id, "agent_id")
        limits = Limits(capacity, MAX_EVENTS, flush_seconds, timeout_seconds, exit_seconds)
        self._outbox = Outbox(
            self._send, what="feedback events", limits=limits, weigh=lambda event: len(event.body), closes_last=True
        )

    def record(
        self,
        session_id: str,
        type: str,  # noqa: A002 - the word of the API
        value: object = None,
        payload: Mapping[str, Any] | None = None,
        *,
        turn_id: str | None = None,
        agent_id: str | None = None,
        consent: bool | None = None,
        created_at: datetime | None = None,
        client_event_id: str | None = None,
        token: str | None = None,
    ) -> str:
        """Take one event; the shorthands below know what each type needs. Gives its `clientEventId`.

        `token` is the session's feedback token, where the server asks for one.
        """
        event_id = uuid.uuid4().hex if client_event_id is None else content.safe_id(client_event_id, "client_event_id")
        said = {
            "sessionId": session_id,
            "type": type,
            "value": value,
            "payload": payload,
            "turnId": turn_id,
            "agentId": agent_id,
            "consent": consent,
            "createdAt": created_at,
            "token": token,
        }
        self._take(said, event_id)
        return event_id

    def thumbs(
        self,
        session_id: str,
        verdict: str | bool,  # noqa: FBT001 - thumbs(id, True) reads well enough
        comment: str | None = None,
        **more: Any,
    ) -> str:
        """Thumbs "up" or "down" (also True or False): the verdict on the session. `more` goes to `record`."""
        value = verdict if isinstance(verdict, str) else ("up" if verdict else "down")
        return self.record(session_id, "thumbs", value, _payload(comment=comment), **more)

    def star(self, session_id: str, stars: float, comment: str | None = None, **more: Any) -> str:
        """One to five stars."""
        return self.record(session_id, "star", stars, _payload(comment=comment), **more)

    def correction(
        self, session_id: str, original: str, corrected: str, user_note: str | None = None, **more: Any
    ) -> str:
        """A person put the answer right."""
        payload = _payload(original=original, corrected=corrected, userNote=user_note)
        return self.record(session_id, "correction", None, payload, **more)

    def edit(self, session_id: str, original: str, edited: str, **more: Any) -> str:
        """A person changed the answer before using it."""
        return self.record(session_id, "edit", None, _payload(original=original, edited=edited), **more)

    def re_ask(self, session_id: str, question: str, previous_question: str, **more: Any) -> str:
        """A person asked the same again in other words."""
        payload = _payload(question=question, previousQuestion=previous_question)
        return self.record(session_id, "re_ask", None, payload, **more)

    @property
    def dropped(self) -> int:
        """Events that never reached the server: no room, or refused."""
        return self._outbox.dropped

    def flush(self, timeout_seconds: float = 5.0) -> bool:
        """Send everything now. True when nothing is left to send, False when the time was not enough."""
        return self._outbox.flush(timeout_seconds)

    async def aflush(self, timeout_seconds: float = 5.0) -> bool:
        """The same without holding the event loop."""
        return await asyncio.to_thread(self.flush, timeout_seconds)

    def close(self, timeout_seconds: float | None = None) -> bool:
        """Send everything, then stop for good; happens by itself when the process ends."""
        is_empty = self._outbox.close(timeout_seconds)
        if is_empty:  # else the thread may still hold the connection
            self._server.close()
        return is_empty

    @guarded
    def _take(self, said: Mapping[str, Any], event_id: str) -> None:
        moment: datetime = said["createdAt"] or datetime.now(timezone.utc)
        ids = {
            key: content.safe_id(given, key)
            for key, given in (
                ("sessionId", said["sessionId"]),
                ("turnId", said["turnId"]),
                ("agentId", said["agentId"] or self._agent_id),
            )
            if given is not None
        }
        event = {
            **ids,
            "type": str(said["type"]),
            "value": content.plain(said["value"], MAX_PAYLOAD_CHARS),
            "payload": {
                str(key): content.plain(given, MAX_PAYLOAD_CHARS) for key, given in (said["payload"] or {}).items()
            },
            "clientEventId": event_id,
            "consent": said["consent"],
            "createdAt": moment.astimezone(timezone.utc).isoformat(),
            "token": said["token"],
        }
        body = content.dumps({key: given for key, given in event.items() if given is not None}).encode()
        self._outbox.put(_Event(body, f"{event['type']} of {event['sessionId']}"))

    def _send(self, events: list[_Event], seconds: float) -> Outcome[_Event]:
        body = b"[" + b",".join(event.body for event in events) + b"]"
        reply = self._server.post(PATH, body, HEADERS, seconds)
        if reply.is_success:
            self._server.say_delivered()
            return self._sort(events, reply)
        if reply.may_try_again:
            self._server.say_waiting(reply)
            return Outcome(again=events, wait_seconds=reply.wait_seconds)
        if reply.status >= HTTP_SERVER_ERROR:  # of ours or of this very batch; not for ever, then
            self._server.say_waiting(reply)
            return self._refused({event: str(reply) for event in events}, wait_seconds=reply.wait_seconds)
        if reply.status == HTTP_TOO_LARGE and len(events) > 1:
            middle = len(events) // 2
            halves = [self._send(events[:middle], seconds), self._send(events[middle:], seconds)]
            return Outcome([event for half in halves for event in half.again], sum(half.lost for half in halves))
        logger.warning("%d feedback events are refused and dropped. The server says: %s", len(events), reply)
        return Outcome(lost=len(events))

    def _sort(self, events: list[_Event], reply: Reply) -> Outcome[_Event]:
        """What the server did not take of a batch: an unknown session may be on its way, the rest is for the log."""
        try:
            rejected = {events[item["index"]]: item["errors"] for item in json.loads(reply.body)["rejected"]}
        except (ValueError, KeyError, IndexError, TypeError):
            return Outcome()  # accepted, in words we do not know
        waiting = {event: errors for event, errors in rejected.items() if list(errors) == ["sessionId"]}
        hopeless = {event: errors for event, errors in rejected.items() if event not in waiting}
        _say_lost(hopeless)
        outcome = self._refused(waiting)
        return replace(outcome, lost=outcome.lost + len(hopeless))

    def _refused(self, events: Mapping[_Event, object], wait_seconds: float | None = None) -> Outcome[_Event]:
        """Refused, perhaps not for good."""
        tired = {event: errors for event, errors in events.items() if event.refusals + 1 >= MAX_REFUSALS}
        _say_lost(tired)
        again = [replace(event, refusals=event.refusals + 1) for event in events if event not in tired]
        return Outcome(again, len(tired), wait_seconds)


def _say_lost(events: Mapping[_Event, object]) -> None:
    for event, errors in list(events.items())[:MAX_NAMED]:
        logger.warning("Feedback is refused and dropped: %s. The server says: %s", event.label, errors)
    if len(events) > MAX_NAMED:
        logger.warning("So are %d more of the same batch.", len(events) - MAX_NAMED)


def _payload(**fields: object) -> dict[str, object]:
    return {key: value for key, value in fields.items() if value is not None}
