"""Which sessions a figure speaks of, how a period is cut into days, and what a figure is made of.

Nothing here asks the database for a date: MariaDB without time-zone tables answers such questions with nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from itertools import pairwise

from django.db.models import Case, Exists, IntegerField, OuterRef, Q, QuerySet, Value, When
from django.db.models.expressions import Expression
from django.utils import timezone
from django.utils.translation import gettext as _

from sessions_app.errors import InvalidInputError
from sessions_app.models import AgentStep, DiagnosisSession, ToolInvocation

DEFAULT_DAYS = 30
MAX_BUCKETS = 400
"""Most buckets of one answer: a year of days, seven years of weeks."""

DAY, WEEK = 1, 7
"""Lengths of a bucket."""


@dataclass(frozen=True, slots=True)
class Period:
    """From `start` to before `end`."""

    start: datetime
    end: datetime

    @classmethod
    def given(cls, start: datetime | None, end: datetime | None) -> Period:
        """A period of which either side may be left out: it ends now, and is 30 days long. Raises InvalidInputError."""
        end = end or timezone.now()
        start = start or end - timedelta(days=DEFAULT_DAYS)
        if start >= end:
            message = _("The period must begin before it ends.")
            raise InvalidInputError(message, errors={"from": [message]})
        return cls(start, end)

    @classmethod
    def of_days(cls, first: date, last: date) -> Period:
        """Whole days in the current time zone, both included."""
        return cls(midnight(first), midnight(last + timedelta(days=1)))

    def covers(self, column: str) -> Q:
        """The condition that `column` lies in the period."""
        return Q((f"{column}__gte", self.start), (f"{column}__lt", self.end))

    def split(self, days: int) -> list[Period]:
        """Cut at every midnight (`DAY`) or every Monday's (`WEEK`) in the current time zone.

        A day is 23 or 25 hours long where the clocks change. The first and the last part end where the period does.
        Raises InvalidInputError for more than 400 parts.
        """
        if (self.end - self.start) / timedelta(days=days) > MAX_BUCKETS:
            message = _("The period is too long for this interval: at most %(count)s parts.") % {"count": MAX_BUCKETS}
            raise InvalidInputError(message, errors={"interval": [message]})
        edges = [self.start]
        day = timezone.localtime(self.start).date()
        day += timedelta(days=1 if days == DAY else WEEK - day.weekday())
        while (edge := midnight(day)) < self.end:
            if edge > edges[-1]:  # a zone that crossed the date line has skipped a day
                edges.append(edge)
            day += timedelta(days=days)
        return [Period(start, end) for start, end in pairwise([*edges, self.end])]


def midnight(day: date) -> datetime:
    """The moment at which a day begins in the current time zone; where midnight was skipped, the first after it.

    In UTC: Python compares and subtracts two times of one zone by what their clocks show.
    """
    return datetime.combine(day, time.min, timezone.get_current_timezone()).astimezone(UTC)


def bucket_of(column: str, buckets: Sequence[Period]) -> Expression:
    """The index of the bucket that holds `column`: a binary search written as nested CASEs.

    `buckets` follow each other without a gap, and the rows are known to lie within them.
    """

    def search(low: int, high: int) -> Case | Value:
        if low == high:
            return Value(low)
        middle = (low + high + 1) // 2
        is_before = When(Q((f"{column}__lt", buckets[middle].start)), then=search(low, middle - 1))
        return Case(is_before, default=search(middle, high), output_field=IntegerField())

    return search(0, len(buckets) - 1)


@dataclass(frozen=True, slots=True)
class Slice:
    """The sessions of a period, a flow, an agent; all sessions where none of them is given."""

    period: Period | None = None
    agent_flow: str | None = None
    agent_name: str | None = None  # sessions in which this agent took a step

    def sessions(self) -> QuerySet[DiagnosisSession]:
        """The sessions themselves."""
        return DiagnosisSession.objects.filter(self._condition("")).order_by()

    def invocations(self) -> QuerySet[ToolInvocation]:
        """All tool invocations of those sessions."""
        return ToolInvocation.objects.filter(self._condition("session__")).order_by()

    def steps(self) -> QuerySet[AgentStep]:
        """The steps of those sessions; only the agent's own where one is given."""
        steps = AgentStep.objects.filter(self._of_session("session__")).order_by()
        return steps.filter(agent_name=self.agent_name) if self.agent_name else steps

    def _of_session(self, prefix: str) -> Q:
        condition = self.period.covers(f"{prefix}created_at") if self.period else Q()
        if self.agent_flow:
            condition &= Q((f"{prefix}agent_flow", self.agent_flow))
        return condition

    def _condition(self, prefix: str) -> Q:
        condition = self._of_session(prefix)
        if self.agent_name:
            steps = AgentStep.objects.filter(session_id=OuterRef("session_id"), agent_name=self.agent_name)
            condition &= Q(Exists(steps))
        return condition


@dataclass(frozen=True, slots=True)
class Average:
    """A mean, with what it is the mean of: the sum and the number of rows that had a value."""

    total: float
    count: int

    @property
    def value(self) -> float | None:
        """None where no row had a value."""
        return self.total / self.count if self.count else None


@dataclass(frozen=True, slots=True)
class Rate:
    """A share from 0 to 1, with what was divided."""

    numerator: int
    denominator: int

    @property
    def value(self) -> float | None:
        """None where there is nothing to divide."""
        return self.numerator / self.denominator if self.denominator else None


NO_AVERAGE = Average(0, 0)
NO_RATE = Rate(0, 0)
