"""The admin's pages of sessions, keys and accounts."""

from sessions_app.admin import accounts, keys, sessions

__all__ = ["accounts", "keys", "sessions"]
