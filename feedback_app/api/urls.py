"""Routes of feedback. No trailing slashes."""

from django.urls import path

from feedback_app.api import views

urlpatterns = [
    path("feedback", views.FeedbackView.as_view(), name="feedback"),
    path("feedback/events", views.FeedbackEventsView.as_view(), name="feedback-events"),
    path("feedback/summary", views.FeedbackSummaryView.as_view(), name="feedback-summary"),
]
