"""The pages of this app: alerts, triage, second reviews, the list of feedback events, the weekly reports, erasures."""

from feedback_app.admin import alerts, erasures, events, failure_modes, reports, second_reviews, triage

__all__ = ["alerts", "erasures", "events", "failure_modes", "reports", "second_reviews", "triage"]
