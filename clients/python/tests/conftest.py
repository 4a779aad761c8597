"""The product's stand-in, and recorders and collectors that speak with it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from product_server import ProductServer

from diagnosis_client import FeedbackCollector, Recorder, _guard


@pytest.fixture(autouse=True)
def _fresh_warnings() -> None:
    """What is said once in a process is said once in each test."""
    _guard._said.clear()


@pytest.fixture
def product() -> Iterator[ProductServer]:
    server = ProductServer()
    yield server
    server.stop()


@pytest.fixture
def new_recorder(product: ProductServer) -> Iterator[Callable[..., Recorder]]:
    made: list[Recorder] = []

    def make(**settings: Any) -> Recorder:
        settings = {"endpoint": product.url, "api_key": "dk_test", "agent_id": "oncall/1.0", **settings}
        made.append(Recorder(**settings))
        return made[-1]

    yield make
    for recorder in made:
        recorder.close(0.2)


@pytest.fixture
def recorder(new_recorder: Callable[..., Recorder]) -> Recorder:
    return new_recorder()


@pytest.fixture
def new_collector(product: ProductServer) -> Iterator[Callable[..., FeedbackCollector]]:
    made: list[FeedbackCollector] = []

    def make(**settings: Any) -> FeedbackCollector:
        made.append(FeedbackCollector(**{"endpoint": product.url, **settings}))
        return made[-1]

    yield make
    for collector in made:
        collector.close(0.2)
