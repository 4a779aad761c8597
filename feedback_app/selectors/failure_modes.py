"""What failure modes are called, and which a verdict may say."""

from __future__ import annotations

from django.utils.translation import gettext as _

from feedback_app.models import NOTHING_WRONG, FailureMode

Choices = list[tuple[str, str]]


def mode_names() -> dict[str, str]:
    """Code → name in the reader's language, of all there ever were, in the order of the list. One query."""
    return {mode.code: mode.local_name for mode in FailureMode.objects.all()}


def verdict_names() -> dict[str, str]:
    """As `mode_names`, and what a dismissal says."""
    return {**mode_names(), NOTHING_WRONG: _("Nothing was wrong")}


def mode_choices(present: str = "") -> Choices:
    """What a verdict may say; also what it says at `present`, though that is retired."""
    modes = FailureMode.objects.all()
    return [(mode.code, mode.local_name) for mode in modes if not mode.is_retired or mode.code == present]


def verdict_choices() -> Choices:
    """What a second verdict may say."""
    return [*mode_choices(), (NOTHING_WRONG, _("Nothing was wrong"))]
