"""Settings of this app that would fail late: in the worker, or when somebody sends an event."""

from typing import Any

from django.conf import settings
from django.core.checks import CheckMessage, Error, register

from feedback_app import similarity
from feedback_app.webhooks.addresses import Allowed


@register()
def check_similarity(app_configs: Any = None, **_: Any) -> list[CheckMessage]:
    """SIMILARITY names something that can be called; RE_ASK_THRESHOLD is a likeness."""
    found: list[CheckMessage] = []
    try:
        measure: Any = similarity.configured()
    except ImportError as error:
        measure = error
    if not callable(measure):
        found.append(
            Error(
                f"SIMILARITY is {settings.SIMILARITY!r}, which is nothing that can be called: {measure}",
                hint="Name a callable of two texts by its dotted path, or leave it out.",
                id="feedback_app.E001",
            )
        )
    if not 0 < settings.RE_ASK_THRESHOLD <= 1:
        found.append(
            Error(
                f"RE_ASK_THRESHOLD is {settings.RE_ASK_THRESHOLD}.",
                hint="How much alike two questions must be lies above 0 and is 1 at most.",
                id="feedback_app.E002",
            )
        )
    return found


@register()
def check_alert_hosts(app_configs: Any = None, **_: Any) -> list[CheckMessage]:
    """ALERT_ALLOWED_PRIVATE_HOSTS names hosts, addresses and networks."""
    try:
        Allowed.of(settings.ALERT_ALLOWED_PRIVATE_HOSTS)
    except ValueError as error:
        return [
            Error(
                f"ALERT_ALLOWED_PRIVATE_HOSTS: {error}.",
                hint="Name hosts, addresses or networks such as 10.2.0.0/16, separated by commas.",
                id="feedback_app.E003",
            )
        ]
    return []
