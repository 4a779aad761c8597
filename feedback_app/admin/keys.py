"""What the keys of the desk do, for the window that `?` opens. The script is `static/js/keys.js`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django.utils.translation import gettext_lazy as _

QUEUE_KEYS: Sequence[tuple[str, Any]] = (
    ("j k", _("The next row, the one before")),
    ("Enter", _("Open the row")),
    ("n", _("Take and open the next")),
    ("c", _("Claim the row")),
    ("u", _("Release the row")),
    ("/", _("Search")),
    ("?", _("Show the keys")),
)
PAGE_KEYS: Sequence[tuple[str, Any]] = (
    ("n", _("Take and open the next")),
    ("j k", _("The next part of the page, the one before")),
    ("c", _("Claim")),
    ("1 … 9 0", _("Choose what went wrong, in the order of its list")),
    ("v", _("Go to the severity")),
    ("b", _("Go to the step to blame")),
    ("e", _("Go to the notes")),
    ("a", _("Go to the corrected answer")),
    ("t", _("Take the reader's correction as the corrected answer")),
    ("Esc", _("Leave a field, so that keys count again")),
    ("s", _("Save notes")),
    ("r", _("Resolve")),
    ("m", _("Resolve, and make a case from the correction")),
    ("d", _("Dismiss")),
    ("h", _("Hand over")),
    ("u", _("Release")),
    ("l", _("Back to the list")),
    ("?", _("Show the keys")),
)
