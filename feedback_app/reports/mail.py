"""A weekly report as a mail: HTML that needs no picture, script or style sheet from anywhere, and the same as text."""

from __future__ import annotations

from email.utils import parseaddr

from django.conf import settings
from django.core.mail import EmailMultiAlternatives
from django.template.loader import render_to_string
from django.utils.translation import get_language

from feedback_app.models import WeeklyReport
from feedback_app.reports.words import Words, summary_of, words_of

PAGE = "/admin/feedback_app/weeklyreport/{pk}/change/"
"""Written out: the worker, which sends mails, knows no routes (they would load the whole admin)."""


def report_mail(report: WeeklyReport, address: str, *, key: str) -> EmailMultiAlternatives:
    """The mail in the active language. `key` tells the mails of one report apart: the same key, the same Message-ID."""
    words = words_of(report, is_shared=True)
    mail = EmailMultiAlternatives(
        subject=subject(words),
        body=as_text(report, words),
        to=[address],
        headers={"Message-ID": _message_id(report, key), "Auto-Submitted": "auto-generated"},
    )
    mail.attach_alternative(as_html(report, words), "text/html")
    return mail


def subject(words: Words) -> str:
    """No text of others stands in it."""
    return f"{words.title}, {words.days_of}"


def as_html(report: WeeklyReport, words: Words) -> str:
    """For programs that show HTML: tables 600 pixels wide, with bars made of cells."""
    return render_to_string("feedback_app/weekly_report_mail.html", _context(report, words))


def as_text(report: WeeklyReport, words: Words) -> str:
    """For all others."""
    return render_to_string("feedback_app/weekly_report_mail.txt", _context(report, words))


def _context(report: WeeklyReport, words: Words) -> dict[str, object]:
    return {
        "report": words,
        "preview": summary_of(words.rows),
        "language": get_language(),
        "page_url": _page_url(report),
    }


def _page_url(report: WeeklyReport) -> str | None:
    if not settings.PUBLIC_URL or report.pk is None:
        return None
    return f"{settings.PUBLIC_URL.rstrip('/')}{PAGE.format(pk=report.pk)}"


def _message_id(report: WeeklyReport, key: str) -> str:
    domain = parseaddr(settings.DEFAULT_FROM_EMAIL)[1].rpartition("@")[2] or "localhost"
    return f"<weekly-report-{report.week.isoformat()}-{key}@{domain}>"
