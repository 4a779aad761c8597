"""The verdict on a bad case, as a form."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django import forms
from django.contrib.auth import get_user_model
from django.utils.translation import gettext_lazy as _
from unfold.widgets import UnfoldAdminSelectWidget, UnfoldAdminTextareaWidget

from feedback_app.models import BadCaseReview, FailureMode
from feedback_app.selectors import triage
from sessions_app.forms import LongTextField, ReasonForm, ServiceForm


class AssignForm(ReasonForm):
    """To whom a bad case is to go."""

    assignee = forms.ModelChoiceField(
        label=_("To"), queryset=get_user_model().objects.none(), required=False, widget=UnfoldAdminSelectWidget
    )
    field_order = ("assignee", "reason")

    def __init__(self, *args: Any, without: int | None = None, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        field: Any = self.fields["assignee"]
        field.queryset = triage.reviewers().exclude(pk=without)


class VerdictForm(ServiceForm):
    """What a reviewer writes. Which of it a move asks for is for the service to say."""

    failure_mode = forms.ChoiceField(
        label=_("What went wrong"),
        choices=[("", _("Choose what went wrong")), *FailureMode.choices],
        required=False,
        widget=UnfoldAdminSelectWidget,
    )
    notes = LongTextField(
        label=_("Notes"),
        required=False,
        widget=UnfoldAdminTextareaWidget(attrs={"rows": 5}),
        help_text=_("For other reviewers. To dismiss, say here why nothing is to be done."),
    )
    corrected_answer = LongTextField(
        label=_("Corrected answer"),
        required=False,
        widget=UnfoldAdminTextareaWidget(attrs={"rows": 8}),
        help_text=_("What the agent should have answered. Markdown."),
    )

    @classmethod
    def of(cls, review: BadCaseReview, data: Mapping[str, Any] | None = None) -> VerdictForm:
        """The form over what is stored, with what somebody typed where there is `data`."""
        return cls(data, initial={name: getattr(review, name) for name in cls.base_fields})

    def stored_meanwhile(self, review: BadCaseReview) -> list[tuple[Any, str]]:
        """Label and text of what stands in the database where the form says something else."""
        stored = {name: getattr(review, name) for name in ("notes", "corrected_answer")}
        return [
            (self.fields[name].label, text)
            for name, text in stored.items()
            if text and text != self.cleaned_data.get(name)
        ]
