"""Pages of long tables in the admin."""

from __future__ import annotations

from typing import Any

from django.core.paginator import Page, Paginator
from django.db.models import QuerySet
from django.utils.functional import cached_property

MOST_COUNTED = 1_000
"""Beside a tab or a choice nobody needs to know more than that there are more."""


def bounded_count(rows: QuerySet[Any]) -> int:
    """How many rows there are; MOST_COUNTED + 1 for more than MOST_COUNTED."""
    return rows.order_by().values("pk")[: MOST_COUNTED + 1].count()


class BoundedPaginator(Paginator[Any]):
    """Counts no further than MAX_COUNT: a count of a million rows takes longer than anybody waits for a list.

    Whoever needs row 10,001 needs a filter.
    """

    MAX_COUNT = 10_000
    template_name = "desk/pagination.html"

    @cached_property
    def count(self) -> int:
        """How many rows there are, at most MAX_COUNT."""
        return min(self._counted, self.MAX_COUNT)

    def page(self, number: Any) -> Page[Any]:
        """The rows of a page: found and put in order by their keys alone, then read. Rows may be wide, and joined."""
        number = self.validate_number(number)
        first = (number - 1) * self.per_page
        rows: Any = self.object_list
        keys = list(rows.values_list("pk", flat=True)[first : min(first + self.per_page, self.count)])
        place = {key: at for at, key in enumerate(keys)}
        found = rows.filter(pk__in=keys).order_by()
        return Page(sorted(found, key=lambda row: place[row.pk]), number, self)

    @property
    def is_bounded(self) -> bool:
        """Whether there are more rows than `count`."""
        return self._counted > self.MAX_COUNT

    @cached_property
    def _counted(self) -> int:
        rows: Any = self.object_list
        # Keys only: a slice keeps the columns of the list, and with them the reading of every row, in the count.
        return int(rows.order_by().values("pk")[: self.MAX_COUNT + 1].count())
