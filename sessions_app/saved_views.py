"""Saved views of a list in the admin: the list that they open, and the buttons that keep them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from django import forms
from django.contrib import messages
from django.contrib.auth.models import AbstractBaseUser
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse, HttpResponseBadRequest, HttpResponseNotAllowed, QueryDict
from django.shortcuts import redirect
from django.urls import URLPattern, path
from django.utils.translation import gettext as _
from django.utils.translation import gettext_noop
from unfold.widgets import UnfoldAdminTextInputWidget

from sessions_app.errors import DomainError
from sessions_app.keyboard import LIST_KEYS
from sessions_app.lists import admin_url
from sessions_app.models import SavedView
from sessions_app.selectors.views import shown_views
from sessions_app.services import views

MAX_QUERY_CHARS = 4_000


class ViewForm(forms.Form):
    """What a button of the views sends."""

    view = forms.IntegerField(required=False, min_value=1)
    name = forms.CharField(required=False, max_length=views.MAX_NAME_CHARS, widget=UnfoldAdminTextInputWidget)
    is_shared = forms.BooleanField(required=False)
    filters = forms.CharField(required=False, max_length=MAX_QUERY_CHARS)


class ViewLine(NamedTuple):
    """A view as the list shows it."""

    view: SavedView
    is_active: bool
    is_default: bool
    is_own: bool
    may_change: bool


class SavedViewsMixin:
    """Adds views to a list; its template includes `desk/views.html`."""

    admin_site: Any
    opts: Any

    def has_share_views_permission(self, request: HttpRequest) -> bool:
        """May give views to everybody, and rename and delete what others gave."""
        return bool(request.user.has_perm("sessions_app.share_savedview"))

    def get_urls(self) -> list[URLPattern]:
        """One address for all buttons."""
        name = f"{self.opts.app_label}_{self.opts.model_name}_views"
        return [path("views/", self.admin_site.admin_view(self.views_view), name=name), *super().get_urls()]  # type: ignore[misc]

    # -- the list ----------------------------------------------------------------------------------------------------

    def changelist_view(self: Any, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> Any:
        """The list below its views; from elsewhere, in the view that this person chose. One query for the views."""
        shown = shown_views(request.user, self.opts.label_lower) if self.has_view_permission(request) else []
        if way := way_to_default(request, shown):
            return redirect(way)
        context = {
            "view_lines": self.view_lines(request, shown),
            "views_url": admin_url(self, "views"),
            "shown_query": request.GET.urlencode(),
            "may_share": self.has_share_views_permission(request),
            **self.list_context(request),
            **(extra_context or {}),
        }
        return super().changelist_view(request, context)  # type: ignore[misc]

    def list_context(self, request: HttpRequest) -> dict[str, Any]:
        """What else stands above the list. Asked for only where the list is shown."""
        return {"keys": LIST_KEYS}

    def view_lines(self, request: HttpRequest, views: Iterable[Any]) -> list[ViewLine]:
        """What there is to choose from."""
        filters = {name: values for name in request.GET if (values := [v for v in request.GET.getlist(name) if v])}
        filters.pop("p", None)
        may_share = self.has_share_views_permission(request)
        return [
            ViewLine(
                view,
                is_active=view.filters == filters,
                is_default=view.is_default,
                is_own=view.owner_id == request.user.pk,
                may_change=may_share or view.owner_id == request.user.pk,
            )
            for view in views
        ]

    # -- the buttons -------------------------------------------------------------------------------------------------

    def views_view(self: Any, request: HttpRequest) -> HttpResponse:
        """Save, rename, delete, set as default, or none. Each calls one service."""
        if request.method != "POST":
            return HttpResponseNotAllowed(["POST"])
        person = request.user
        if not isinstance(person, AbstractBaseUser) or not self.has_view_permission(request):
            raise PermissionDenied
        action, form = request.POST.get("action", ""), ViewForm(request.POST)
        if action not in _DONE or not form.is_valid():
            return HttpResponseBadRequest()
        said, may_share, listed = form.cleaned_data, self.has_share_views_permission(request), self.opts.label_lower
        if action == "save" and said["is_shared"] and not may_share:
            raise PermissionDenied
        shown, view_id, name = QueryDict(said["filters"]), said["view"] or 0, said["name"]
        back = shown.urlencode()
        try:
            match action:
                case "save":
                    filters, is_shared = dict(shown.lists()), said["is_shared"]
                    view = views.save_view(owner=person, listed=listed, name=name, filters=filters, is_shared=is_shared)
                    back = view.query
                case "rename":
                    views.rename_view(view_id=view_id, listed=listed, person=person, name=name, may_share=may_share)
                case "delete":
                    views.delete_view(view_id=view_id, listed=listed, person=person, may_share=may_share)
                case "default":
                    views.set_default(person=person, listed=listed, view_id=view_id)
                case _:
                    views.set_default(person=person, listed=listed, view_id=None)
        except DomainError as refusal:
            messages.error(request, refusal.message)
        else:
            messages.success(request, str(_(_DONE[action])))
        return redirect(f"{admin_url(self, 'changelist')}?{back}")


def way_to_default(request: HttpRequest, views: Iterable[Any]) -> str | None:
    """Where somebody is led who comes to the bare list from elsewhere; within it they may take all filters off."""
    came_from = urlsplit(request.headers.get("Referer", "")).path
    if request.method != "GET" or request.GET or came_from.startswith(request.path):
        return None
    queries = (view.query for view in views if view.is_default)
    return next((f"{request.path}?{query}" for query in queries if query), None)


_DONE = {
    "save": gettext_noop("The view is saved."),
    "rename": gettext_noop("The view is renamed."),
    "delete": gettext_noop("The view is deleted."),
    "default": gettext_noop("You find the list in this view from now on."),
    "no_default": gettext_noop("You find the list as it is from now on."),
}
