"""What the keys on the page of a case do."""

from __future__ import annotations

from collections.abc import Sequence

from django.utils.translation import gettext_lazy as _

from sessions_app.keyboard import HELP, LEAVE, LIST, OPEN, PARTS, REASON, ROWS, SAVE_VIEW, SEARCH, Key

LIST_KEYS: Sequence[Key] = (ROWS, OPEN, ("n", _("Next to enrich")), SEARCH, SAVE_VIEW, HELP)
CASE_KEYS: Sequence[Key] = (
    ("0", _("Take all suggestions")),
    ("1 … 5", _("Take the first suggestion of a field; again, take it back")),
    ("c", _("Go to the category")),
    ("e", _("Go to the error code")),
    ("t", _("Go to the title")),
    ("r", _("Go to the root cause")),
    ("v", _("Go to the solution")),
    LEAVE,
    ("s", _("Save")),
    ("p", _("Publish, with what was written")),
    REASON,
    ("m", _("Merge with the case most alike")),
    ("h", _("Versions")),
    ("n", _("Next to enrich")),
    PARTS,
    LIST,
    HELP,
)
MERGE_KEYS: Sequence[Key] = (
    REASON,
    LEAVE,
    ("m", _("Merge")),
    ("x", _("The other way round")),
    PARTS,
    ("l", _("Back to the case")),
    HELP,
)
VERSION_KEYS: Sequence[Key] = (
    ("f", _("Go to the earlier version")),
    ("t", _("Go to the later version")),
    LEAVE,
    ("c", _("Compare")),
    PARTS,
    ("l", _("Back to the case")),
    HELP,
)
