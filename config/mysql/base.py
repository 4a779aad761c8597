"""Django's wrapper of a connection, without the round trips that a request need not wait for."""

from __future__ import annotations

import select
import time
from typing import Any

from django.db.backends.mysql import base

ALIVE_SECONDS = 5
"""A connection that was well so long ago, and on which the server has said nothing since, is well."""


class DatabaseWrapper(base.DatabaseWrapper):
    """One connection."""

    health_check_done: bool
    _well_at = float("-inf")

    def _start_transaction_under_autocommit(self) -> None:
        """One BEGIN, after which COMMIT leaves autocommit on: not two statements that switch it off and on again."""
        with self.wrap_database_errors:
            self.connection.query("BEGIN")

    def close_if_health_check_failed(self) -> None:
        """Ask the server only whether it is there when there is a doubt: what it closed can be seen at the socket."""
        if self.connection is not None and not self.health_check_done:
            now = time.monotonic()
            if now < self._well_at + ALIVE_SECONDS and _is_silent(self.connection):
                self.health_check_done = True
            else:
                self._well_at = now  # it is asked now, or made anew
        super().close_if_health_check_failed()


def _is_silent(connection: Any) -> bool:
    """Whether nothing came from the server: neither its farewell nor the end of the stream."""
    poll = select.poll()
    try:
        poll.register(connection.fileno(), select.POLLIN)
    except (ValueError, base.Database.Error):  # type: ignore[attr-defined]  # it has no socket any more
        return False
    return not poll.poll(0)
