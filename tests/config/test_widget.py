"""The widget's script as it is served, and the demo page: what it shows, to whom, and what it must never show."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest
from django.conf import settings as django_settings
from django.core.management import call_command

from config import widget
from sessions_app.models import DiagnosisSession
from sessions_app.services.recording import record_sessions

SCRIPT = Path(django_settings.BASE_DIR / "static/widget/diagnosis-feedback.js")


# -- the script --------------------------------------------------------------------------------------------------------


def test_the_script_is_under_12_kb_as_it_stands():
    assert len(SCRIPT.read_bytes()) < 12_000


def test_the_script_needs_no_other_host_and_nothing_that_a_strict_policy_forbids():
    code = SCRIPT.read_text("utf-8")
    for forbidden in ("innerHTML", "outerHTML", "insertAdjacent", "document.write", "eval(", "Function(", ".style",
                      '"style"', 'setTimeout("', "import(", "http://", "cdn"):  # fmt: skip
        assert forbidden not in code, forbidden


def test_the_script_may_be_kept_for_an_hour_and_used_by_any_site(client):
    answer = client.get("/widget.js")
    assert answer.status_code == 200
    assert answer.content == SCRIPT.read_bytes()
    assert answer["Content-Type"] == "text/javascript; charset=utf-8"
    assert answer["Cache-Control"] == "public, max-age=3600, stale-while-revalidate=604800"
    assert answer["Access-Control-Allow-Origin"] == "*"
    assert answer["Cross-Origin-Resource-Policy"] == "cross-origin"
    assert answer["X-Content-Type-Options"] == "nosniff"
    assert "Set-Cookie" not in answer.headers
    assert "Cookie" not in answer.get("Vary", "")


def test_whoever_has_the_script_is_told_so_and_a_new_one_has_another_tag(client, tmp_path, monkeypatch):
    tag = client.get("/widget.js")["ETag"]
    again = client.get("/widget.js", headers={"if-none-match": tag})
    assert (again.status_code, again.content) == (304, b"")
    newer = tmp_path / "widget.js"
    newer.write_text("// newer")
    monkeypatch.setattr(widget, "SCRIPT", newer)
    assert client.get("/widget.js", headers={"if-none-match": tag}).content == b"// newer"


def test_the_script_travels_small(client):
    answer = client.get("/widget.js", headers={"accept-encoding": "gzip"})
    assert answer["Content-Encoding"] == "gzip"
    assert len(answer.content) < 6_000
    assert gzip.decompress(answer.content) == SCRIPT.read_bytes()
    assert "Accept-Encoding" in answer["Vary"]
    again = client.get("/widget.js", headers={"accept-encoding": "gzip", "if-none-match": answer["ETag"]})
    assert again.status_code == 304


def test_the_script_is_only_read(client):
    assert client.post("/widget.js").status_code == 405
    assert client.head("/widget.js").status_code == 200


# -- the demo ----------------------------------------------------------------------------------------------------------


@pytest.fixture
def samples(db):
    call_command("load_samples", verbosity=0)


@pytest.fixture
def shown(settings):
    settings.DEMO = True


def test_without_the_setting_there_is_no_demo(client, samples):
    assert django_settings.DEMO is False
    assert client.get("/demo").status_code == 404


@pytest.mark.parametrize(
    ("language", "title", "session_id"),
    [
        ("en", "Feedback widget", "576e336e-78b0-5b18-9315-76696a1a79a4"),
        ("ru", None, "26c55b0a-2524-56dc-8206-33cce82c2d50"),
        ("zh-hans", None, "e231abf7-2769-5ba3-9b45-01fd68f1324b"),
    ],
)
def test_the_demo_shows_the_newest_sample_in_the_readers_language(client, samples, shown, language, title, session_id):
    page = client.get("/demo", headers={"accept-language": language})
    assert page.status_code == 200
    body = page.content.decode()
    assert f'session-id="{session_id}"' in body
    assert f'<html lang="{language}">' in body
    assert title is None or f"<h1>{title}</h1>" in body


def test_the_demo_shows_nothing_of_a_real_session_not_even_of_one_with_a_samples_id(client, shown, db):
    told = [json.loads(line) for line in widget.SAMPLES.read_text("utf-8").splitlines()]
    secret = {"query": "SECRET question", "answer": "SECRET answer", "status": "SUCCESS"}
    record_sessions([{"session_id": "real", **secret}, {"session_id": told[0]["sessionId"], **secret}])
    body = client.get("/demo").content.decode()
    assert f'session-id="{told[0]["sessionId"]}"' in body
    assert "SECRET" not in body
    DiagnosisSession.objects.filter(session_id=told[0]["sessionId"]).delete()
    body = client.get("/demo").content.decode()
    assert "load_samples" in body
    assert "real" not in body
    assert "SECRET" not in body


def test_the_demo_lives_under_the_strictest_policy(client, samples, shown):
    page = client.get("/demo")
    policy = page["Content-Security-Policy"]
    assert "default-src 'none'" in policy
    assert "require-trusted-types-for 'script'" in policy
    assert "unsafe" not in policy
    body = page.content.decode()
    assert "style=" not in body
    assert "onclick" not in body
    assert body.count("<script") == 1


def test_the_demos_token_speaks_for_its_session_when_tokens_are_demanded(client, anonymous, samples, shown, settings):
    assert "token=" not in client.get("/demo").content.decode().replace("csrfmiddlewaretoken", "")
    settings.FEEDBACK_AUTH = "token"
    page = client.get("/demo")
    session, token = page.context["session"], page.context["token"]
    event = {"sessionId": session.session_id, "type": "star", "value": 4}
    assert anonymous.post("/api/feedback/events", event, format="json").status_code == 400
    assert anonymous.post("/api/feedback/events", {**event, "token": token}, format="json").status_code == 200


def test_the_demo_asks_the_database_once(client, samples, shown, django_assert_num_queries):
    with django_assert_num_queries(1):
        client.get("/demo")
