"""Saved views of the triage queue: the list that they open, and the buttons that keep them."""

from __future__ import annotations

from typing import Any, NamedTuple
from urllib.parse import urlsplit

from django import forms
from django.contrib import messages
from django.http import HttpRequest, HttpResponse, HttpResponseBadRequest, HttpResponseNotAllowed, QueryDict
from django.shortcuts import redirect
from django.utils.translation import gettext as _
from django.utils.translation import gettext_noop
from unfold.widgets import UnfoldAdminTextInputWidget

from feedback_app.models import SavedView
from feedback_app.selectors.views import default_view, shown_views
from feedback_app.services import views
from sessions_app.errors import DomainError

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


class SavedViews:
    """Mixed into the admin of the queue."""

    def view_lines(self: Any, request: HttpRequest) -> list[ViewLine]:
        """What there is to choose from. Two queries."""
        default = default_view(request.user)
        shown = {name: values for name in request.GET if (values := [v for v in request.GET.getlist(name) if v])}
        shown.pop("p", None)
        is_lead = self.has_assign_permission(request)
        return [
            ViewLine(
                view,
                is_active=view.filters == shown,
                is_default=default is not None and view.pk == default.pk,
                is_own=view.owner_id == request.user.pk,
                may_change=is_lead or view.owner_id == request.user.pk,
            )
            for view in shown_views(request.user)
        ]

    def way_to_default(self: Any, request: HttpRequest) -> str | None:
        """Where somebody is led who comes to the bare list from elsewhere; within it they may take all filters off."""
        came_from = urlsplit(request.headers.get("Referer", "")).path
        if request.method != "GET" or request.GET or came_from.startswith(request.path):
            return None
        view = default_view(request.user)
        return f"{request.path}?{view.query}" if view and view.query else None

    def views_view(self: Any, request: HttpRequest) -> HttpResponse:
        """The buttons: save, rename, delete, set as default, or none. Each calls one service."""
        if request.method != "POST":
            return HttpResponseNotAllowed(["POST"])
        self.require(request, "view")
        action, form = request.POST.get("action", ""), ViewForm(request.POST)
        if action not in _DONE or not form.is_valid():
            return HttpResponseBadRequest()
        said, person, is_lead = form.cleaned_data, self.person(request), self.has_assign_permission(request)
        shown = QueryDict(said["filters"][:MAX_QUERY_CHARS])
        back = f"?{shown.urlencode()}"
        if action == "save" and said["is_shared"]:
            self.require(request, "assign")
        try:
            match action:
                case "save":
                    filters = dict(shown.lists())
                    view = views.save_view(
                        owner=person, name=said["name"], filters=filters, is_shared=said["is_shared"]
                    )
                    back = f"?{view.query}"
                case "rename":
                    views.rename_view(view_id=said["view"] or 0, person=person, name=said["name"], is_lead=is_lead)
                case "delete":
                    views.delete_view(view_id=said["view"] or 0, person=person, is_lead=is_lead)
                case _:
                    views.set_default(person=person, view_id=said["view"] if action == "default" else None)
        except DomainError as refusal:
            messages.error(request, refusal.message)
        else:
            messages.success(request, str(_(_DONE[action])))
        return redirect(self.view_url("changelist", None) + back)


_DONE = {
    "save": gettext_noop("The view is saved."),
    "rename": gettext_noop("The view is renamed."),
    "delete": gettext_noop("The view is deleted."),
    "default": gettext_noop("You find the queue in this view from now on."),
    "no_default": gettext_noop("You find the queue as it is from now on."),
}
