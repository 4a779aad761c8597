"""What a reviewer looks at to enrich a case."""

from __future__ import annotations

import uuid
from dataclasses import dataclass
from datetime import timedelta

from django.db.models import Q
from django.utils import timezone

from cases_app import rules
from cases_app.models import CaseLibrary, CaseLibraryQuerySet, CaseTransition, FaultCategory, SourceType
from sessions_app.paging import MOST_COUNTED, bounded_count
from sessions_app.selectors.slices import midnight

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


@dataclass(frozen=True, slots=True)
class Progress:
    """How far the enrichment of some cases is; figures of `bounded_count`."""

    done: int
    left: int

    @property
    def share(self) -> int | None:
        """Percent that is done; None where there are more than were counted."""
        if max(self.done, self.left) > MOST_COUNTED:
            return None
        return 100 * self.done // (self.done + self.left) if self.done + self.left else 100


def progress() -> tuple[Progress, Progress]:
    """Of the cases that were made this week of sessions and corrections, and of all: done is what has a category."""
    monday = timezone.localdate() - timedelta(days=timezone.localdate().weekday())
    this_week = Q(created_at__gte=midnight(monday))
    # Named one by one, so that each begins at its place of the index.
    categories = list(FaultCategory.objects.exclude(pk=rules.GENERAL).values_list("pk", flat=True))
    made = CaseLibrary.objects.filter(source_type__in=(SourceType.AUTO, SourceType.CORRECTION))
    done, left = made.filter(fault_category__in=categories), CaseLibrary.objects.to_enrich()

    def of(done: CaseLibraryQuerySet, left: CaseLibraryQuerySet) -> Progress:
        return Progress(bounded_count(done), bounded_count(left))

    return of(done.filter(this_week), left.filter(this_week)), of(done, left)


def next_to_enrich(after: CaseLibrary | None = None) -> CaseLibrary | None:
    """The oldest case of the enrichment queue; with `after`, the one behind it, and from the end the first again."""
    queue = CaseLibrary.objects.to_enrich().order_by("created_at", "pk").only("pk")
    if after is None:
        return queue.first()
    behind = Q(created_at__gt=after.created_at) | Q(created_at=after.created_at, pk__gt=after.pk)
    return queue.filter(behind).first() or queue.exclude(pk=after.pk).first()
