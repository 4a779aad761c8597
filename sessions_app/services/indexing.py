"""Keeping what objects are found by in step with their texts. What terms are is said by `sessions_app.search`.

Terms are many rows, and nobody who says or writes something waits for them. Who writes a text notes in its object, in
the same transaction, that terms are owed (`terms_due_at`), and the worker writes them soon after: a hint wakes it, a
sweep finds what no hint spoke of. It reads the texts under the object's lock, for which whoever notes a debt has to
wait: so the terms are those of the newest texts, and clearing the debt hides no later one.

Where text goes because it must (erased, anonymised), its terms go in the same transaction: `write_now`.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import structlog
from django.db import connection
from django.db.models import QuerySet
from django.utils import timezone

from sessions_app import signals
from sessions_app.db import in_transaction
from sessions_app.search import Searchable, SearchTerm, terms_of
from sessions_app.services.bulk import insert, new_row

logger = structlog.get_logger(__name__)

OWNERS_AT_ONCE = 100
"""Of one kind, before the next has its turn."""
AGAIN_AFTER = timedelta(minutes=5)
"""What cannot be written must not stand in the way of the others."""

Texts = Iterator[tuple[Any, Iterable[str]]]


@dataclass(frozen=True, slots=True)
class Index:
    """One kind of objects, and what they are found by. `texts_of`: keys → key and texts of each that is there."""

    owners: type[Searchable]
    terms: type[SearchTerm]
    texts_of: Callable[[Collection[Any]], Texts]

    def rows(self) -> QuerySet[Any]:
        """All objects."""
        return self.owners._default_manager.order_by()  # noqa: SLF001 - Django's documented face

    def terms_of(self, keys: Collection[Any]) -> QuerySet[Any]:
        """The terms of these objects."""
        every: QuerySet[Any] = self.terms._default_manager.all()  # noqa: SLF001 - Django's documented face
        return every.filter(owner_id__in=keys)


_indexes: list[Index] = []


def register(index: Index) -> None:
    """Have the worker keep this index. Called once, when the apps are ready."""
    if index not in _indexes:
        _indexes.append(index)


def owe(owners: QuerySet[Any]) -> None:
    """Texts of these objects were written, in this transaction: the worker has to write their terms.

    Those that owe already are written too: so this waits for a worker that has just read the former text, while InnoDB
    may pass a locked row by whose committed columns do not meet a condition (its semi-consistent reads).
    """
    owners.update(terms_due_at=timezone.now())
    announce()


def announce() -> None:
    """Wake the worker, once the open transaction is committed, for what notes its debt itself."""
    signals.terms_owed.send(None)


def lock(owners: QuerySet[Any]) -> list[Any]:
    """Hold these objects in the order of their keys: a worker who writes their terms is done, or finds nothing owed.

    Returns the keys.
    """
    return list(owners.select_for_update().order_by("pk").values_list("pk", flat=True))


@in_transaction
def write_now(index: Index, keys: Collection[Any]) -> None:
    """Write anew what these objects are found by, in the caller's transaction."""
    _write(index, lock(index.rows().filter(pk__in=keys)))


def write_due(*, until: float) -> bool:
    """Write what is owed, oldest first, until this moment of the monotonic clock; returns whether more is owed.

    Safe to run twice, and at once.
    """
    more = True
    while more and time.monotonic() < until:
        turns = [_write_some(index, until) for index in _indexes]
        more = any(turns)
    return more


def _write_some(index: Index, until: float) -> bool:
    """Returns whether there is more to be done; what others hold just now waits for the next sweep."""
    due = index.rows().filter(terms_due_at__lte=timezone.now()).order_by("terms_due_at")
    keys = list(due.values_list("pk", flat=True)[:OWNERS_AT_ONCE])
    written = 0
    for key in keys:
        if time.monotonic() >= until:
            return True
        written += _write_owed(index, key)
    return written > 0 and len(keys) == OWNERS_AT_ONCE


def _write_owed(index: Index, key: Any) -> bool:
    """Write the terms of one object if it owes them and nobody holds it; what fails waits for a while.

    Returns whether this one need not be looked at again now.
    """
    now = timezone.now()
    owed = index.rows().filter(pk=key, terms_due_at__lte=now)
    try:
        return _write_if(index, owed)
    except Exception:
        logger.exception("terms_not_written", table=index.terms._meta.db_table, owner=str(key))  # noqa: SLF001
        owed.update(terms_due_at=now + AGAIN_AFTER)
        return True


@in_transaction
def _write_if(index: Index, owed: QuerySet[Any]) -> bool:
    can_skip = connection.features.has_select_for_update_skip_locked
    keys = list(owed.select_for_update(skip_locked=can_skip).values_list("pk", flat=True))
    if keys:
        _write(index, keys)
    return bool(keys)


def _write(index: Index, keys: Collection[Any]) -> None:
    """The caller holds the locks of these objects. Rows in the order of their keys, so that they land side by side."""
    before = set(index.terms_of(keys).values_list("term", "owner_id"))
    now = {(term, key) for key, texts in index.texts_of(keys) for term in terms_of(*texts)}
    gone: dict[Any, list[str]] = {}
    for term, key in before - now:
        gone.setdefault(key, []).append(term)
    for key, terms in gone.items():
        index.terms_of([key]).filter(term__in=terms).delete()
    insert(index.terms, [new_row(index.terms, term=term, owner_id=key) for term, key in sorted(now - before)])
    index.rows().filter(pk__in=keys).update(terms_due_at=None)
