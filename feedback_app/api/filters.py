"""What the feedback summary may be narrowed to."""

from __future__ import annotations

import django_filters

from sessions_app.selectors.slices import DAY, WEEK
from sessions_app.wire.filters import ReportFilter

INTERVALS = {"day": DAY, "week": WEEK}
NO_INTERVAL = "none"


class SummaryFilter(ReportFilter):
    """Of `/api/feedback/summary`."""

    agentId = django_filters.CharFilter(max_length=64)
    interval = django_filters.ChoiceFilter(choices=[(name, name) for name in (*INTERVALS, NO_INTERVAL)])
