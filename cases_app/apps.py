"""The app of what was learned."""

from django.apps import AppConfig
from django.utils.translation import gettext_lazy as _


class CasesAppConfig(AppConfig):
    """Connects this app's reactions to news of sessions, and its part of their page."""

    name = "cases_app"
    verbose_name = _("Case library")

    def ready(self) -> None:
        """Register receivers, panels and what can be done in bulk."""
        from cases_app import panels, receivers  # noqa: PLC0415
        from cases_app.services import bulk, case_bulk, importing, terms  # noqa: PLC0415
        from sessions_app.services import indexing  # noqa: PLC0415

        bulk.register(*case_bulk.CASE_ACTIONS, importing.IMPORT_CASES)
        indexing.register(terms.CASES)
        receivers.connect()
        panels.connect()
