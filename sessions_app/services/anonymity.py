"""What retention remembers of a session: that its texts were anonymised, until somebody writes again."""

from sessions_app.models import DiagnosisSession


def note_new_text(session_id: str | None) -> None:
    """Somebody wrote about a session: if its texts were anonymised, its turn comes again.

    Looks before it writes, so that whoever holds a case or a triage does not wait for the session's lock.
    """
    anonymised = DiagnosisSession.objects.filter(session_id=session_id).exclude(anonymised_at=None)
    if session_id and anonymised.exists():
        anonymised.update(anonymised_at=None)
