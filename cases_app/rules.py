"""Decisions about cases: what may follow what, and what speaks against giving a case to the agents. Pure."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple

from django.utils.translation import gettext_noop

from sessions_app.privacy import personal_data

GENERAL = "GENERAL"
"""The category of every case until a reviewer gives it one."""

DRAFT, ENRICHED, PUBLISHED, RETIRED = "DRAFT", "ENRICHED", "PUBLISHED", "RETIRED"

SOURCES: Mapping[str, tuple[str, ...]] = {
    "enrich": (DRAFT, ENRICHED, PUBLISHED),
    "revert": (DRAFT, ENRICHED, PUBLISHED),  # to what it said before
    "publish": (ENRICHED,),
    "unpublish": (PUBLISHED,),
    "retire": (DRAFT, ENRICHED, PUBLISHED),
    "restore": (RETIRED,),
    "merge": (DRAFT, ENRICHED, PUBLISHED),  # into another
    "absorb": (DRAFT, ENRICHED, PUBLISHED),  # another
}
"""Action → the states it may start from."""

TITLE_CHARS = 100


def title_of(query: str) -> str:
    """The first 100 characters of the question, in one line; the design's rule for an AUTO case."""
    return " ".join(query[: TITLE_CHARS * 4].split())[:TITLE_CHARS]


class Objection(NamedTuple):
    """Why a case may not be published yet: the field, and what is wrong with it, to be translated."""

    field: str
    text: str
    params: Mapping[str, str] = {}


Check = Callable[[Mapping[str, str]], Iterator[Objection]]
"""Takes what stands in a case, by field."""


def _has_category(content: Mapping[str, str]) -> Iterator[Objection]:
    if content["fault_category"] == GENERAL:
        yield Objection("fault_category", gettext_noop("A published case needs a category beyond GENERAL."))


def _has_texts(content: Mapping[str, str]) -> Iterator[Objection]:
    for name in ("title", "root_cause", "solution"):
        if not re.search(r"\w", content[name]):  # dashes and what has no width say nothing
            yield Objection(name, gettext_noop("A published case needs this."))


def _says_each_once(content: Mapping[str, str]) -> Iterator[Objection]:
    """A case holds the whole answer in both until somebody splits it."""
    if content["solution"].strip() and content["root_cause"].strip() == content["solution"].strip():
        yield Objection("root_cause", gettext_noop("It says the same as the solution; say here only why it happened."))


def _exposes_nobody(content: Mapping[str, str]) -> Iterator[Objection]:
    for name in ("title", "root_cause", "solution"):
        if marks := personal_data(content[name]):
            text = gettext_noop("It holds personal data, which agents would repeat: %(marks)s.")
            yield Objection(name, text, {"marks": ", ".join(marks)})


PUBLICATION_CHECKS: Sequence[Check] = (_has_category, _has_texts, _says_each_once, _exposes_nobody)
"""What a case must pass before agents may see it."""


def objections_to_publication(content: Mapping[str, str]) -> list[Objection]:
    """All that speaks against publishing a case with this content."""
    return [objection for check in PUBLICATION_CHECKS for objection in check(content)]


def objection_to_merging(kept: str, merged: str) -> str:
    """What the states of two cases say against merging them, to be translated; "" for nothing."""
    if merged not in SOURCES["merge"]:
        return gettext_noop("The case that would go is retired already.")
    if kept not in SOURCES["absorb"]:
        return gettext_noop("The case that would stay is retired; restore it first.")
    if merged == PUBLISHED != kept:
        return gettext_noop("Agents find the case that would go, and not the one that would stay; merge the other way.")
    return ""


def state_after_enrichment(state: str) -> str:
    """A draft that somebody worked on is enriched; a published case stays published."""
    return ENRICHED if state == DRAFT else state


def state_after_restoring(fault_category: str) -> str:
    """A restored case is enriched when it has a category of its own, else a draft again."""
    return DRAFT if fault_category == GENERAL else ENRICHED
