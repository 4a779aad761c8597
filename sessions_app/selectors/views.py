"""Saved views of a list that somebody may use."""

from __future__ import annotations

from typing import Any

from django.db.models import Exists, OuterRef, Q, QuerySet

from sessions_app.models import DefaultView, SavedView

MOST_SHOWN = 100


def views_for(person: Any, listed: str) -> QuerySet[SavedView]:
    """One's own, and what is shared."""
    return SavedView.objects.filter(Q(owner_id=person.pk) | Q(is_shared=True), listed=listed)


def shown_views(person: Any, listed: str) -> list[Any]:
    """As `views_for`, with whose they are; MOST_SHOWN at most. First the one that has `is_default`, then by name.

    A default that is no longer shared is none. One query.
    """
    chosen = DefaultView.objects.filter(user_id=person.pk, listed=listed, view_id=OuterRef("pk"))
    views = views_for(person, listed).select_related("owner").annotate(is_default=Exists(chosen))
    return list(views.order_by("-is_default", "name", "pk")[:MOST_SHOWN])
