"""Which questions stand near each other: in one conversation or by one user, within RE_ASK_WINDOW_SECONDS.

The time of a question is its session's own start, not its arrival: a batch may bring old sessions, in any order. One
that does not say when it started has no place among them. (`created_at`, which has an index, is the start once said.)
"""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from datetime import datetime, timedelta
from typing import NamedTuple

from django.conf import settings
from django.db.models import Q
from django.db.models.functions import Left

from feedback_app.similarity import MAX_COMPARED_CHARS
from sessions_app.models import DiagnosisSession


class Place(NamedTuple):
    """Where a question stands. Sorts by time; of one moment by id, so that the order is always the same."""

    asked_at: datetime
    session_id: str
    conversation_id: str | None
    user_ref: str | None


class Pair(NamedTuple):
    """Two questions near each other."""

    earlier: Place
    later: Place


class Question(NamedTuple):
    """What was asked."""

    text: str
    consent: bool


def pairs_around(session_ids: Collection[str]) -> list[Pair]:
    """Each later question with the last RE_ASK_DEPTH before it, of all pairs in which one of `session_ids` stands.

    Those sessions may be the later as well as the earlier ones: they may arrive in any order. Two queries.
    """
    window = timedelta(seconds=settings.RE_ASK_WINDOW_SECONDS)
    asked = DiagnosisSession.objects.exclude(query="").exclude(started_at=None).order_by()
    columns = ("created_at", "session_id", "conversation_id", "user_ref")
    own = [Place(*row) for row in asked.filter(session_id__in=session_ids).values_list(*columns)]
    conversations = {place.conversation_id for place in own} - {None}
    users = {place.user_ref for place in own} - {None}
    if not conversations and not users:
        return []
    near = Q()
    for start, end in _merged((place.asked_at - window, place.asked_at + window) for place in own):
        near |= Q(created_at__gte=start, created_at__lte=end)
    same = Q(conversation_id__in=conversations) | Q(user_ref__in=users)
    new = {place.session_id: place for place in own}
    others = (Place(*row) for row in asked.filter(near, same).values_list(*columns))
    places = {place.session_id: place for place in others} | new
    return [
        Pair(earlier, later)
        for later, before in _predecessors(sorted(places.values()), window, settings.RE_ASK_DEPTH).items()
        for earlier in before
        if later.session_id in new or earlier.session_id in new
    ]


def questions(session_ids: Iterable[str]) -> dict[str, Question]:
    """What these sessions asked; of very long questions the beginning."""
    rows = DiagnosisSession.objects.filter(session_id__in=set(session_ids)).order_by()
    heads = rows.annotate(head=Left("query", MAX_COMPARED_CHARS)).values_list("session_id", "head", "consent")
    return {session_id: Question(text, consent) for session_id, text, consent in heads}


def _merged(spans: Iterable[tuple[datetime, datetime]]) -> list[tuple[datetime, datetime]]:
    """The same time in as few stretches as can be: a batch of now is one."""
    merged: list[tuple[datetime, datetime]] = []
    for start, end in sorted(spans):
        if merged and start <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(end, merged[-1][1]))
        else:
            merged.append((start, end))
    return merged


def _predecessors(places: Iterable[Place], window: timedelta, depth: int) -> Mapping[Place, list[Place]]:
    """Each of the sorted `places` with the last `depth` before it of its conversation or user, within `window`."""
    rows: defaultdict[tuple[str, str], list[Place]] = defaultdict(list)
    found: dict[Place, list[Place]] = {}
    for place in places:
        own = [(kind, name) for kind, name in (("c", place.conversation_id), ("u", place.user_ref)) if name]
        before: set[Place] = set()
        for key in own:
            row = rows[key]
            first = bisect_left(row, place.asked_at - window, key=lambda other: other.asked_at)
            before.update(row[max(first, len(row) - depth) :])
            row.append(place)
        found[place] = sorted(before)[-depth:] if depth > 0 else []
    return found
