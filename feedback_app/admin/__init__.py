"""The pages of this app: the triage of bad cases, the list of feedback events, the weekly reports, erasures."""

from feedback_app.admin import erasures, events, reports, triage

__all__ = ["erasures", "events", "reports", "triage"]
