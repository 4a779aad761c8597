"""The pages of alerts: a secret is shown once, a test shows the answer, a Lead has things sent again."""

from __future__ import annotations

import re
from typing import Any

import pytest
from django.contrib.admin.models import LogEntry

from feedback_app.models import AlertDelivery, AlertRule, AlertState
from feedback_app.services import alert_rules, alerts
from tests.conftest import LOGIN_BACKEND
from tests.factories import UserFactory
from tests.feedback_app.test_alerts import HOSTILE, data
from tests.receiver import receiver

pytestmark = pytest.mark.django_db

RULES = "/admin/feedback_app/alertrule/"
DELIVERIES = "/admin/feedback_app/alertdelivery/"


@pytest.fixture(autouse=True)
def _speaks_english(client):
    client.defaults["HTTP_ACCEPT_LANGUAGE"] = "en"


@pytest.fixture
def server(settings):
    settings.ALERT_ALLOWED_PRIVATE_HOSTS = ["127.0.0.1"]
    with receiver() as running:
        yield running


def fields(**said: Any) -> dict[str, Any]:
    """The form, as a browser sends it."""
    return {
        "name": "On call",
        "kind": "satisfaction_low",
        "agent_id": "",
        "overdue_from": "1",
        "below_percent": "60",
        "period_days": "7",
        "min_votes": "10",
        "channel": "webhook",
        "url": "https://hooks.example.org/x",
        "language": "en",
        "is_active": "on",
        **said,
    }


def html_of(response: Any) -> str:
    return response.content.decode()


def rule_page(rule: AlertRule) -> str:
    return f"{RULES}{rule.pk}/change/"


def test_a_webhooks_secret_is_shown_once(client, as_lead):
    made = client.post(f"{RULES}add/", fields())
    secret = re.search(r'value="(whsec_[^"]+)"', html_of(made))[1]
    rule = AlertRule.objects.get()
    assert alert_rules.secret_text(alert_rules.signing_keys(rule)[0]) == secret
    assert (rule.threshold, rule.period_days, rule.min_votes, rule.language) == (60, 7, 10, "en")
    for url in (RULES, rule_page(rule), f"{rule_page(rule)}../history/"):
        assert secret not in html_of(client.get(url, follow=True))
    assert f"{secret[:10]}…" in html_of(client.get(rule_page(rule)))
    renewed = html_of(client.post(rule_page(rule), {"action": "secret"}))
    assert re.search(r'value="(whsec_[^"]+)"', renewed)[1] != secret
    assert [entry.get_change_message() for entry in LogEntry.objects.order_by("pk")] == [
        "Added.",
        "A new secret was made.",
    ]


def test_what_is_refused_stands_beside_its_field(client, as_lead):
    page = html_of(client.post(f"{RULES}add/", fields(below_percent="101", url="http://10.0.0.1/")))
    assert "A whole number from 1 to 100." in page
    assert "Leads to a private address" in page
    page = html_of(client.post(f"{RULES}add/", fields(kind="queue_overdue", overdue_from="")))
    assert "A whole number from 1 to 10000." in page
    assert not AlertRule.objects.exists()


def test_an_alert_by_mail_names_leads_only(client, as_lead, reviewer):
    other = UserFactory(username="boss", role="Lead")
    said = fields(channel="email", kind="queue_overdue", overdue_from="3", recipients=[str(other.pk)])
    assert client.post(f"{RULES}add/", said).status_code == 302
    rule = AlertRule.objects.get()
    assert (list(rule.recipients.all()), rule.url, rule.threshold, rule.period_days) == ([other], "", 3, None)
    assert rule.secret_nonce == ""
    assert client.post(f"{RULES}add/", {**said, "recipients": [str(reviewer.pk)]}).status_code == 200
    assert AlertRule.objects.count() == 1


def test_an_alert_that_reaches_nobody_says_so(client, as_lead):
    other = UserFactory(username="boss", role="Lead")
    said = data(kind="queue_overdue", threshold=1, channel="email", recipients=[other.pk])
    rule, _ = alert_rules.create_rule(**said)
    assert "Nobody gets this" not in html_of(client.get(rule_page(rule)))
    other.groups.clear()
    assert "Nobody gets this" in html_of(client.get(rule_page(rule)))


def test_a_change_over_somebody_elses_is_shown_and_then_taken(client, as_lead):
    rule, _ = alert_rules.create_rule(**data())
    alert_rules.change_rule(rule_id=rule.pk, version=0, **data(name="Theirs"))
    said = fields(kind="confident_but_rejected", name="Mine", action="save", version="0")
    answer = client.post(rule_page(rule), said)
    assert answer.status_code == 409
    assert "Stored meanwhile: <bdi>Theirs</bdi>" in html_of(answer)
    assert 'value="Mine"' in html_of(answer)
    assert client.post(rule_page(rule), {**said, "version": "1"}).status_code == 302
    rule.refresh_from_db()
    assert (rule.name, rule.version, rule.kind) == ("Mine", 2, "confident_but_rejected")


def test_a_test_shows_the_answer_escaped(client, as_lead, server):
    rule, _ = alert_rules.create_rule(**data(url=server.url))
    server.reply(500, HOSTILE)
    page = html_of(client.post(rule_page(rule), {"action": "test"}, follow=True))
    assert "The test did not arrive. It answered with an error." in page
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in page
    assert HOSTILE not in page
    delivery = AlertDelivery.objects.get()
    page = html_of(client.get(f"{DELIVERIES}{delivery.pk}/change/"))
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in page
    assert HOSTILE not in page
    assert "Try again" not in page, "a test is sent anew from its alert"
    server.replies.clear()
    assert "The test has arrived." in html_of(client.post(rule_page(rule), {"action": "test"}, follow=True))
    assert AlertDelivery.objects.filter(event="test").count() == len(server.requests) == 2


def test_what_was_given_up_is_sent_again_by_a_lead(client, as_lead, operator):
    rule, _ = alert_rules.create_rule(**data())
    alerts.owe(rule, rule.kind, [alerts.Occurrence("x", {"sessionId": HOSTILE})])
    AlertDelivery.objects.update(state=AlertState.GIVEN_UP, attempts=7, failure="timeout")
    page = f"{DELIVERIES}{AlertDelivery.objects.get().pk}/change/"
    shown = html_of(client.get(page))
    assert "No answer in time." in shown
    assert "Try again" in shown
    assert HOSTILE not in shown
    client.force_login(operator, backend=LOGIN_BACKEND)
    assert "Try again" not in html_of(client.get(page))
    assert client.post(page, {"action": "try_again"}).status_code == 403
    client.force_login(as_lead, backend=LOGIN_BACKEND)
    assert client.post(page, {"action": "try_again"}).status_code == 302
    row = AlertDelivery.objects.get()
    assert (row.state, row.attempts) == (AlertState.WAITING, 0)
    AlertDelivery.objects.update(state=AlertState.SENT)
    assert client.post(page, {"action": "try_again"}).status_code == 409


def test_an_operator_sees_and_changes_nothing(client, operator):
    rule, _ = alert_rules.create_rule(**data())
    client.force_login(operator, backend=LOGIN_BACKEND)
    page = html_of(client.get(rule_page(rule)))
    assert "Send a test" not in page
    assert 'value="save"' not in page
    for action in ("save", "test", "secret"):
        assert client.post(rule_page(rule), fields(action=action)).status_code == 403


def test_lists_take_as_many_queries_for_many_as_for_one(client, as_lead, django_assert_max_num_queries):
    for number in range(12):
        rule, _ = alert_rules.create_rule(**data(name=f"Rule {number}"))
        alerts.owe(rule, rule.kind, [alerts.Occurrence(key, {}) for key in "ab"])
    for url, most in ((RULES, 14), (DELIVERIES, 15), (rule_page(rule), 14), (f"{DELIVERIES}?alert={rule.pk}", 15)):
        with django_assert_max_num_queries(most):
            assert client.get(url).status_code == 200
    assert html_of(client.get(f"{DELIVERIES}?alert=x&state=nonsense")).count("msg_") == 0


@pytest.mark.parametrize("key", ["0", "999999999999", "9" * 40, "x"])
def test_pages_of_what_does_not_exist_lead_back(client, as_lead, key):
    for url in (f"{RULES}{key}/change/", f"{DELIVERIES}{key}/change/"):
        assert client.get(url).status_code == 302
