"""Cases much like a session: what the library may already know of it."""

from __future__ import annotations

from dataclasses import dataclass

from cases_app.models import CaseLibrary, CaseStatus
from cases_app.suggestions.clues import Clues
from cases_app.suggestions.error_codes import rank_codes
from cases_app.suggestions.likeness import grams, likeness
from sessions_app.models import DiagnosisSession

CASES_COMPARED = 500
"""Of those changed last; and as many with one of the session's error codes."""
SHOWN = 5
ALIKE_FROM = 0.3


@dataclass(frozen=True, slots=True)
class SimilarCase:
    """A case, and in what it is like the session: an error code, the wording of its title, from 0 to 1, or both."""

    case: CaseLibrary
    has_code: bool
    likeness: float

    @property
    def rank(self) -> float:
        """A code that is the same says more than any wording."""
        return self.likeness + self.has_code


def similar_cases(session: DiagnosisSession) -> list[SimilarCase]:
    """SHOWN at most, the likest first; neither retired ones nor the session's own. Two queries, both bounded."""
    codes = [one.code for one in rank_codes(Clues(question=session.query, metadata=session.metadata or {}))]
    shown = (
        CaseLibrary.objects.filter(status__in=(CaseStatus.ENRICHED, CaseStatus.PUBLISHED))
        .select_related("fault_category")
        .only("case_id", "title", "error_code", "status", "diagnosis_id", "fault_category")
    )
    found = {case.pk: case for case in shown.order_by("-updated_at")[:CASES_COMPARED]}
    if codes:
        found |= {case.pk: case for case in shown.filter(error_code__in=codes)[:CASES_COMPARED]}
    asked = grams(session.query)
    alike = [
        SimilarCase(case, case.error_code in codes, likeness(asked, grams(case.title)))
        for case in found.values()
        if case.diagnosis_id != session.session_id
    ]
    near = [one for one in alike if one.has_code or one.likeness >= ALIKE_FROM]
    return sorted(near, key=lambda one: (-one.rank, one.case.title, str(one.case.pk)))[:SHOWN]
