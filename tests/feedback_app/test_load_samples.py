"""`manage.py load_samples`: a few days of work that end today, whenever it is run, and only once."""

import json
from datetime import datetime, timedelta
from io import StringIO

import pytest
from django.conf import settings
from django.core.management import CommandError, call_command
from django.utils import timezone

from cases_app.models import CaseLibrary
from feedback_app.models import AgentFeedback, BadCaseReview
from sessions_app.models import AgentStep, DiagnosisSession, ToolInvocation
from tests.factories import SessionFactory

FOLDER = settings.BASE_DIR / "samples"
pytestmark = pytest.mark.django_db


def load(**options):
    output = StringIO()
    call_command("load_samples", stdout=output, **options)
    return output.getvalue()


def lines_of(name):
    return [json.loads(line) for line in (FOLDER / name).read_text("utf-8").splitlines()]


def everything():
    tables = (DiagnosisSession, AgentStep, ToolInvocation, AgentFeedback, CaseLibrary, BadCaseReview)
    return {table: list(table.objects.order_by("pk").values()) for table in tables}


def test_every_line_is_loaded():
    load()
    assert DiagnosisSession.objects.count() == len(lines_of("sessions.jsonl"))
    assert AgentFeedback.objects.count() == len(lines_of("feedback.jsonl"))
    assert not AgentFeedback.objects.filter(client_event_id=None).exists()
    assert CaseLibrary.objects.exists()
    assert BadCaseReview.objects.exists()


def test_the_newest_is_of_the_last_day_and_nothing_lies_ahead():
    load()
    moments = [
        *DiagnosisSession.objects.values_list("started_at", flat=True),
        *DiagnosisSession.objects.exclude(finished_at=None).values_list("finished_at", flat=True),
        *AgentStep.objects.exclude(started_at=None).values_list("started_at", flat=True),
        *AgentFeedback.objects.values_list("created_at", flat=True),
    ]
    assert timezone.now() - timedelta(days=1) < max(moments) <= timezone.now()


def test_all_move_by_the_same_whole_days():
    load()
    told = {line["sessionId"]: line for line in lines_of("sessions.jsonl")}
    shifts = set()
    for session in DiagnosisSession.objects.all():
        for column, name in (("started_at", "startedAt"), ("finished_at", "finishedAt")):
            if told[session.session_id].get(name):
                moment = datetime.fromisoformat(told[session.session_id][name])
                shifts.add(getattr(session, column) - moment)
    assert len(shifts) == 1
    assert shifts.pop() % timedelta(days=1) == timedelta(0)


def test_feedback_comes_shortly_after_its_session():
    load()
    for event in AgentFeedback.objects.select_related("session"):
        delay = event.created_at - (event.session.finished_at or event.session.started_at)
        assert timedelta(0) < delay < timedelta(hours=1)


def test_the_last_word_counts():
    load()
    changed = DiagnosisSession.objects.get(session_id="660e3da3-fc15-5f34-9f7e-7290ec2a605a")
    assert changed.feedback == "not_useful"
    assert CaseLibrary.objects.get(diagnosis=changed).status == "RETIRED"


def test_loading_again_changes_nothing_even_days_later(monkeypatch):
    load()
    before = everything()
    said = load()
    assert "0 new pieces of feedback" in said
    assert everything() == before
    later = timezone.now() + timedelta(days=3)
    monkeypatch.setattr("django.utils.timezone.now", lambda: later)
    load()
    assert everything() == before


def test_sessions_of_others_are_left_alone():
    SessionFactory()
    with pytest.raises(CommandError, match="--force"):
        load()
    assert DiagnosisSession.objects.count() == 1
    load(force=True)
    assert DiagnosisSession.objects.count() == 1 + len(lines_of("sessions.jsonl"))


def test_a_bad_line_is_named_and_nothing_is_loaded(tmp_path):
    (tmp_path / "sessions.jsonl").write_text('{"sessionId": "a", "startedAt": "2026-01-01T00:00:00Z"}\n{"oops": 1}\n')
    (tmp_path / "feedback.jsonl").write_text("")
    with pytest.raises(CommandError, match=r"sessions\.jsonl:2: oops"):
        load(folder=tmp_path)
    assert not DiagnosisSession.objects.exists()


def test_feedback_for_a_session_that_is_not_there_is_named(tmp_path):
    (tmp_path / "sessions.jsonl").write_text('{"sessionId": "a", "startedAt": "2026-01-01T00:00:00Z"}\n')
    (tmp_path / "feedback.jsonl").write_text('{"sessionId": "b", "feedback": "useful"}\n')
    with pytest.raises(CommandError, match=r"feedback\.jsonl:1: .*b"):
        load(folder=tmp_path)
    assert not DiagnosisSession.objects.exists()
