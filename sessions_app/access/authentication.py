"""`Authorization: Bearer <key>`. Cookies are not looked at, so the API needs no CSRF protection."""

from typing import Any

from django.utils.translation import gettext as _
from drf_spectacular.extensions import OpenApiAuthenticationExtension
from rest_framework.authentication import BaseAuthentication, get_authorization_header
from rest_framework.exceptions import AuthenticationFailed
from rest_framework.request import Request

from sessions_app.models import ApiKey
from sessions_app.services.keys import find_key


class ApiKeyAuthentication(BaseAuthentication):
    """Sets `request.auth` to the key; there is no user."""

    def authenticate(self, request: Request) -> tuple[None, ApiKey] | None:
        """The key of the request; None without the header. A header with a wrong key is refused on every route."""
        secret = _secret_of(request)
        if secret is None:
            return None
        try:
            key = find_key(secret.decode("ascii"))
        except UnicodeDecodeError:
            key = None
        if key is None:
            raise AuthenticationFailed(_("This key is not known or was revoked."))
        return None, key

    def authenticate_header(self, request: Request) -> str:
        """What a 401 asks for."""
        return "Bearer"


def _secret_of(request: Request) -> bytes | None:
    """The key as `Authorization: Bearer <key>`, or as `x-api-key`, which is what some exporters can be told to send."""
    parts = get_authorization_header(request).split()
    if not parts:
        other = request.headers.get("X-Api-Key")
        return other.strip().encode("latin-1", "replace") if other else None
    if len(parts) != 2 or parts[0].lower() != b"bearer":  # noqa: PLR2004
        raise AuthenticationFailed(_("Send the key as: Authorization: Bearer <key>"))
    return parts[1]


class ApiKeyScheme(OpenApiAuthenticationExtension):  # type: ignore[no-untyped-call]
    """How the OpenAPI document describes the key."""

    target_class = ApiKeyAuthentication
    name = "apiKey"

    def get_security_definition(self, auto_schema: Any) -> dict[str, str]:
        """An HTTP bearer scheme."""
        return {"type": "http", "scheme": "bearer"}
