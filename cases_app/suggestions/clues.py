"""What a session says about its fault, and where it says it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

READ_CHARS = 20_000
"""Characters read of each text for categories and error codes: what matters stands at the beginning."""

MAX_CODE_CHARS = 128
"""As long as `CaseLibrary.error_code`."""

VALUE_CHARS = 2_000
MAX_VALUES = 500
MAX_DEPTH = 12


class Source(StrEnum):
    """Where something was found."""

    ALERT = "alert"  # a name of an alert, in the metadata
    QUESTION = "question"
    TITLE = "title"
    CAUSE = "cause"  # what the answer calls the root cause
    ANSWER = "answer"
    METADATA = "metadata"
    TOOL = "tool"  # its name
    AGENT = "agent"  # its name
    ERROR = "error"  # what a failed call of a tool said
    HEADING = "heading"  # of the answer: below it
    FIRST_HEADING = "first_heading"  # of the answer: what it says


@dataclass(frozen=True, slots=True)
class Found:
    """What points to a suggestion: a keyword, a name, a piece of text as it stands in its source."""

    what: str
    source: Source


@dataclass(frozen=True, slots=True)
class Clues:
    """What is known of a session and its case."""

    question: str = ""
    title: str = ""
    cause: str = ""
    answer: str = ""
    metadata: Mapping[str, Any] = field(default_factory=dict)
    tools: Sequence[str] = ()
    agents: Sequence[str] = ()
    errors: Sequence[str] = ()

    def texts(self) -> list[tuple[Source, str]]:
        """All texts with their sources, cut to what is read; names of alerts first."""
        named = [
            (Source.QUESTION, [self.question]),
            (Source.TITLE, [self.title]),
            (Source.CAUSE, [self.cause]),
            (Source.ANSWER, [self.answer]),
            (Source.TOOL, self.tools),
            (Source.AGENT, self.agents),
            (Source.ERROR, self.errors),
        ]
        rest = [(source, text[:READ_CHARS]) for source, texts in named for text in texts if text]
        return [*((Source.ALERT, name) for name in alert_names(self.metadata)), *rest]


_ALERT = re.compile(r"alert|alarm|incident|告警|报警|警报", re.IGNORECASE)
_NAME = re.compile(
    r"(?:alert|alarm|rule|incident|error|fault)?[ _-]?(?:name|code|rule|type)|alerts?|alarms?|告警|报警", re.IGNORECASE
)
_CODE = re.compile(r"(?:error|err|fault|alarm|alert)[ _-]?code|errno|错误码|告警码", re.IGNORECASE)
_LOOKS_LIKE_A_NAME = re.compile(r"[^\W\d_][\w:./-]{2,127}")


def alert_names(metadata: object) -> list[str]:
    """Names of alerts and error codes that the metadata gives as such, each once.

    As they come: `{"alerts": [{"alert_name": …}]}`, `{"alert": {"name": …}}`, `{"labels": {"alertname": …}}`,
    `{"errorCode": …}`. A name is one word: a sentence is no name.
    """
    found: dict[str, None] = {}
    for path, value in strings_of(metadata):
        key, above = path[-1] if path else "", path[:-1]
        is_code = _CODE.fullmatch(key) is not None
        is_alert = _NAME.fullmatch(key) is not None and (_ALERT.search(key) or any(map(_ALERT.search, above)))
        name = value.strip()
        if (is_alert and _LOOKS_LIKE_A_NAME.fullmatch(name)) or (
            is_code and 0 < len(name) <= MAX_CODE_CHARS and " " not in name
        ):
            found[name] = None
    return list(found)


def strings_of(metadata: object) -> Iterator[tuple[tuple[str, ...], str]]:
    """Each string of free JSON, numbers too, with the keys that lead to it; what is in a list has the list's.

    At most MAX_VALUES of them, not deeper than MAX_DEPTH.
    """
    waiting: list[tuple[tuple[str, ...], object]] = [((), metadata)]
    seen = 0
    while waiting and seen < MAX_VALUES:
        path, value = waiting.pop()
        seen += 1
        match value:
            case str():
                yield path, value[:VALUE_CHARS]
            case int() | float() if not isinstance(value, bool):
                yield path, str(value)[:MAX_CODE_CHARS]
            case Mapping() if len(path) < MAX_DEPTH:
                waiting += [((*path, str(key)), item) for key, item in reversed(list(value.items())[:MAX_VALUES])]
            case list() | tuple():
                waiting += [(path, item) for item in reversed(value[:MAX_VALUES])]
