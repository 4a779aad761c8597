"""Forms in front of services, and fields for what people write at length."""

from collections.abc import Mapping, Sequence
from typing import Any

from django import forms
from django.utils.translation import gettext_lazy as _
from unfold.widgets import UnfoldAdminTextInputWidget

from sessions_app.text import MAX_TEXT_CHARS

NOT_SAVED = _("What you wrote is not saved yet.")
"""Said when a page comes back with text that no service took."""


class LongTextField(forms.CharField):
    """Text of several lines. Browsers send CRLF: kept are the line feeds that the text was shown with."""

    def __init__(self, **kwargs: Any) -> None:
        kwargs.setdefault("max_length", MAX_TEXT_CHARS)  # what an agent may send, a person may save
        super().__init__(**kwargs)

    def to_python(self, value: Any) -> str:
        """The text with single line feeds."""
        return str(super().to_python(value)).replace("\r\n", "\n")

    def has_changed(self, initial: Any, data: Any) -> bool:
        """Whether more than line ends and the blanks around it differ."""
        return bool(self.to_python(initial) != self.to_python(data))

    def widget_attrs(self, widget: forms.Widget) -> dict[str, Any]:
        """No `maxlength`: a browser would cut silently what is pasted; we say that it is too long."""
        return {}


class ServiceForm(forms.Form):
    """A form whose text a service judges."""

    def refuse(self, errors: Mapping[str, Sequence[str]]) -> None:
        """Put what the service refused beside its field."""
        for name, texts in errors.items():
            self.add_error(name if name in self.fields else None, list(texts))


class ReasonForm(forms.Form):
    """Why something goes where it goes; for its history."""

    MAX_CHARS = 500

    reason = forms.CharField(
        label=_("Why"),
        help_text=_("For the history."),
        required=False,
        max_length=MAX_CHARS,
        widget=UnfoldAdminTextInputWidget(attrs={"data-key": "w"}),
    )

    @classmethod
    def given(cls, data: Mapping[str, Any]) -> str:
        """What was given, if anything."""
        return str(data.get("reason", ""))[: cls.MAX_CHARS].strip()
