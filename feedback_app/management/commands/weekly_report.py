"""`manage.py weekly_report`: look at the report of a week, or send it now."""

from __future__ import annotations

from datetime import date, timedelta
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.utils import timezone, translation

from feedback_app.models import WeeklyReport
from feedback_app.reports.mail import as_html, as_text, report_mail
from feedback_app.reports.words import words_of
from feedback_app.selectors.weekly import monday_of
from feedback_app.services import reports


class Command(BaseCommand):
    """Preview or send a weekly report."""

    help = (
        "Prints the report of last week as its mail says it; nothing is stored or sent. --send stores it and sends it "
        "to every Lead who has not had it."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        """Which week, and what to do with it."""
        parser.add_argument("--week", type=date.fromisoformat, metavar="DAY", help="any day of the week; default: last")
        parser.add_argument("--language", choices=[code for code, _ in settings.LANGUAGES], help="of the preview")
        parser.add_argument("--html", type=Path, metavar="FILE", help="write the mail's HTML there, too")
        parser.add_argument("--send", action="store_true", help="store it, and send what the Leads have not had")
        parser.add_argument("--to", metavar="ADDRESS", help="send this preview to one address")

    def handle(self, *args: Any, **options: Any) -> None:
        """Build, print, write, send."""
        this_week = monday_of(timezone.localdate())
        week = monday_of(options["week"]) if options["week"] else this_week - timedelta(days=7)
        if (options["send"] or options["to"]) and not settings.EMAIL_URL:
            raise CommandError("EMAIL_URL is not set, so no mail can be sent.")
        if options["send"]:
            self._send(week, is_over=week < this_week)
            return
        report = WeeklyReport.objects.filter(week=week).first() or reports.build_report(week)
        with translation.override(options["language"] or settings.LANGUAGE_CODE):
            words = words_of(report, is_shared=True)
            if options["html"]:
                options["html"].write_text(as_html(report, words), "utf-8")
            if options["to"]:
                report_mail(report, options["to"], key=f"preview-{timezone.now():%Y%m%d%H%M%S}").send()
            self.stdout.write(as_text(report, words))

    def _send(self, week: date, *, is_over: bool) -> None:
        if not is_over:
            raise CommandError(f"The week of {week} is not over; only a past week's report is stored.")
        report = reports.store_report(week)
        reports.owe_to_leads(report)
        sent = reports.send_due_mails(report=report)
        owed = report.deliveries.filter(sent_at=None).count()
        self.stdout.write(f"Week of {week}: {sent} mails sent, {owed} not.")
