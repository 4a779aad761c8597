"""The taxonomy of faults: Leads keep it."""

from __future__ import annotations

import re
from typing import Any

from django import forms
from django.contrib import admin
from django.db.models import Count
from django.http import HttpRequest
from django.utils.translation import gettext_lazy as _
from unfold.admin import ModelAdmin
from unfold.widgets import UnfoldAdminTextareaWidget

from cases_app.models import FaultCategory

CODE_PATTERN = r"[A-Z][A-Z0-9_]*"


class KeywordsField(forms.CharField):
    """A list of words, one a line."""

    widget = UnfoldAdminTextareaWidget(attrs={"rows": 8})

    def prepare_value(self, value: Any) -> Any:
        """The stored list as lines."""
        return "\n".join(value) if isinstance(value, list) else value

    def to_python(self, value: Any) -> Any:
        """The lines as a list, without blanks and repetitions."""
        lines = value if isinstance(value, list) else str(value or "").splitlines()
        return list(dict.fromkeys(line.strip() for line in lines if line.strip()))

    def has_changed(self, initial: Any, data: Any) -> bool:
        """Whether the list differs, not its spelling as lines."""
        return bool(self.to_python(initial) != self.to_python(data))


class FaultCategoryForm(forms.ModelForm[FaultCategory]):
    """A category with its names in three languages."""

    keywords = KeywordsField(
        label=_("Keywords"),
        required=False,
        help_text=_(
            "One a line, in any language. They suggest this category for a case whose session holds them: in its "
            "texts, or in the names of its alerts, tools and agents. The beginning of a word is enough."
        ),
    )

    class Meta:
        model = FaultCategory
        fields = ("code", "name", "name_zh", "name_ru", "description", "keywords")

    def clean_code(self) -> str:
        """The code stands in the API and in exports: capital letters, digits and underscores."""
        code: str = self.cleaned_data["code"]
        if not re.fullmatch(CODE_PATTERN, code):
            raise forms.ValidationError(_("Capital letters, digits and underscores, beginning with a letter."))
        return code


@admin.register(FaultCategory)
class FaultCategoryAdmin(ModelAdmin):
    """Added and changed by Leads; never deleted, cases refer to them."""

    form = FaultCategoryForm
    fields = FaultCategoryForm.Meta.fields
    list_display = ("code", "name", "name_zh", "name_ru", "case_count")
    search_fields = ("code", "name", "name_zh", "name_ru", "keywords")
    show_full_result_count = False
    actions = None
    warn_unsaved_form = True

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Never."""
        return False

    def get_readonly_fields(self, request: HttpRequest, obj: FaultCategory | None = None) -> tuple[str, ...]:
        """The code is fixed once it is in use."""
        return ("code",) if obj else ()

    def get_queryset(self, request: HttpRequest) -> Any:
        """With how many cases each has."""
        return super().get_queryset(request).annotate(cases_here=Count("cases"))

    @admin.display(description=_("cases"), ordering="cases_here")
    def case_count(self, category: Any) -> int:
        """How many cases are filed here."""
        return int(category.cases_here)
