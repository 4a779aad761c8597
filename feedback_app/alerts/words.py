"""What an alert says, in the active language, and the JSON that a webhook sends. Nothing here quotes anybody."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, NamedTuple, TypedDict

from django.conf import settings
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext

from feedback_app.models import AlertDelivery, AlertKind
from feedback_app.webhooks.posting import Failure
from sessions_app.fields import dumps
from sessions_app.templatetags.desk import number

# Written out: the worker, which sends them, knows no routes (they would load the whole admin).
REVIEW_PAGE = "/admin/feedback_app/badcasereview/{}/change/"
OVERDUE_PAGE = "/admin/feedback_app/badcasereview/?due=overdue"
METRICS_PAGE = "/admin/metrics/"
RULE_PAGE = "/admin/feedback_app/alertrule/{}/change/"


class Facts(TypedDict, total=False):
    """What a delivery holds, and `data` of a webhook. Each kind has its own of them."""

    sessionId: str
    agentId: str | None
    confidence: float  # percent
    evidenceScore: int | None
    reviewId: int
    overdue: int  # bad cases past their due date; 10,000 stands for more
    oldestDueAt: str
    satisfaction: float  # percent of the verdicts
    useful: int
    verdicts: int
    periodDays: int
    threshold: int


class Item(NamedTuple):
    """One thing told: a name (of an agent, a session), what there is to say of it, and its page."""

    name: str
    text: str
    url: str | None


class Words(NamedTuple):
    """A mail about things of one kind."""

    title: str
    items: list[Item]


LOST_SECRET, NO_MAIL_SERVER, SWITCHED_OFF, DIED = "lost_secret", "no_mail_server", "switched_off", "died"
FAILURES: Mapping[str, Any] = {
    LOST_SECRET: gettext_lazy("SECRET_KEY has changed, and the webhook's secret with it: make a new one."),
    NO_MAIL_SERVER: gettext_lazy("No mail server is set (EMAIL_URL)."),
    DIED: gettext_lazy("The worker ended each time it was to send this."),
    SWITCHED_OFF: gettext_lazy("The alert was switched off."),
    Failure.REFUSED_ADDRESS: gettext_lazy(
        "Leads to a private address, which ALERT_ALLOWED_PRIVATE_HOSTS does not name."
    ),
    Failure.UNKNOWN_HOST: gettext_lazy("There is no host of this name."),
    Failure.UNREACHABLE: gettext_lazy("Nobody takes the connection."),
    Failure.TLS: gettext_lazy("Its certificate is not trusted, or it does not speak TLS."),
    Failure.TIMEOUT: gettext_lazy("No answer in time."),
    Failure.BROKEN: gettext_lazy("The connection broke off."),
    Failure.REDIRECT: gettext_lazy("It answered with a redirect, which is not followed."),
    Failure.STATUS: gettext_lazy("It answered with an error."),
}


def why_failed(failure: str) -> str:
    """Why a try failed; an error of the mail server by its own name."""
    return str(FAILURES.get(failure, failure))


def title_of(event: str, told: Sequence[Facts]) -> str:
    """One sentence without names and ids, which callers choose: where it is shown, they might mean something."""
    facts: Facts = told[0] if told else {}
    match event:
        case AlertKind.CONFIDENT:
            return ngettext(
                "%(n)s answer was stated with confidence and rejected",
                "%(n)s answers were stated with confidence and rejected",
                len(told),
            ) % {"n": number(len(told))}
        case AlertKind.OVERDUE:
            n = facts["overdue"]
            return ngettext("%(n)s bad case is past its due date", "%(n)s bad cases are past their due date", n) % {
                "n": number(n)
            }
        case AlertKind.SATISFACTION:
            return ngettext(
                "Satisfaction with %(n)s agent is below %(threshold)s%%",
                "Satisfaction with %(n)s agents is below %(threshold)s%%",
                len(told),
            ) % {"n": number(len(told)), "threshold": facts["threshold"]}
    return _("This is a test")


def words_of(deliveries: Sequence[AlertDelivery]) -> Words:
    """What a mail says of deliveries of one rule."""
    told: list[Any] = [delivery.facts for delivery in deliveries]
    items = [_item(delivery) for delivery in deliveries]
    return Words(title_of(deliveries[0].event, told), items)


def _item(delivery: AlertDelivery) -> Item:
    facts: Any = delivery.facts
    url = page_url(delivery)
    match delivery.event:
        case AlertKind.CONFIDENT:
            return Item(facts["sessionId"], confident_text(facts), url)
        case AlertKind.SATISFACTION:
            return Item(facts["agentId"], satisfaction_text(facts), url)
        case AlertKind.OVERDUE:
            return Item(_("Triage queue"), title_of(delivery.event, [facts]), url)
    return Item(_("Test"), _("Nothing happened. Somebody wanted to see whether this arrives."), url)


def confident_text(facts: Facts) -> str:
    """Who was how sure, on what evidence."""
    agent, score = facts["agentId"], facts["evidenceScore"]
    parts = [agent] if agent else []
    parts.append(_("confidence %(percent)s%%") % {"percent": round(facts["confidence"])})
    if score is not None:
        parts.append(_("evidence score %(score)s") % {"score": score})
    return ", ".join(parts)


def satisfaction_text(facts: Facts) -> str:
    """How many, of how many, in how long."""
    days = facts["periodDays"]
    period = ngettext("in %(n)s day", "in %(n)s days", days) % {"n": number(days)}
    share = _("%(useful)s of %(verdicts)s verdicts useful") % {
        "useful": number(facts["useful"]),
        "verdicts": number(facts["verdicts"]),
    }
    return f"{round(facts['satisfaction'])}%: {share}, {period}"


def page_url(delivery: AlertDelivery) -> str | None:
    """Where people look at it; None where nobody said where the product is."""
    facts: Any = delivery.facts
    pages = {
        AlertKind.CONFIDENT: REVIEW_PAGE.format(facts.get("reviewId")),
        AlertKind.OVERDUE: OVERDUE_PAGE,
        AlertKind.SATISFACTION: METRICS_PAGE,
    }
    page = pages.get(delivery.event, RULE_PAGE.format(delivery.rule_id))  # type: ignore[call-overload]
    return f"{settings.PUBLIC_URL.rstrip('/')}{page}" if settings.PUBLIC_URL else None


class Payload(TypedDict):
    """What a webhook is sent, in the form that Standard Webhooks recommends."""

    type: str  # AlertDelivery.EVENTS
    timestamp: str  # when it was noticed
    text: str  # a sentence for people; chats show it
    data: dict[str, Any]  # Facts, with `rule` and `url`


def body_of(delivery: AlertDelivery) -> bytes:
    """A webhook's body. The same for each try of a delivery, as long as nobody renames the rule."""
    facts: Any = delivery.facts
    rule = delivery.rule
    payload: Payload = {
        "type": delivery.event,
        "timestamp": _iso(delivery.created_at),
        "text": f"{rule.name}: {title_of(delivery.event, [facts])}",
        "data": {**facts, "rule": {"id": rule.pk, "name": rule.name}, "url": page_url(delivery)},
    }
    return dumps(payload).encode()


def _iso(moment: datetime) -> str:
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")
