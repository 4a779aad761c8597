"""API keys: made here and shown once, revoked here, never edited or deleted: a key that was used stays on record."""

from __future__ import annotations

from typing import Any

from django import forms
from django.contrib import admin, messages
from django.contrib.auth import get_user_model
from django.contrib.auth.models import AbstractUser
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.template.response import TemplateResponse
from django.urls import URLPattern, path, reverse
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from unfold.admin import ModelAdmin
from unfold.widgets import (
    UnfoldAdminCheckboxSelectMultipleWidget,
    UnfoldAdminSelectWidget,
    UnfoldAdminTextInputWidget,
)

from sessions_app.errors import InvalidInputError
from sessions_app.models import ApiKey, Scope
from sessions_app.services.keys import create_key, revoke_key
from sessions_app.templatetags import desk

CHANGELIST = "admin:sessions_app_apikey_changelist"


class KeyForm(forms.Form):
    """What a new key is for, what it opens, who answers for it."""

    name = forms.CharField(
        label=gettext_lazy("Name"),
        max_length=100,
        widget=UnfoldAdminTextInputWidget,
        help_text=gettext_lazy("What the key is for: the agent or the site that will hold it."),
    )
    scopes = forms.MultipleChoiceField(
        label=gettext_lazy("Scopes"), choices=Scope.choices, widget=UnfoldAdminCheckboxSelectMultipleWidget
    )
    owner = forms.ModelChoiceField(
        label=gettext_lazy("Owner"),
        queryset=get_user_model().objects.filter(is_active=True, is_staff=True).order_by("username"),
        required=False,
        widget=UnfoldAdminSelectWidget,
        help_text=gettext_lazy("Who answers for it."),
    )


@admin.register(ApiKey)
class ApiKeyAdmin(ModelAdmin):
    """The list of keys, the form for a new one, the button that closes one."""

    list_display = ("name", "begins_with", "opens", "owner", "created", "used", "state", "close")
    list_display_links = None
    list_select_related = ("owner",)
    sortable_by = ()
    search_fields = ("name", "prefix", "owner__username")
    actions = None

    # -- who may what ------------------------------------------------------------------------------------------------

    def has_change_permission(self, request: HttpRequest, obj: ApiKey | None = None) -> bool:
        """Nobody edits a key."""
        return False

    def has_delete_permission(self, request: HttpRequest, obj: ApiKey | None = None) -> bool:
        """Nobody deletes one."""
        return False

    def has_view_permission(self, request: HttpRequest, obj: ApiKey | None = None) -> bool:
        """Whoever may see keys."""
        return bool(request.user.has_perm("sessions_app.view_apikey"))

    def has_revoke_permission(self, request: HttpRequest) -> bool:
        """Whoever may change keys may close them, which is the only change there is."""
        return bool(request.user.has_perm("sessions_app.change_apikey"))

    # -- the list ----------------------------------------------------------------------------------------------------

    def get_list_display(self, request: HttpRequest) -> tuple[str, ...]:
        """Without the button for those who may not press it."""
        return self.list_display if self.has_revoke_permission(request) else self.list_display[:-1]

    @admin.display(description=gettext_lazy("begins with"))
    def begins_with(self, key: ApiKey) -> SafeString:
        """Enough to tell it from others, too little to use it."""
        return format_html("<code>{}…</code>", key.prefix)

    @admin.display(description=gettext_lazy("scopes"))
    def opens(self, key: ApiKey) -> SafeString:
        """What it opens."""
        scopes: Any = key.scopes
        labels = dict(Scope.choices)
        return format_html_join(", ", "{}", ((labels.get(scope, scope),) for scope in scopes))

    @admin.display(description=gettext_lazy("created"))
    def created(self, key: ApiKey) -> SafeString:
        """When it was made."""
        return desk.moment(key.created_at)

    @admin.display(description=gettext_lazy("last used"))
    def used(self, key: ApiKey) -> SafeString:
        """When it last opened something, to the minute."""
        return desk.moment(key.last_used_at)

    @admin.display(description=gettext_lazy("state"))
    def state(self, key: ApiKey) -> SafeString:
        """Whether it still opens anything."""
        if key.is_revoked:
            return format_html("{} {}", desk.badge("revoked", _("Revoked")), desk.moment(key.revoked_at))
        return desk.badge("valid", _("Valid"))

    @admin.display(description="")
    def close(self, key: ApiKey) -> SafeString:
        """The way to the question whether to revoke it."""
        if key.is_revoked:
            return desk.nothing()
        url = reverse("admin:sessions_app_apikey_revoke", args=[key.pk])
        label = _("Revoke %(name)s") % {"name": key.name}
        return format_html(
            '<a class="desk-button desk-button--small desk-button--danger" href="{}" aria-label="{}">{}</a>',
            url,
            label,
            _("Revoke"),
        )

    # -- pages -------------------------------------------------------------------------------------------------------

    def get_urls(self) -> list[URLPattern]:
        """The question before a key is revoked."""
        revoke = path(
            "<int:pk>/revoke/", self.admin_site.admin_view(self.revoke_view), name="sessions_app_apikey_revoke"
        )
        return [revoke, *super().get_urls()]

    def add_view(
        self, request: HttpRequest, form_url: str = "", extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        """Ask what the key is for; make it; show it in this very response, and nowhere else ever."""
        if not self.has_add_permission(request):
            raise PermissionDenied
        form = KeyForm(request.POST or None, initial={"owner": request.user.pk})
        if request.method == "POST" and form.is_valid():
            owner: AbstractUser | None = form.cleaned_data["owner"]
            try:
                key, secret = create_key(
                    name=form.cleaned_data["name"], scopes=form.cleaned_data["scopes"], owner=owner
                )
            except InvalidInputError as error:
                for name, reasons in error.errors.items():
                    form.add_error(name, list(reasons))
            else:
                self.log_addition(request, key, [{"added": {}}])
                return self._page(request, "created", _("Your new key"), key=key, secret=secret)
        return self._page(request, "add", _("New API key"), form=form)

    def revoke_view(self, request: HttpRequest, pk: int) -> HttpResponse:
        """Ask; on POST, close the key."""
        if not (self.has_view_permission(request) and self.has_revoke_permission(request)):
            raise PermissionDenied
        key = ApiKey.objects.select_related("owner").filter(pk=pk).first()
        if key is None:
            raise Http404
        if request.method != "POST":
            return self._page(request, "revoke", _("Revoke a key"), key=key)
        if revoke_key(key_id=pk):
            self.log_change(request, key, _("Revoked."))
            messages.success(request, _("%(key)s is revoked; it opens nothing any more.") % {"key": key})
        else:
            messages.warning(request, _("%(key)s was revoked before.") % {"key": key})
        return HttpResponseRedirect(reverse(CHANGELIST))

    def _page(self, request: HttpRequest, name: str, title: str, **context: Any) -> TemplateResponse:
        request.current_app = self.admin_site.name
        context |= {
            **self.admin_site.each_context(request),
            "opts": self.opts,
            "title": title,
            "list_url": reverse(CHANGELIST),
        }
        return TemplateResponse(request, f"admin/sessions_app/apikey/{name}.html", context)
