"""The app of what people thought."""

from django.apps import AppConfig
from django.utils.translation import gettext_lazy as _


class FeedbackAppConfig(AppConfig):
    """Connects this app's part of a session's page and its reactions to news."""

    name = "feedback_app"
    verbose_name = _("Feedback and triage")

    def ready(self) -> None:
        """Register panels and receivers."""
        from feedback_app import checks, panels, receivers  # noqa: F401, PLC0415

        panels.connect()
        receivers.connect()
