"""Erasing a person: their sessions and all that hangs on them go, whatever quotes them elsewhere is blanked.

1. What other tables quote of them (reports, what reviewers wrote elsewhere) is blanked: `services.quoting`.
2. Their sessions go, some in each transaction: steps, invocations, feedback, triage, cases, traces, history. In the
   same transaction the ids are remembered as erased, so that late spans bring nothing back, the titles in the admin's
   log are blanked, and the audit row's counts grow. Whoever runs it again after a crash goes on where it stopped.
3. SQLite leaves deleted text in the free pages of its file and in its log: both are rewritten.

The quality figures of the past change with it: a session that may not be known of cannot be counted.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import structlog
from django.apps import apps
from django.contrib.admin.models import LogEntry
from django.contrib.auth.models import AbstractBaseUser
from django.db import OperationalError, connection
from django.utils.translation import gettext as _

from cases_app.models import CaseLibrary
from feedback_app.models import BadCaseReview, Erasure
from feedback_app.selectors import subjects
from feedback_app.services.quoting import Quotes, blank_log, blank_rows_apart, chunks, written_quotes
from sessions_app.db import in_transaction
from sessions_app.errors import UnknownObjectError
from sessions_app.models import DiagnosisSession
from sessions_app.privacy import fingerprint
from sessions_app.services import indexing
from sessions_app.services.erasing import remember_erased

logger = structlog.get_logger(__name__)

QUOTES = "quotes"
"""In the counts: rows of reviewers' writing that stay, without what they quoted."""
SESSIONS_A_TRANSACTION = 20
COMPACTIONS = 3


@dataclass(frozen=True, slots=True)
class Erased:
    """What became of an erasure. `is_compact`: nothing of it is left in the file of the database."""

    erasure: Erasure
    is_compact: bool


def preview_erasure(*, user_ref: str) -> dict[str, int]:
    """Table → how many rows erasing this person would delete, and QUOTES. Empty when nothing of them is stored."""
    counts: Counter[str] = Counter()
    session_ids = subjects.sessions_of(user_ref)
    if session_ids:
        counts[QUOTES] = sum(1 for _ in written_quotes(Quotes.of(user_ref, session_ids), session_ids))
    for chunk in chunks(session_ids, SESSIONS_A_TRANSACTION):
        for model, rows in subjects.rows_of(chunk).items():
            counts[subjects.table_of(model)] += rows.count()
    return {table: count for table, count in counts.items() if count}


def erase_subject(*, user_ref: str, actor: AbstractBaseUser | None = None) -> Erased:
    """Delete all that is stored of a person. Raises UnknownObjectError when that is nothing.

    Safe to run again, also after it was interrupted.
    """
    session_ids = subjects.sessions_of(user_ref)
    if not session_ids:
        raise UnknownObjectError(_("Nothing is stored of this person."))
    erasure = Erasure.objects.create(actor_id=actor.pk if actor else None, subject=fingerprint(user_ref))
    quotes = Quotes.of(user_ref, session_ids)
    counts = blank_rows_apart(quotes)
    counts[QUOTES] = sum(blank() for blank in written_quotes(quotes, session_ids))
    erasure.counts = {name: count for name, count in counts.items() if count}
    erasure.save(update_fields=["counts"])
    while session_ids:
        for chunk in chunks(session_ids, SESSIONS_A_TRANSACTION):
            _erase_sessions(chunk, erasure.pk)
        session_ids = subjects.sessions_of(user_ref)  # what was recorded meanwhile
    erasure.refresh_from_db()
    logger.info("subject_erased", erasure=erasure.pk, counts=erasure.counts)
    return Erased(erasure, compact_file())


@in_transaction
def _erase_sessions(session_ids: Sequence[str], erasure_id: int) -> None:
    locked = DiagnosisSession.objects.select_for_update().filter(session_id__in=session_ids).order_by("session_id")
    list(locked.values_list("pk"))
    counts: Counter[str] = Counter()
    tables = subjects.rows_of(session_ids)
    for model in (CaseLibrary, BadCaseReview):
        indexing.lock(tables[model])
    counts[subjects.table_of(LogEntry)] += blank_log(tables)
    remember_erased({*session_ids, *subjects.traces_of(session_ids)})
    for rows in tables.values():
        for label, count in rows.delete()[1].items():
            counts[subjects.table_of(apps.get_model(label))] += count
    erasure = Erasure.objects.select_for_update().get(pk=erasure_id)
    erasure.counts = dict(Counter(erasure.counts) + counts)
    erasure.save(update_fields=["counts"])


# -- the file --------------------------------------------------------------------------------------------------------


def compact_file() -> bool:
    """Rewrite SQLite's file and empty its log, which both still hold what was deleted; other databases do it alone.

    Writers wait meanwhile. False where somebody else kept the file busy: then it must be tried again.
    """
    if connection.vendor != "sqlite":
        return True
    if connection.in_atomic_block:
        return False
    for _attempt in range(COMPACTIONS):
        try:
            with connection.cursor() as cursor:
                cursor.execute("VACUUM")
                cursor.execute("PRAGMA wal_checkpoint(TRUNCATE)")
                is_busy = cursor.fetchone()[0]
        except OperationalError as error:
            logger.warning("file_not_compacted", error=str(error))
            continue
        if not is_busy:
            return True
    return False
