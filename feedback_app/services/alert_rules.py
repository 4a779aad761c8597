"""Alerts as Leads keep them: made, changed, switched on and off; the secrets of their webhooks.

A secret is HMAC-SHA256 under SECRET_KEY of a random nonce. The nonce is stored, the secret is not: it is shown once,
and derived again when something is to be signed. So a copy of the database signs nothing, and a new SECRET_KEY needs
new secrets; `secret_begins` tells that it is so.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterable, Sequence
from datetime import timedelta
from ipaddress import ip_address
from typing import Any, NamedTuple, TypedDict, Unpack
from urllib.parse import urlsplit

from django.conf import settings
from django.db.models import F
from django.utils import timezone
from django.utils.crypto import salted_hmac
from django.utils.translation import gettext as _

from feedback_app.alerts.words import SWITCHED_OFF
from feedback_app.models import (
    AlertChannel,
    AlertCondition,
    AlertDelivery,
    AlertKind,
    AlertRule,
    AlertState,
)
from feedback_app.services.reports import leads
from feedback_app.webhooks.addresses import Allowed, is_public
from feedback_app.webhooks.signing import secret_text
from sessions_app.db import in_transaction
from sessions_app.errors import ConflictError, InvalidInputError
from sessions_app.text import is_id

MAX_THRESHOLD = 10_000
MAX_DAYS = 90
PERCENT = 100
MAX_NAME_CHARS, MAX_URL_CHARS = 100, 500
SECRET_SHOWN = 10
BOTH_SIGN_FOR = timedelta(hours=24)
"""After a new secret: time to give it to the receiver."""
SALT = "feedback_app.alerts"


class RuleData(TypedDict):
    """What a person says of a rule. Where the kind or the channel asks for nothing, nothing is kept."""

    name: str
    kind: str  # AlertKind
    agent_id: str | None
    threshold: int | None
    period_days: int | None
    min_votes: int | None
    channel: str  # AlertChannel
    url: str
    recipients: Sequence[int]  # keys of Leads; none: all of them
    language: str
    is_active: bool


class SecretLostError(Exception):
    """SECRET_KEY is not the one under which the secret was shown."""


@in_transaction
def create_rule(**data: Unpack[RuleData]) -> tuple[AlertRule, str | None]:
    """Make a rule. Gives it and, of a webhook, the secret, which nobody can read again.

    Raises InvalidInputError.
    """
    fields, people = _checked(data)
    rule = AlertRule(kind=data["kind"], channel=data["channel"], **fields)
    secret = _renew(rule) if rule.channel == AlertChannel.WEBHOOK else None
    rule.save(force_insert=True)
    rule.recipients.set(people)
    return rule, secret


@in_transaction
def change_rule(*, rule_id: int, version: int, **data: Unpack[RuleData]) -> AlertRule:
    """Write a rule over the version that the caller read. What it looks for counts as new: it may tell it again.

    One that is switched off sends nothing any more, also nothing that waited; one that is switched on tells what comes
    from then on. Raises InvalidInputError; ConflictError where somebody changed the rule meanwhile.
    """
    rule = AlertRule.objects.select_for_update().get(pk=rule_id)
    if rule.version != version:
        raise ConflictError(_("This was changed since you opened it. Your text is still here; compare and save."))
    fields, people = _checked({**data, "kind": rule.kind, "channel": rule.channel}, rule.recipients.all())
    if fields["is_active"] and not rule.is_active:
        fields["active_since"] = timezone.now()
    looked_for = ("agent_id", "threshold", "period_days", "min_votes", "is_active")
    if any(fields[name] != getattr(rule, name) for name in looked_for):
        AlertCondition.objects.filter(rule=rule).update(raised_at=None)
    if not fields["is_active"]:
        AlertDelivery.objects.unsent().filter(rule=rule).update(state=AlertState.GIVEN_UP, failure=SWITCHED_OFF)
    AlertRule.objects.filter(pk=rule_id).update(version=F("version") + 1, held_until=None, **fields)
    rule.refresh_from_db()
    rule.recipients.set(people)
    return rule


@in_transaction
def renew_secret(*, rule_id: int) -> str:
    """A new secret for a webhook. The former one signs too for a day, so that the receiver can be told in peace."""
    rule = AlertRule.objects.select_for_update().get(pk=rule_id, channel=AlertChannel.WEBHOOK)
    rule.former_nonce, rule.former_until = rule.secret_nonce, timezone.now() + BOTH_SIGN_FOR
    secret = _renew(rule)
    rule.save(update_fields=["former_nonce", "former_until", "secret_nonce", "secret_begins"])
    return secret


def signing_keys(rule: AlertRule) -> list[bytes]:
    """What its webhooks are signed with: the secret, and the former one while it still counts.

    Raises SecretLostError.
    """
    key = _key(rule.secret_nonce)
    if secret_text(key)[:SECRET_SHOWN] != rule.secret_begins:
        raise SecretLostError
    is_former_good = rule.former_nonce and rule.former_until and rule.former_until > timezone.now()
    return [key, _key(rule.former_nonce)] if is_former_good else [key]


def _renew(rule: AlertRule) -> str:
    rule.secret_nonce = secrets.token_hex(16)
    secret = secret_text(_key(rule.secret_nonce))
    rule.secret_begins = secret[:SECRET_SHOWN]
    return secret


def _key(nonce: str) -> bytes:
    return salted_hmac(SALT, nonce, algorithm="sha256").digest()


# -- what may be said ------------------------------------------------------------------------------------------------


class _Asked(NamedTuple):
    """Which figures a kind asks for: name → the highest."""

    figures: dict[str, int]
    may_name_agent: bool


_ASKED = {
    AlertKind.CONFIDENT: _Asked({}, may_name_agent=True),
    AlertKind.OVERDUE: _Asked({"threshold": MAX_THRESHOLD}, may_name_agent=False),
    AlertKind.SATISFACTION: _Asked(
        {"threshold": PERCENT, "period_days": MAX_DAYS, "min_votes": MAX_THRESHOLD}, may_name_agent=True
    ),
}


def _checked(data: RuleData, named: Iterable[Any] = ()) -> tuple[dict[str, Any], list[Any]]:
    """The columns, and the people named. Raises InvalidInputError with what is wrong with which field.

    Who was `named` before and is no Lead at present may stay: without anybody named, all Leads would be told.
    """
    errors: dict[str, list[str]] = {}
    name = data["name"].strip()
    if not name or not name.isprintable() or len(name) > MAX_NAME_CHARS:
        errors["name"] = [
            _("An alert needs a name of one line, of at most %(most)s characters.") % {"most": MAX_NAME_CHARS}
        ]
    if data["kind"] not in AlertKind.values or data["channel"] not in AlertChannel.values:
        raise InvalidInputError(_("Choose what is told, and how."))
    asked = _ASKED[AlertKind(data["kind"])]
    figures: dict[str, int | None] = dict.fromkeys(("threshold", "period_days", "min_votes"))
    for each, highest in asked.figures.items():
        value = data[each]  # type: ignore[literal-required]
        if value is None or not 1 <= value <= highest:
            errors[each] = [_("A whole number from 1 to %(highest)s.") % {"highest": highest}]
        figures[each] = value
    agent = (data["agent_id"] or None) if asked.may_name_agent else None
    if agent and not is_id(agent):
        errors["agent_id"] = [_("No agent is called so.")]
    is_webhook = data["channel"] == AlertChannel.WEBHOOK
    url = data["url"].strip() if is_webhook else ""
    if is_webhook and (objection := object_to_url(url)):
        errors["url"] = [objection]
    by_key = {person.pk: person for person in (*named, *leads())}
    people = [] if is_webhook else [by_key[key] for key in data["recipients"] if key in by_key]
    language = data["language"] if data["language"] in dict(settings.LANGUAGES) else settings.LANGUAGE_CODE
    if errors:
        raise InvalidInputError(_("The alert cannot be saved."), errors=errors)
    fields = {
        "name": name,
        "agent_id": agent,
        **figures,
        "url": url,
        "language": language if is_webhook else "",
        "is_active": data["is_active"],
    }
    return fields, people


def object_to_url(url: str) -> str | None:
    """What speaks against an address of a webhook; where its name leads is looked at whenever something is sent."""
    try:
        parts = urlsplit(url)
        host, port = parts.hostname, parts.port
    except ValueError:
        return _("This is no address.")
    if len(url) > MAX_URL_CHARS:
        return _("An address has at most %(most)s characters.") % {"most": MAX_URL_CHARS}
    if parts.scheme not in ("http", "https") or not host or port == 0:
        return _("An address begins with https:// or http:// and names a host.")
    if not (url.isascii() and url.isprintable() and " " not in url):
        return _("Write the address in ASCII: xn--… for the host, %… for the rest.")
    if parts.username is not None or parts.password is not None or parts.fragment:
        return _("An address with a name, a password or a # is not taken.")
    try:
        address = ip_address(host)
    except ValueError:
        return None  # a name
    if is_public(address) or allowed_hosts().covers(host, address):
        return None
    return _("Leads to a private address, which ALERT_ALLOWED_PRIVATE_HOSTS does not name.")


def allowed_hosts() -> Allowed:
    """Private addresses that webhooks may reach."""
    return Allowed.of(settings.ALERT_ALLOWED_PRIVATE_HOSTS)
