"""The weekly report: its figures are the API's, it is stored once, and it reaches each Lead once, in their language."""

from __future__ import annotations

import re
from datetime import UTC, date, datetime, timedelta
from io import StringIO
from typing import Any

import environ
import pytest
from django.core.management import CommandError, call_command
from django.urls import reverse
from django.utils import timezone, translation

from feedback_app import rules
from feedback_app.models import ReaderLanguage, ReportDelivery, WeeklyReport
from feedback_app.reports import mail as mails
from feedback_app.reports.words import words_of
from feedback_app.selectors.weekly import monday_of
from feedback_app.services import reports
from feedback_app.services.submission import record_event
from feedback_app.tasks import make_weekly_report
from sessions_app.models import DiagnosisSession
from tests.factories import FeedbackEventFactory, SessionFactory, TriageFactory, UserFactory
from tests.smtp import mail_server
from tests.threads import at_once

pytestmark = pytest.mark.django_db

MONDAY = date(2026, 11, 9)
WEEK = timedelta(days=7)
NEXT_MONDAY = datetime(2026, 11, 16, 8, tzinfo=UTC)  # when the report of the week is due
HOSTILE = "<img src=x onerror=alert(1)> {{ 7*7 }}"


def moment(day: int = 0, hour: int = 12) -> datetime:
    """A time of that week: day 0 is its Monday."""
    return datetime(2026, 11, 9, hour, tzinfo=UTC) + timedelta(days=day)


def event(kind: str, value: float, day: int = 0, **more: Any) -> Any:
    session = more.pop("session", None) or SessionFactory(created_at=moment(day), agent_id=more.pop("agent", "ops/1"))
    return FeedbackEventFactory(type=kind, value=value, created_at=moment(day), session=session, **more)


def asked_again(text: str, day: int = 0, **session: Any) -> Any:
    made = SessionFactory(query=text, created_at=moment(day), **session)
    payload = {"question": f"{text} please", "previousQuestion": text}
    return event("re_ask", 0.9, day, session=made, payload=payload, source="system")


@pytest.fixture
def week():
    """Two agents with thumbs enough, one with too few, and one of each other kind; the week before, one thumb down."""
    for agent, up, down in (("good", 9, 1), ("bad", 2, 5), ("new", 1, 0)):
        for number in range(up + down):
            event("thumbs", 1.0 if number < up else -1.0, day=number % 7, agent=agent)
    event("star", 0.75, payload={"stars": 4})
    event("correction", 0.2, payload={"original": "a", "corrected": "b"})
    event("edit", 0.3, payload={"original": "a", "edited": "b"})
    asked_again("Why is it slow?")
    event("thumbs", -1.0, day=-7, agent="good")


# -- figures ---------------------------------------------------------------------------------------------------------


def camel(name: str) -> str:
    head, *rest = name.split("_")
    return head + "".join(part.capitalize() for part in rest)


def as_api(totals: dict[str, Any]) -> dict[str, Any]:
    return {camel(name): value for name, value in totals.items()}


def summary(api: Any, first: date = MONDAY, **query: str) -> dict[str, Any]:
    answer = api.get("/api/feedback/summary", {"from": f"{first}", "to": f"{first + WEEK}", **query})
    assert answer.status_code == 200
    return dict(answer.json())


def test_the_figures_are_those_of_the_api(week, api):
    figures = reports.build_report(MONDAY).figures
    whole = summary(api, interval="day")
    assert (whole["counts"]["thumbs"], whole["approvalRate"]) == (18, 66.6667)  # 12 of 18
    names = {camel(name) for name in figures["week"]}
    assert names == set(whole) - {"period", "agentId", "agentFlow", "interval", "buckets"}

    def same(totals: Any, answer: dict[str, Any]) -> bool:
        return as_api(totals) == {name: answer[name] for name in names}

    assert same(figures["week"], whole)
    assert same(figures["before"], summary(api, MONDAY - WEEK))
    assert len(figures["days"]) == 7
    assert all(map(same, figures["days"], whole["buckets"]))
    for agent in (*figures["best"], *figures["worst"]):
        assert same(agent["totals"], summary(api, agentId=agent["agent_id"]))


def test_what_is_read_is_what_the_api_says(week, api):
    """The words of the page and of the mail, against the same answer of the API."""
    rows = {row.title: row for row in words_of(reports.build_report(MONDAY), is_shared=True).rows}
    whole = summary(api)
    assert rows["Sessions"].value == str(whole["sessions"])
    assert rows["Approval"].value == f"{round(whole['approvalRate'])}%" == "67%"
    bounds = whole["approvalConfidence"]
    assert rows["Approval"].of == f"12 of 18 thumbs, {round(bounds['low'])}–{round(bounds['high'])}%"
    assert (rows["Approval"].before, rows["Approval"].change) == ("0%", "+67 points")
    assert (rows["Average stars"].value, rows["Average stars"].before, rows["Average stars"].change) == (
        "4.0",
        "–",
        "–",
    )
    assert rows["Changed by edits"].value == "30%"
    assert rows["Asked again"].of == f"1 of {whole['sessions']} sessions"
    assert rows["With explicit feedback"].of == f"20 of {whole['sessions']} sessions"


def test_the_report_of_the_samples_is_what_the_api_says(api):
    """Page, HTML and text of the sample data, each with the API's own numbers in it."""
    call_command("load_samples", stdout=StringIO())
    monday = monday_of(timezone.localdate() - WEEK)
    whole = summary(api, monday, interval="day")
    assert whole["sessions"] >= 10
    report = reports.build_report(monday)
    assert as_api(report.figures["week"]) == {name: whole[name] for name in map(camel, report.figures["week"])}
    bounds = whole["approvalConfidence"]
    with translation.override("en"):  # a request leaves its language behind
        words = words_of(report, is_shared=True)
        texts = (mails.as_text(report, words), mails.as_html(report, words))
    for text in texts:
        assert f"{whole['thumbsUp']} of {whole['counts']['thumbs']} thumbs" in text
        assert f"{round(bounds['low'])}–{round(bounds['high'])}%" in text
        assert f"{whole['sessionsWithFeedback']} of {whole['sessions']} sessions" in text
    assert [(day.up, day.up + day.down) for day in words.days] == [
        (bucket["thumbsUp"], bucket["counts"]["thumbs"]) for bucket in whole["buckets"]
    ]


@pytest.mark.parametrize(
    ("thumbs", "best", "worst"),
    [
        pytest.param({}, [], [], id="none"),
        pytest.param({"a": (4, 4)}, [], [], id="too-few"),
        pytest.param({"a": (5, 5)}, ["a"], [], id="one-agent-is-not-the-worst-too"),
        pytest.param({"a": (5, 5), "b": (0, 5)}, ["a"], ["b"], id="two"),
        pytest.param({"few": (5, 5), "many": (95, 100)}, ["many"], ["few"], id="what-is-sure-goes-first"),
        pytest.param(
            {"few": (1, 5), "many": (30, 100), "good": (50, 50), "fair": (40, 50), "ok": (35, 50)},
            ["good", "fair", "ok"], ["many", "few"], id="surely-bad-goes-first",
        ),
        pytest.param(dict.fromkeys("hgfedcba", (5, 9)), ["a", "b", "c"], ["d", "e", "f"], id="equals-by-name"),
    ],
)  # fmt: skip
def test_the_best_and_the_worst(thumbs, best, worst):
    assert rules.best_and_worst(thumbs) == (best, worst)


def test_agents_are_named_with_how_sure_it_is(week):
    words = words_of(reports.build_report(MONDAY), is_shared=True)
    assert [(each.name, each.approval, each.of) for each in words.best] == [("good", "90%", "9 of 10 thumbs")]
    assert [(each.name, each.approval, each.between) for each in words.worst] == [("bad", "29%", "8–64%")]
    assert words.ranking_note.startswith("2 agents had 5 thumbs or more.")


def test_failure_modes_of_what_was_resolved_in_the_week():
    for mode, day in [("HALLUCINATION", 0), ("HALLUCINATION", 6), ("TOOL_FAILURE", 1), ("HALLUCINATION", -1)]:
        TriageFactory(state="RESOLVED", failure_mode=mode, resolved_at=moment(day))
    TriageFactory(state="DISMISSED", resolved_at=moment())
    TriageFactory(state="RESOLVED", failure_mode="INCOMPLETE", resolved_at=moment(7))
    assert reports.build_report(MONDAY).figures["failure_modes"] == [
        {"mode": "HALLUCINATION", "count": 2, "before": 1},
        {"mode": "TOOL_FAILURE", "count": 1, "before": 0},
    ]


def test_the_questions_asked_again_most_often():
    """Those of the same words are one, whoever asked them, whatever their case and punctuation."""
    for number, text in enumerate(("Why is it slow?", "why is it SLOW", "磁盘满了", "Why is it slow!")):
        asked_again(text, session_id=f"s{number}", day=number)
    asked_again("Too late?", day=7)
    report = reports.build_report(MONDAY)
    assert report.figures["re_asked"] == [
        {"session_id": "s3", "count": 3, "sessions": 3},
        {"session_id": "s2", "count": 1, "sessions": 1},
    ]
    asked = words_of(report, is_shared=True).asked
    assert [(each.text, each.times) for each in asked] == [("Why is it slow!", "3 times"), ("磁盘满了", "1 time")]


def test_a_report_quotes_nobody_in_what_is_stored():
    asked_again("Call me, Jane Doe", session_id="s1")
    report = reports.store_report(MONDAY)
    assert "Jane" not in str(report.figures)
    assert words_of(report, is_shared=True).asked[0].text == "Call me, Jane Doe"
    DiagnosisSession.objects.filter(session_id="s1").delete()
    asked = words_of(report, is_shared=False).asked[0]
    assert (asked.text, asked.pk) == ("(no longer kept)", None)


def test_what_came_without_consent_is_read_on_the_page_only():
    asked_again("Not for others", consent=False)
    report = reports.build_report(MONDAY)
    assert words_of(report, is_shared=False).asked[0].text == "Not for others"
    assert words_of(report, is_shared=True).asked[0].text == "(not shared: without consent)"
    assert "Not for others" not in mails.as_html(report, words_of(report, is_shared=True))


def test_the_number_of_queries_does_not_grow(week, django_assert_num_queries):
    with django_assert_num_queries(12):
        reports.build_report(MONDAY)
    for number in range(20):
        event("thumbs", 1.0, agent=f"agent-{number}")
    with django_assert_num_queries(12):
        reports.build_report(MONDAY)


# -- stored once -----------------------------------------------------------------------------------------------------


def weeks() -> list[str]:
    return [str(report) for report in WeeklyReport.objects.order_by("week")]


def test_it_is_stored_on_monday_once_its_week_has_settled(week):
    reports.make_due_reports(NEXT_MONDAY.replace(hour=2, minute=59))
    assert weeks() == ["2026-11-02"]
    reports.make_due_reports(NEXT_MONDAY)
    reports.make_due_reports(NEXT_MONDAY + timedelta(days=6))
    assert weeks() == ["2026-11-02", "2026-11-09"]
    report = WeeklyReport.objects.get(week=MONDAY)
    assert (report.week, report.starts_at, report.ends_at) == (MONDAY, moment(hour=0), moment(7, hour=0))


def test_what_comes_in_later_does_not_change_it(week):
    stored = reports.store_report(MONDAY)
    event("thumbs", 1.0)
    assert reports.store_report(MONDAY).figures == stored.figures
    assert WeeklyReport.objects.count() == 1


def test_a_missed_monday_is_caught_up_and_so_are_missed_weeks(week):
    reports.make_due_reports(NEXT_MONDAY)
    reports.make_due_reports(NEXT_MONDAY + 3 * WEEK + timedelta(days=2))  # nothing ran in between
    assert weeks() == ["2026-11-09", "2026-11-16", "2026-11-23", "2026-11-30"]
    reports.make_due_reports(NEXT_MONDAY + 30 * WEEK)
    assert len(weeks()) == 4 + 8, "what lies further back nobody misses"


def test_a_fresh_product_has_nothing_to_report():
    assert reports.make_due_reports(NEXT_MONDAY) == []


def test_a_silent_week_is_reported_once_there_are_reports(week):
    reports.make_due_reports(NEXT_MONDAY)
    silent = reports.make_due_reports(NEXT_MONDAY + WEEK)[0]
    assert words_of(silent, is_shared=True).is_silent
    assert "Nothing happened in this week" in mails.as_text(silent, words_of(silent, is_shared=True))


@pytest.mark.django_db(transaction=True)
def test_workers_at_once_store_one(lead):
    SessionFactory(created_at=moment())
    stored = at_once(lambda: reports.store_report(MONDAY))
    assert len({report.pk for report in stored}) == 1
    assert (WeeklyReport.objects.count(), ReportDelivery.objects.count()) == (1, 1)


# -- sent once -------------------------------------------------------------------------------------------------------


@pytest.fixture
def server(settings):
    """A real mail server on this machine, which EMAIL_URL names."""
    with mail_server() as running:
        settings.EMAIL_URL = running.url
        for name, value in environ.Env.email_url_config(running.url).items():
            setattr(settings, name, value)
        settings.DEFAULT_FROM_EMAIL = "diagnosis@example.org"
        settings.PUBLIC_URL = "https://diagnosis.example.org/"
        yield running


def send(**more: Any) -> int:
    return reports.send_due_mails(NEXT_MONDAY, **more)


def parts(mail: Any) -> tuple[str, str]:
    text, html = mail.iter_parts()
    assert (text.get_content_type(), html.get_content_type()) == ("text/plain", "text/html")
    return text.get_content(), html.get_content()


def test_each_lead_gets_it_in_their_language(week, lead, reviewer, server):
    ru = UserFactory(username="ru", role="Lead")
    ReaderLanguage.objects.create(user=lead, code="en")
    ReaderLanguage.objects.create(user=ru, code="ru")
    UserFactory(username="unknown-language", role="Lead")
    UserFactory(username="without-address", role="Lead", email="")
    UserFactory(username="gone", role="Lead", is_active=False)
    UserFactory(username="same-address", role="Lead", email=lead.email.upper())
    reports.store_report(MONDAY)
    assert send() == 3
    sent = {mail["To"]: mail for mail in server.mails}
    assert set(sent) == {"lena@example.org", "ru@example.org", "unknown-language@example.org"}
    assert sent["lena@example.org"]["Subject"] == "Weekly report, 2026-11-09 – 2026-11-15"
    languages = {to: re.search(r'<html lang="([^"]+)"', parts(mail)[1])[1] for to, mail in sent.items()}
    assert languages == {
        "lena@example.org": "en",
        "ru@example.org": "ru",
        "unknown-language@example.org": "zh-hans",
    }


def test_the_mail_says_the_same_as_html_and_as_text_and_asks_for_nothing(week, lead, server, api):
    ReaderLanguage.objects.create(user=lead, code="en")
    asked_again(HOSTILE, day=1)
    report = reports.store_report(MONDAY)
    assert send() == 1
    mail = server.mails[0]
    assert (mail["From"], mail["Auto-Submitted"]) == ("diagnosis@example.org", "auto-generated")
    assert mail["Message-ID"] == f"<weekly-report-2026-11-09-{lead.pk}@example.org>"
    text, html = parts(mail)
    approval = f"{round(summary(api)['approvalRate'])}%"
    for part in (text, html):
        for word in (approval, "12 of 18 thumbs, 44–84%", "good", "bad", "9 of 10 thumbs", "Asked again most often"):
            assert word in part, word
        page = reverse("admin:feedback_app_weeklyreport_change", args=[report.pk])
        assert f"https://diagnosis.example.org{page}" in part
    assert HOSTILE in text
    assert "&lt;img src=x onerror=alert(1)&gt; {{ 7*7 }}" in html
    assert not re.search(r"<(script|img|svg|link|style|iframe|object|form|video)", html)
    assert re.findall(r"(?:href|src|background)=\"([^\"]*)\"", html) == [f"https://diagnosis.example.org{page}"]
    assert "url(" not in html


def test_it_is_sent_once(week, lead, server):
    reports.store_report(MONDAY)
    assert [send(), send(), send()] == [1, 0, 0]
    delivery = ReportDelivery.objects.get()
    assert delivery.sent_at is not None
    assert len(server.mails) == 1


@pytest.mark.django_db(transaction=True)
def test_workers_at_once_send_it_once(server):
    for number in range(4):
        UserFactory(username=f"lead-{number}", role="Lead")
    SessionFactory(created_at=moment())
    reports.store_report(MONDAY)
    assert sum(at_once(send)) == 4
    assert sorted(mail["To"] for mail in server.mails) == [f"lead-{number}@example.org" for number in range(4)]


def test_a_server_that_refuses_is_asked_again_later(week, lead, server):
    reports.store_report(MONDAY)
    server.refusal = "451 not now"
    assert send() == 0
    delivery = ReportDelivery.objects.get()
    assert (delivery.sent_at, delivery.attempts, delivery.error) == (None, 1, "SMTPSenderRefused")
    server.refusal = None
    assert send() == 0, "not before its time"
    ReportDelivery.objects.update(claimed_until=NEXT_MONDAY - timedelta(seconds=1))
    assert send() == 1
    assert ReportDelivery.objects.get().error == ""


def test_a_server_that_is_away_costs_no_report(week, lead, settings):
    settings.EMAIL_URL = "smtp://127.0.0.1:1"
    settings.EMAIL_BACKEND = "django.core.mail.backends.smtp.EmailBackend"
    settings.EMAIL_HOST, settings.EMAIL_PORT = "127.0.0.1", 1
    reports.store_report(MONDAY)
    assert send() == 0
    assert ReportDelivery.objects.get().error == "ConnectionRefusedError"


def test_one_bad_address_does_not_keep_the_others_from_theirs(week, server):
    UserFactory(username="a", role="Lead", email="a@example.org\nBcc: all@example.org")
    UserFactory(username="b", role="Lead")
    reports.store_report(MONDAY)
    assert send() == 1
    assert [mail["To"] for mail in server.mails] == ["b@example.org"]


def test_without_a_mail_server_the_report_stands_on_its_page(week, lead, settings, mailoutbox):
    assert settings.EMAIL_URL == ""
    reports.store_report(MONDAY)
    assert send() == 0
    assert mailoutbox == []
    assert ReportDelivery.objects.get().attempts == 0


def test_an_old_report_is_not_mailed_any_more(week, lead, server):
    reports.store_report(MONDAY)
    assert reports.send_due_mails(NEXT_MONDAY + timedelta(days=8)) == 0
    assert server.mails == []


def test_who_is_no_lead_any_more_gets_none(week, lead, server):
    reports.store_report(MONDAY)
    lead.groups.clear()
    assert send() == 0
    assert server.mails == []


def test_the_task_does_both(lead, server, monkeypatch):
    monkeypatch.setattr(reports, "SETTLING", timedelta(0))  # early on a Monday, too
    now = timezone.now()
    SessionFactory(created_at=now - timedelta(days=now.weekday() + 3))
    for _ in range(2):
        make_weekly_report()
        assert (WeeklyReport.objects.count(), len(server.mails)) == (1, 1)


def test_signing_in_and_choosing_a_language_tell_it(client, lead):
    client.defaults["HTTP_ACCEPT_LANGUAGE"] = "ru"
    credentials = {"username": lead.username, "password": "correct horse battery staple", "next": "/admin/"}
    assert client.post("/admin/login/", credentials).status_code == 302
    assert reports.language_of(lead.pk) == "ru"
    client.post("/i18n/setlang/", {"language": "en"})
    assert reports.language_of(lead.pk) == "en"
    client.post("/i18n/setlang/", {"language": "tlh"})
    client.get("/i18n/setlang/", {"language": "ru"})
    assert reports.language_of(lead.pk) == "en"
    assert ReaderLanguage.objects.count() == 1


def test_a_stranger_who_chooses_a_language_is_nobody(client):
    client.post("/i18n/setlang/", {"language": "ru"})
    assert not ReaderLanguage.objects.exists()


# -- the page and the command ----------------------------------------------------------------------------------------

LIST = "/admin/feedback_app/weeklyreport/"


@pytest.mark.parametrize(
    ("role", "code"),
    [("anonymous", 302), ("nobody", 302), ("staff", 403), ("Operator", 200), ("Reviewer", 200), ("Lead", 200)],
)
def test_who_may_read_it(role, code, week, client, sign_in):
    report = reports.store_report(MONDAY)
    sign_in(role)
    for url in (LIST, f"{LIST}{report.pk}/change/"):
        assert client.get(url).status_code == code
    for url in (f"{LIST}add/", f"{LIST}{report.pk}/delete/"):
        assert client.post(url).status_code in ({302} if code == 302 else {403})
    assert client.post(f"{LIST}{report.pk}/change/").status_code == (code if code != 200 else 405)
    assert WeeklyReport.objects.count() == 1


def test_the_page_says_what_the_mail_says(week, client, as_lead):
    client.defaults["HTTP_ACCEPT_LANGUAGE"] = "en"
    asked_again(HOSTILE, day=1)
    report = reports.store_report(MONDAY)
    page = client.get(f"{LIST}{report.pk}/change/").content.decode()
    for word in ("67%", "12 of 18 thumbs, 44–84%", "9 of 10 thumbs", "<svg", "&lt;img src=x onerror=alert(1)&gt;"):
        assert word in page, word
    assert HOSTILE not in page
    asked = DiagnosisSession.objects.get(query=HOSTILE)
    assert f"/admin/sessions_app/diagnosissession/{asked.pk}/change/" in page
    listed = client.get(LIST).content.decode()
    assert "2026-11-09 – 2026-11-15" in listed
    assert "67%" in listed


def test_the_page_leads_to_the_weeks_beside_it(week, client, as_lead):
    first, second = (reports.store_report(MONDAY + ago * WEEK) for ago in (0, 1))
    assert f"{LIST}{second.pk}/change/" in client.get(f"{LIST}{first.pk}/change/").content.decode()
    assert f"{LIST}{first.pk}/change/" in client.get(f"{LIST}{second.pk}/change/").content.decode()


@pytest.mark.parametrize("pk", ["4711", "abc", "9" * 40])
def test_an_unknown_report_leads_back(pk, client, as_lead):
    assert client.get(f"{LIST}{pk}/change/").status_code == 302


def command(*args: str) -> str:
    out = StringIO()
    with translation.override(None):
        call_command("weekly_report", "--week", "2026-11-11", *args, stdout=out)
    return out.getvalue()


def test_the_command_shows_it_and_stores_nothing(week, tmp_path):
    said = command("--language", "en", "--html", str(tmp_path / "mail.html"))
    assert "Approval: 67% (12 of 18 thumbs, 44–84%)" in said
    assert "67%" in (tmp_path / "mail.html").read_text("utf-8")
    assert not WeeklyReport.objects.exists()


def test_the_command_sends_it_to_those_who_have_not_had_it(week, lead, server):
    assert command("--send") == "Week of 2026-11-09: 1 mails sent, 0 not.\n"
    UserFactory(username="new-lead", role="Lead")
    assert command("--send") == "Week of 2026-11-09: 1 mails sent, 0 not.\n"
    assert [mail["To"] for mail in server.mails] == ["lena@example.org", "new-lead@example.org"]


def test_the_command_sends_a_preview_to_one_address(week, lead, server):
    command("--to", "me@example.org", "--language", "en")
    assert [mail["To"] for mail in server.mails] == ["me@example.org"]
    assert not WeeklyReport.objects.exists()


def test_the_command_says_why_it_cannot_send(settings, lead):
    with pytest.raises(CommandError, match="EMAIL_URL is not set"):
        command("--send")
    settings.EMAIL_URL = "dummymail://"
    with pytest.raises(CommandError, match="not over"):
        call_command("weekly_report", "--week", timezone.localdate().isoformat(), "--send")


def test_an_edit_of_the_api_is_in_the_figures():
    SessionFactory(session_id="s1", created_at=moment())
    texts = {"original": "Dear John, I am writing to inform you...", "edited": "Hi John, Just a quick note..."}
    record_event({"session_id": "s1", "type": "edit", "payload": texts, "created_at": moment()})
    assert reports.build_report(MONDAY).figures["week"]["avg_edit_distance"] == 0.5652
