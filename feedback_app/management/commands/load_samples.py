"""`manage.py load_samples`: the sample sessions and what people said of them, as if they came in these last days."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable, Iterator
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, NamedTuple, cast

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError, CommandParser, no_translations
from django.utils import timezone
from rest_framework.serializers import ValidationError

from feedback_app.api.serializers import EventInputSerializer, VerdictInputSerializer
from feedback_app.services.reports import make_due_reports
from feedback_app.services.submission import EventData, Outcome, record_event, submit_verdict
from sessions_app.errors import DomainError
from sessions_app.management.loading import Line, read_sessions, store_sessions
from sessions_app.models import DiagnosisSession
from sessions_app.wire.parsers import BadLine, parse_line
from sessions_app.wire.serializers import flatten_errors

FEEDBACK_DELAY = timedelta(minutes=4)
"""From the end of a session to the first feedback on it, and from each feedback to the next."""
DAY = timedelta(days=1)

Sessions = dict[str, Any]
"""Sessions as the writer takes them, by id."""


class Remark(NamedTuple):
    """One line of feedback: a verdict or an event, and when it was given."""

    is_verdict: bool
    said_at: datetime
    data: Any

    def submit(self) -> Outcome:
        """Through the service that the API calls."""
        if self.is_verdict:
            return submit_verdict(**self.data, created_at=self.said_at)
        return record_event(cast("EventData", {**self.data, "created_at": self.said_at}))


class Command(BaseCommand):
    """Load the samples."""

    help = (
        "Load sessions.jsonl and feedback.jsonl of the samples, their times moved by whole days so that the newest "
        "lies within the last 24 hours. Running it again changes nothing."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        """Where the samples lie; whether they may join the sessions of others."""
        parser.add_argument("--folder", type=Path, default=settings.BASE_DIR / "samples", help="default: %(default)s")
        parser.add_argument("--force", action="store_true", help="also when the database holds other sessions")

    @no_translations
    def handle(self, *args: Any, **options: Any) -> None:
        """Read both files, find the shift, write the sessions, then the feedback in the order of its file."""
        try:
            with (options["folder"] / "sessions.jsonl").open("rb") as file:
                lines = list(_accepted(read_sessions(file)))
            sessions: Sessions = {line.session["session_id"]: line.session for line in lines if line.session}
            with (options["folder"] / "feedback.jsonl").open("rb") as file:
                remarks = list(_remarks(file, sessions))
        except OSError as error:
            raise CommandError(f"Cannot read {error.filename}: {error.strerror}.") from error
        others = DiagnosisSession.objects.exclude(session_id__in=list(sessions)).count()
        if others and not options["force"]:
            raise CommandError(f"The database holds {others} other sessions; --force adds the samples to them.")
        shift = _shift(sessions, remarks)
        for data in sessions.values():
            _move(data, shift)
        stored = sum(1 for _ in _accepted(store_sessions(lines)))
        said = sum(not _submit(remark._replace(said_at=remark.said_at + shift)).is_repeat for remark in remarks)
        make_due_reports()  # beat would, within five minutes
        self.stdout.write(f"{stored} sessions and {said} new pieces of feedback, moved by {shift.days} days.")


def _accepted(lines: Iterable[Line]) -> Iterator[Line]:
    for line in lines:
        if line.reason is not None:
            raise CommandError(f"sessions.jsonl:{line.number}: {line.reason}")
        yield line


def _remarks(lines: Iterable[bytes], sessions: Sessions) -> Iterator[Remark]:
    """Read the feedback. A verdict has no id of its own on the wire, so its line's digest is one."""
    earlier: Counter[str] = Counter()
    for number, text in enumerate(lines, start=1):
        if not text.strip():
            continue
        document = parse_line(text)
        is_verdict = isinstance(document, dict) and "feedback" in document
        try:
            if isinstance(document, BadLine):
                raise ValidationError(document.reason)
            data, _sanitised = (VerdictInputSerializer if is_verdict else EventInputSerializer).read(document)
        except ValidationError as error:
            field, messages = next(iter(flatten_errors(error.detail).items()))
            raise CommandError(f"feedback.jsonl:{number}: {field}: {messages[0]}") from error
        data.setdefault("client_event_id", f"sample_{hashlib.sha256(text.strip()).hexdigest()[:32]}")
        session = sessions.get(data["session_id"])
        if session is None:
            raise CommandError(f"feedback.jsonl:{number}: sessions.jsonl has no session {data['session_id']}.")
        earlier[data["session_id"]] += 1
        told_at = data.pop("created_at", None)
        yield Remark(is_verdict, told_at or _end(session) + FEEDBACK_DELAY * earlier[data["session_id"]], data)


def _submit(remark: Remark) -> Outcome:
    try:
        return remark.submit()
    except DomainError as error:
        raise CommandError(f"feedback.jsonl: {remark.data['session_id']}: {error.message}") from error


def _end(session: Any) -> datetime:
    end: datetime = max(_moments(session), default=timezone.now())
    return end


def _moments(data: Any) -> Iterator[datetime]:
    """The times of a session, of its steps and of their invocations."""
    yield from (data[name] for name in ("started_at", "finished_at") if data.get(name))
    for child in (*data.get("steps", ()), *data.get("tool_invocations", ())):
        yield from _moments(child)


def _move(data: Any, shift: timedelta) -> None:
    for name in ("started_at", "finished_at"):
        if data.get(name):
            data[name] += shift
    for child in (*data.get("steps", ()), *data.get("tool_invocations", ())):
        _move(child, shift)


def _shift(sessions: Sessions, remarks: list[Remark]) -> timedelta:
    """Whole days, so that the times of day told in the texts stay true; the same as when they were first loaded."""
    stored = DiagnosisSession.objects.filter(session_id__in=list(sessions)).exclude(started_at=None)
    for session_id, started_at in stored.values_list("session_id", "started_at"):
        if told := sessions[session_id].get("started_at"):
            known: timedelta = started_at - told
            return known
    newest = max(
        (
            moment
            for source in (*map(_moments, sessions.values()), (each.said_at for each in remarks))
            for moment in source
        ),
        default=timezone.now(),
    )
    return (timezone.now() - newest) // DAY * DAY
