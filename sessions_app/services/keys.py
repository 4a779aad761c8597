"""Keys of agents and frontends (contract 4): made, found, revoked. A key is 43 random characters after `dk_`.

256 random bits need no slow hash: what is stored is the key's SHA-256, found by its unique index.
"""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Collection
from datetime import timedelta

from django.contrib.auth.models import AbstractUser
from django.utils import timezone
from django.utils.translation import gettext as _

from sessions_app.errors import InvalidInputError
from sessions_app.models import ApiKey, Scope
from sessions_app.services.bulk import select

USED_RESOLUTION = timedelta(minutes=1)
"""`last_used_at` is written at most this often, so that reading a key costs no write."""


def create_key(*, name: str, scopes: Collection[str], owner: AbstractUser | None = None) -> tuple[ApiKey, str]:
    """Make a key. Returns its row and the key itself, which nobody can read again.

    Raises InvalidInputError for an empty name, no scope, or one we do not know.
    """
    if not name.strip():
        message = _("A key needs a name.")
        raise InvalidInputError(message, errors={"name": [message]})
    unknown = [scope for scope in scopes if scope not in Scope.values]
    if unknown or not scopes:
        message = _("Scopes are %(names)s.") % {"names": ", ".join(Scope.values)}
        raise InvalidInputError(message, errors={"scopes": [message]})
    secret = f"dk_{secrets.token_urlsafe(32)}"
    row = ApiKey.objects.create(
        name=name,
        prefix=secret[:10],
        digest=_digest(secret),
        scopes=sorted(set(scopes)),
        owner_id=owner.pk if owner else None,
    )
    return row, secret


def find_key(secret: str) -> ApiKey | None:
    """The valid key with this text, or None."""
    row = next(iter(select(ApiKey, "digest", [_digest(secret)])), None)
    if row is None or row.is_revoked:
        return None
    now = timezone.now()
    if row.last_used_at is None or row.last_used_at < now - USED_RESOLUTION:
        ApiKey.objects.filter(pk=row.pk).update(last_used_at=now)
    return row


def revoke_key(*, key_id: int) -> bool:
    """Close a key for ever. Returns False when it was closed already."""
    return ApiKey.objects.valid().filter(pk=key_id).update(revoked_at=timezone.now()) == 1


def _digest(secret: str) -> str:
    return hashlib.sha256(secret.encode()).hexdigest()
