"""Erasing a person: who, what there is of them, and only then the deed. What was erased is listed by digests."""

from __future__ import annotations

from typing import Any

from django import forms
from django.apps import apps
from django.contrib import admin, messages
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.template.response import TemplateResponse
from django.urls import reverse
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from unfold.admin import ModelAdmin
from unfold.widgets import UnfoldAdminTextInputWidget

from feedback_app.models import Erasure
from feedback_app.services.erasure import QUOTES, erase_subject, preview_erasure
from sessions_app.errors import UnknownObjectError
from sessions_app.templatetags.desk import moment, nothing, number
from sessions_app.text import MAX_ID_LENGTH, is_id

CHANGELIST = "admin:feedback_app_erasure_changelist"
SESSIONS = "diagnosis_session"


class SubjectForm(forms.Form):
    """Whom. Asked by POST alone: an address would stand in logs and histories."""

    user_ref = forms.CharField(
        label=gettext_lazy("User"),
        max_length=MAX_ID_LENGTH,
        widget=UnfoldAdminTextInputWidget(attrs={"autocomplete": "off", "spellcheck": "false", "dir": "auto"}),
        help_text=gettext_lazy("As sessions name the person: the pseudonym that the agent sends as userRef."),
    )

    def clean_user_ref(self) -> str:
        """An id as sessions hold it."""
        user_ref = str(self.cleaned_data["user_ref"])
        if not is_id(user_ref):
            raise forms.ValidationError(_("No session names anybody so."))
        return user_ref


@admin.register(Erasure)
class ErasureAdmin(ModelAdmin):
    """The list of what was erased, and the way to erase. Append-only."""

    list_display = ("when", "actor", "person", "sessions", "others")
    list_display_links = None
    list_select_related = ("actor",)
    sortable_by = ()
    actions = None

    def has_add_permission(self, request: HttpRequest) -> bool:
        """Whoever may erase."""
        return bool(request.user.has_perm("feedback_app.add_erasure"))

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Never: a record."""
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Never: a record."""
        return False

    # -- the list ----------------------------------------------------------------------------------------------------

    @admin.display(description=gettext_lazy("at"))
    def when(self, erasure: Erasure) -> SafeString:
        """How long ago."""
        return moment(erasure.at)

    @admin.display(description=gettext_lazy("fingerprint of the person"))
    def person(self, erasure: Erasure) -> SafeString:
        """By it, and by nothing else, the same person is known again."""
        return format_html("<code>{}…</code>", erasure.subject[:12])

    @admin.display(description=gettext_lazy("sessions"))
    def sessions(self, erasure: Erasure) -> str:
        """How many went."""
        counts: dict[str, int] = dict(erasure.counts)
        return number(counts.get(SESSIONS, 0))

    @admin.display(description=gettext_lazy("other rows"))
    def others(self, erasure: Erasure) -> str:
        """How many rows of all other tables."""
        counts: dict[str, int] = dict(erasure.counts)
        return number(sum(count for table, count in counts.items() if table != SESSIONS)) or nothing()

    # -- the deed ----------------------------------------------------------------------------------------------------

    def add_view(
        self, request: HttpRequest, form_url: str = "", extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        """Ask whom; show what there is; on the second POST, erase."""
        if not self.has_add_permission(request):
            raise PermissionDenied
        form = SubjectForm(request.POST if request.method == "POST" else None)
        if request.method != "POST" or not form.is_valid():
            return self._page(request, "add", form=form)
        user_ref = form.cleaned_data["user_ref"]
        if request.POST.get("action") == "erase":
            return self._erase(request, form, user_ref)
        counts = preview_erasure(user_ref=user_ref)
        if not counts:
            form.add_error("user_ref", _("Nothing is stored of this person."))
            return self._page(request, "add", form=form)
        return self._page(request, "preview", user_ref=user_ref, counts=_named(counts))

    def _erase(self, request: HttpRequest, form: SubjectForm, user_ref: str) -> HttpResponse:
        try:
            erased = erase_subject(user_ref=user_ref, actor=request.user)  # type: ignore[arg-type]
        except UnknownObjectError as error:
            form.add_error("user_ref", error.message)
            return self._page(request, "add", form=form)
        self.log_addition(request, erased.erasure, [{"added": {}}])
        messages.success(request, _("The person is erased."))
        if not erased.is_compact:
            messages.warning(
                request,
                _("The file of the database was busy: parts of it still hold deleted text. Run erase_subject again."),
            )
        return HttpResponseRedirect(reverse(CHANGELIST))

    def _page(self, request: HttpRequest, name: str, **context: Any) -> TemplateResponse:
        request.current_app = self.admin_site.name
        context |= {
            **self.admin_site.each_context(request),
            "opts": self.opts,
            "title": _("Erase a person"),
            "list_url": reverse(CHANGELIST),
        }
        response = TemplateResponse(request, f"admin/feedback_app/erasure/{name}.html", context)
        response["Cache-Control"] = "no-store"
        return response


def _named(counts: dict[str, int]) -> list[tuple[str, int]]:
    """Tables by what people call their rows, the sessions first."""
    names = {model._meta.db_table: model._meta.verbose_name_plural for model in apps.get_models()}  # noqa: SLF001
    names[QUOTES] = _("Texts of reviewers that stay, without what they quote")
    return [(str(names.get(table, table)), count) for table, count in sorted(counts.items(), key=_order)]


def _order(line: tuple[str, int]) -> tuple[bool, str]:
    return (line[0] != SESSIONS, line[0])
