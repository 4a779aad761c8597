"""Sending what alerts owe. Webhooks are tried again for nine hours, mails as long; then it is left to a person.

Who sends a webhook has claimed its rule by a conditional UPDATE, so that one receiver gets one message at a time, and a
receiver that hangs costs the others nothing. A process that dies leaves a claim that ends by itself. Whether a message
arrived that was not answered nobody can know: it is sent again with the same `webhook-id`.

The network is used outside of any transaction, by threads that never touch the database.
"""

from __future__ import annotations

import random
import time
import uuid
from collections.abc import Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from datetime import datetime, timedelta
from math import inf
from smtplib import SMTPException
from typing import Any

import structlog
from django.conf import settings
from django.contrib.auth.models import AbstractBaseUser
from django.db.models import F, Q
from django.utils import timezone, translation
from django.utils.translation import gettext as _

from feedback_app.alerts.mail import alert_mail
from feedback_app.alerts.words import DIED, LOST_SECRET, NO_MAIL_SERVER, body_of
from feedback_app.models import AlertChannel, AlertDelivery, AlertRule, AlertState
from feedback_app.services import alert_rules, alerts
from feedback_app.services.reports import language_of, leads
from feedback_app.webhooks.addresses import Resolve, system_addresses
from feedback_app.webhooks.posting import TOTAL_SECONDS, Failure, Outcome, post
from feedback_app.webhooks.signing import signed_headers
from sessions_app.errors import ConflictError, InvalidInputError

logger = structlog.get_logger(__name__)

BACKOFF = tuple(timedelta(seconds=seconds) for seconds in (10, 60, 5 * 60, 30 * 60, 2 * 3600, 6 * 3600))
"""From one try to the next; after the last is tried and failed, it is given up."""
MOST_ATTEMPTS = 2 * (len(BACKOFF) + 1)
"""Of processes that die before they can tell what came of a try."""
LONGEST_PAUSE = timedelta(minutes=1)
"""Of a receiver after a try that failed, whatever else waits for it."""
LEASE = timedelta(seconds=30)
AT_ONCE = 8
GRACE_SECONDS = 1.0
"""Beyond a try's own time: a system that resolves names for longer is not waited for."""
GONE = 410
MAIL_PAUSE = timedelta(minutes=10)
"""Between two mails of one rule to one person: what comes meanwhile stands in the next."""
MOST_IN_A_MAIL = 50
KEPT = timedelta(days=90)
FORGOTTEN_AT_ONCE = 1000


# -- webhooks --------------------------------------------------------------------------------------------------------


def send_webhooks(*, until: float = inf, resolve: Resolve = system_addresses, seconds: float = TOTAL_SECONDS) -> int:
    """Send what is due, a few receivers at once, each its messages in turn; begin none after `until`.

    Returns how many were taken. Does nothing while another process waits for receivers: it sends these too.
    """
    if not _due().exists() or _being_sent().exists():
        return 0
    sent, running = 0, dict[Future[Outcome], tuple[AlertDelivery, float]]()
    pool = ThreadPoolExecutor(AT_ONCE, thread_name_prefix="webhook")
    try:
        while True:
            if time.monotonic() < until:
                for delivery in _claimed(AT_ONCE - len(running)):
                    future = _submit(pool, delivery, resolve, seconds)
                    running[future] = (delivery, time.monotonic() + seconds + GRACE_SECONDS)
            if not running:
                return sent
            patience = min(deadline for _delivery, deadline in running.values()) - time.monotonic()
            done, _waiting = wait(running, timeout=max(patience, 0), return_when=FIRST_COMPLETED)
            late = [future for future, (_d, deadline) in running.items() if deadline <= time.monotonic()]
            for future in done or late:
                delivery, _deadline = running.pop(future)
                late_outcome = Outcome(Failure.TIMEOUT, None, "", round(seconds * 1000))
                outcome = _outcome_of(future) if future in done else late_outcome
                sent += _record(delivery, outcome)
    finally:
        pool.shutdown(wait=False, cancel_futures=True)


def _due() -> Any:
    now = timezone.now()
    is_free = Q(rule__held_until=None) | Q(rule__held_until__lte=now)
    return AlertDelivery.objects.due(now).filter(is_free, rule__channel=AlertChannel.WEBHOOK)


def _being_sent() -> Any:
    unsent = AlertDelivery.objects.unsent().exclude(event=AlertDelivery.TEST)
    unsent = unsent.filter(rule__channel=AlertChannel.WEBHOOK)
    return unsent.filter(claimed_until__gte=timezone.now())


def _claimed(most: int) -> list[AlertDelivery]:
    """Of rules that are free, the delivery that has waited longest, each claimed together with its rule."""
    found = []
    for rule_id in _due().order_by("rule_id").values_list("rule_id", flat=True).distinct()[: max(most, 0)]:
        now = timezone.now()
        is_free = Q(held_until=None) | Q(held_until__lte=now)
        if not AlertRule.objects.filter(is_free, pk=rule_id).update(held_until=now + LEASE):
            continue
        due = AlertDelivery.objects.due(now).filter(rule_id=rule_id)
        delivery = due.order_by("due_at", "pk").select_related("rule").first()
        if delivery and _claim(delivery, now):
            found.append(delivery)
        else:
            AlertRule.objects.filter(pk=rule_id).update(held_until=None)
    return found


def _claim(delivery: AlertDelivery, now: datetime) -> bool:
    mine = AlertDelivery.objects.filter(pk=delivery.pk, attempts=delivery.attempts, state=delivery.state)
    mine = mine.filter(Q(claimed_until=None) | Q(claimed_until__lt=now))
    if delivery.attempts >= MOST_ATTEMPTS:
        mine.update(state=AlertState.GIVEN_UP, failure=DIED)
        return False
    taken = mine.update(claimed_until=now + LEASE, attempts=F("attempts") + 1, tried_at=now)
    delivery.attempts += taken
    return bool(taken)


def _submit(pool: ThreadPoolExecutor, delivery: AlertDelivery, resolve: Resolve, seconds: float) -> Future[Outcome]:
    """Read and sign what is to be sent, here, and hand it to a thread."""
    failed: Future[Outcome] = Future()
    try:
        headers, body = _message(delivery)
    except alert_rules.SecretLostError:
        failed.set_result(Outcome(LOST_SECRET))
    except Exception as error:  # noqa: BLE001 - `_outcome_of` tells it: one that cannot be written holds up no other
        failed.set_exception(error)
    else:
        allowed = alert_rules.allowed_hosts()
        return pool.submit(post, delivery.rule.url, body, headers, allowed=allowed, resolve=resolve, seconds=seconds)
    return failed


def _outcome_of(tried: Future[Outcome]) -> Outcome:
    """What came of it; of an error that nobody foresaw its name."""
    error = tried.exception()
    if error is None:
        return tried.result()
    logger.error("alert_not_written", error=type(error).__name__, exc_info=error)
    return Outcome(type(error).__name__)


def _message(delivery: AlertDelivery) -> tuple[dict[str, str], bytes]:
    with translation.override(delivery.rule.language or settings.LANGUAGE_CODE):
        body = body_of(delivery)
    headers = signed_headers(delivery.message_id, timezone.now(), body, alert_rules.signing_keys(delivery.rule))
    return {**headers, "content-type": "application/json", "user-agent": "diagnosis-review"}, body


def _record(delivery: AlertDelivery, outcome: Outcome, *, is_last: bool = False) -> bool:
    """Write what came of a try; true where it arrived. Frees the rule, after a pause where it did not."""
    now = timezone.now()
    is_last |= delivery.attempts > len(BACKOFF) or outcome.status_code == GONE
    pause = BACKOFF[min(delivery.attempts, len(BACKOFF)) - 1] * random.uniform(1, 1.1)  # noqa: S311 - no secret
    if not outcome.failure:
        state = AlertState.SENT
    else:
        state = AlertState.GIVEN_UP if is_last else AlertState.FAILED
        logger.warning("alert_not_sent", delivery=delivery.pk, failure=outcome.failure, status=outcome.status_code)
    mine = AlertDelivery.objects.filter(pk=delivery.pk, attempts=delivery.attempts).exclude(claimed_until=None)
    mine.unsent().update(
        state=state,
        due_at=now + pause if state == AlertState.FAILED else delivery.due_at,
        claimed_until=None,
        failure=outcome.failure,
        status_code=outcome.status_code,
        answer=outcome.answer,
        duration_ms=outcome.duration_ms,
    )
    if delivery.event != AlertDelivery.TEST:
        held = now + min(pause, LONGEST_PAUSE) if outcome.failure else None
        AlertRule.objects.filter(pk=delivery.rule_id).update(held_until=held)
    return not outcome.failure


# -- mails -----------------------------------------------------------------------------------------------------------


def send_mails(*, until: float = inf) -> int:
    """Send what is due by mail; begin none after `until`. Returns how many mails left.

    What one rule has to tell one person stands in one mail, and the next leaves ten minutes later.
    """
    sent = 0
    due = AlertDelivery.objects.due(timezone.now()).filter(rule__channel=AlertChannel.EMAIL)
    for rule_id, person_id in list(due.order_by().values_list("rule_id", "recipient_id").distinct()):
        if time.monotonic() > until:
            break
        own = AlertDelivery.objects.filter(rule_id=rule_id, recipient_id=person_id).exclude(event=AlertDelivery.TEST)
        if own.filter(state=AlertState.SENT, tried_at__gt=timezone.now() - MAIL_PAUSE).exists():
            continue
        now = timezone.now()
        waiting = own.due(now).select_related("rule", "recipient").order_by("pk")[:MOST_IN_A_MAIL]
        if claimed := [delivery for delivery in waiting if _claim(delivery, now)]:
            sent += _mail(claimed)
    return sent


def _mail(deliveries: Sequence[AlertDelivery]) -> bool:
    """One mail about all of them, which are one rule's for one person."""
    rule, person = deliveries[0].rule, deliveries[0].recipient
    if person not in leads():  # no longer one, or without an address
        AlertDelivery.objects.filter(pk__in=[delivery.pk for delivery in deliveries]).delete()
        return False
    outcome = _post_mail(rule, deliveries, person)
    for delivery in deliveries:
        _record(delivery, outcome)
    return not outcome.failure


def _post_mail(rule: AlertRule, deliveries: Sequence[AlertDelivery], person: Any) -> Outcome:
    if not settings.EMAIL_URL:
        return Outcome(NO_MAIL_SERVER)
    began = time.monotonic()
    failure = ""
    try:
        with translation.override(language_of(person.pk)):
            alert_mail(rule, deliveries, person.email).send()
    except (SMTPException, OSError, ValueError) as error:  # the server, the network, an address that is none
        failure = type(error).__name__
    except Exception as error:  # one mail that cannot be written holds up no other
        logger.exception("alert_not_written")
        failure = type(error).__name__
    return Outcome(failure, None, "", round((time.monotonic() - began) * 1000))


# -- by hand ---------------------------------------------------------------------------------------------------------


def send_test(*, rule_id: int, actor: AbstractBaseUser, resolve: Resolve = system_addresses) -> AlertDelivery:
    """Send a test now, once: to the webhook, or by mail to who asks for it. Gives the delivery with what came of it.

    Raises InvalidInputError where the rule's webhook cannot be signed, or the person has no address.
    """
    rule = AlertRule.objects.get(pk=rule_id)
    is_mail = rule.channel == AlertChannel.EMAIL
    person: Any = actor
    if is_mail and not person.email:
        raise InvalidInputError(_("You have no e-mail address."))
    test = alerts.Occurrence(uuid.uuid4().hex, {})
    [delivery] = alerts.owe(rule, AlertDelivery.TEST, [test], only_to=person.pk if is_mail else None)
    delivery = AlertDelivery.objects.select_related("rule").get(message_id=delivery.message_id)
    if not _claim(delivery, timezone.now()):
        raise AssertionError("nobody else takes a test")
    if is_mail:
        outcome = _post_mail(rule, [delivery], person)
    else:
        try:
            headers, body = _message(delivery)
            outcome = post(rule.url, body, headers, allowed=alert_rules.allowed_hosts(), resolve=resolve)
        except alert_rules.SecretLostError:
            outcome = Outcome(LOST_SECRET)
    _record(delivery, outcome, is_last=True)
    delivery.refresh_from_db()
    return delivery


def try_again(*, delivery_id: int) -> None:
    """Have one sent again from the beginning. Raises ConflictError where that cannot be: it is sent, or under way."""
    now = timezone.now()
    idle = AlertDelivery.objects.filter(Q(claimed_until=None) | Q(claimed_until__lt=now), pk=delivery_id)
    again = idle.filter(state__in=(AlertState.FAILED, AlertState.GIVEN_UP)).exclude(event=AlertDelivery.TEST)
    rule = AlertRule.objects.filter(deliveries=delivery_id, is_active=True)
    if not rule.exists():
        raise ConflictError(_("The alert is switched off."))
    if not again.update(state=AlertState.WAITING, attempts=0, due_at=now):
        raise ConflictError(_("This is sent, or on its way."))
    rule.update(held_until=None)


def forget_old() -> int:
    """Remove deliveries of long ago, some at a time."""
    old = AlertDelivery.objects.filter(created_at__lt=timezone.now() - KEPT).order_by("created_at")
    keys = list(old.values_list("pk", flat=True)[:FORGOTTEN_AT_ONCE])
    return AlertDelivery.objects.filter(pk__in=keys).delete()[0] if keys else 0
