"""The app of what people thought."""

from django.apps import AppConfig
from django.utils.translation import gettext_lazy as _


class FeedbackAppConfig(AppConfig):
    """Nothing to connect: feedback calls downwards."""

    name = "feedback_app"
    verbose_name = _("Feedback and triage")
