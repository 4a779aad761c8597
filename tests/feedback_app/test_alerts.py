"""Alerts: what is noticed, once; that it arrives, signed, in spite of receivers that fail; what a Lead may say."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import threading
import time
from datetime import UTC, datetime, timedelta
from typing import Any

import environ
import pytest
from django.utils import timezone

from feedback_app.models import (
    AlertCondition,
    AlertDelivery,
    AlertRule,
    AlertState,
    BadCaseReview,
    ReaderLanguage,
)
from feedback_app.services import alert_rules, alert_sending, alerts
from feedback_app.services.erasure import erase_subject
from feedback_app.tasks import apply_retention, send_alerts, watch_alerts, watch_alerts_thoroughly
from feedback_app.webhooks.posting import Failure
from sessions_app.errors import ConflictError, InvalidInputError
from sessions_app.models import DiagnosisSession, Verdict
from tests.factories import SessionFactory, TriageFactory, UserFactory
from tests.receiver import receiver
from tests.smtp import mail_server
from tests.threads import at_once

pytestmark = pytest.mark.django_db

DAY = timedelta(days=1)
HOSTILE = "<script>alert(1)</script>"


def data(**said: Any) -> dict[str, Any]:
    return {
        "name": "On call",
        "kind": "confident_but_rejected",
        "agent_id": None,
        "threshold": None,
        "period_days": None,
        "min_votes": None,
        "channel": "webhook",
        "url": "https://hooks.example.org/x",
        "recipients": [],
        "language": "en",
        "is_active": True,
        **said,
    }


@pytest.fixture
def server(settings):
    """A receiver on this machine, which webhooks may reach."""
    settings.ALERT_ALLOWED_PRIVATE_HOSTS = ["127.0.0.1"]
    with receiver() as running:
        yield running


@pytest.fixture
def mails(settings):
    """A real mail server on this machine, which EMAIL_URL names."""
    with mail_server() as running:
        settings.EMAIL_URL = running.url
        for name, value in environ.Env.email_url_config(running.url).items():
            setattr(settings, name, value)
        settings.PUBLIC_URL = "https://diagnosis.example.org/"
        yield running


def a_rule(**said: Any) -> AlertRule:
    return alert_rules.create_rule(**data(**said))[0]


def confident(**fields: Any) -> BadCaseReview:
    return TriageFactory(session__confidence=92, session__query=HOSTILE, session__answer=HOSTILE, **fields)


def told(rule: AlertRule | None = None) -> list[Any]:
    rows = AlertDelivery.objects.order_by("pk")
    return [delivery.facts for delivery in (rows.filter(rule=rule) if rule else rows)]


# -- confident but rejected ------------------------------------------------------------------------------------------


def test_an_answer_stated_with_confidence_and_rejected_is_told_once():
    rule = a_rule()
    review = confident(session__agent_id="ops/2", session__evidence_score=70)
    TriageFactory(session__confidence=80)  # not above
    TriageFactory(session__confidence=None)
    SessionFactory(confidence=99)  # nobody rejected it
    for _ in range(3):
        alerts.watch()
    assert told() == [
        {
            "sessionId": review.session_id,
            "agentId": "ops/2",
            "confidence": 92.0,
            "evidenceScore": 70,
            "reviewId": review.pk,
        }
    ]
    delivery = AlertDelivery.objects.get()
    assert (delivery.rule, delivery.state, delivery.session_id) == (rule, AlertState.WAITING, review.session_id)


def test_it_is_told_once_though_the_verdict_flips(api, anonymous):
    a_rule()
    SessionFactory(session_id="s1", confidence=92)
    for verdict in ("not_useful", "useful", "not_useful", "useful", "not_useful"):
        body = {"sessionId": "s1", "feedback": verdict}
        assert anonymous.post("/api/feedback", body, format="json").status_code == 200
        alerts.watch()
    assert len(told()) == 1


def test_a_verdict_that_comes_back_before_anybody_looked_is_told_then():
    a_rule()
    review = confident()
    DiagnosisSession.objects.filter(session_id=review.session_id).update(feedback=Verdict.USEFUL)
    alerts.watch()
    assert told() == []
    DiagnosisSession.objects.filter(session_id=review.session_id).update(feedback=Verdict.NOT_USEFUL)
    alerts.watch()
    assert len(told()) == 1


def test_confidence_that_comes_late_is_told_late():
    a_rule()
    review = TriageFactory(session__confidence=None)
    alerts.watch()
    DiagnosisSession.objects.filter(session_id=review.session_id).update(confidence=95)
    alerts.watch()
    assert [facts["reviewId"] for facts in told()] == [review.pk]


def test_what_was_before_the_rule_and_what_is_long_ago_is_not_told():
    confident(created_at=timezone.now() - timedelta(minutes=1))
    rule = a_rule()
    alerts.watch()
    assert told() == []
    AlertRule.objects.filter(pk=rule.pk).update(active_since=timezone.now() - 30 * DAY)
    confident(created_at=timezone.now() - 8 * DAY)
    confident(created_at=timezone.now() - 6 * DAY)
    watch_alerts()
    assert len(told()) == 1, "often, what is new"
    watch_alerts_thoroughly()
    assert len(told()) == 2, "now and then, what is older; but not for ever"


def test_ids_that_differ_in_case_are_two_occurrences():
    a_rule()
    confident(session__session_id="Case-1")
    confident(session__session_id="case-1")
    alerts.watch()
    assert sorted(facts["sessionId"] for facts in told()) == ["Case-1", "case-1"]


def test_a_rule_about_one_agent_knows_its_versions_and_nobody_else():
    a_rule(agent_id="ops")
    for agent in ("ops", "ops/2.4", "ops2", "OPS", None):
        confident(session__agent_id=agent)
    alerts.watch()
    assert [facts["agentId"] for facts in told()] == ["ops", "ops/2.4"]


def test_each_rule_tells_for_itself_and_one_that_is_off_is_silent():
    on, off = a_rule(), a_rule(is_active=False)
    confident()
    alerts.watch()
    assert (len(told(on)), len(told(off))) == (1, 0)


@pytest.mark.django_db(transaction=True)
def test_sweeps_at_once_owe_it_once():
    a_rule()
    a_rule(kind="queue_overdue", threshold=1)
    for _ in range(3):
        confident(due_at=timezone.now() - DAY)
    at_once(alerts.watch, times=4)
    assert AlertDelivery.objects.count() == 4
    assert AlertCondition.objects.get().episode == 1


def test_the_number_of_queries_does_not_grow_with_what_is_told(django_assert_max_num_queries):
    a_rule()
    TriageFactory.create_batch(10)
    with django_assert_max_num_queries(2):
        alerts.watch()


def test_without_rules_nothing_is_looked_at(django_assert_num_queries):
    confident()
    with django_assert_num_queries(1):
        alerts.watch()
    with django_assert_num_queries(1):
        alert_sending.send_webhooks()


# -- the queue -------------------------------------------------------------------------------------------------------

NOON = datetime(2026, 11, 9, 12, tzinfo=UTC)


def late(number: int) -> None:
    for _ in range(number):
        TriageFactory(due_at=NOON - DAY)


def test_a_queue_past_its_due_date_is_told_when_it_begins_and_once_a_day():
    a_rule(kind="queue_overdue", threshold=2)
    late(1)
    TriageFactory(due_at=NOON + DAY)
    TriageFactory(due_at=NOON - DAY, state="RESOLVED")
    alerts.watch(NOON)
    assert told() == []
    late(2)
    for hours in (0, 1, 23, 24, 25, 49):
        alerts.watch(NOON + timedelta(hours=hours))
    assert told() == [
        {"overdue": n, "threshold": 2, "oldestDueAt": "2026-11-08T12:00:00Z"} for n in (3, 3, 4)
    ]  # the third time the one that was not late is late too


def test_it_is_told_again_only_after_it_has_recovered():
    a_rule(kind="queue_overdue", threshold=4)
    late(4)
    alerts.watch(NOON)
    reviews = list(BadCaseReview.objects.all())
    BadCaseReview.objects.filter(pk=reviews[0].pk).update(state="RESOLVED")
    alerts.watch(NOON + timedelta(minutes=1))  # 3: below, but more than half
    late(1)
    alerts.watch(NOON + timedelta(minutes=2))
    assert len(told()) == 1, "what swings around the threshold is told once"
    BadCaseReview.objects.filter(pk__in=[review.pk for review in reviews[1:3]]).update(state="RESOLVED")
    alerts.watch(NOON + timedelta(minutes=3))  # 2: recovered
    assert AlertCondition.objects.get().raised_at is None
    late(2)
    alerts.watch(NOON + timedelta(minutes=4))
    assert len(told()) == 2


# -- satisfaction ----------------------------------------------------------------------------------------------------


def judged(agent: str, useful: int, rejected: int, at: datetime = NOON - timedelta(hours=1)) -> None:
    SessionFactory.create_batch(useful, agent_id=agent, feedback=Verdict.USEFUL, created_at=at)
    SessionFactory.create_batch(rejected, agent_id=agent, feedback=Verdict.NOT_USEFUL, created_at=at)


def low(**said: Any) -> AlertRule:
    return a_rule(**{"kind": "satisfaction_low", "threshold": 60, "period_days": 7, "min_votes": 5, **said})


def test_satisfaction_below_the_threshold_is_told_of_each_agent():
    low()
    judged("bad", 2, 4)
    judged("good", 6, 1)
    judged("few", 0, 4)  # too few to say anything
    judged("just", 3, 2)  # 60 %, which is not below
    judged("old", 0, 9, at=NOON - 8 * DAY)
    SessionFactory.create_batch(9, agent_id="silent", created_at=NOON)
    alerts.watch(NOON)
    alerts.watch(NOON)
    assert told() == [
        {
            "agentId": "bad", "satisfaction": 33.33, "useful": 2, "verdicts": 6, "threshold": 60, "periodDays": 7,
        }
    ]  # fmt: skip


def test_of_an_agent_that_is_named_all_versions_are_one():
    low(agent_id="ops")
    judged("ops/1", 1, 2)
    judged("ops/2", 1, 2)
    judged("other", 0, 9)
    alerts.watch(NOON)
    assert [(facts["agentId"], facts["verdicts"]) for facts in told()] == [("ops", 6)]


def test_it_is_told_once_a_period_until_it_recovers_and_then_anew():
    low(period_days=1)
    judged("bad", 2, 4)
    alerts.watch(NOON)
    judged("bad", 2, 0, at=NOON)  # 4 of 8 … 50 %: still low
    alerts.watch(NOON + timedelta(hours=1))
    judged("bad", 3, 0, at=NOON)  # 7 of 11: 63.6 %, neither low nor recovered
    alerts.watch(NOON + timedelta(hours=2))
    judged("bad", 0, 2, at=NOON)  # 7 of 13: 53.8 %
    alerts.watch(NOON + timedelta(hours=3))
    assert len(told()) == 1
    judged("bad", 0, 9, at=NOON + 1.1 * DAY)
    alerts.watch(NOON + 1.2 * DAY)
    assert len(told()) == 2, "a period later it is still so"
    judged("bad", 99, 0, at=NOON + 1.2 * DAY)
    alerts.watch(NOON + 1.3 * DAY)
    judged("bad", 0, 99, at=NOON + 1.3 * DAY)
    alerts.watch(NOON + 1.4 * DAY)
    assert len(told()) == 3, "it had recovered"


# -- webhooks --------------------------------------------------------------------------------------------------------


def hook(server: Any, **said: Any) -> tuple[AlertRule, str]:
    rule, secret = alert_rules.create_rule(**data(url=f"{server.url}/hook", **said))
    assert secret is not None
    return rule, secret


def signatures(request: Any, *secrets: str) -> str:
    """As a receiver computes them, by the standard's own words."""
    signed = f"{request.headers['webhook-id']}.{request.headers['webhook-timestamp']}.{request.body.decode()}"
    keys = [base64.b64decode(secret.removeprefix("whsec_")) for secret in secrets]
    digests = [hmac.new(key, signed.encode(), hashlib.sha256).digest() for key in keys]
    return " ".join(f"v1,{base64.b64encode(digest).decode()}" for digest in digests)


def owed(rule: AlertRule, number: int = 1) -> list[AlertDelivery]:
    for each in range(number):
        alerts.owe(rule, rule.kind, [alerts.Occurrence(f"{each}", {"overdue": 3, "threshold": 1})])
    return list(AlertDelivery.objects.filter(rule=rule).order_by("pk"))


def later(rule: AlertRule) -> None:
    """As if the pauses of a rule and of its deliveries were over."""
    now = timezone.now()
    AlertDelivery.objects.filter(rule=rule).update(due_at=now - timedelta(seconds=1))
    AlertRule.objects.filter(pk=rule.pk).update(held_until=None)


def test_what_arrives_is_signed_and_says_nothing_that_people_wrote(server, settings):
    settings.PUBLIC_URL = "https://diagnosis.example.org/"
    rule, secret = hook(server, name="On call")
    review = confident(session__agent_id="ops/2", session__evidence_score=None)
    watch_alerts()
    send_alerts()
    [request] = server.requests
    assert request.headers["webhook-signature"] == signatures(request, secret)
    assert abs(int(request.headers["webhook-timestamp"]) - time.time()) < 5
    assert request.headers["content-type"] == "application/json"
    body = json.loads(request.body)
    delivery = AlertDelivery.objects.get()
    assert body == {
        "type": "confident_but_rejected",
        "timestamp": delivery.created_at.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z"),
        "text": "On call: 1 answer was stated with confidence and rejected",
        "data": {
            "sessionId": review.session_id,
            "agentId": "ops/2",
            "confidence": 92.0,
            "evidenceScore": None,
            "reviewId": review.pk,
            "rule": {"id": rule.pk, "name": "On call"},
            "url": f"https://diagnosis.example.org/admin/feedback_app/badcasereview/{review.pk}/change/",
        },
    }
    assert b"script" not in request.body
    assert (delivery.state, delivery.attempts, delivery.status_code) == (AlertState.SENT, 1, 200)
    send_alerts()
    assert len(server.requests) == 1


def test_a_receiver_that_fails_once_gets_it_once_more_and_no_more(server):
    rule, secret = hook(server)
    server.reply(500, f"{HOSTILE}\x07 try later")
    server.reply(200, "thanks")
    [delivery] = owed(rule)
    assert alert_sending.send_webhooks() == 0
    delivery.refresh_from_db()
    assert (delivery.state, delivery.status_code) == (AlertState.FAILED, 500)
    assert (delivery.failure, delivery.answer) == ("status", f"{HOSTILE}  try later")
    assert timedelta(seconds=5) < delivery.due_at - timezone.now() < timedelta(seconds=12)
    assert alert_sending.send_webhooks() == 0, "not before its time"
    later(rule)
    assert [alert_sending.send_webhooks() for _ in range(3)] == [1, 0, 0]
    delivery.refresh_from_db()
    assert (delivery.state, delivery.attempts, delivery.answer) == (AlertState.SENT, 2, "thanks")
    first, second = server.requests
    assert first.headers["webhook-id"] == second.headers["webhook-id"]
    assert first.body == second.body
    assert second.headers["webhook-signature"] == signatures(second, secret)


def test_it_is_given_up_in_the_end_and_a_lead_has_it_tried_again(server):
    rule, _secret = hook(server)
    server.reply(503)
    [delivery] = owed(rule)
    for _ in range(9):
        alert_sending.send_webhooks()
        later(rule)
    delivery.refresh_from_db()
    assert (delivery.state, delivery.attempts) == (AlertState.GIVEN_UP, len(alert_sending.BACKOFF) + 1)
    assert len(server.requests) == 7
    server.replies.clear()
    alert_sending.try_again(delivery_id=delivery.pk)
    assert alert_sending.send_webhooks() == 1
    with pytest.raises(ConflictError):
        alert_sending.try_again(delivery_id=delivery.pk)


def test_a_receiver_that_is_gone_is_not_asked_again(server):
    rule, _secret = hook(server)
    server.reply(410)
    [delivery] = owed(rule)
    alert_sending.send_webhooks()
    delivery.refresh_from_db()
    assert delivery.state == AlertState.GIVEN_UP


def test_a_receiver_that_hangs_holds_up_nobody_else(server):
    with receiver() as hanging:
        hanging.hang()
        slow, _ = hook(hanging)
        quick, _ = hook(server)
        owed(slow, 5)
        owed(quick, 5)
        began = time.monotonic()
        assert alert_sending.send_webhooks(seconds=0.5) == 5
        assert time.monotonic() - began < 3
        assert len(hanging.requests) == 1, "the others of its messages wait"
    states = list(AlertDelivery.objects.filter(rule=slow).order_by("pk").values_list("state", "failure"))
    assert states == [(AlertState.FAILED, "timeout"), *[(AlertState.WAITING, "")] * 4]
    slow.refresh_from_db()
    assert slow.held_until > timezone.now() + timedelta(seconds=5)


def test_a_name_that_nobody_resolves_in_time_is_left(server):
    rule = a_rule(url="http://slow.example/")
    other, _ = hook(server)
    owed(rule)
    owed(other)
    over = threading.Event()

    def resolve(host: str, port: int) -> list[str]:
        if host == "slow.example":
            over.wait(10)
        return ["127.0.0.1"]

    try:
        began = time.monotonic()
        assert alert_sending.send_webhooks(resolve=resolve, seconds=0.2) == 1
        assert time.monotonic() - began < 4
    finally:
        over.set()
    assert AlertDelivery.objects.get(rule=rule).failure == "timeout"


@pytest.mark.django_db(transaction=True)
def test_senders_at_once_send_each_once(server):
    rules = [hook(server)[0] for _ in range(2)]
    for rule in rules:
        owed(rule, 4)
    at_once(alert_sending.send_webhooks, times=4)
    alert_sending.send_webhooks()  # what was left while another held the rule
    ids = [request.headers["webhook-id"] for request in server.requests]
    assert len(ids) == len(set(ids)) == 8
    assert set(AlertDelivery.objects.values_list("state", "attempts")) == {(AlertState.SENT, 1)}


def test_what_a_process_left_when_it_died_is_sent_by_another(server):
    rule, _secret = hook(server)
    [delivery] = owed(rule)
    ago = timezone.now() - timedelta(seconds=1)
    claim = {"claimed_until": timezone.now() + timedelta(seconds=20), "attempts": 1}
    AlertDelivery.objects.filter(pk=delivery.pk).update(**claim)
    assert alert_sending.send_webhooks() == 0
    AlertDelivery.objects.filter(pk=delivery.pk).update(claimed_until=ago)
    AlertRule.objects.filter(pk=rule.pk).update(held_until=ago)
    assert alert_sending.send_webhooks() == 1


def test_one_that_cannot_be_written_holds_up_no_other(server, mails, lead):
    for rule in (hook(server, kind="queue_overdue", threshold=1)[0], by_mail(kind="queue_overdue", threshold=1)):
        alerts.owe(rule, rule.kind, [alerts.Occurrence("broken", {})])
        owed(rule)
    assert alert_sending.send_webhooks() == 0
    AlertRule.objects.update(held_until=None)
    assert alert_sending.send_webhooks() == 1
    watch_alerts()
    broken = AlertDelivery.objects.filter(facts={}).values_list("state", "failure")
    assert list(broken) == [("retried", "KeyError")] * 2


def test_what_kills_each_process_that_sends_it_is_given_up(server):
    rule, _secret = hook(server)
    owed(rule)
    ago = timezone.now() - timedelta(seconds=1)
    AlertDelivery.objects.update(attempts=alert_sending.MOST_ATTEMPTS, state=AlertState.FAILED, claimed_until=ago)
    alert_sending.send_webhooks()
    assert AlertDelivery.objects.get().failure == "died"
    assert server.requests == []


@pytest.mark.parametrize(
    "url", ["http://127.0.0.1:9/x", "http://localhost:9/", "http://[::1]:9/", "http://169.254.169.254/"]
)
def test_a_private_address_is_refused_when_it_is_sent_too(url):
    """Whatever the form let through: a name may lead elsewhere by now."""
    rule = a_rule()
    AlertRule.objects.filter(pk=rule.pk).update(url=url)
    owed(rule)
    alert_sending.send_webhooks()
    delivery = AlertDelivery.objects.get()
    assert delivery.failure in (Failure.REFUSED_ADDRESS, Failure.UNKNOWN_HOST)
    assert delivery.status_code is None


def test_a_new_secret_signs_beside_the_former_for_a_day(server):
    rule, first = hook(server)
    second = alert_rules.renew_secret(rule_id=rule.pk)
    assert first != second
    owed(rule)
    alert_sending.send_webhooks()
    assert server.requests[0].headers["webhook-signature"] == signatures(server.requests[0], second, first)
    AlertRule.objects.filter(pk=rule.pk).update(former_until=timezone.now())
    alerts.owe(rule, rule.kind, [alerts.Occurrence("later", AlertDelivery.objects.get().facts)])
    alert_sending.send_webhooks()
    assert server.requests[1].headers["webhook-signature"] == signatures(server.requests[1], second)


def test_the_database_alone_signs_nothing_and_a_new_key_is_told(server, settings):
    rule, secret = hook(server)
    row = AlertRule.objects.filter(pk=rule.pk).values().get()
    assert secret.removeprefix("whsec_") not in str(row)
    assert row["secret_begins"] == secret[:10]
    settings.SECRET_KEY = "another"
    [delivery] = owed(rule)
    alert_sending.send_webhooks()
    delivery.refresh_from_db()
    assert (delivery.failure, server.requests) == ("lost_secret", [])


def test_the_sentence_is_in_the_language_of_the_rule(server):
    owed(hook(server, language="zh-hans")[0])
    alert_sending.send_webhooks()
    assert json.loads(server.requests[0].body)["text"].startswith("On call: ")


# -- mails -----------------------------------------------------------------------------------------------------------


def by_mail(**said: Any) -> AlertRule:
    return a_rule(channel="email", url="", **said)


def parts(mail: Any) -> tuple[str, str]:
    text, html = mail.iter_parts()
    assert (text.get_content_type(), html.get_content_type()) == ("text/plain", "text/html")
    return text.get_content(), html.get_content()


def test_a_mail_reaches_each_lead_once_and_quotes_nobody(mails, lead, reviewer):
    ReaderLanguage.objects.create(user=lead, code="en")
    other = UserFactory(username="boss", role="Lead")
    UserFactory(username="gone", role="Lead", is_active=False)
    by_mail(name="Sure & wrong")
    review = confident(session__agent_id="<b>ops</b>")
    for _ in range(2):
        watch_alerts()
    assert sorted(mail["To"] for mail in mails.mails) == sorted([lead.email, other.email])
    mail = next(mail for mail in mails.mails if mail["To"] == lead.email)
    assert mail["Subject"] == "Sure & wrong: 1 answer was stated with confidence and rejected"
    assert mail["Auto-Submitted"] == "auto-generated"
    page = f"https://diagnosis.example.org/admin/feedback_app/badcasereview/{review.pk}/change/"
    for part in parts(mail):
        assert review.session_id in part
        assert page in part
        assert "confidence 92%" in part
        assert "script" not in part
    assert "&lt;b&gt;ops&lt;/b&gt;" in parts(mail)[1]


def test_a_rule_may_name_its_leads(mails, lead):
    other = UserFactory(username="boss", role="Lead")
    rule = by_mail(recipients=[other.pk])
    confident()
    watch_alerts()
    assert [mail["To"] for mail in mails.mails] == [other.email]
    other.groups.clear()
    alerts.owe(rule, rule.kind, [alerts.Occurrence("x", AlertDelivery.objects.get().facts)], only_to=other.pk)
    AlertDelivery.objects.filter(state=AlertState.SENT).delete()
    watch_alerts()
    assert len(mails.mails) == 1, "who is no Lead any more gets none"
    assert not AlertDelivery.objects.exists()


def test_what_comes_soon_after_a_mail_stands_together_in_the_next(mails, lead):
    rule = by_mail()
    confident()
    watch_alerts()
    for _ in range(3):
        confident()
        watch_alerts()
    assert len(mails.mails) == 1
    AlertDelivery.objects.filter(state=AlertState.SENT).update(tried_at=timezone.now() - timedelta(minutes=11))
    watch_alerts()
    assert len(mails.mails) == 2
    text = parts(mails.mails[1])[0]
    assert sum(text.count(each) for each in DiagnosisSession.objects.values_list("session_id", flat=True)) == 3
    assert set(AlertDelivery.objects.filter(rule=rule).values_list("state", flat=True)) == {AlertState.SENT}


@pytest.mark.django_db(transaction=True)
def test_senders_of_mails_at_once_send_each_thing_once(mails):
    people = [UserFactory(username=f"lead-{number}", role="Lead") for number in range(3)]
    by_mail()
    confident()
    alerts.watch()
    at_once(alert_sending.send_mails, times=4)
    assert sorted(mail["To"] for mail in mails.mails) == [person.email for person in people]


def test_a_mail_server_that_refuses_is_asked_again_later(mails, lead):
    rule = by_mail()
    confident()
    mails.refusal = "451 not now"
    watch_alerts()
    delivery = AlertDelivery.objects.get()
    assert (delivery.state, delivery.failure) == (AlertState.FAILED, "SMTPSenderRefused")
    mails.refusal = None
    later(rule)
    watch_alerts()
    assert len(mails.mails) == 1


def test_without_a_mail_server_the_record_says_so(lead):
    by_mail()
    confident()
    watch_alerts()
    assert AlertDelivery.objects.get().failure == "no_mail_server"


# -- what may be said ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("said", "field"),
    [
        pytest.param({"name": " "}, "name", id="no-name"),
        pytest.param({"name": "a\nBcc: b"}, "name", id="two-lines"),
        pytest.param({"name": "a" * 101}, "name", id="long-name"),
        pytest.param({"url": f"https://example.org/{'a' * 500}"}, "url", id="long-address"),
        pytest.param({"url": ""}, "url", id="no-address"),
        pytest.param({"url": "ftp://example.org/"}, "url", id="no-http"),
        pytest.param({"url": "file:///etc/passwd"}, "url", id="file"),
        pytest.param({"url": "https://"}, "url", id="no-host"),
        pytest.param({"url": "https://me:secret@example.org/"}, "url", id="password"),
        pytest.param({"url": "https://example.org:99999/"}, "url", id="port"),
        pytest.param({"url": "https://example.org/ x"}, "url", id="blank"),
        pytest.param({"url": "https://пример.рф/"}, "url", id="not-ascii"),
        pytest.param({"url": "http://10.0.0.1/"}, "url", id="private"),
        pytest.param({"url": "http://[::ffff:10.0.0.1]/"}, "url", id="mapped"),
        pytest.param({"kind": "queue_overdue"}, "threshold", id="no-threshold"),
        pytest.param({"kind": "queue_overdue", "threshold": 0}, "threshold", id="none-overdue"),
        pytest.param({"kind": "satisfaction_low", "threshold": 101}, "threshold", id="more-than-all"),
        pytest.param({"kind": "satisfaction_low", "threshold": 50, "period_days": 91}, "period_days", id="too-long"),
        pytest.param({"kind": "satisfaction_low", "threshold": 50, "period_days": 7}, "min_votes", id="no-least"),
        pytest.param({"agent_id": "ops team"}, "agent_id", id="no-agent"),
    ],
)
def test_what_is_refused_says_where(said, field):
    with pytest.raises(InvalidInputError) as refusal:
        a_rule(**said)
    assert list(refusal.value.errors) in ([field], [field, "min_votes"], [field, "period_days", "min_votes"])
    assert not AlertRule.objects.exists()


def test_a_change_over_somebody_elses_is_refused():
    rule = a_rule()
    alert_rules.change_rule(rule_id=rule.pk, version=0, **data(name="Mine"))
    with pytest.raises(ConflictError):
        alert_rules.change_rule(rule_id=rule.pk, version=0, **data(name="Theirs"))
    rule.refresh_from_db()
    assert (rule.name, rule.version) == ("Mine", 1)


def test_kind_and_channel_stay():
    rule = a_rule()
    changed = alert_rules.change_rule(rule_id=rule.pk, version=0, **data(kind="queue_overdue", channel="email"))
    assert (changed.kind, changed.channel, changed.url) == (rule.kind, rule.channel, rule.url)


def test_one_that_is_switched_off_drops_what_waits_and_one_that_is_switched_on_begins_anew(server):
    rule, _secret = hook(server)
    confident()
    alerts.watch()
    said = data(url=rule.url)
    alert_rules.change_rule(rule_id=rule.pk, version=0, **{**said, "is_active": False})
    delivery = AlertDelivery.objects.get()
    assert (delivery.state, delivery.failure) == (AlertState.GIVEN_UP, "switched_off")
    with pytest.raises(ConflictError):
        alert_sending.try_again(delivery_id=delivery.pk)
    confident()
    alert_rules.change_rule(rule_id=rule.pk, version=1, **said)
    alerts.watch()
    assert len(told()) == 1
    alert_sending.send_webhooks()
    assert server.requests == []


def test_another_threshold_tells_anew():
    rule = a_rule(kind="queue_overdue", threshold=1)
    late(3)
    alerts.watch(NOON)
    said = data(kind="queue_overdue", threshold=2, url=rule.url)
    alert_rules.change_rule(rule_id=rule.pk, version=0, **said)
    alerts.watch(NOON)
    assert [facts["threshold"] for facts in told()] == [1, 2]


# -- a test, and what is kept ----------------------------------------------------------------------------------------


def test_a_test_is_sent_once_and_shows_the_answer(server, lead):
    rule, secret = hook(server)
    server.reply(404, "no such hook")
    delivery = alert_sending.send_test(rule_id=rule.pk, actor=lead)
    assert (delivery.state, delivery.status_code, delivery.answer) == (AlertState.GIVEN_UP, 404, "no such hook")
    [request] = server.requests
    assert request.headers["webhook-signature"] == signatures(request, secret)
    assert json.loads(request.body)["type"] == "test"
    alert_sending.send_webhooks()
    assert len(server.requests) == 1
    with pytest.raises(ConflictError):
        alert_sending.try_again(delivery_id=delivery.pk)
    rule.refresh_from_db()
    assert rule.held_until is None


def test_a_test_that_its_page_did_not_finish_is_left_alone(server, lead):
    rule, _ = hook(server)
    alerts.owe(rule, AlertDelivery.TEST, [alerts.Occurrence("1", {})])
    alert_sending.send_webhooks()
    assert server.requests == []


def test_a_test_by_mail_goes_to_who_asks_for_it(mails, lead):
    UserFactory(username="boss", role="Lead")
    delivery = alert_sending.send_test(rule_id=by_mail().pk, actor=lead)
    assert delivery.state == AlertState.SENT
    assert [mail["To"] for mail in mails.mails] == [lead.email]


def test_deliveries_go_with_their_session_and_after_ninety_days():
    a_rule()
    review = confident(session__user_ref="somebody-1")
    confident(session__user_ref="somebody-2")
    alerts.watch()
    erase_subject(user_ref="somebody-1")
    assert [facts["sessionId"] for facts in told()] != [review.session_id]
    assert len(told()) == 1
    AlertDelivery.objects.update(created_at=timezone.now() - timedelta(days=91))
    apply_retention()
    assert told() == []
