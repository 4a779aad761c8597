"""Every page that a person sees, and the states of it that look different: one list for all who walk through them.

What the pages show says nothing in English (digits, codes, names): English on a page is a text nobody translated.
"""

from __future__ import annotations

import io
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from itertools import product
from typing import Any

from django.contrib.auth.models import Group
from django.utils import timezone
from playwright.sync_api import Page

from cases_app.models import BulkFailure, BulkJob, CaseStatus, JobState
from cases_app.services.enrichment import content_to_edit, enrich_case
from cases_app.services.importing import prepare_import
from config.widget import SAMPLES, _samples
from feedback_app.models import AlertDelivery, AlertState, SecondReview, TriageState
from feedback_app.selectors.weekly import monday_of
from feedback_app.services import triage
from feedback_app.services.alert_rules import create_rule
from feedback_app.services.alerts import Occurrence, owe
from feedback_app.services.erasure import erase_subject
from feedback_app.services.reports import store_report
from sessions_app.services.evaluation import DIED
from sessions_app.services.keys import create_key, revoke_key
from tests.factories import (
    CaseFactory,
    FeedbackEventFactory,
    InvocationFactory,
    SessionFactory,
    StepFactory,
    TriageFactory,
)
from tests.feedback_app.test_alerts import data

ANSWER = "# 1\n\n1 + 1:\n\n| 1 | 2 |\n|---|---|\n| 3 | 4 |\n\n## 2\n\n- 3\n- 4\n\n```\n5\n```\n"
FAULT = RuntimeError("a page that fails, to see what a person is told")


@dataclass(frozen=True, slots=True)
class Look:
    """How somebody sees a page."""

    language: str
    width: int
    scheme: str

    def __str__(self) -> str:
        return f"{self.language}-{self.width}-{self.scheme}"


EVERY_LOOK = tuple(Look(*each) for each in product(("en", "zh-hans", "ru"), (1280, 390), ("light", "dark")))
USUAL_LOOKS = (Look("zh-hans", 1280, "light"), Look("ru", 390, "dark"))
"""What is walked through each time: each width and scheme once, the longest words where there is least room."""


@dataclass(frozen=True, slots=True)
class Seen:
    """A page: its address, who comes to it, what they do there before they look, and what it answers at first."""

    address: str
    act: Callable[[Page], object] | None = None
    by: str = "admin"  # "lead", "nobody", who may nothing, or "stranger", who has not signed in
    status: int = 200


def press(selector: str) -> Callable[[Page], object]:
    """Press a button that loads a page."""

    def act(page: Page) -> None:
        with page.expect_navigation():
            page.locator(selector).first.click()

    return act


def fill_and_press(selector: str, **said: str) -> Callable[[Page], object]:
    """Fill fields, then press a button that loads a page."""

    def act(page: Page) -> None:
        for name, text in said.items():
            page.locator(f"[name={name}]").fill(text)
        press(selector)(page)

    return act


def keys(*pressed: str) -> Callable[[Page], object]:
    """Press keys that load nothing."""

    def act(page: Page) -> None:
        for key in pressed:
            page.keyboard.press(key)
        page.wait_for_timeout(100)

    return act


def click(selector: str) -> Callable[[Page], object]:
    """Press what opens on the page itself."""

    def act(page: Page) -> None:
        page.locator(selector).first.click()
        page.wait_for_timeout(200)

    return act


def unfold_all(page: Page) -> None:
    """Open everything that is folded."""
    page.locator("#content details:not([open]) > summary").first.wait_for()
    page.evaluate("document.querySelectorAll('#content details').forEach((one) => { one.open = true; })")
    page.wait_for_timeout(300)


def forget_cookies(page: Page) -> None:
    """Send the form as a browser does that keeps no cookies."""
    page.context.clear_cookies()
    fill_and_press("#login-form button[type=submit]", username="1", password="2")(page)


def all_pages(*, admin: Any, lead: Any, reviewer: Any, monkeypatch: Any) -> dict[str, Seen]:
    """Name → page, over data made for them. Call it in the language of whoever will look."""
    return {
        **_sessions_and_feedback(admin, lead, reviewer, monkeypatch),
        **_cases(admin, lead),
        **_jobs(admin),
        **_settings(admin, lead),
        **_doors(),
    }


def empty_pages() -> dict[str, Seen]:
    """What somebody sees of a product that nobody has used yet."""
    return {
        "none-overview": Seen("/admin/"),
        "none-metrics": Seen("/admin/metrics/"),
        "none-agreement": Seen("/admin/feedback_app/secondreview/agreement/"),
        "none-holders": Seen("/admin/feedback_app/badcasereview/holders/"),
        **{
            f"none-{name.split('/')[1]}": Seen(f"/admin/{name}/")
            for name in (
                "sessions_app/diagnosissession", "feedback_app/badcasereview", "cases_app/caselibrary",
                "feedback_app/agentfeedback", "feedback_app/weeklyreport", "feedback_app/secondreview",
                "cases_app/bulkjob", "feedback_app/alertrule", "feedback_app/alertdelivery", "feedback_app/erasure",
                "sessions_app/apikey",
            )
        },
    }  # fmt: skip


def _sessions_and_feedback(admin: Any, lead: Any, reviewer: Any, monkeypatch: Any) -> dict[str, Seen]:
    session = SessionFactory(
        rejected=True,
        scored=True,
        confidence=92,
        conversation_id="call-1",
        user_ref="dk-1",
        query="1 + 1?",
        answer=ANSWER,
    )
    step = StepFactory(session=session, thought="3", model_input=None, model_output=None)
    for facts in ({"l0_hit": True}, {"l1_hit": True}, {"no_hit": True}, {"failed": True}, {"is_truncated": True}):
        InvocationFactory(step=step, error_message=None, **{**facts, "output_preview": "4"})
    for kind in ("thumbs", "star", "correction", "re_ask", "edit"):
        FeedbackEventFactory(
            session=session,
            type=kind,
            payload={
                "stars": 3, "original": "1", "corrected": "2", "edited": "3", "question": "4", "previousQuestion": "5",
                "comment": "6",
            },
        )  # fmt: skip
    review = TriageFactory(session=session)
    triage.claim(review_id=review.pk, reviewer=admin)
    free = TriageFactory(session__query="3?", session__answer="4")
    late = TriageFactory(session__query="16?", session__answer="4", due_at=timezone.now() - timedelta(hours=30))
    triage.claim(review_id=late.pk, reviewer=reviewer)
    closed = {
        state: TriageFactory(
            session__query="5?", state=state, failure_mode="WRONG_ROOT_CAUSE", resolved_at=review.created_at,
            notes="1", corrected_answer=ANSWER,
        )
        for state in (TriageState.RESOLVED, TriageState.DISMISSED)
    }  # fmt: skip
    running = SessionFactory(running=True, query="9?")
    broken = SessionFactory(query="10?", answer="11", evaluation_error=DIED, evaluation_attempts=5)
    owing = SessionFactory(query="12?", answer="13", owing=True)
    last_week = timezone.now() - timedelta(days=7)
    told = SessionFactory(query="14?", answer="15", created_at=last_week)
    FeedbackEventFactory.create_batch(6, session=told, created_at=last_week)
    texts = {"question": "14?", "previousQuestion": "14?", "laterSessionId": session.session_id}
    again = FeedbackEventFactory(session=told, type="re_ask", source="system", payload=texts, created_at=last_week)
    TriageFactory(session=told, state=TriageState.RESOLVED, failure_mode="WRONG_ROOT_CAUSE", resolved_at=last_week)
    monday = monday_of(timezone.localdate(last_week))
    report, faulty = store_report(monday), store_report(monday - timedelta(days=7))
    _fail_at(faulty, monkeypatch)
    waiting, differing = (
        SecondReview.objects.create(
            review=TriageFactory(
                session__query="17?", session__answer="4", state="RESOLVED", failure_mode="HALLUCINATION"
            ),
            first_mode="HALLUCINATION", first_reviewer=reviewer, **judged,
        )
        for judged in ({}, {"state": "DISAGREED", "mode": "INCOMPLETE", "reviewer": lead})
    )  # fmt: skip
    sessions, bad, feedback = (
        "/admin/sessions_app/diagnosissession/",
        "/admin/feedback_app/badcasereview/",
        "/admin/feedback_app",
    )
    return {
        "overview": Seen("/admin/"),
        "menu-of-person": Seen("/admin/", _open_menu),
        "sidebar": Seen("/admin/", _open_sidebar, by="lead"),
        "metrics": Seen("/admin/metrics/"),
        "sessions": Seen(sessions),
        "sessions-filtered": Seen(f"{sessions}?scoring=scored&feedback=not_useful&facts=l0&score_from=1"),
        "sessions-filters": Seen(sessions, click("[aria-controls=changelist-filter]")),
        "no-session": Seen(f"{sessions}?q=zzz"),
        **{
            f"session-{name}": Seen(f"{sessions}{each.pk}/change/")
            for name, each in (("rejected", session), ("running", running), ("broken", broken), ("owing", owing))
        },
        "session-unfolded": Seen(f"{sessions}{session.pk}/change/", unfold_all),
        "session-asked-again": Seen(f"{sessions}{told.pk}/change/"),
        "session-history": Seen(f"{sessions}{session.pk}/history/"),
        "queue": Seen(bad),
        "queue-all": Seen(f"{bad}?state=all"),
        "queue-filters": Seen(bad, click("[aria-controls=changelist-filter]")),
        "queue-views": Seen(bad, unfold_all),
        "queue-keys": Seen(bad, keys("?")),
        "queue-selected": Seen(bad, click("#result_list tbody input[type=checkbox]")),
        "queue-empty": Seen(f"{bad}?q=zzz&assignee=mine"),
        "holders": Seen(f"{bad}holders/"),
        "bad-case-mine": Seen(f"{bad}{review.pk}/change/"),
        "bad-case-free": Seen(f"{bad}{free.pk}/change/"),
        "bad-case-late": Seen(f"{bad}{late.pk}/change/"),
        **{f"bad-case-{state.lower()}": Seen(f"{bad}{each.pk}/change/") for state, each in closed.items()},
        "bad-case-unfolded": Seen(f"{bad}{review.pk}/change/", unfold_all),
        "bad-case-keys": Seen(f"{bad}{review.pk}/change/", keys("?")),
        "bad-case-refused": Seen(f"{bad}{review.pk}/change/", press("button[value=resolve]")),
        "seconds": Seen(f"{feedback}/secondreview/"),
        "second-waiting": Seen(f"{feedback}/secondreview/{waiting.pk}/change/"),
        "second-refused": Seen(f"{feedback}/secondreview/{waiting.pk}/change/", press("button[value=judge]")),
        "second-differing": Seen(f"{feedback}/secondreview/{differing.pk}/change/"),
        "agreement": Seen(f"{feedback}/secondreview/agreement/"),
        "events": Seen(f"{feedback}/agentfeedback/"),
        "events-filters": Seen(f"{feedback}/agentfeedback/", click("[aria-controls=changelist-filter]")),
        "event": Seen(f"{feedback}/agentfeedback/{again.pk}/change/"),
        "training": Seen(f"{feedback}/agentfeedback/export/"),
        "training-refused": Seen(
            f"{feedback}/agentfeedback/export/",
            fill_and_press("#content button.desk-button--primary", first="2026-02-01", last="2026-01-01"),
        ),
        "reports": Seen(f"{feedback}/weeklyreport/"),
        "report": Seen(f"{feedback}/weeklyreport/{report.pk}/change/"),
        "error-500": Seen(f"{feedback}/weeklyreport/{faulty.pk}/change/", status=500),
    }


def _fail_at(faulty: Any, monkeypatch: Any) -> None:
    """Let the page of one report have a fault."""
    from feedback_app.admin import reports

    words_of = reports.words_of

    def words_or_fault(report: Any, **options: Any) -> Any:
        if report.pk == faulty.pk:
            raise FAULT
        return words_of(report, **options)

    monkeypatch.setattr(reports, "words_of", words_or_fault)


def _open_menu(page: Page) -> None:
    if page.viewport_size["width"] < 1280:
        _open_sidebar(page)
    click("button[aria-controls=desk-person]")(page)


def _open_sidebar(page: Page) -> None:
    """On a phone it is hidden; on a wide window the button folds it to a strip."""
    page.locator("button[aria-controls=nav-sidebar]:visible").first.click()
    page.wait_for_timeout(300)


def _cases(admin: Any, lead: Any) -> dict[str, Seen]:
    library = "/admin/cases_app/caselibrary/"
    of = {"diagnosis__query": "7?", "diagnosis__answer": ANSWER}
    cases = {status: CaseFactory(status=status, **of) for status in CaseStatus}
    flagged = CaseFactory(enriched=True, flagged_at=timezone.now(), **of)
    twin = CaseFactory(title="7?", **of)
    for text in ("1", "2\n3"):
        twin.refresh_from_db()
        content = {**content_to_edit(twin), "root_cause": text, "solution": "1 + 1\n4"}
        enrich_case(case_id=twin.pk, content=content, version=twin.version, reviewer=lead)
    page_of = {name: f"{library}{case.pk}/change/" for name, case in cases.items()}
    return {
        "library": Seen(f"{library}?queue=all"),
        "library-to-enrich": Seen(library),
        "library-views": Seen(library, unfold_all),
        "library-filters": Seen(f"{library}?queue=all", click("[aria-controls=changelist-filter]")),
        "library-keys": Seen(library, keys("?")),
        "library-empty": Seen(f"{library}?q=zzz"),
        **{f"case-{status.lower()}": Seen(address) for status, address in page_of.items()},
        "case-flagged": Seen(f"{library}{flagged.pk}/change/"),
        "case-suggested": Seen(page_of[CaseStatus.DRAFT], keys("0")),
        "case-keys": Seen(page_of[CaseStatus.DRAFT], keys("?")),
        "case-refused": Seen(page_of[CaseStatus.DRAFT], press("button[value=save_and_publish]")),
        "case-merge": Seen(f"{library}{flagged.pk}/merge/{twin.pk}/"),
        "case-merge-impossible": Seen(f"{library}{cases[CaseStatus.DRAFT].pk}/merge/{cases[CaseStatus.PUBLISHED].pk}/"),
        "case-versions": Seen(f"{library}{twin.pk}/versions/"),
        "case-no-versions": Seen(f"{library}{cases[CaseStatus.DRAFT].pk}/versions/"),
        "new-case": Seen(f"{library}add/"),
        "new-case-refused": Seen(f"{library}add/", press("button[value=create]")),
        "import": Seen(f"{library}import/"),
        "import-refused": Seen(f"{library}import/", press("#content button.desk-button--primary")),
        "categories": Seen("/admin/cases_app/faultcategory/"),
        "category": Seen("/admin/cases_app/faultcategory/CACHE/change/"),
        "new-category-refused": Seen("/admin/cases_app/faultcategory/add/", press("button[name=_save]")),
    }


def _jobs(admin: Any) -> dict[str, Seen]:
    jobs = "/admin/cases_app/bulkjob/"
    imported = prepare_import(
        name="1.jsonl",
        file=io.BytesIO(b'{"title": "1", "solution": "2"}\n{"title": "3", "fault_category": "4"}\n'),
        actor=admin,
    )
    made = {
        state: BulkJob.objects.create(action="case.retire", actor=admin, state=state, total=12)
        for state in (JobState.PREVIEW, JobState.RUNNING, JobState.DONE)
    }
    for number in range(3):
        BulkFailure.objects.create(job=made[JobState.DONE], object_id=f"{number}", reason=f"{number % 2}")
    return {
        "jobs": Seen(jobs),
        "job-import": Seen(f"{jobs}{imported.pk}/change/"),
        **{f"job-{state.lower()}": Seen(f"{jobs}{job.pk}/change/") for state, job in made.items()},
        "job-failures": Seen(f"{jobs}{made[JobState.DONE].pk}/change/", unfold_all),
    }


def _settings(admin: Any, lead: Any) -> dict[str, Seen]:
    rule, _ = create_rule(**data(name="1", kind="satisfaction_low", threshold=60, period_days=7, min_votes=5))
    mailed, _ = create_rule(**data(name="2", kind="queue_overdue", threshold=1, channel="email"))
    for number, state in enumerate(AlertState):
        owe(rule, rule.kind, [Occurrence(f"{number}", {})])
        AlertDelivery.objects.filter(state="waiting").update(state=state, failure="timeout", attempts=number)
    told_of = AlertDelivery.objects.get(state=AlertState.GIVEN_UP)
    key, _ = create_key(name="1", scopes=["ingest", "feedback", "read"], owner=lead)
    closed, _ = create_key(name="2", scopes=["read"], owner=None)
    revoke_key(key_id=closed.pk)
    SessionFactory.create_batch(2, user_ref="dk-2", query="1?", answer="2")
    SessionFactory(user_ref="dk-3", query="1?", answer="2")
    erase_subject(user_ref="dk-3", actor=lead)
    feedback, keys_of_api, users = "/admin/feedback_app", "/admin/sessions_app/apikey/", "/admin/auth/user/"
    group = Group.objects.get(name="Lead")
    primary = "#content button.desk-button--primary"
    return {
        "alerts": Seen(f"{feedback}/alertrule/"),
        "new-alert": Seen(f"{feedback}/alertrule/add/"),
        "new-alert-refused": Seen(f"{feedback}/alertrule/add/", press(primary)),
        "alert-secret": Seen(f"{feedback}/alertrule/{rule.pk}/change/", press("button[value=secret]")),
        "alert": Seen(f"{feedback}/alertrule/{rule.pk}/change/"),
        "alert-by-mail": Seen(f"{feedback}/alertrule/{mailed.pk}/change/"),
        "told": Seen(f"{feedback}/alertdelivery/"),
        "told-one": Seen(f"{feedback}/alertdelivery/{told_of.pk}/change/"),
        "modes": Seen(f"{feedback}/failuremode/"),
        "mode": Seen(f"{feedback}/failuremode/HALLUCINATION/change/"),
        "new-mode-refused": Seen(f"{feedback}/failuremode/add/", press("button[name=_save]")),
        "erasures": Seen(f"{feedback}/erasure/"),
        "erase": Seen(f"{feedback}/erasure/add/"),
        "erase-refused": Seen(f"{feedback}/erasure/add/", fill_and_press(primary, user_ref="0")),
        "erase-preview": Seen(f"{feedback}/erasure/add/", fill_and_press(primary, user_ref="dk-2")),
        "keys": Seen(keys_of_api),
        "new-key": Seen(f"{keys_of_api}add/"),
        "new-key-refused": Seen(f"{keys_of_api}add/", press(primary)),
        "new-key-made": Seen(f"{keys_of_api}add/", _make_key),
        "revoke": Seen(f"{keys_of_api}{key.pk}/revoke/"),
        "revoked-already": Seen(f"{keys_of_api}{closed.pk}/revoke/"),
        "users": Seen(users),
        "users-selected": Seen(users, click("#result_list tbody input[type=checkbox]")),
        "user": Seen(f"{users}{lead.pk}/change/"),
        "user-password": Seen(f"{users}{lead.pk}/password/"),
        "user-history": Seen(f"{users}{lead.pk}/history/"),
        "new-user-refused": Seen(f"{users}add/", press("button[name=_save]")),
        "delete-user": Seen(f"{users}{lead.pk}/delete/"),
        "groups": Seen("/admin/auth/group/"),
        "group": Seen(f"/admin/auth/group/{group.pk}/change/"),
        "delete-group": Seen(f"/admin/auth/group/{group.pk}/delete/"),
        "password": Seen("/admin/password_change/"),
        "password-refused": Seen(
            "/admin/password_change/",
            fill_and_press(
                "#content button[type=submit], #content input[type=submit]",
                old_password="1",
                new_password1="2",
                new_password2="3",
            ),
        ),
    }


def _make_key(page: Page) -> None:
    page.locator("[name=name]").fill("1")
    page.locator("[name=scopes]").first.check()
    press("#content button.desk-button--primary")(page)


def _doors() -> dict[str, Seen]:
    """Where people stand who are not let in, or not there; and what needs nobody to sign in."""
    samples = _samples(SAMPLES)
    for language in ("en", "zh-hans", "ru"):
        sample = next(each for each in samples.values() if each.language == language)
        SessionFactory(session_id=sample.session_id, query="18?", answer="19")
    return {
        "login": Seen("/admin/login/", by="stranger"),
        "login-refused": Seen(
            "/admin/login/",
            fill_and_press("#login-form button[type=submit]", username="1", password="2"),
            by="stranger",
        ),
        "login-without-cookies": Seen("/admin/login/", forget_cookies, by="stranger"),
        "logged-out": Seen("/admin/", _log_out, by="nobody"),
        "no-rights-overview": Seen("/admin/", by="nobody"),
        "error-400": Seen(f"/admin/login/?{'a=&' * 1100}", by="stranger", status=400),
        "error-403": Seen("/admin/auth/user/", by="nobody", status=403),
        "error-404": Seen("/nothing", by="stranger", status=404),
        "gone": Seen("/admin/feedback_app/badcasereview/0/change/"),
        "demo": Seen("/demo", by="stranger"),
        "api": Seen("/api/docs", lambda page: page.locator(".opblock").first.wait_for(), by="stranger"),
    }


def _log_out(page: Page) -> None:
    _open_menu(page)
    press("#logout-form button")(page)
