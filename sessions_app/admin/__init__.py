"""The admin's pages of sessions, keys and accounts."""

from sessions_app.admin import sessions

__all__ = ["sessions"]
