"""The per-session feedback token: given to whoever opens a session, asked back when FEEDBACK_AUTH=token."""

from django.conf import settings
from django.core import signing

_SALT = "sessions_app.feedback"


def feedback_token(session_id: str) -> str:
    """A signed, dated token that speaks for this session only."""
    return signing.TimestampSigner(salt=_SALT).sign_object(session_id)


def is_feedback_token(token: str, session_id: str) -> bool:
    """Whether `token` was given out for `session_id` and is not too old."""
    signer = signing.TimestampSigner(salt=_SALT)
    try:
        signed: object = signer.unsign_object(token, max_age=settings.FEEDBACK_TOKEN_MAX_AGE_SECONDS)
    except (signing.BadSignature, ValueError):
        return False
    return signed == session_id
