"""What a reviewer looks at to enrich a case."""

from __future__ import annotations

import uuid

from django.db.models import Q

from cases_app.models import CaseLibrary, CaseTransition

HISTORY_SHOWN = 100
SOURCES_SHOWN = 50


def case_with_session(case_id: str) -> CaseLibrary | None:
    """A case with its session, category and reviewer; None for an unknown or impossible id."""
    try:
        key = uuid.UUID(case_id)
    except ValueError:
        return None
    related = ("diagnosis", "fault_category", "reviewed_by", "merged_into")
    return CaseLibrary.objects.select_related(*related).filter(pk=key).first()


def merged_cases(case: CaseLibrary) -> list[CaseLibrary]:
    """What was merged into it, with the session of each: its further sources."""
    merged = case.merged.select_related("diagnosis").only("title", "created_at", "diagnosis__query", "merged_into")
    return list(merged.order_by("created_at", "pk")[:SOURCES_SHOWN])


def history(case: CaseLibrary, *, since: int = 0) -> list[CaseTransition]:
    """What was done to it, the latest first; only rows after the row `since`, where that is given."""
    rows = CaseTransition.objects.filter(case=case, pk__gt=since)
    return list(rows.select_related("actor")[:HISTORY_SHOWN])


def next_to_enrich(after: CaseLibrary | None = None) -> CaseLibrary | None:
    """The oldest case of the enrichment queue; with `after`, the one behind it, and from the end the first again."""
    queue = CaseLibrary.objects.to_enrich().order_by("created_at", "pk").only("pk")
    if after is None:
        return queue.first()
    behind = Q(created_at__gt=after.created_at) | Q(created_at=after.created_at, pk__gt=after.pk)
    return queue.filter(behind).first() or queue.exclude(pk=after.pk).first()
