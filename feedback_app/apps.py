"""The app of what people thought."""

from django.apps import AppConfig
from django.utils.translation import gettext_lazy as _


class FeedbackAppConfig(AppConfig):
    """Connects this app's part of a session's page and its reactions to news."""

    name = "feedback_app"
    verbose_name = _("Feedback and triage")

    def ready(self) -> None:
        """Register panels, receivers and what can be done in bulk."""
        from cases_app.services import bulk  # noqa: PLC0415
        from feedback_app import checks, panels, receivers  # noqa: F401, PLC0415
        from feedback_app.services import terms, triage_bulk  # noqa: PLC0415
        from sessions_app.services import indexing  # noqa: PLC0415

        bulk.register(*triage_bulk.TRIAGE_ACTIONS)
        indexing.register(terms.BAD_CASES)
        panels.connect()
        receivers.connect()
