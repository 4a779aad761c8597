"""The pages of this app: triage, second reviews, the list of feedback events, the weekly reports, erasures."""

from feedback_app.admin import erasures, events, reports, second_reviews, triage

__all__ = ["erasures", "events", "reports", "second_reviews", "triage"]
