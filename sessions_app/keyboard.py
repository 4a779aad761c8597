"""Keys that every page of the desk has, for the window that `?` opens. The script is `static/js/keys.js`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django.utils.translation import gettext_lazy as _

Key = tuple[str, Any]
"""A key, or several, and what it does."""

ROWS: Key = ("j k", _("The next row, the one before"))
OPEN: Key = ("Enter", _("Open the row"))
SEARCH: Key = ("/", _("Search"))
SAVE_VIEW: Key = ("v", _("Keep what is shown as a view"))
PARTS: Key = ("j k", _("The next part of the page, the one before"))
LEAVE: Key = ("Esc", _("Leave a field, so that keys count again"))
REASON: Key = ("w", _("Go to the reason"))
LIST: Key = ("l", _("Back to the list"))
HELP: Key = ("?", _("Show the keys"))

LIST_KEYS: Sequence[Key] = (ROWS, OPEN, SEARCH, SAVE_VIEW, HELP)
"""Of a list without keys of its own."""
