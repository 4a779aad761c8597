"""Routes of contract 3. No trailing slashes."""

from typing import Any

from django.urls import path, register_converter

from sessions_app.api import views
from sessions_app.text import is_id


class IdConverter:
    """An id may hold any printable ASCII, slashes too; whatever is no id is no route."""

    regex = "[!-~]{1,64}"

    def to_python(self, value: str) -> str:
        """The id as given."""
        if not is_id(value):
            raise ValueError
        return value

    def to_url(self, value: Any) -> str:
        """The id as stored; Django quotes it."""
        return str(value)


register_converter(IdConverter, "id")

urlpatterns = [
    path("sessions", views.SessionListView.as_view(), name="session-list"),
    path("sessions/batch", views.SessionBatchView.as_view(), {"session_id": "batch"}, name="session-batch"),
    path("sessions/<id:session_id>/steps", views.StepsView.as_view(), name="session-steps"),
    path(
        "sessions/<id:session_id>/tool-invocations",
        views.ToolInvocationsView.as_view(),
        name="session-tool-invocations",
    ),
    path("sessions/<id:session_id>", views.SessionDetailView.as_view(), name="session-detail"),
    path("metrics", views.MetricsView.as_view(), name="api-metrics"),
]
