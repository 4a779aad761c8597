"""Signatures of webhooks, as Standard Webhooks 1.0.0 has them.

Source: https://github.com/standard-webhooks/standard-webhooks/blob/main/spec/standard-webhooks.md

A receiver computes HMAC-SHA256 over `<webhook-id>.<webhook-timestamp>.<body>` with the bytes behind `whsec_`, and
compares it with each signature in `webhook-signature` (`v1,<base64>`, separated by blanks: two while a secret is being
replaced). The id stays the same when a message is sent again, the timestamp does not.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
from collections.abc import Iterable
from datetime import datetime

PREFIX = "whsec_"


def secret_text(key: bytes) -> str:
    """The secret as receivers are given it."""
    return PREFIX + base64.b64encode(key).decode()


def signed_headers(message_id: str, at: datetime, body: bytes, keys: Iterable[bytes]) -> dict[str, str]:
    """The three headers of the standard; one signature for each key."""
    timestamp = str(int(at.timestamp()))
    signed = b".".join((message_id.encode(), timestamp.encode(), body))
    signatures = (base64.b64encode(hmac.new(key, signed, hashlib.sha256).digest()).decode() for key in keys)
    return {
        "webhook-id": message_id,
        "webhook-timestamp": timestamp,
        "webhook-signature": " ".join(f"v1,{signature}" for signature in signatures),
    }
