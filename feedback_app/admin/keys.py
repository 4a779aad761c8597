"""What the keys of the desk do, for the window that `?` opens. The script is `static/js/keys.js`."""

from __future__ import annotations

from collections.abc import Sequence

from django.utils.translation import gettext_lazy as _

from sessions_app.keyboard import HELP, LEAVE, LIST, OPEN, PARTS, REASON, ROWS, SAVE_VIEW, SEARCH, Key

QUEUE_KEYS: Sequence[Key] = (
    ROWS,
    OPEN,
    ("n", _("Take and open the next")),
    ("c", _("Claim the row")),
    ("u", _("Release the row")),
    SEARCH,
    SAVE_VIEW,
    HELP,
)
PAGE_KEYS: Sequence[Key] = (
    ("n", _("Take and open the next")),
    PARTS,
    ("c", _("Claim")),
    ("1 … 9 0", _("Choose what went wrong, in the order of its list")),
    ("v", _("Go to the severity")),
    ("b", _("Go to the step to blame")),
    ("e", _("Go to the notes")),
    ("a", _("Go to the corrected answer")),
    ("t", _("Take the reader's correction as the corrected answer")),
    LEAVE,
    ("s", _("Save notes")),
    ("r", _("Resolve")),
    ("m", _("Resolve, and make a case from the correction")),
    ("d", _("Dismiss")),
    ("h", _("Hand over")),
    ("u", _("Release")),
    REASON,
    ("g", _("Next to enrich")),
    LIST,
    HELP,
)
