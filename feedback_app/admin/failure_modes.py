"""What can be wrong with an answer: Leads keep the list."""

from __future__ import annotations

import re
from typing import Any

from django import forms
from django.contrib import admin
from django.http import HttpRequest
from django.utils.translation import gettext_lazy as _
from unfold.admin import ModelAdmin

from feedback_app.models import NOTHING_WRONG, FailureMode
from sessions_app.templatetags.desk import NOTHING, badge

CODE_PATTERN = r"[A-Z][A-Z0-9_]*"


class FailureModeForm(forms.ModelForm[FailureMode]):
    """A failure mode with its names in three languages."""

    class Meta:
        model = FailureMode
        fields = ("code", "name", "name_zh", "name_ru", "description", "position", "is_retired")

    def clean_code(self) -> str:
        """The code stands in exports and reports: capital letters, digits and underscores."""
        code: str = self.cleaned_data["code"]
        if not re.fullmatch(CODE_PATTERN, code):
            raise forms.ValidationError(_("Capital letters, digits and underscores, beginning with a letter."))
        if code == NOTHING_WRONG:
            raise forms.ValidationError(_("This code says that nothing was wrong."))
        return code


@admin.register(FailureMode)
class FailureModeAdmin(ModelAdmin):
    """Added, renamed and retired by Leads; never deleted, verdicts hold their codes."""

    form = FailureModeForm
    fields = FailureModeForm.Meta.fields
    list_display = ("code", "name", "name_zh", "name_ru", "position", "retired")
    sortable_by = ()
    show_full_result_count = False
    actions = None
    warn_unsaved_form = True

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Never."""
        return False

    def get_readonly_fields(self, request: HttpRequest, obj: FailureMode | None = None) -> tuple[str, ...]:
        """The code is fixed."""
        return ("code",) if obj else ()

    @admin.display(description=_("state"))
    def retired(self, mode: FailureMode) -> str:
        """Whether it is no longer offered."""
        return badge("retired", _("Retired")) if mode.is_retired else NOTHING
