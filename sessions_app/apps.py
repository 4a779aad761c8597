"""The app of what agents did."""

from django.apps import AppConfig
from django.utils.translation import gettext_lazy as _


class SessionsAppConfig(AppConfig):
    """Connects this app's reactions and checks."""

    name = "sessions_app"
    verbose_name = _("Diagnoses")

    def ready(self) -> None:
        """Register receivers and system checks."""
        from sessions_app import checks, receivers  # noqa: F401, PLC0415

        receivers.connect()
