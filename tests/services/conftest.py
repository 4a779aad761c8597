"""The stack of real processes, started once, healed before each test, and what tests send to it."""

from __future__ import annotations

import random
import threading
import uuid
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

import pytest
from django.conf import settings

from tests import absent
from tests.stack import Stack

T = TypeVar("T")
CLIENTS = 8


@pytest.fixture(scope="session")
def _running_stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    if not settings.DATABASES["default"]["ENGINE"].endswith("mysql"):
        absent("Real processes need MariaDB: bin/test --mysql, or DATABASE_URL=mysql://…")
    stack = Stack(tmp_path_factory.mktemp("stack"))
    stack.set_up()
    yield stack
    stack.tear_down()


@pytest.fixture
def stack(_running_stack: Stack) -> Stack:
    """Web, worker, beat, Redis and a database, all of them well."""
    _running_stack.heal()
    return _running_stack


@pytest.fixture
def rng(request: pytest.FixtureRequest) -> random.Random:
    """Randomness that can be had again: the seed stands in the report of a failure."""
    seed = random.SystemRandom().randrange(10**6)
    request.node.user_properties.append(("seed", seed))
    print(f"seed {seed}")
    return random.Random(seed)


@pytest.fixture
def new_ids() -> Callable[[int], list[str]]:
    """Session ids nobody used: tests share one database."""

    def make(count: int) -> list[str]:
        prefix = uuid.uuid4().hex[:12]
        return [f"{prefix}-{number}" for number in range(count)]

    return make


@pytest.fixture
def at_once() -> Callable[[Sequence[Callable[[], T]]], list[T]]:
    """Run all of these in threads that leave one barrier together; their results in order."""

    def run(calls: Sequence[Callable[[], T]]) -> list[T]:
        barrier = threading.Barrier(len(calls))

        def go(call: Callable[[], T]) -> T:
            barrier.wait(10)
            return call()

        with ThreadPoolExecutor(len(calls)) as pool:
            return list(pool.map(go, calls))

    return run


def whole_session(session_id: str, **fields: Any) -> dict[str, Any]:
    """A finished session with one L0 hit, which scores 65, in the wire form of a batch."""
    return {
        "sessionId": session_id,
        "query": f"Why is {session_id} slow?",
        "status": "SUCCESS",
        "answer": "The pool is exhausted.",
        "steps": [
            {
                "agentName": "planner",
                "stepIndex": 0,
                "toolInvocations": [
                    {"toolName": "lookup_knowledge", "retrievalLayer": "L0", "l0MatchCount": 1},
                    {"toolName": "query_metrics"},
                ],
            }
        ],
        **fields,
    }
