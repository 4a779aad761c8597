"""Rate limits that fail open: a cache that is away must not turn feedback away, nor hold it up."""

import time
from typing import Any

import structlog
from rest_framework.request import Request
from rest_framework.throttling import SimpleRateThrottle

logger = structlog.get_logger(__name__)

PAUSE_SECONDS = 5.0


class AddressThrottle(SimpleRateThrottle):
    """So many requests an address; behind TRUSTED_PROXIES the address they report, else the peer's own."""

    scope = "feedback_address"
    _open_until = 0.0  # shared by all throttles of the process: they share the cache

    def get_cache_key(self, request: Request, view: Any) -> str | None:
        """One bucket an address."""
        return self.cache_format % {"scope": self.scope, "ident": self.get_ident(request)}

    def allow_request(self, request: Request, view: Any) -> bool:
        """Whether there is room; always, while the cache does not answer."""
        if time.monotonic() < AddressThrottle._open_until:
            return True
        try:
            return super().allow_request(request, view)
        except Exception as error:  # noqa: BLE001 - cache backends raise their own libraries' errors
            AddressThrottle._open_until = time.monotonic() + PAUSE_SECONDS
            logger.warning("throttle_open", error=type(error).__name__)
            return True
