"""Tests of the product. `bin/test` runs them all; plain `pytest` those that need no server."""

import os
from typing import NoReturn

import pytest


def absent(what: str) -> NoReturn:
    """Skip for want of something; under `bin/test`, which brings everything, fail."""
    if os.environ.get("TESTS_MAY_NOT_SKIP"):
        pytest.fail(what)
    pytest.skip(what)
