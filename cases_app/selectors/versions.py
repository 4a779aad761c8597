"""What a case has said before."""

from __future__ import annotations

from cases_app.models import CaseLibrary, CaseVersion

VERSIONS_SHOWN = 200


def versions_of(case: CaseLibrary) -> list[CaseVersion]:
    """Who changed its texts, when and why, the latest first; the texts are not read."""
    rows = CaseVersion.objects.filter(case=case).select_related("actor").defer("title", "root_cause", "solution")
    return list(rows.order_by("-number")[:VERSIONS_SHOWN])


def texts_of(case: CaseLibrary, *numbers: int | None) -> dict[int | None, CaseVersion]:
    """Number → version, with its texts."""
    found = CaseVersion.objects.filter(case=case, number__in=[number for number in numbers if number is not None])
    return {version.number: version for version in found}
