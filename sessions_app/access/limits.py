"""Limits on what anybody on the web may send, by address, key and session.

A Redis that is away holds nobody up: meanwhile each machine counts for itself. Without a place to count at all, the
limits stand open, for feedback that is lost does not come again.
"""

from __future__ import annotations

import math
import sqlite3
import time
from collections.abc import Iterable
from functools import lru_cache
from ipaddress import IPv6Address, IPv6Network, ip_address
from pathlib import Path
from typing import Any

import structlog
from django.conf import settings
from django.http import HttpRequest
from django.utils.translation import ngettext
from redis.exceptions import RedisError
from rest_framework import status
from rest_framework.exceptions import APIException
from rest_framework.request import Request
from rest_framework.throttling import BaseThrottle

from sessions_app.access.buckets import Draw, FileBuckets, Rate, RedisBuckets, merged, name_of
from sessions_app.access.permissions import scope_of
from sessions_app.models import ApiKey, Scope

logger = structlog.get_logger(__name__)

PAUSE_SECONDS = 5.0
"""After a failure of Redis, so long no request waits for it."""

LARGE_BODY_BYTES = 16 * 1024
"""From this length on, whoever has no room left is refused before the body is read."""

IPV6_NETWORK_BITS = 64
"""What one customer gets at least: within it, addresses are free to choose."""

_away_until = 0.0


class TooMuchError(APIException):
    """429. DRF's own would mix two languages in one message."""

    status_code = status.HTTP_429_TOO_MANY_REQUESTS
    default_code = "throttled"

    def __init__(self, wait: float) -> None:
        self.wait = wait
        seconds = math.ceil(wait)
        message = ngettext(
            "Too much feedback at once. Try again in %(n)s second.",
            "Too much feedback at once. Try again in %(n)s seconds.",
            seconds,
        )
        super().__init__(message % {"n": seconds})


def charge(request: Request, *, events: int, session_ids: Iterable[str] = ()) -> None:
    """Count feedback against the rates of its address, its key and its sessions (one id for each event that has one).

    Where one has no room, nothing is counted. A recording agent (`ingest`) is not limited: its own load is larger.
    Raises TooMuchError.
    """
    if scope_of(request, Scope.INGEST):
        return
    draws = _senders(request, events)
    draws += [Draw(name_of("session", each), _rate("session"), 1) for each in session_ids]
    if wait := _draw(merged(draws)):
        raise TooMuchError(wait)


class RoomLeft(BaseThrottle):
    """Refuses a large body of a sender who has no room left, before it is read. What it holds, `charge` counts."""

    def allow_request(self, request: Request, view: Any) -> bool:
        """To go on. Raises TooMuchError."""
        length = request.headers.get("Content-Length") or ""
        is_small = length.isdigit() and int(length) < LARGE_BODY_BYTES
        if not is_small and not scope_of(request, Scope.INGEST) and (wait := _draw(_senders(request, 0))):
            raise TooMuchError(wait)
        return True


def address_of(request: HttpRequest | Request) -> str:
    """Whose request this is: behind TRUSTED_PROXIES what the outermost of them saw, else the peer.

    Each proxy appends the peer it saw to X-Forwarded-For; what stands further left the client may have written itself.
    """
    peer = str(request.META.get("REMOTE_ADDR") or "")
    count: int = settings.TRUSTED_PROXIES
    if not count:
        return _network(peer) or peer
    hops = [hop.strip() for hop in request.META.get("HTTP_X_FORWARDED_FOR", "").split(",")]
    # Fewer than there are proxies: it came around them, so the header is the sender's own.
    return (_network(hops[-count]) if len(hops) >= count else "") or _network(peer) or peer


def _network(text: str) -> str:
    """An IPv4 address, or the network of an IPv6 one; "" for neither. Some proxies add a port."""
    host = text
    if text.startswith("["):
        host = text[1:].partition("]")[0]
    elif text.count(":") == 1:
        host = text.partition(":")[0]
    try:
        address = ip_address(host.partition("%")[0])
    except ValueError:
        return ""
    if not isinstance(address, IPv6Address):
        return str(address)
    if address.ipv4_mapped:
        return str(address.ipv4_mapped)
    return str(IPv6Network((address, IPV6_NETWORK_BITS), strict=False))


def _senders(request: Request, amount: int) -> list[Draw]:
    draws = [Draw(name_of("address", address_of(request)), _rate("address"), amount)]
    if isinstance(request.auth, ApiKey):
        draws.append(Draw(name_of("key", str(request.auth.pk)), _rate("key"), amount))
    return draws


def _rate(kind: str) -> Rate:
    return Rate(*settings.FEEDBACK_RATES[kind])


def _draw(draws: list[Draw]) -> float:
    """Seconds to wait."""
    global _away_until  # all requests of the process share it
    shared, own = stores(settings.CACHE_URL, settings.DATA_DIR)
    if shared and time.monotonic() >= _away_until:
        try:
            return shared.draw(draws)
        except RedisError as error:
            _away_until = time.monotonic() + PAUSE_SECONDS
            logger.warning("limits_redis_away", error=type(error).__name__)
    try:
        return own.draw(draws)
    except sqlite3.Error as error:
        logger.warning("limits_open", error=str(error))
        return 0.0


@lru_cache(maxsize=1)
def stores(url: str, folder: Path) -> tuple[RedisBuckets | None, FileBuckets]:
    """Where this process counts: with all others if there is a Redis, and with those of its machine."""
    shared = RedisBuckets(url.replace("redis+socket://", "unix://")) if url else None
    return shared, FileBuckets(folder / "limits.sqlite3")
