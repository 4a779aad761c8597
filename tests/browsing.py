"""Fixtures for tests marked `browser`: headless Chromium, signed in, watched for faults and foreign requests.

A page that logs an error, violates its policy or asks another host fails its test, also when the test never looks.
"""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from django.conf import settings
from django.test import Client
from playwright.sync_api import BrowserContext, ConsoleMessage, Dialog, Page

from tests import absent

LOCALES = {"en": "en-US", "zh-hans": "zh-CN", "ru": "ru-RU"}


@dataclass
class Watch:
    """What went wrong in the pages of one test."""

    faults: list[str] = field(default_factory=list)
    _expected: list[re.Pattern[str]] = field(default_factory=list)

    def expect(self, pattern: str) -> None:
        """Let faults that match pass: `watch.expect("status of 404")`."""
        self._expected.append(re.compile(pattern))

    def attach(self, context: BrowserContext, host: str) -> None:
        """Listen to every page of a context."""
        context.on("request", lambda request: self._note_request(request.url, host))
        context.on("console", self._note_console)
        context.on("weberror", lambda fault: self.faults.append(f"script: {fault.error}"))
        context.on("dialog", self._note_dialog)

    def _note_request(self, url: str, host: str) -> None:
        parts = urlsplit(url)
        if parts.scheme not in {"data", "blob", "about"} and parts.netloc != host:
            self.faults.append(f"foreign request: {url[:200]}")

    def _note_console(self, message: ConsoleMessage) -> None:
        # Chromium asks for /favicon.ico on its own where a page, such as a bare error, names no icon.
        if message.type == "error" and not message.location["url"].endswith("/favicon.ico"):
            self.faults.append(f"console: {message.text} ({message.location['url']})")

    def _note_dialog(self, dialog: Dialog) -> None:
        self.faults.append(f"dialog: {dialog.message}")
        dialog.dismiss()

    def unexpected(self) -> list[str]:
        """Faults nobody announced."""
        return [fault for fault in self.faults if not any(pattern.search(fault) for pattern in self._expected)]


@pytest.fixture(scope="session")
def browser_type_launch_args(browser_type_launch_args: dict[str, Any]) -> dict[str, Any]:
    """Debian's Chromium, with nothing that phones home."""
    executable = os.environ.get("CHROMIUM") or shutil.which("chromium") or shutil.which("chromium-browser")
    if not executable:
        absent("Chromium is absent: apt-get install chromium, or set CHROMIUM to its path.")
    return {
        **browser_type_launch_args,
        "executable_path": executable,
        "args": [
            "--no-sandbox",
            "--disable-dev-shm-usage",
            "--disable-gpu",
            "--disable-background-networking",
            "--disable-component-update",
        ],
    }


@pytest.fixture
def browser_language() -> str:
    """What the browser asks for: "en", "zh-hans" or "ru". Override or parametrize it."""
    return "en"


@pytest.fixture
def watch() -> Iterator[Watch]:
    """Fails the test at its end when a page of it had a fault that was not expected."""
    watch = Watch()
    yield watch
    assert watch.unexpected() == []


@pytest.fixture
def new_context(
    watch: Watch, new_context: Callable[..., BrowserContext], live_server: Any, browser_language: str
) -> Callable[..., BrowserContext]:
    """A watched context whose relative addresses are the live server's."""

    def make(**options: Any) -> BrowserContext:
        options = {
            "base_url": live_server.url,
            "locale": LOCALES[browser_language],
            "viewport": {"width": 1280, "height": 900},
            "reduced_motion": "reduce",
            **options,
        }
        context = new_context(**options)
        context.set_default_timeout(10_000)
        watch.attach(context, urlsplit(live_server.url).netloc)
        return context

    return make


@pytest.fixture
def signed_in(new_context: Callable[..., BrowserContext], live_server: Any) -> Callable[..., Page]:
    """A page of somebody who signed in: `signed_in(reviewer).goto("/admin/")`. Each call is a browser of its own."""

    def make(user: Any, **options: Any) -> Page:
        client = Client()
        client.force_login(user, backend="django.contrib.auth.backends.ModelBackend")
        context = new_context(**options)
        cookie = client.cookies[settings.SESSION_COOKIE_NAME]
        context.add_cookies([{"name": cookie.key, "value": cookie.value, "url": live_server.url}])
        return context.new_page()

    return make


@pytest.fixture
def screenshot(request: pytest.FixtureRequest) -> Callable[..., None]:
    """Keep a picture where `--pictures` says, else none: `screenshot(page, "inbox")`."""
    pictures = request.config.getoption("pictures")

    def take(page: Page, name: str, *, full_page: bool = True) -> None:
        if pictures:
            folder = Path(pictures) / Path(request.node.path).stem
            folder.mkdir(parents=True, exist_ok=True)
            page.screenshot(path=folder / f"{name}.png", full_page=full_page)

    return take
