"""Saved views of lists: own ones of whoever sees the list, shared ones of who may share."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from django.contrib.auth.models import AbstractBaseUser
from django.utils.translation import gettext as _

from sessions_app.db import in_transaction
from sessions_app.errors import ConflictError, InvalidInputError, UnknownObjectError
from sessions_app.models import DefaultView, SavedView
from sessions_app.selectors.views import views_for

MOST_VIEWS = 50
"""Of one person, of one list."""
MAX_NAME_CHARS, MAX_VALUE_CHARS, MAX_PARAMETERS = 60, 200, 30
NOT_KEPT = frozenset({"p", "e", "all"})
_PARAMETER = re.compile(r"[a-z][a-z_]{0,39}")

Filters = Mapping[str, Sequence[str]]


@in_transaction
def save_view(
    *, owner: AbstractBaseUser, listed: str, name: str, filters: Filters, is_shared: bool = False
) -> SavedView:
    """Keep filters under a name; one's own view of this name gets them instead of those it had.

    Whether the owner may share is for the door to ask. Raises InvalidInputError.
    """
    name, kept = _named(name), _kept(filters)
    own = SavedView.objects.filter(owner_id=owner.pk, listed=listed)
    view = own.select_for_update().filter(name=name).first()
    if view is None:
        if own.count() >= MOST_VIEWS:
            raise _invalid(_("You have %(count)s views; delete one first.") % {"count": MOST_VIEWS})
        return SavedView.objects.create(owner_id=owner.pk, listed=listed, name=name, filters=kept, is_shared=is_shared)
    view.filters, view.is_shared = kept, is_shared
    view.save(update_fields=["filters", "is_shared"])
    return view


@in_transaction
def rename_view(
    *, view_id: int, listed: str, person: AbstractBaseUser, name: str, may_share: bool = False
) -> SavedView:
    """Call it otherwise. Raises InvalidInputError for a name that is taken, UnknownObjectError, ConflictError."""
    name, view = _named(name), _own(view_id, listed, person, may_share=may_share)
    namesakes = SavedView.objects.filter(owner_id=view.owner_id, listed=listed, name=name)
    if namesakes.exclude(pk=view.pk).exists():
        raise _invalid(_("There is a view of this name."))
    view.name = name
    view.save(update_fields=["name"])
    return view


@in_transaction
def delete_view(*, view_id: int, listed: str, person: AbstractBaseUser, may_share: bool = False) -> None:
    """Forget it, also where it is somebody's default. Raises UnknownObjectError, ConflictError."""
    _own(view_id, listed, person, may_share=may_share).delete()


@in_transaction
def set_default(*, person: AbstractBaseUser, listed: str, view_id: int | None) -> None:
    """In which view somebody finds the list; None: in none. Raises UnknownObjectError."""
    if view_id is not None:
        _visible(view_id, listed, person)
    DefaultView.objects.filter(user_id=person.pk, listed=listed).delete()
    if view_id is not None:
        DefaultView.objects.create(user_id=person.pk, listed=listed, view_id=view_id)


def _visible(view_id: int, listed: str, person: AbstractBaseUser) -> SavedView:
    view = views_for(person, listed).select_for_update().filter(pk=view_id).first()
    if view is None:
        raise UnknownObjectError(_("There is no such view."))
    return view


def _own(view_id: int, listed: str, person: AbstractBaseUser, *, may_share: bool) -> SavedView:
    view = _visible(view_id, listed, person)
    if view.owner_id != person.pk and not may_share:
        raise ConflictError(_("This view is somebody else's."))
    return view


def _named(name: str) -> str:
    name = " ".join(name.split())
    if not name or len(name) > MAX_NAME_CHARS:
        raise _invalid(_("Give it a name of at most %(count)s characters.") % {"count": MAX_NAME_CHARS})
    return name


def _kept(filters: Filters) -> dict[str, list[str]]:
    """The parameters of a list that narrow or order it, without empty ones. Raises InvalidInputError."""
    kept: dict[str, list[Any]] = {}
    for name, values in filters.items():
        said = [value for value in values if value]
        if name in NOT_KEPT or not said:
            continue
        if not _PARAMETER.fullmatch(name) or any(len(value) > MAX_VALUE_CHARS for value in said):
            raise _invalid(_("These filters cannot be kept."))
        kept[name] = said
    if sum(map(len, kept.values())) > MAX_PARAMETERS:
        raise _invalid(_("These filters cannot be kept."))
    return kept


def _invalid(message: str) -> InvalidInputError:
    return InvalidInputError(message, errors={"name": [message]})
