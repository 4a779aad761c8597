"""What differs between databases: transactions that meet others, and letters of either case."""

import random
import time
from collections.abc import Callable
from functools import wraps
from typing import ParamSpec, TypeVar

from django.db import DatabaseError, IntegrityError, OperationalError, connection, transaction
from django.db.models import Q

P = ParamSpec("P")
R = TypeVar("R")

ATTEMPTS = 8
_DUPLICATE_KEY = 1062
_AWAY = {2002, 2003, 2006, 2013}
_TRANSIENT = {1020, 1205, 1213, 3572}  # record changed, lock wait timeout, deadlock, lock not available


def is_duplicate_key(error: IntegrityError) -> bool:
    """Whether somebody else inserted the same unique key first; any other integrity error is a fault."""
    return error.args[:1] == (_DUPLICATE_KEY,) or str(error).startswith("UNIQUE constraint failed")


def is_transient(error: Exception) -> bool:
    """Whether the same transaction may well succeed when run again."""
    if isinstance(error, IntegrityError):
        return is_duplicate_key(error)
    if isinstance(error, OperationalError):
        return bool(error.args) and (error.args[0] in _TRANSIENT or "database is locked" in str(error.args[0]))
    return False


def is_away(error: DatabaseError) -> bool:
    """Whether the connection, not the data, is at fault."""
    return not connection.is_usable() or (bool(error.args) and error.args[0] in _AWAY)


def is_passing(error: DatabaseError) -> bool:
    """Whether the data is without fault: the whole call may well succeed later, so nothing in it is refused."""
    return is_transient(error) or is_away(error)


def in_transaction(function: Callable[P, R]) -> Callable[P, R]:
    """Run `function` in one transaction; run it again, all of it, when it deadlocks or loses a race for a key.

    Inside an outer transaction it joins that one: only the outermost caller can retry.
    """

    @wraps(function)
    def run(*args: P.args, **kwargs: P.kwargs) -> R:
        if connection.in_atomic_block:
            return function(*args, **kwargs)
        for attempt in range(1, ATTEMPTS + 1):
            try:
                with transaction.atomic():
                    return function(*args, **kwargs)
            except (IntegrityError, OperationalError) as error:
                if attempt == ATTEMPTS or not is_transient(error):
                    raise
                time.sleep(random.uniform(0, 0.01 * 2**attempt))  # noqa: S311 - jitter, not a secret
        raise AssertionError("unreachable")

    return run


def holds(column: str, words: str) -> Q:
    """Whether a column holds `words`, in upper or lower case.

    SQLite's LIKE folds the case of ASCII alone: of other letters it is asked for the usual ways to write them.
    """
    if connection.vendor != "sqlite" or words.isascii():
        return Q((f"{column}__icontains", words))
    found = Q()
    for written in {words, words.lower(), words.upper(), words.capitalize(), words.title()}:
        found |= Q((f"{column}__icontains", written))
    return found
