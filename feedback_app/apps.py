"""The app of what people thought."""

from django.apps import AppConfig
from django.utils.translation import gettext_lazy as _


class FeedbackAppConfig(AppConfig):
    """Connects this app's part of a session's page; for the rest, feedback calls downwards."""

    name = "feedback_app"
    verbose_name = _("Feedback and triage")

    def ready(self) -> None:
        """Register panels."""
        from feedback_app import panels  # noqa: PLC0415

        panels.connect()
