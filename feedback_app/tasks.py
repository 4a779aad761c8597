"""Celery doors of this app. Each task may run twice, late or not at all."""

import time

from celery import shared_task

from feedback_app.models import AlertKind
from feedback_app.services import alert_sending, alerts, priority, re_asks, reports, retention

SWEEP_SECONDS = 10
"""Half of the soft time limit of a task. What is left waits for the next sweep."""
BEGIN_SECONDS = 6
"""After it no webhook is begun: the last one takes up to 11 seconds more."""


@shared_task
def find_re_asks() -> None:
    """Compare the questions that came in since the last sweep."""
    until = time.monotonic() + SWEEP_SECONDS
    while re_asks.compare_waiting() and time.monotonic() < until:
        pass


@shared_task
def rank_bad_cases() -> None:
    """Give those a place in the queue that came from before there were priorities."""
    until = time.monotonic() + SWEEP_SECONDS
    while priority.refresh_unranked() and time.monotonic() < until:
        pass


@shared_task
def make_weekly_report() -> None:
    """Store the reports that are missing, and send the mails that are owed."""
    reports.make_due_reports()
    reports.send_due_mails(until=time.monotonic() + SWEEP_SECONDS)


@shared_task
def apply_retention() -> None:
    """Anonymise old texts and remove older sessions, as the settings say; remove old deliveries of alerts."""
    retention.apply_retention(seconds=SWEEP_SECONDS)
    alert_sending.forget_old()


@shared_task
def watch_alerts() -> None:
    """Notice what alerts tell of bad cases that are new, and send the mails that are due."""
    alerts.watch(kinds=(AlertKind.CONFIDENT, AlertKind.OVERDUE), back=alerts.NEWS)
    alert_sending.send_mails(until=time.monotonic() + BEGIN_SECONDS)


@shared_task
def watch_alerts_thoroughly() -> None:
    """Notice all that alerts tell of: also of agents, which takes some counting, and of bad cases of the last days."""
    alerts.watch()


@shared_task
def send_alerts() -> None:
    """Send the webhooks that are due."""
    alert_sending.send_webhooks(until=time.monotonic() + BEGIN_SECONDS)
