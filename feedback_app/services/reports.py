"""The weekly report: stored once for each week, sent once to each Lead.

Rows say what is owed, so a missed Monday is caught up by whichever sweep comes first.
"""

from __future__ import annotations

import time
from datetime import date, datetime, timedelta
from math import inf
from smtplib import SMTPException
from typing import Any

import structlog
from django.conf import settings
from django.contrib.auth import get_user_model
from django.db.models import F, Q
from django.utils import timezone, translation

from feedback_app.models import ReaderLanguage, ReportDelivery, WeeklyReport
from feedback_app.reports.mail import report_mail
from feedback_app.selectors.weekly import is_silent, monday_of, week_of, weekly_figures
from sessions_app.db import in_transaction

logger = structlog.get_logger(__name__)

LEADS = "Lead"
WEEK = timedelta(days=7)
SETTLING = timedelta(hours=3)
"""From the end of a week to its report: what agents send late is in."""
MOST_CAUGHT_UP = 8
"""Weeks. What lies further back nobody misses."""
MAIL_FOR = timedelta(days=7)
"""From the end of a week. An older report is read on its page."""
MOST_ATTEMPTS = 6
LEASE = timedelta(minutes=5)


def make_due_reports(now: datetime | None = None) -> list[WeeklyReport]:
    """Store the reports that are missing: of the weeks since the latest report; in a fresh database of last week."""
    now = now or timezone.now()
    this_week = monday_of(timezone.localdate(now - SETTLING))
    last = this_week - WEEK
    latest = WeeklyReport.objects.order_by("-week").values_list("week", flat=True).first()
    if latest is None:
        weeks = [] if is_silent(week_of(last)) else [last]
    else:
        missing = (last - latest).days // WEEK.days
        weeks = [last - WEEK * ago for ago in reversed(range(min(missing, MOST_CAUGHT_UP)))]
    return [store_report(week) for week in weeks]


def store_report(week: date) -> WeeklyReport:
    """The report of a past week, by its Monday: the one that is there, or a new one, owed to every Lead."""
    existing = WeeklyReport.objects.filter(week=week).first()
    return existing or _store(week, build_report(week))


def build_report(week: date) -> WeeklyReport:
    """The report of a week as it stands now, not stored."""
    period = week_of(week)
    return WeeklyReport(week=week, starts_at=period.start, ends_at=period.end, figures=weekly_figures(week))


@in_transaction
def _store(week: date, report: WeeklyReport) -> WeeklyReport:
    # Who loses the race for the key runs again, and finds the winner's.
    if existing := WeeklyReport.objects.filter(week=week).first():
        return existing
    report.pk = None
    report.save(force_insert=True)
    owe_to_leads(report)
    return report


def owe_to_leads(report: WeeklyReport) -> None:
    """Owe the report to each Lead, once. Who became one later gets it only when somebody sends it by hand."""
    owed = [ReportDelivery(report=report, user=lead) for lead in leads()]
    ReportDelivery.objects.bulk_create(owed, ignore_conflicts=True)


def leads() -> list[Any]:
    """Who gets the report: the active members of the group Lead that have an address; of one address the first."""
    people = get_user_model().objects.filter(groups__name=LEADS, is_active=True).exclude(email="").order_by("pk")
    return list({person.email.lower(): person for person in reversed(people)}.values())[::-1]


def send_due_mails(now: datetime | None = None, *, report: WeeklyReport | None = None, until: float = inf) -> int:
    """Send what is owed of the reports of last week, or of `report`; returns how many mails left.

    Safe to run at once: who sends one has claimed it. A mail that failed is tried again later. A process that dies
    just after the server took a mail sends it again when its lease ends; its Message-ID tells that it is the same.
    """
    if not settings.EMAIL_URL:
        return 0
    now = now or timezone.now()
    owed = ReportDelivery.objects.filter(sent_at=None, attempts__lt=MOST_ATTEMPTS)
    owed = owed.filter(report=report) if report else owed.filter(report__ends_at__gt=now - MAIL_FOR)
    free = owed.filter(Q(claimed_until=None) | Q(claimed_until__lt=now)).select_related("report", "user")
    sent = 0
    for delivery in free:
        if time.monotonic() > until:
            break
        sent += _send(delivery, now)
    return sent


def _send(delivery: ReportDelivery, now: datetime) -> bool:
    claim = ReportDelivery.objects.filter(pk=delivery.pk, sent_at=None, claimed_until=delivery.claimed_until)
    if not claim.update(claimed_until=timezone.now() + LEASE, attempts=F("attempts") + 1):
        return False
    person = delivery.user
    if person not in leads():  # no longer one, or without an address
        ReportDelivery.objects.filter(pk=delivery.pk).delete()
        return False
    try:
        with translation.override(language_of(person.pk)):
            report_mail(delivery.report, person.email, key=str(person.pk)).send()
    except (SMTPException, OSError, ValueError) as error:  # the server, the network, an address that is none
        logger.warning("report_not_sent", report=str(delivery.report), user=person.pk, error=type(error).__name__)
        again = timezone.now() + LEASE * 2**delivery.attempts
        ReportDelivery.objects.filter(pk=delivery.pk).update(error=type(error).__name__, claimed_until=again)
        return False
    ReportDelivery.objects.filter(pk=delivery.pk).update(sent_at=timezone.now(), claimed_until=None, error="")
    return True


def language_of(user_id: int) -> str:
    """The language somebody uses the product in; where nobody knows, LANGUAGE_CODE."""
    known = ReaderLanguage.objects.filter(user_id=user_id).values_list("code", flat=True).first()
    return known if known in dict(settings.LANGUAGES) else settings.LANGUAGE_CODE


@in_transaction
def remember_language(user_id: int, code: str) -> None:
    """Note the language that somebody uses."""
    if code not in dict(settings.LANGUAGES):
        return
    if not ReaderLanguage.objects.filter(user_id=user_id).update(code=code):
        ReaderLanguage.objects.get_or_create(user_id=user_id, defaults={"code": code})
