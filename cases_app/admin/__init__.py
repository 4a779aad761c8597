"""The reviewers' pages of this app: the case library and its taxonomy."""

from cases_app.admin import bulk, cases, categories

__all__ = ["bulk", "cases", "categories"]
