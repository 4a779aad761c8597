"""Erasing and exporting in the admin: for Leads, asked first, and never by an address."""

from __future__ import annotations

import html
import json
from unittest.mock import patch

import pytest
from django.contrib.admin.models import LogEntry
from django.urls import reverse

from feedback_app.models import Erasure
from sessions_app.models import DiagnosisSession
from tests.factories import FeedbackEventFactory, SessionFactory, StepFactory

pytestmark = pytest.mark.django_db

REF = "planted-ref-7731"
ERASURES = "/admin/feedback_app/erasure/"
ERASE = f"{ERASURES}add/"
EXPORT = "/admin/feedback_app/agentfeedback/export/"
EVENTS = "/admin/feedback_app/agentfeedback/"


@pytest.fixture(autouse=True)
def _english_pages(client):
    client.defaults["HTTP_ACCEPT_LANGUAGE"] = "en"


def text_of(response) -> str:
    return html.unescape(response.content.decode())


# -- erasing ---------------------------------------------------------------------------------------------------------


def test_a_lead_looks_first_and_erases_then(client, as_lead, caplog):
    StepFactory(session=SessionFactory(user_ref=REF))
    kept = SessionFactory(user_ref="another")
    assert ERASE in text_of(client.get(ERASURES))
    assert "Nothing is deleted yet" in text_of(client.get(ERASE))

    preview = client.post(ERASE, {"user_ref": REF})
    assert "<dt>Sessions</dt><dd>1</dd>" in text_of(preview)
    assert "<dt>Steps</dt><dd>1</dd>" in text_of(preview)
    assert "no-store" in preview["Cache-Control"]
    assert DiagnosisSession.objects.count() == 2

    with patch("feedback_app.services.erasure.compact_file", return_value=True):
        done = client.post(ERASE, {"user_ref": REF, "action": "erase"}, follow=True)
    assert "The person is erased." in text_of(done)
    assert "file of the database was busy" not in text_of(done)
    assert list(DiagnosisSession.objects.all()) == [kept]
    row = Erasure.objects.get()
    assert (row.actor, row.counts["agent_step"]) == (as_lead, 1)
    assert row.subject[:12] in text_of(done)
    for text in (text_of(done), caplog.text, *(str(entry.__dict__) for entry in LogEntry.objects.all())):
        assert REF not in text


def test_a_busy_file_is_said(client, as_lead):
    SessionFactory(user_ref=REF)
    with patch("feedback_app.services.erasure.compact_file", return_value=False):
        done = client.post(ERASE, {"user_ref": REF, "action": "erase"}, follow=True)
    assert "Run erase_subject again" in text_of(done)


@pytest.mark.parametrize(
    ("user_ref", "said"),
    [
        pytest.param("nobody", "Nothing is stored of this person.", id="unknown"),
        pytest.param("", "This field is required.", id="empty"),
        pytest.param("with space", "No session names anybody so.", id="no-id"),
        pytest.param("<script>alert(1)</script>", "Nothing is stored of this person.", id="hostile"),
    ],
)
@pytest.mark.parametrize("action", ["", "erase"])
def test_who_is_unknown_is_said_so(client, as_lead, user_ref, said, action):
    SessionFactory(user_ref=REF)
    answer = client.post(ERASE, {"user_ref": user_ref, "action": action})
    assert said in text_of(answer)
    assert "<script>alert" not in answer.content.decode()
    assert DiagnosisSession.objects.count() == 1
    assert not Erasure.objects.exists()


@pytest.mark.parametrize("role", ["anonymous", "nobody", "Reviewer", "Operator"])
def test_nobody_else_erases(client, sign_in, role):
    sign_in(role)
    SessionFactory(user_ref=REF)
    for answer in (
        client.get(ERASURES),
        client.get(ERASE),
        client.post(ERASE, {"user_ref": REF}),
        client.post(ERASE, {"user_ref": REF, "action": "erase"}),
    ):
        assert answer.status_code in (302, 403)
        assert answer.status_code == 403 or "login" in answer["Location"]
    assert DiagnosisSession.objects.count() == 1


def test_a_get_never_erases(client, as_lead):
    SessionFactory(user_ref=REF)
    client.get(ERASE, {"user_ref": REF, "action": "erase"})
    assert DiagnosisSession.objects.count() == 1


def test_the_record_cannot_be_changed(client, admin_user):
    client.force_login(admin_user, backend="django.contrib.auth.backends.ModelBackend")
    row = Erasure.objects.create(subject="f" * 64, counts={"diagnosis_session": 3})
    client.post(f"{ERASURES}{row.pk}/change/", {"subject": "0" * 64})
    assert client.post(f"{ERASURES}{row.pk}/delete/", {"post": "yes"}).status_code == 403
    client.post(ERASURES, {"action": "delete_selected", "_selected_action": [row.pk], "post": "yes"})
    assert Erasure.objects.get().subject == "f" * 64


# -- exporting -------------------------------------------------------------------------------------------------------


def test_a_lead_downloads_the_export_as_it_is_read(client, as_lead):
    session = SessionFactory(feedback="useful", query="jane@example.com asks", answer="So.")
    FeedbackEventFactory(session=session)
    assert f'href="{EXPORT}"' in text_of(client.get(EVENTS))
    assert "Personal data is taken out" in text_of(client.get(EXPORT))
    answer = client.post(EXPORT, {"content": "sft"})
    assert answer.streaming
    assert answer["Content-Disposition"].startswith('attachment; filename="feedback-sft-')
    assert [json.loads(line) for line in answer] == [{"prompt": "[EMAIL] asks", "completion": "So."}]
    assert reverse("admin:feedback_app_agentfeedback_export") == EXPORT


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ({"content": "xml"}, "Select a valid choice"),
        ({"content": "sft"}, "nothing to export"),
        ({"content": "sft", "first": "2026-02-01", "last": "2026-01-01"}, "begin before it ends"),
        ({"content": "sft", "first": "0001-01-01"}, "greater than or equal"),
        ({"content": "sft", "agent_id": "x" * 65}, "at most 64"),
    ],
)
def test_what_cannot_be_exported_is_said(client, as_lead, body, said):
    answer = client.post(EXPORT, body)
    assert not answer.streaming
    assert said in text_of(answer)


@pytest.mark.parametrize("role", ["anonymous", "nobody", "Reviewer", "Operator"])
def test_nobody_else_exports(client, sign_in, role):
    sign_in(role)
    SessionFactory(feedback="useful")
    for answer in (client.get(EXPORT), client.post(EXPORT, {"content": "sft"})):
        assert answer.status_code == (403 if role in ("Reviewer", "Operator") else 302)
    if role in ("Reviewer", "Operator"):
        assert EXPORT not in text_of(client.get(EVENTS))


def test_a_get_never_exports(client, as_lead):
    SessionFactory(feedback="useful")
    assert not client.get(EXPORT, {"content": "sft"}).streaming
