"""The test bed itself."""

import pytest

from cases_app.models import FaultCategory
from cases_app.rules import objections_to_publication
from cases_app.services.enrichment import content_of
from tests.factories import CaseFactory, InvocationFactory, SessionFactory, TriageFactory, UserFactory


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("_round", [1, 2])
def test_seeds_survive_a_flush(_round):
    assert FaultCategory.objects.count() > 1
    assert UserFactory(role="Reviewer").has_perm("feedback_app.triage_badcasereview")


def test_scoring_runs_in_a_test(api, score_due):
    session = SessionFactory(owing=True)
    InvocationFactory(step__session=session, l0_hit=True)
    assert score_due() == 1
    assert api.get(f"/api/sessions/{session.session_id}").json()["evidenceScore"] == 65


def test_factories_make_valid_rows(db):
    assert CaseFactory().diagnosis.feedback == "useful"
    assert CaseFactory(manual=True).diagnosis is None
    assert objections_to_publication(content_of(CaseFactory(published=True))) == []
    assert TriageFactory().session.feedback == "not_useful"


def test_people_may_what_their_part_asks(reviewer, lead):
    assert reviewer.has_perm("feedback_app.triage_badcasereview")
    assert not reviewer.has_perm("feedback_app.assign_badcasereview")
    assert lead.has_perm("feedback_app.assign_badcasereview")


@pytest.mark.browser
@pytest.mark.django_db(transaction=True)
def test_a_browser_signs_in(signed_in, lead, screenshot):
    page = signed_in(lead)
    page.goto("/admin/")
    assert lead.username in page.content()
    screenshot(page, "index")
