"""Objects that have a page with buttons of its own in the admin, in place of a form over their columns.

A button is a POST of `action` to the page. It calls one service, which alone moves the object.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from django.contrib import messages
from django.contrib.admin.templatetags.admin_urls import add_preserved_filters
from django.contrib.auth.models import AbstractBaseUser
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse, QueryDict
from django.shortcuts import redirect
from django.template.response import TemplateResponse
from unfold.admin import ModelAdmin

from sessions_app.lists import DeskChangeList, admin_url

FROM_LIST = "from_list"
"""A field that buttons of the list send along: the way leads back there."""
HTTP_CONFLICT = 409
MAX_PAGE_DIGITS = 6


class Button(NamedTuple):
    """What a button does, who may press it (`has_<permission>_permission`), and what is said when it is done.

    `move` takes what was pressed, as each app describes it, and calls one service.
    """

    move: Callable[[Any], object]
    permission: str
    done: Any
    needs_fields: bool = False


@dataclass(frozen=True, slots=True)
class Tab:
    """A way to look at a list: a link to some filters, with how much it holds where that is cheap to know."""

    title: str
    filters: Mapping[str, str]
    count: int | None = None
    is_active: bool = False

    @classmethod
    def among(cls, request: HttpRequest, title: str, count: int | None = None, **filters: str) -> Tab:
        """A tab, active when the list shows just these filters."""
        shown = {name: value for name, value in request.GET.items() if value and name not in {"p", "o", "q"}}
        return cls(title, filters, count, shown == filters)

    @property
    def query(self) -> str:
        """Where it leads."""
        query = QueryDict(mutable=True)
        query.update(dict(self.filters))
        return f"?{query.urlencode()}"


class ObjectPageAdmin(ModelAdmin):
    """Nobody edits or deletes by Django's own forms, a superuser neither."""

    actions: Any = None
    page_template: str
    shows_history = False
    """Whether the page of an object shows what became of it; then Django's history, which knows less, leads there."""

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Only by the buttons."""
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Never: it is a record."""
        return False

    def get_changelist(self, request: HttpRequest, **kwargs: Any) -> type[DeskChangeList]:
        """A list whose rows are drawn in one go."""
        return DeskChangeList

    def person(self, request: HttpRequest) -> AbstractBaseUser:
        """Who asks; the admin lets nobody else in."""
        if not isinstance(request.user, AbstractBaseUser):
            raise PermissionDenied
        return request.user

    def steps_page(self, request: HttpRequest) -> int:
        """Which page of a decision chain is asked for."""
        text = request.GET.get("steps", "")[:MAX_PAGE_DIGITS]
        return int(text) if text.isdecimal() else 1

    def require(self, request: HttpRequest, permission: str) -> None:
        """Ask `has_<permission>_permission` again at the moment a button is pressed."""
        if not getattr(self, f"has_{permission}_permission")(request):
            raise PermissionDenied

    def done(self, request: HttpRequest, obj: Any, text: object) -> None:
        """Log what was done and say so."""
        self.log_change(request, obj, str(text))
        messages.success(request, str(text))

    def page(
        self, request: HttpRequest, obj: Any, context: dict[str, Any], *, status: int = 200, template: str = ""
    ) -> TemplateResponse:
        """The object's page, or with `template` another one."""
        request.current_app = self.admin_site.name
        context = {
            **self.admin_site.each_context(request),
            "opts": self.opts,
            "original": obj,
            "title": str(obj or self.opts.verbose_name),
            "list_url": self.list_url(request),
            **context,
        }
        return TemplateResponse(request, template or self.page_template, context, status=status)

    def history_view(
        self, request: HttpRequest, object_id: str, extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        """The log of the admin, or the way to the object's own history."""
        if not self.shows_history:
            return super().history_view(request, object_id, extra_context)  # type: ignore[no-any-return]
        self.require(request, "view")
        return redirect(f"{self.view_url('change', request, object_id)}#history")

    def unknown(self, request: HttpRequest, object_id: str) -> HttpResponse:
        """Say that there is no such object, as Django's own pages do."""
        response: HttpResponse = self._get_obj_does_not_exist_redirect(request, self.opts, object_id)
        return response

    def object_url(self, obj: Any, request: HttpRequest | None = None) -> str:
        """The page of an object; with `request` it remembers how the list was filtered."""
        return self.view_url("change", request, obj.pk)

    def list_url(self, request: HttpRequest) -> str:
        """The list, filtered as it was."""
        return self.view_url("changelist", request)

    def view_url(self, view: str, request: HttpRequest | None, *args: object) -> str:
        """A view of this admin; with `request` it remembers how the list was filtered."""
        url = admin_url(self, view, *args)
        kept = self.get_preserved_filters(request) if request else ""
        return str(add_preserved_filters({"preserved_filters": kept, "opts": self.opts}, url))
