"""The verdict on a bad case, as a form."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from django import forms
from django.contrib.auth import get_user_model
from django.utils.translation import gettext_lazy as _
from unfold.widgets import UnfoldAdminSelectWidget, UnfoldAdminTextareaWidget

from cases_app.admin.differences import Difference, compare
from feedback_app.models import BadCaseReview, Severity
from feedback_app.selectors import triage
from feedback_app.selectors.failure_modes import mode_choices
from sessions_app.forms import LongTextField, ReasonForm, ServiceForm


class AssignForm(ReasonForm):
    """To whom a bad case is to go."""

    assignee = forms.ModelChoiceField(
        label=_("Assign to"),
        queryset=get_user_model().objects.none(),
        required=False,
        widget=UnfoldAdminSelectWidget(attrs={"data-key": "h"}),
    )
    field_order = ("assignee", "reason")

    def __init__(self, *args: Any, without: int | None = None, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        field: Any = self.fields["assignee"]
        field.queryset = triage.reviewers().exclude(pk=without)


class VersionField(forms.IntegerField):
    """What the form was written over. It is nobody's text, so it never counts as changed."""

    def __init__(self) -> None:
        super().__init__(widget=forms.HiddenInput, required=False)

    def has_changed(self, initial: Any, data: Any) -> bool:
        """Never."""
        return False


class VerdictForm(ServiceForm):
    """What a reviewer writes. Which of it a move asks for is for the service to say."""

    failure_mode = forms.ChoiceField(
        label=_("What went wrong"),
        required=False,
        widget=UnfoldAdminSelectWidget(attrs={"data-digits": "", "data-key": "f"}),
    )
    severity = forms.ChoiceField(
        label=_("Severity"),
        choices=[("", _("Not said")), *Severity.choices],
        required=False,
        widget=UnfoldAdminSelectWidget(attrs={"data-key": "v"}),
    )
    blamed_step = forms.ChoiceField(
        label=_("Step to blame"), required=False, widget=UnfoldAdminSelectWidget(attrs={"data-key": "b"})
    )
    notes = LongTextField(
        label=_("Notes"),
        required=False,
        widget=UnfoldAdminTextareaWidget(attrs={"rows": 3, "data-key": "e"}),
        help_text=_("For other reviewers. To dismiss, say here why nothing is to be done."),
    )
    corrected_answer = LongTextField(
        label=_("Corrected answer"),
        required=False,
        widget=UnfoldAdminTextareaWidget(attrs={"rows": 4, "data-key": "a"}),
        help_text=_("What the agent should have answered. Markdown."),
    )
    version = VersionField()

    def __init__(
        self,
        *args: Any,
        modes: Sequence[tuple[str, str]] = (),
        steps: Sequence[tuple[str, str]] = (),
        **kwargs: Any,
    ) -> None:
        super().__init__(*args, **kwargs)
        mode: Any = self.fields["failure_mode"]
        mode.choices = [("", _("Choose what went wrong")), *modes]
        blamed: Any = self.fields["blamed_step"]
        blamed.choices = [("", _("None in particular")), *steps]

    @classmethod
    def of(cls, review: BadCaseReview, data: Mapping[str, Any] | None = None) -> VerdictForm:
        """The form over what is stored, with what somebody typed where there is `data`."""
        steps = triage.steps_of(str(review.session_id))
        if review.blamed_step and review.blamed_step not in dict(steps):
            steps.append((review.blamed_step, review.blamed_step.replace("/", " #")))
        return cls(
            data,
            initial={name: getattr(review, name) for name in cls.base_fields},
            modes=mode_choices(review.failure_mode),
            steps=steps,
        )

    def over(self, review: BadCaseReview) -> VerdictForm:
        """The same text, to be written over what stands there now: knowingly, for it is shown."""
        data: Any = self.data.copy() if hasattr(self.data, "copy") else dict(self.data)
        data["version"] = str(review.version)
        form = VerdictForm.of(review, data)
        form.is_valid()
        return form

    def stored_meanwhile(self, review: BadCaseReview) -> list[tuple[Any, Difference]]:
        """Label and difference, from what the form says to what stands in the database, where the two differ."""
        found = []
        for name in ("failure_mode", "severity", "blamed_step", "notes", "corrected_answer"):
            stored, written = getattr(review, name), self.cleaned_data.get(name, "")
            if stored and stored != written:
                labels: Any = dict(getattr(self.fields[name], "choices", ()))
                mine, theirs = (str(labels.get(text, text)) if text else "" for text in (written, stored))
                found.append((self.fields[name].label, compare(mine, theirs)))
        return found
