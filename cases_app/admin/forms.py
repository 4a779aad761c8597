"""What a reviewer writes into a case, as a form that knows when it is out of date."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, cast

from django import forms
from django.forms.boundfield import BoundField
from django.http import QueryDict
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from unfold.widgets import UnfoldAdminSelectWidget, UnfoldAdminTextareaWidget, UnfoldAdminTextInputWidget

from cases_app import rules
from cases_app.admin.differences import Difference, compare
from cases_app.admin.places import place_of
from cases_app.case_files import KINDS
from cases_app.models import CaseLibrary, FaultCategory
from cases_app.selectors.suggestions import Suggestion, Suggestions
from cases_app.services.enrichment import CaseContent, content_to_edit
from sessions_app.forms import LongTextField, ServiceForm
from sessions_app.templatetags.desk import excerpt

CONTENT = ("fault_category", "error_code", "title", "root_cause", "solution")
PREVIEW_CHARS = 160


@dataclass(frozen=True, slots=True)
class Offer:
    """A suggestion as it is shown."""

    suggestion: Suggestion
    text: str  # what a person reads for its value

    @property
    def preview(self) -> str:
        """The beginning of it, in one line."""
        return excerpt(self.text, PREVIEW_CHARS)

    @property
    def places(self) -> list[SafeString]:
        """Where it came from."""
        return [place_of(found) for found in self.suggestion.evidence]


class CaseForm(ServiceForm):
    """The content of a case.

    Each field carries along what it said when the page was opened, and the form the version it was opened at. So a
    stale form can say what others changed, field by field, and lose nothing of what was typed.
    """

    fault_category = forms.ChoiceField(
        label=gettext_lazy("Fault category"),
        show_hidden_initial=True,
        widget=UnfoldAdminSelectWidget(attrs={"data-key": "c"}),
    )
    error_code = forms.CharField(
        label=gettext_lazy("Error code"),
        required=False,
        max_length=128,
        show_hidden_initial=True,
        widget=UnfoldAdminTextInputWidget(attrs={"data-key": "e"}),
        help_text=gettext_lazy("As it stands in logs and alerts: agents look cases up by it, exactly."),
    )
    title = forms.CharField(
        label=gettext_lazy("Title"),
        max_length=200,
        show_hidden_initial=True,
        widget=UnfoldAdminTextInputWidget(attrs={"data-key": "t"}),
    )
    root_cause = LongTextField(
        label=gettext_lazy("Root cause"),
        required=False,
        show_hidden_initial=True,
        widget=UnfoldAdminTextareaWidget(attrs={"rows": 10, "data-key": "r"}),
        help_text=gettext_lazy("Markdown."),
    )
    solution = LongTextField(
        label=gettext_lazy("Solution"),
        required=False,
        show_hidden_initial=True,
        widget=UnfoldAdminTextareaWidget(attrs={"rows": 10, "data-key": "v"}),
        help_text=gettext_lazy("Markdown."),
    )
    version = forms.IntegerField(widget=forms.HiddenInput, required=False)
    seen = forms.IntegerField(widget=forms.HiddenInput, required=False)  # the last row of history that was shown

    def __init__(self, data: Mapping[str, Any] | None = None, **kwargs: Any) -> None:
        super().__init__(data, **kwargs)
        self.categories = {category.code: str(category) for category in FaultCategory.objects.all()}
        self.suggested: dict[str, list[Offer]] = {}
        self._order_categories([])

    @classmethod
    def of(cls, case: CaseLibrary, last_row: int, data: Mapping[str, Any] | None = None) -> CaseForm:
        """The form over what stands in `case`, with what somebody typed where there is `data`."""
        return cls(data, initial={**content_to_edit(case), "version": case.version, "seen": last_row})

    def offer(self, suggestions: Suggestions) -> None:
        """Show beside each field what it could hold. A category that is no more is not offered."""
        categories = [one for one in suggestions.get("fault_category", []) if one.value in self.categories]
        self._order_categories([one.value for one in categories])
        for name, found in {**suggestions, "fault_category": categories}.items():
            self.suggested[name] = [
                Offer(one, self.categories.get(one.value, "") if name == "fault_category" else one.value)
                for one in found
            ]

    def rows(self) -> Iterator[tuple[BoundField, list[Offer], int]]:
        """Each field that is seen, with its suggestions and the key that takes the first of them."""
        for key, field in enumerate(self.visible_fields(), start=1):
            yield field, self.suggested.get(field.name, []), key

    def values(self) -> dict[str, list[str]]:
        """For the script of the page: field → what its buttons put there."""
        return {name: [one.suggestion.value for one in offers] for name, offers in self.suggested.items() if offers}

    def _order_categories(self, suggested: list[str]) -> None:
        """GENERAL, then what the text suggests under a head of its own, then the others."""
        names = self.categories
        first = [(code, name) for code, name in names.items() if code == rules.GENERAL]
        others = [(code, name) for code, name in names.items() if code not in (rules.GENERAL, *suggested)]
        groups = [(_("Suggested"), [(code, names[code]) for code in suggested]), (_("Others"), others)]
        cast(forms.ChoiceField, self.fields["fault_category"]).choices = [*first, *(groups if suggested else others)]

    @property
    def content(self) -> CaseContent:
        """What was typed; only of a valid form."""
        return cast(CaseContent, {name: self.cleaned_data[name] for name in CONTENT})

    def has_new_content(self) -> bool:
        """Whether something was typed."""
        return any(name in CONTENT for name in self.changed_data)

    def changes_since(self, case: CaseLibrary) -> list[tuple[Any, Difference]]:
        """Label and difference of each field that others changed since this form was opened."""
        then = {name: self._as_opened(name) for name in CONTENT}
        now = cast(Mapping[str, str], content_to_edit(case))
        return [
            (self.fields[name].label, compare(then[name], now[name])) for name in CONTENT if then[name] != now[name]
        ]

    def rebased(self, case: CaseLibrary, last_row: int) -> CaseForm:
        """The same typed text over what stands in `case` now: the next press saves it knowingly."""
        data = QueryDict(mutable=True)
        data.update({name: self.data.get(name, "") for name in CONTENT})
        data.update({"version": str(case.version), "seen": str(last_row)})
        data.update({self.add_initial_prefix(name): str(value) for name, value in content_to_edit(case).items()})
        return CaseForm.of(case, last_row, data)

    def _as_opened(self, name: str) -> str:
        return str(self.fields[name].to_python(self.data.get(self.add_initial_prefix(name), "")))


class ImportForm(forms.Form):
    """A file of cases."""

    file = forms.FileField(
        label=gettext_lazy("File"),
        max_length=255,
        widget=forms.FileInput(attrs={"accept": ",".join(KINDS)}),
    )
