"""What speaks against giving a case to the agents."""

import pytest

from cases_app import rules
from cases_app.services import enrichment
from cases_app.services.enrichment import content_of
from sessions_app.errors import InvalidInputError
from tests.factories import CaseFactory, UserFactory

COMPLETE = {
    "fault_category": "CACHE",
    "error_code": "",
    "title": "Keys expire at once",
    "root_cause": "One TTL.",
    "solution": "Spread the TTLs.",
}


@pytest.mark.parametrize(
    ("changed", "fields"),
    [
        pytest.param({}, [], id="complete"),
        pytest.param({"fault_category": "GENERAL"}, ["fault_category"], id="general"),
        pytest.param({"root_cause": ""}, ["root_cause"], id="no-cause"),
        pytest.param({"solution": " \n\t"}, ["solution"], id="blank-solution"),
        pytest.param({"solution": "\u200b---\u2060"}, ["solution"], id="nothing-to-read"),
        pytest.param({"solution": "重启"}, [], id="chinese"),
        pytest.param({"solution": "Ask jane@example.com."}, ["solution"], id="address"),
        pytest.param(
            {"title": "请致电13812345678", "root_cause": "Bearer abcDEF123456ghi789"},
            ["title", "root_cause"],
            id="phone",
        ),
        pytest.param({"solution": "Restart 10.0.0.1 at 10:30:45; see ORA-00060"}, [], id="figures"),
        pytest.param({"title": "…", "root_cause": "?", "solution": "!"}, ["title", "root_cause", "solution"], id="all"),
    ],
)
def test_checks(changed, fields):
    assert [objection.field for objection in rules.objections_to_publication({**COMPLETE, **changed})] == fields


def test_what_exposes_somebody_is_told_by_its_kind_not_repeated():
    (objection,) = rules.objections_to_publication({**COMPLETE, "solution": "Ask jane@example.com or +7 912 345-67-89"})
    assert objection.text % objection.params == "It holds personal data, which agents would repeat: [EMAIL], [PHONE]."


@pytest.mark.django_db
def test_a_further_check_is_heard_by_every_way_to_publish(monkeypatch):
    def names_nobody(content):
        if "Rita" in content["solution"]:
            yield rules.Objection("solution", "It names %(name)s.", {"name": "Rita"})

    monkeypatch.setattr(rules, "PUBLICATION_CHECKS", (*rules.PUBLICATION_CHECKS, names_nobody))
    reviewer, told = UserFactory(), {**COMPLETE, "solution": "Ask Rita."}
    case = CaseFactory(status="ENRICHED", fault_category_id="CACHE", solution="Ask Rita.")
    published = CaseFactory(published=True)
    for publish in (
        lambda: enrichment.publish_case(case_id=case.pk, reviewer=reviewer),
        lambda: enrichment.enrich_and_publish_case(case_id=case.pk, content=told, version=0, reviewer=reviewer),
        lambda: enrichment.enrich_case(case_id=published.pk, content=told, version=0, reviewer=reviewer),
    ):
        with pytest.raises(InvalidInputError) as refusal:
            publish()
        assert refusal.value.errors == {"solution": ["It names Rita."]}
    case.refresh_from_db()
    assert (case.status, case.version) == ("ENRICHED", 0)
    enrichment.enrich_case(case_id=case.pk, content=told, version=0, reviewer=reviewer)  # what is not published may
    case.refresh_from_db()
    assert content_of(case) == told
