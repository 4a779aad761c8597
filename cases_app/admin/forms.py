"""What a reviewer writes into a case, as a form that knows when it is out of date."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

from django import forms
from django.http import QueryDict
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from unfold.widgets import UnfoldAdminSelectWidget, UnfoldAdminTextareaWidget, UnfoldAdminTextInputWidget

from cases_app import rules
from cases_app.admin.differences import Difference, compare
from cases_app.models import CaseLibrary, FaultCategory
from cases_app.services.enrichment import CaseContent
from sessions_app.forms import LongTextField, ServiceForm

CONTENT = ("fault_category", "error_code", "title", "root_cause", "solution")


def content_of(case: CaseLibrary) -> CaseContent:
    """What stands in a case."""
    return {
        "fault_category": case.fault_category_id,
        "error_code": case.error_code,
        "title": case.title,
        "root_cause": case.root_cause,
        "solution": case.solution,
    }


class CaseForm(ServiceForm):
    """The content of a case.

    Each field carries along what it said when the page was opened, and the form the version it was opened at. So a
    stale form can say what others changed, field by field, and lose nothing of what was typed.
    """

    fault_category = forms.ChoiceField(
        label=gettext_lazy("Fault category"), show_hidden_initial=True, widget=UnfoldAdminSelectWidget
    )
    error_code = forms.CharField(
        label=gettext_lazy("Error code"),
        required=False,
        max_length=128,
        show_hidden_initial=True,
        widget=UnfoldAdminTextInputWidget,
        help_text=gettext_lazy("As it stands in logs and alerts: agents look cases up by it, exactly."),
    )
    title = forms.CharField(
        label=gettext_lazy("Title"), max_length=200, show_hidden_initial=True, widget=UnfoldAdminTextInputWidget
    )
    root_cause = LongTextField(
        label=gettext_lazy("Root cause"),
        required=False,
        show_hidden_initial=True,
        widget=UnfoldAdminTextareaWidget(attrs={"rows": 10}),
        help_text=gettext_lazy("Markdown."),
    )
    solution = LongTextField(
        label=gettext_lazy("Solution"),
        required=False,
        show_hidden_initial=True,
        widget=UnfoldAdminTextareaWidget(attrs={"rows": 10}),
        help_text=gettext_lazy("Markdown."),
    )
    version = forms.IntegerField(widget=forms.HiddenInput, required=False)
    seen = forms.IntegerField(widget=forms.HiddenInput, required=False)  # the last row of history that was shown

    def __init__(
        self, data: Mapping[str, Any] | None = None, *, question: str = "", answer: str = "", **kwargs: Any
    ) -> None:
        super().__init__(data, **kwargs)
        categories = list(FaultCategory.objects.all())
        keywords = {category.code: category.keywords for category in categories}
        suggested = rules.rank_by_keywords(question, answer, keywords)
        names = {category.code: str(category) for category in categories}
        field = cast(forms.ChoiceField, self.fields["fault_category"])
        field.choices = _choices(names, suggested)
        if suggested:
            field.help_text = _("The text suggests: %(names)s") % {
                "names": ", ".join(names[code] for code in suggested)
            }

    @classmethod
    def of(cls, case: CaseLibrary, last_row: int, data: Mapping[str, Any] | None = None) -> CaseForm:
        """The form over what stands in `case`, with what somebody typed where there is `data`."""
        session = case.diagnosis
        return cls(
            data,
            initial={**content_of(case), "version": case.version, "seen": last_row},
            question=" ".join([case.error_code, case.title, session.query if session else ""]),
            answer=(session.answer if session else None) or case.root_cause,
        )

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
        now = cast(Mapping[str, str], content_of(case))
        return [
            (self.fields[name].label, compare(then[name], now[name])) for name in CONTENT if then[name] != now[name]
        ]

    def rebased(self, case: CaseLibrary, last_row: int) -> CaseForm:
        """The same typed text over what stands in `case` now: the next press saves it knowingly."""
        data = QueryDict(mutable=True)
        data.update({name: self.data.get(name, "") for name in CONTENT})
        data.update({"version": str(case.version), "seen": str(last_row)})
        data.update({self.add_initial_prefix(name): str(value) for name, value in content_of(case).items()})
        return CaseForm.of(case, last_row, data)

    def _as_opened(self, name: str) -> str:
        return str(self.fields[name].to_python(self.data.get(self.add_initial_prefix(name), "")))


def _choices(names: dict[str, str], suggested: list[str]) -> list[Any]:
    """GENERAL, then what the text suggests under a head of its own, then the others."""
    first = [(code, name) for code, name in names.items() if code == rules.GENERAL]
    others = [(code, name) for code, name in names.items() if code not in (rules.GENERAL, *suggested)]
    if not suggested:
        return [*first, *others]
    return [*first, (_("Suggested"), [(code, names[code]) for code in suggested]), (_("Others"), others)]
