"""News of this app, for the apps above it. Sent inside the writing transaction; receivers are fast and idempotent."""

from django.dispatch import Signal

facts_changed = Signal()
"""Sessions owe a score. `session_ids: list[str]`."""

answers_changed = Signal()
"""Sessions that were there got an answer, or another one, or another question to it. `session_ids: list[str]`."""

questions_asked = Signal()
"""Sessions of a conversation or a user, whose start is known, got a question, or another one, or another place: also
long after they were opened. `session_ids: list[str]`."""

terms_owed = Signal()
"""Some object's texts were written, and it noted that its search terms are owed."""

session_scored = Signal()
"""A session got its score, or another one. `session_id: str`."""

people_judged = Signal()
"""People judged a session, in its trace; told again whenever the trace grows. `session_id: str`, `judgements:
list[dict]` of name, score (number or None), label, explanation, id, at (ns since 1970; 0 for not said)."""
