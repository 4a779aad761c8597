"""Permission classes: one for each scope, and none by default."""

from typing import Any

from django.utils.translation import gettext as _
from rest_framework.exceptions import NotAuthenticated, PermissionDenied
from rest_framework.permissions import BasePermission
from rest_framework.request import Request

from sessions_app.models import ApiKey, Scope


class DenyAll(BasePermission):
    """The default, so that a route without a permission of its own is closed."""

    def has_permission(self, request: Request, view: Any) -> bool:
        """Never."""
        return False


def scope_of(request: Request, *scopes: Scope) -> bool:
    """Whether the request's key carries one of `scopes`."""
    return isinstance(request.auth, ApiKey) and any(request.auth.opens(scope) for scope in scopes)


class _HasScope(BasePermission):
    scope: Scope

    def has_permission(self, request: Request, view: Any) -> bool:
        """Raises 401 without a key and 403, naming the scope, with a key of other scopes."""
        if request.auth is None:
            raise NotAuthenticated(_("This needs a key: Authorization: Bearer <key>"))
        if not scope_of(request, self.scope):
            raise PermissionDenied(_("This needs a key with the scope %(scope)s.") % {"scope": self.scope.value})
        return True


class CanIngest(_HasScope):
    """Recording."""

    scope = Scope.INGEST


class CanRead(_HasScope):
    """Reading, lookups, reports."""

    scope = Scope.READ


class IngestOrRead(BasePermission):
    """Reading for safe methods, recording for the others."""

    def has_permission(self, request: Request, view: Any) -> bool:
        """As the method asks."""
        wanted = CanRead() if request.method in {"GET", "HEAD", "OPTIONS"} else CanIngest()
        return wanted.has_permission(request, view)


class NoKeyOrOneOfFeedback(BasePermission):
    """Whoever comes without a key, and keys of `feedback` or `ingest`: for them who speaks is asked of each event."""

    def has_permission(self, request: Request, view: Any) -> bool:
        """Raises 403 with a key of other scopes."""
        if request.auth is not None and not scope_of(request, Scope.FEEDBACK, Scope.INGEST):
            raise PermissionDenied(_("This key may not post feedback; its scopes lack feedback."))
        return True
