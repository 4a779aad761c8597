"""One POST, and what came of it. Bounded in time and in bytes; follows no redirect; keeps no connection."""

from __future__ import annotations

import ssl
import time
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from enum import StrEnum
from typing import Any, NamedTuple

import httpcore2 as httpcore

from feedback_app.webhooks.addresses import (
    Allowed,
    Resolve,
    UnreachableHostError,
    reachable_addresses,
    system_addresses,
)

CONNECT_SECONDS = 5.0
TOTAL_SECONDS = 10.0
ANSWER_BYTES = 4096
ANSWER_CHARS = 500
OK, REDIRECT, ERROR = 200, 300, 400


class Failure(StrEnum):
    """Why nothing was delivered. What it means for people: `feedback_app.alerts.words`."""

    REFUSED_ADDRESS = "refused_address"
    UNKNOWN_HOST = "unknown_host"
    UNREACHABLE = "unreachable"
    TLS = "tls"
    TIMEOUT = "timeout"
    BROKEN = "broken"
    REDIRECT = "redirect"
    STATUS = "status"


class Outcome(NamedTuple):
    """What came of one try."""

    failure: str  # one of `Failure`; "": delivered
    status_code: int | None = None
    answer: str = ""  # its beginning, in one line or several, without characters that control anything
    duration_ms: int = 0


def post(
    url: str,
    body: bytes,
    headers: Mapping[str, str],
    *,
    allowed: Allowed,
    resolve: Resolve = system_addresses,
    seconds: float = TOTAL_SECONDS,
) -> Outcome:
    """Send `body` there, once. Never raises for what the other side does.

    Resolving a name is the system's and may take longer than `seconds`; whoever may not wait looks away.
    """
    began = time.monotonic()
    deadline = began + seconds
    status_code, answer = None, ""
    try:
        target = httpcore.URL(url)
        host = target.host.decode("ascii").strip("[]")
        backend = _CheckedBackend(reachable_addresses(host, _port(target), allowed=allowed, resolve=resolve), deadline)
        with (
            httpcore.ConnectionPool(
                ssl_context=_tls(target), network_backend=backend, max_keepalive_connections=0
            ) as pool,
            pool.stream("POST", target, headers=[*headers.items()], content=body) as response,
        ):
            status_code = response.status
            answer = _beginning(response.iter_stream())
        failure: str = _judged(status_code)
    except UnreachableHostError as error:
        failure = Failure.REFUSED_ADDRESS if error.is_refused else Failure.UNKNOWN_HOST
    except (httpcore.TimeoutException, httpcore.NetworkError, httpcore.ProtocolError) as error:
        # Who has said how it ends has said enough: an answer that breaks off is no reason to send again.
        failure = _named(error) if status_code is None else _judged(status_code)
    return Outcome(failure, status_code, answer, round((time.monotonic() - began) * 1000))


def printable(text: str) -> str:
    """The beginning of what the other side said, fit to be stored and shown."""
    seen = "".join(c if c in "\n\t" or unicodedata.category(c)[0] != "C" else " " for c in text)
    return seen.strip()[:ANSWER_CHARS]


def _port(target: Any) -> int:
    return int(target.port or (443 if target.scheme == b"https" else 80))


def _tls(target: Any) -> ssl.SSLContext | None:
    """The system's certificates, or those of SSL_CERT_FILE; read only where they are needed."""
    return ssl.create_default_context() if target.scheme == b"https" else None


def _judged(status_code: int) -> str:
    if OK <= status_code < REDIRECT:
        return ""
    return Failure.REDIRECT if REDIRECT <= status_code < ERROR else Failure.STATUS


def _named(error: Exception) -> Failure:
    if isinstance(error, httpcore.TimeoutException):
        return Failure.TIMEOUT
    if isinstance(error, _TlsError):
        return Failure.TLS
    return Failure.UNREACHABLE if isinstance(error, httpcore.ConnectError) else Failure.BROKEN


def _beginning(stream: Iterable[bytes]) -> str:
    """As much of the body as anybody wants to see; what else there is is never read."""
    read = b""
    try:
        for chunk in stream:
            read += chunk
            if len(read) >= ANSWER_BYTES:
                break
    except (httpcore.TimeoutException, httpcore.NetworkError, httpcore.ProtocolError):
        pass  # the status has been given
    return printable(read[:ANSWER_BYTES].decode("utf-8", "replace"))


class _TlsError(httpcore.ConnectError):
    """The connection stands, but cannot be encrypted for the name that was asked for."""


class _CheckedBackend(httpcore.NetworkBackend):
    """Connects to addresses that were checked, whatever the name means by now, and watches the clock."""

    def __init__(self, addresses: Sequence[str], deadline: float) -> None:
        self._addresses, self._deadline = addresses, deadline
        self._sockets = httpcore.SyncBackend()

    def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore.NetworkStream:
        """To the first address that takes the connection."""
        until = min(time.monotonic() + CONNECT_SECONDS, self._deadline)
        for last, address in enumerate(self._addresses, start=1 - len(self._addresses)):
            try:
                stream = self._sockets.connect_tcp(address, port, _left(until, httpcore.ConnectTimeout))
            except httpcore.ConnectError:
                if last == 0:
                    raise
            else:
                return _TimedStream(stream, self._deadline)
        raise httpcore.ConnectError


class _TimedStream(httpcore.NetworkStream):
    """A stream that ends at a deadline: one byte now and then is no reason to wait on."""

    def __init__(self, stream: httpcore.NetworkStream, deadline: float) -> None:
        self._stream, self._deadline = stream, deadline

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        """Some bytes."""
        return self._stream.read(max_bytes, _left(self._deadline, httpcore.ReadTimeout))

    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        """All of the buffer."""
        self._stream.write(buffer, _left(self._deadline, httpcore.WriteTimeout))

    def close(self) -> None:
        """At once."""
        self._stream.close()

    def start_tls(
        self, ssl_context: ssl.SSLContext, server_hostname: str | None = None, timeout: float | None = None
    ) -> httpcore.NetworkStream:
        """The same, encrypted."""
        left = _left(self._deadline, httpcore.ConnectTimeout)
        try:
            stream = self._stream.start_tls(ssl_context, server_hostname, left)
        except httpcore.ConnectError as error:
            raise _TlsError from error
        return _TimedStream(stream, self._deadline)

    def get_extra_info(self, info: str) -> Any:
        """What the socket knows."""
        return self._stream.get_extra_info(info)


def _left(until: float, error: type[Exception]) -> float:
    left = until - time.monotonic()
    if left <= 0:
        raise error
    return left
