"""The pages of this app: the triage of bad cases, the list of feedback events, the weekly reports."""

from feedback_app.admin import events, reports, triage

__all__ = ["events", "reports", "triage"]
