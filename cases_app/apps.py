"""The app of what was learned."""

from django.apps import AppConfig
from django.utils.translation import gettext_lazy as _


class CasesAppConfig(AppConfig):
    """Connects this app's reactions to news of sessions."""

    name = "cases_app"
    verbose_name = _("Cases")

    def ready(self) -> None:
        """Register receivers."""
        from cases_app import receivers  # noqa: PLC0415

        receivers.connect()
