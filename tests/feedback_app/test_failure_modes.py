"""Leads keep the list of failure modes; verdicts hold their codes."""

import pytest
from django.utils import translation

from feedback_app.models import FailureMode
from feedback_app.selectors.failure_modes import mode_choices, mode_names
from feedback_app.services import triage
from sessions_app.errors import InvalidInputError
from tests.factories import TriageFactory

pytestmark = pytest.mark.django_db

MODES = "/admin/feedback_app/failuremode/"
NEW = {"code": "RUDE", "name": "Rude", "name_zh": "无礼", "name_ru": "Грубо", "description": "", "position": "5"}


@pytest.fixture(autouse=True)
def _english(client):
    client.defaults["HTTP_ACCEPT_LANGUAGE"] = "en"


def test_there_are_ten_to_start_with_in_three_languages():
    assert list(mode_names())[:2] == ["WRONG_ROOT_CAUSE", "HALLUCINATION"]
    assert len(mode_names()) == 10
    for language, name in (("zh-hans", "幻觉"), ("ru", "Выдумка"), ("en", "Hallucination")):
        with translation.override(language):
            assert mode_names()["HALLUCINATION"] == name


def test_a_lead_adds_one_and_reviewers_choose_it(client, as_lead, reviewer):
    assert client.post(f"{MODES}add/", NEW).status_code == 302
    review = TriageFactory(state="IN_REVIEW", assignee=as_lead)
    page = client.get(f"/admin/feedback_app/badcasereview/{review.pk}/change/").content.decode()
    assert '<option value="RUDE">Rude</option>' in page
    triage.resolve(review_id=review.pk, reviewer=as_lead, failure_mode="RUDE")
    rows = client.get("/admin/feedback_app/badcasereview/?state=closed&failure_mode=RUDE")
    assert [row.mode_name for row in rows.context["cl"].result_list] == ["Rude"]


@pytest.mark.parametrize("code", ["NOTHING_WRONG", "rude", "1X", "<b>", "HALLUCINATION"])
def test_codes_that_would_confuse_are_refused(code, client, as_lead):
    assert client.post(f"{MODES}add/", NEW | {"code": code}).status_code == 200
    assert FailureMode.objects.count() == 10


def test_a_retired_one_is_offered_no_more_but_stays_where_it_stands(client, as_lead):
    judged = TriageFactory(state="IN_REVIEW", assignee=as_lead, failure_mode="INCOMPLETE")
    other = TriageFactory(state="IN_REVIEW", assignee=as_lead)
    form = NEW | {"code": "", "name": "Incomplete", "is_retired": "on"}
    assert client.post(f"{MODES}INCOMPLETE/change/", form).status_code == 302
    assert "INCOMPLETE" not in dict(mode_choices())
    assert "INCOMPLETE" in dict(mode_choices("INCOMPLETE"))
    with pytest.raises(InvalidInputError):
        triage.resolve(review_id=other.pk, reviewer=as_lead, failure_mode="INCOMPLETE")
    triage.resolve(review_id=judged.pk, reviewer=as_lead, failure_mode="INCOMPLETE", notes="Still so.")
    page = client.get(f"/admin/feedback_app/badcasereview/{judged.pk}/change/").content.decode()
    assert "<dd>Incomplete</dd>" in page
    assert client.post(f"{MODES}INCOMPLETE/delete/", {"post": "yes"}).status_code == 403


def test_reviewers_only_look(client, as_reviewer):
    assert client.get(MODES).status_code == 200
    assert client.post(f"{MODES}add/", NEW).status_code == 403
    assert client.post(f"{MODES}INCOMPLETE/change/", NEW).status_code == 403
