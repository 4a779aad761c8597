"""The environment of a test run: a pytest plugin (`-p tests.environment`), because Django reads it before any conftest.

Everything but DATABASE_URL is set, not defaulted: a developer's own settings must not decide what a test sees.
"""

from __future__ import annotations

import atexit
import os
import shutil
import tempfile
from pathlib import Path
from typing import Any

import hypothesis
import pytest
from xdist.scheduler import LoadScopeScheduling

DATA_DIR = Path(tempfile.mkdtemp(prefix="diagnosis-test-"))
atexit.register(shutil.rmtree, DATA_DIR, ignore_errors=True)

os.environ |= {
    "SECRET_KEY": "for-tests-only-8Jd0b1Qp4wYx7nVt2LsKzRgEuHc6Mf3A9TqWo5iNXj",
    "DATA_DIR": str(DATA_DIR),
    "DEBUG": "false",
    "HTTPS": "false",
    "ALLOWED_HOSTS": "localhost,127.0.0.1",
    "CELERY_BROKER_URL": "memory://",
    "CACHE_URL": "",
    "LOG_LEVEL": "WARNING",
    "LOG_FORMAT": "console",
    "DJANGO_ALLOW_ASYNC_UNSAFE": "true",  # Playwright's event loop runs in the thread of the test
}
for name in (
    "LANGUAGE_CODE",
    "TIME_ZONE",
    "FEEDBACK_AUTH",
    "MAX_BODY_BYTES",
    "RETRIEVAL_TOOLS",
    "TRUSTED_PROXIES",
    "EMAIL_URL",
    "PUBLIC_URL",
    "SIMILARITY",
    "RE_ASK_WINDOW_SECONDS",
    "RE_ASK_DEPTH",
    "RE_ASK_THRESHOLD",
    "CORS_ALLOWED_ORIGINS",
    "FEEDBACK_RATE_PER_ADDRESS",
    "FEEDBACK_RATE_PER_SESSION",
    "FEEDBACK_RATE_PER_KEY",
    "DEMO",
    "ALERT_ALLOWED_PRIVATE_HOSTS",
):
    os.environ.pop(name, None)
os.environ.setdefault("DATABASE_URL", f"sqlite:///{DATA_DIR / 'db.sqlite3'}")


def pytest_addoption(parser: pytest.Parser) -> None:
    """What `tests/browser/test_pages.py` and the fixture `screenshot` ask for."""
    parser.addoption(
        "--every-look", action="store_true", help="walk through all pages in every language, width and scheme"
    )
    parser.addoption("--pictures", metavar="FOLDER", help="keep pictures of pages there")


def pytest_configure(config: pytest.Config) -> None:
    """Change what has no variable of its own."""
    from django.conf import settings

    # Examples are new each time at a developer's, the same each time in CI: what fails there must fail here too.
    hypothesis.settings.register_profile("dev", deadline=None)
    hypothesis.settings.register_profile("ci", deadline=None, derandomize=True)
    hypothesis.settings.load_profile("ci" if os.environ.get("CI") else "dev")
    settings.WHITENOISE_AUTOREFRESH = True  # else each new test client looks at every static file
    settings.PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
    database = settings.DATABASES["default"]
    if database["ENGINE"].endswith("sqlite3"):
        # A file: threads of a live server and of races open connections of their own.
        database.setdefault("TEST", {})["NAME"] = str(DATA_DIR / "test.sqlite3")


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Begin with the tests of the stack, which take longest. End with those in browsers.

    Playwright's event loop runs on in a process that once opened a browser, where no other can run after it.
    """
    browsing = {item.path for item in items if item.get_closest_marker("browser")}

    def turn(item: pytest.Item) -> int:
        return 0 if item.get_closest_marker("services") else 2 if item.path in browsing else 1

    items.sort(key=turn)


class FilesApart(LoadScopeScheduling):
    """A file of tests goes to one process; all that use the stack of real processes go to the same one, first.

    The marker `xdist_group`, which should do it, has no effect with pytest 9.2 and xdist 3.8.
    """

    def _split_scope(self, nodeid: str) -> str:
        file = nodeid.split("::", 1)[0]
        return "services" if file.startswith("tests/services/") else file


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> FilesApart:
    """How `pytest -n 2` shares the tests out."""
    config.option.loadscopereorder = False  # they come in the order in which they should begin
    return FilesApart(config, log)
