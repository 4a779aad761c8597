"""What other apps have to say on a session's page. They register here, so that sessions need not know of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from django.http import HttpRequest

from sessions_app.models import DiagnosisSession


@dataclass(frozen=True, slots=True)
class Panel:
    """One box beside the answer: a template, and its context beside `session` and `request`."""

    template: str
    context: Mapping[str, Any] = field(default_factory=dict)


Source = Callable[[HttpRequest, DiagnosisSession], Panel | None]
"""Gives a panel for what this person may see, None when there is nothing to show. At most three queries."""

_sources: list[Source] = []


def register(source: Source) -> None:
    """Add a source; panels stand in the order of registration. Called once, from `AppConfig.ready()`."""
    if source not in _sources:
        _sources.append(source)


def panels_of(request: HttpRequest, session: DiagnosisSession) -> list[Panel]:
    """What there is to show of a session."""
    return [panel for source in _sources if (panel := source(request, session)) is not None]
