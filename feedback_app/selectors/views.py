"""Saved views of the triage queue that somebody may use."""

from __future__ import annotations

from typing import Any

from django.db.models import Q, QuerySet

from feedback_app.models import DefaultView, SavedView

MOST_SHOWN = 100


def views_for(person: Any) -> QuerySet[SavedView]:
    """One's own, and what is shared."""
    return SavedView.objects.filter(Q(owner_id=person.pk) | Q(is_shared=True))


def shown_views(person: Any) -> list[SavedView]:
    """As `views_for`, by name, with whose they are; MOST_SHOWN at most. One query."""
    return list(views_for(person).select_related("owner")[:MOST_SHOWN])


def default_view(person: Any) -> SavedView | None:
    """The one somebody finds the queue in; none where it is no longer shared."""
    chosen = DefaultView.objects.filter(user_id=person.pk).values("view_id")
    return views_for(person).filter(pk__in=chosen).first()
