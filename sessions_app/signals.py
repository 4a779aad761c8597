"""News of this app, for the apps above it. Sent inside the writing transaction; receivers are fast and idempotent."""

from django.dispatch import Signal

facts_changed = Signal()
"""Sessions owe a score. `session_ids: list[str]`."""

answers_changed = Signal()
"""Sessions got an answer or another one. `session_ids: list[str]`."""

sessions_opened = Signal()
"""Sessions were recorded for the first time. `session_ids: list[str]`."""

people_judged = Signal()
"""People annotated a trace. `session_id: str`, `judgements: list[dict]` of name, score, label, explanation."""
