"""The reviewers' pages of this app: the triage of bad cases, the list of feedback events."""

from feedback_app.admin import events, triage

__all__ = ["events", "triage"]
