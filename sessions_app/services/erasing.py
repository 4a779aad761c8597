"""What is remembered of erased sessions: that nothing more is recorded of them."""

from __future__ import annotations

from collections.abc import Collection

from django.utils.translation import gettext as _

from sessions_app.errors import ConflictError
from sessions_app.models import ErasedId
from sessions_app.privacy import fingerprint
from sessions_app.services.bulk import select


class ErasedError(ConflictError):
    """The session was erased at its person's wish."""

    code = "erased"

    def __init__(self, session_id: str) -> None:
        super().__init__(_("The session %(id)s was erased; nothing more is recorded of it.") % {"id": session_id})


def remember_erased(ids: Collection[str]) -> None:
    """Refuse these sessions and traces from now on. The caller holds their locks and deletes them."""
    known = {fingerprint(each) for each in ids}
    known -= set(ErasedId.objects.filter(pk__in=known).values_list("pk", flat=True))
    ErasedId.objects.bulk_create([ErasedId(fingerprint=each) for each in sorted(known)])


def erased_among(ids: Collection[str]) -> set[str]:
    """Those of these ids that were erased. One query by primary key."""
    names = {fingerprint(each): each for each in ids}
    return {names[found.fingerprint] for found in select(ErasedId, "fingerprint", names)}
