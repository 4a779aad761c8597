"""Noticing what alerts tell. Nobody who records or judges waits for it: a sweep looks, and what it finds becomes rows.

A row of `alert_delivery` is one thing told by one rule (to one person, by mail), and its key keeps it from being told
twice, however many sweeps look at once.
"""

from __future__ import annotations

import hashlib
import uuid
from collections.abc import Callable, Iterable, Mapping
from datetime import datetime, timedelta
from typing import Any, NamedTuple

from django.db.models import F
from django.utils import timezone

from feedback_app.alerts.words import Facts
from feedback_app.models import AlertChannel, AlertCondition, AlertDelivery, AlertKind, AlertRule
from feedback_app.selectors import alerts as selectors
from feedback_app.services.reports import leads

LOOKED_BACK = timedelta(days=7)
"""How old a bad case may be when it turns out to be one to tell of: confidence may come late, a verdict may return."""
NEWS = timedelta(hours=1)
"""How far back those look who look often."""
MOST_AT_ONCE = 200
REMINDED_DAILY = timedelta(days=1)
RECOVERED_BELOW = 0.5
"""Of the threshold: the queue has recovered when no more than this share of it is overdue."""
RECOVERED_POINTS = 5
"""Percent above the threshold from which on satisfaction has recovered."""
PERCENT = 100


def watch(
    now: datetime | None = None, *, kinds: Iterable[str] = AlertKind.values, back: timedelta = LOOKED_BACK
) -> None:
    """Look at what each active rule is about, and owe what is new. Safe to run at once, and after a pause."""
    now = now or timezone.now()
    for rule in AlertRule.objects.filter(is_active=True, kind__in=kinds).order_by("pk"):
        _LOOKS[rule.kind](rule, now, back)


class Occurrence(NamedTuple):
    """One thing that happened. `key` tells it from all others of its rule."""

    key: str
    facts: Facts
    session_id: str | None = None


def owe(
    rule: AlertRule, event: str, occurrences: Iterable[Occurrence], *, only_to: int | None = None
) -> list[AlertDelivery]:
    """Rows for what happened: each one, or by mail one for each recipient. What is owed already stays as it is."""
    to: list[int | None] = [only_to] if only_to else recipients(rule)
    rows = [
        AlertDelivery(
            rule=rule,
            event=event,
            key=hashlib.sha256(f"{event} {each.key} {person or ''}".encode()).hexdigest(),
            message_id=f"msg_{uuid.uuid4().hex}",
            session_id=each.session_id,
            recipient_id=person,
            facts=each.facts,
        )
        for each in occurrences
        for person in to
    ]
    return AlertDelivery.objects.bulk_create(rows, ignore_conflicts=True)


def recipients(rule: AlertRule) -> list[int | None]:
    """Keys of those who get its mails: the Leads it names, all of them where it names none. A webhook has nobody."""
    if rule.channel == AlertChannel.WEBHOOK:
        return [None]
    named = set(rule.recipients.values_list("pk", flat=True))
    return [person.pk for person in leads() if not named or person.pk in named]


def _look_at_confident(rule: AlertRule, now: datetime, back: timedelta) -> None:
    found: Any = selectors.confident_but_rejected(rule, max(rule.active_since, now - back))[:MOST_AT_ONCE]
    owe(rule, AlertKind.CONFIDENT, [Occurrence(each.session_id, _facts(each), each.session_id) for each in found])


def _facts(review: Any) -> Facts:
    return {
        "sessionId": review.session_id,
        "agentId": review.agent,
        "confidence": review.stated,
        "evidenceScore": review.score,
        "reviewId": review.pk,
    }


def _look_at_queue(rule: AlertRule, now: datetime, _back: timedelta) -> None:
    late = selectors.overdue(now)
    threshold = rule.threshold or 1
    facts: Facts = {"overdue": late.cases, "threshold": threshold}
    if late.oldest_due_at:
        facts["oldestDueAt"] = late.oldest_due_at.isoformat(timespec="seconds").replace("+00:00", "Z")
    _judge(
        rule,
        "",
        is_bad=late.cases >= threshold,
        is_well=late.cases <= threshold * RECOVERED_BELOW,
        every=REMINDED_DAILY,
        facts=facts,
        now=now,
    )


def _look_at_satisfaction(rule: AlertRule, now: datetime, _back: timedelta) -> None:
    threshold, days = rule.threshold or 0, rule.period_days or 1
    period = timedelta(days=days)
    for agent, rate in selectors.satisfaction_by_agent(rule, now - period):
        if rate.denominator < (rule.min_votes or 1):
            continue  # too few to say anything, neither bad nor well
        percent = PERCENT * rate.numerator / rate.denominator
        facts: Facts = {
            "agentId": agent,
            "satisfaction": round(percent, 2),
            "useful": rate.numerator,
            "verdicts": rate.denominator,
            "threshold": threshold,
            "periodDays": days,
        }
        _judge(
            rule,
            agent,
            is_bad=percent < threshold,
            is_well=percent >= min(PERCENT, threshold + RECOVERED_POINTS),
            every=period,
            facts=facts,
            now=now,
        )


_LOOKS: Mapping[str, Callable[[AlertRule, datetime, timedelta], None]] = {
    AlertKind.CONFIDENT: _look_at_confident,
    AlertKind.OVERDUE: _look_at_queue,
    AlertKind.SATISFACTION: _look_at_satisfaction,
}


def _judge(
    rule: AlertRule,
    subject: str,
    *,
    is_bad: bool,
    is_well: bool,
    every: timedelta,
    facts: Facts,
    now: datetime,
) -> None:
    """Tell it when it begins, and again after each `every` for as long as it lasts; take note when it is over.

    Between bad and well nothing changes, so that what swings around the threshold is told once.
    """
    conditions = AlertCondition.objects.filter(rule=rule, subject=subject)
    if not is_bad:
        if is_well:
            conditions.exclude(raised_at=None).update(raised_at=None)
        return
    condition, _is_new = AlertCondition.objects.get_or_create(rule=rule, subject=subject)
    if condition.raised_at is None:  # of two sweeps one raises it, and both go on with what stands there then
        conditions.filter(raised_at=None).update(raised_at=now, episode=F("episode") + 1)
        condition.refresh_from_db()
    if condition.raised_at is not None:
        turn = max(now - condition.raised_at, timedelta(0)) // every  # the other sweep's clock may be ahead of ours
        owe(rule, rule.kind, [Occurrence(f"{subject} {condition.episode} {turn}", facts)])
