"""An alert as a mail: HTML that asks for nothing from anywhere, and the same as text."""

from __future__ import annotations

from collections.abc import Sequence
from email.utils import parseaddr

from django.conf import settings
from django.core.mail import EmailMultiAlternatives
from django.template.loader import render_to_string
from django.utils.translation import get_language

from feedback_app.alerts.words import RULE_PAGE, words_of
from feedback_app.models import AlertDelivery, AlertRule


def alert_mail(rule: AlertRule, deliveries: Sequence[AlertDelivery], address: str) -> EmailMultiAlternatives:
    """One mail about deliveries of one rule, in the active language. The first tells its Message-ID."""
    words = words_of(deliveries)
    rule_url = f"{settings.PUBLIC_URL.rstrip('/')}{RULE_PAGE.format(rule.pk)}" if settings.PUBLIC_URL else None
    context = {"rule": rule, "words": words, "language": get_language(), "rule_url": rule_url}
    domain = parseaddr(settings.DEFAULT_FROM_EMAIL)[1].rpartition("@")[2] or "localhost"
    mail = EmailMultiAlternatives(
        subject=f"{rule.name}: {words.title}",
        body=render_to_string("feedback_app/alert_mail.txt", context),
        to=[address],
        headers={"Message-ID": f"<alert-{deliveries[0].message_id}@{domain}>", "Auto-Submitted": "auto-generated"},
    )
    mail.attach_alternative(render_to_string("feedback_app/alert_mail.html", context), "text/html")
    return mail
