"""Settings of this app that would fail late: in the worker, or when somebody sends an event."""

from typing import Any

from django.conf import settings
from django.core.checks import CheckMessage, Error, register

from feedback_app import similarity


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
