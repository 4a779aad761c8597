"""Cases much like a session, or like another case: what the library may already know of it."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from cases_app import rules
from cases_app.models import CaseLibrary, CaseLibraryQuerySet, CaseStatus
from cases_app.suggestions.clues import Clues
from cases_app.suggestions.error_codes import rank_codes
from cases_app.suggestions.likeness import grams, likeness
from sessions_app.models import DiagnosisSession

CASES_COMPARED = 500
"""Of those changed last; and as many with one of the session's error codes."""
SHOWN = 5
ALIKE_FROM = 0.3
SAME_FROM = 0.6
"""From here on two titles may well speak of one fault."""


@dataclass(frozen=True, slots=True)
class SimilarCase:
    """A case, and in what it is like another: an error code, the wording of its title, from 0 to 1, or both."""

    case: CaseLibrary
    has_code: bool
    likeness: float


def similar_cases(session: DiagnosisSession) -> list[SimilarCase]:
    """SHOWN at most, the likest first; neither retired ones nor the session's own. Three queries, all bounded."""
    shown = CaseLibrary.objects.filter(status__in=(CaseStatus.ENRICHED, CaseStatus.PUBLISHED))
    return _alike(session.query, _codes_of(session), shown.exclude(diagnosis_id=session.session_id), ALIKE_FROM)


def near_duplicates(case: CaseLibrary) -> list[SimilarCase]:
    """Cases in use that may be the same as this one: its error code, or much the same title. Three queries likewise."""
    codes = [case.error_code] if case.error_code else _codes_of(case.diagnosis) if case.diagnosis else []
    others = CaseLibrary.objects.filter(status__in=rules.SOURCES["absorb"]).exclude(pk=case.pk)
    return _alike(case.title, codes, others, SAME_FROM)


def _codes_of(session: DiagnosisSession) -> list[str]:
    return [one.code for one in rank_codes(Clues(question=session.query, metadata=session.metadata or {}))]


def _alike(text: str, codes: Collection[str], others: CaseLibraryQuerySet, least: float) -> list[SimilarCase]:
    """Titles and codes are read of all that is compared, the cases of those that are shown alone."""
    told = others.values_list("pk", "title", "error_code")
    found = set(told.order_by("-updated_at")[:CASES_COMPARED])
    if codes:
        found |= set(told.filter(error_code__in=codes)[:CASES_COMPARED])
    asked = grams(text)
    ranked = [(code in codes, likeness(asked, grams(title)), title, pk) for pk, title, code in found]
    near = [one for one in ranked if one[0] or one[1] >= least]
    best = sorted(near, key=lambda one: (-one[0] - one[1], one[2], str(one[3])))[:SHOWN]
    columns = ("title", "error_code", "status", "created_at", "fault_category")
    cases = others.select_related("fault_category").only(*columns).in_bulk([pk for *_, pk in best]) if best else {}
    return [SimilarCase(cases[pk], has_code, alike) for has_code, alike, _, pk in best if pk in cases]
