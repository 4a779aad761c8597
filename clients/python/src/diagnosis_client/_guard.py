"""The promise to the agent: whatever is wrong with its record, its own work goes on."""

from __future__ import annotations

import functools
import logging
from collections.abc import Callable
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
R = TypeVar("R")

logger = logging.getLogger("diagnosis_client")

_said: set[str] = set()


def guarded(function: Callable[P, R]) -> Callable[P, R | None]:
    """Log an error of ours, once for each function, and give None instead of raising it."""

    @functools.wraps(function)
    def call(*args: P.args, **kwargs: P.kwargs) -> R | None:
        try:
            return function(*args, **kwargs)
        except Exception:
            if function.__qualname__ not in _said:
                _said.add(function.__qualname__)
                logger.warning("Part of the record is lost; the agent goes on.", exc_info=True)
            return None

    return call


def warn_once(key: str, text: str) -> None:
    """Log a hint, once for each process and key."""
    if key not in _said:
        _said.add(key)
        logger.warning("%s", text)
