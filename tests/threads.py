"""Several threads at one moment, each with a database connection of its own."""

from __future__ import annotations

import threading
from typing import Any

from django.db import connections


def at_once(work: Any, times: int = 6) -> list[Any]:
    """Results of `work` in as many threads at once; raises what one of them raised."""
    start, results, failures = threading.Barrier(times), [], []

    def run() -> None:
        try:
            start.wait()
            results.append(work())
        except BaseException as error:  # noqa: BLE001 - told below
            failures.append(error)
        finally:
            connections.close_all()

    threads = [threading.Thread(target=run) for _ in range(times)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    return results
