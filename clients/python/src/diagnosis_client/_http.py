"""Speaking with the server: one connection pool per process, and what each kind of answer means."""

from __future__ import annotations

import logging
import os
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass
from email.utils import parsedate_to_datetime

import httpx

# Private, yet the one switch that every instrumentation obeys; without it, recording httpx would record ourselves.
from opentelemetry.context import _SUPPRESS_INSTRUMENTATION_KEY, attach, detach, set_value

logger = logging.getLogger("diagnosis_client")

HINTS = {
    401: "(the api_key is missing or wrong)",
    403: "(the api_key does not allow this)",
    404: "(the endpoint is not where the product is)",
}
KEEP_ALIVE_SECONDS = 1.0
TRY_LATER = frozenset({429, 502, 503, 504})

_ours = threading.local()


class _HideOurRequests(logging.Filter):
    """httpx logs each request at INFO; ours, every few seconds, would drown the agent's."""

    def filter(self, record: logging.LogRecord) -> bool:
        return record.levelno > logging.INFO or not getattr(_ours, "is_sending", False)


_hide_our_requests = _HideOurRequests()


@dataclass(frozen=True)
class Reply:
    """The server's answer; status 0 when there was none."""

    status: int
    headers: Mapping[str, str]
    body: bytes = b""
    trouble: str = ""  # why there is no answer

    @property
    def is_success(self) -> bool:
        return self.status // 100 == 2  # noqa: PLR2004 - 2xx

    @property
    def may_try_again(self) -> bool:
        """No answer, or one that says "not now"."""
        return self.status == 0 or self.status in TRY_LATER

    @property
    def wait_seconds(self) -> float | None:
        """What Retry-After asks for: seconds or a date."""
        asked = self.headers.get("retry-after", "").strip()
        if not asked:
            return None
        if asked.isdecimal():
            return float(asked)
        try:
            return max(0.0, parsedate_to_datetime(asked).timestamp() - time.time())
        except (TypeError, ValueError):
            return None

    def __str__(self) -> str:
        if self.status == 0:
            return self.trouble
        text = self.body[:300].decode("utf-8", "replace").strip() if self._is_readable else ""
        moved = f"(moved to {self.headers['location'][:300]})" if self.headers.get("location") else ""
        return " ".join(filter(None, (f"HTTP {self.status}", HINTS.get(self.status), moved, text)))

    @property
    def _is_readable(self) -> bool:
        return self.headers.get("content-type", "").startswith(("application/json", "text/plain"))


class Server:
    """Where to send, and with which key. Used by one thread at a time."""

    def __init__(self, endpoint: str, api_key: str | None) -> None:
        """Raises ValueError for an endpoint that is no http(s) address, or a key that no header can carry."""
        address = endpoint.strip()
        try:
            url = httpx.URL(address if "://" in address else f"http://{address}")
        except httpx.InvalidURL as error:
            raise ValueError(f"endpoint is no address: {endpoint!r}") from error
        if url.scheme not in {"http", "https"} or not url.host:
            raise ValueError(f"endpoint is no http(s) address: {endpoint!r}")
        self.endpoint = str(url).rstrip("/")
        key = (api_key or "").strip()
        if not key.isascii() or not key.isprintable():
            raise ValueError("api_key holds characters that no key has")
        self._headers = {"Authorization": f"Bearer {key}"} if key else {}
        self._client: httpx.Client | None = None
        self._pid = 0
        self._is_in_trouble = False
        logging.getLogger("httpx").addFilter(_hide_our_requests)

    def post(self, path: str, body: bytes, headers: Mapping[str, str], seconds: float) -> Reply:
        """Post a body. Raises nothing: trouble on the way is a Reply of status 0."""
        token = attach(set_value(_SUPPRESS_INSTRUMENTATION_KEY, True))
        _ours.is_sending = True
        try:
            answer = self._connection().post(
                self.endpoint + path, content=body, headers={**self._headers, **headers}, timeout=seconds
            )
            return Reply(answer.status_code, answer.headers, answer.content)
        except Exception as error:  # noqa: BLE001 - whatever it is, the server got nothing
            return Reply(0, {}, trouble=f"{type(error).__name__}: {error}")
        finally:
            _ours.is_sending = False
            detach(token)

    def _connection(self) -> httpx.Client:
        if self._client is None or self._pid != os.getpid():  # a forked child must not write to its parent's sockets
            # Short, so that no connection is taken up again just when the server lets it go.
            self._client = httpx.Client(limits=httpx.Limits(keepalive_expiry=KEEP_ALIVE_SECONDS))
            self._pid = os.getpid()
        return self._client

    def close(self) -> None:
        """Give the connections back."""
        if self._client is not None and self._pid == os.getpid():
            self._client.close()
        self._client = None

    def say_waiting(self, reply: Reply) -> None:
        """Warn once for each stretch of trouble."""
        if not self._is_in_trouble:
            self._is_in_trouble = True
            logger.warning(
                "%s takes nothing now (%s). The agent goes on; its records wait and are sent again.",
                self.endpoint,
                reply,
            )

    def say_delivered(self) -> None:
        """End a stretch of trouble."""
        if self._is_in_trouble:
            self._is_in_trouble = False
            logger.info("%s takes records again.", self.endpoint)
