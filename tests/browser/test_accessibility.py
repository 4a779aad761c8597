"""Every page, as people see it who see little, no colours, or nothing: axe-core finds nothing serious."""

from __future__ import annotations

import io
from typing import Any

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Page, expect

from cases_app.services.importing import prepare_import
from feedback_app.models import SecondReview
from tests.browser.test_languages import addresses  # noqa: F401 - the fixture of pages of every kind
from tests.factories import CaseFactory, TriageFactory

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]

GRAVE = ("serious", "critical")
RULES = {"runOnly": ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "best-practice"], "resultTypes": ["violations"]}


def violations(page: Page) -> list[str]:
    """What axe-core calls serious or critical, with the first places of each."""
    found = Axe().run(page, options=RULES).response["violations"]
    return [
        f"{each['id']}: {' | '.join(node['html'][:160] for node in each['nodes'][:3])}"
        for each in found
        if each["impact"] in GRAVE
    ]


def further(reviewer: Any, lead: Any) -> dict[str, str]:
    """Pages that stand behind a button, or for few."""
    case, twin = (CaseFactory(title="The pool is exhausted", diagnosis__query="Why so slow?") for _ in range(2))
    review = TriageFactory(state="RESOLVED", failure_mode="HALLUCINATION")
    second = SecondReview.objects.create(
        review=review, state="DISAGREED", first_mode="HALLUCINATION", mode="INCOMPLETE", first_reviewer=reviewer,
        reviewer=lead,
    )  # fmt: skip
    job = prepare_import(name="cases.jsonl", file=io.BytesIO(b'{"title": "A", "solution": "B"}'), actor=lead)
    feedback, cases = "/admin/feedback_app", "/admin/cases_app"
    return {
        "case-merge": f"{cases}/caselibrary/{case.pk}/merge/{twin.pk}/",
        "case-versions": f"{cases}/caselibrary/{case.pk}/versions/",
        "case-history": f"{cases}/caselibrary/{case.pk}/history/",
        "import": f"{cases}/caselibrary/import/",
        "jobs": f"{cases}/bulkjob/",
        "job": f"{cases}/bulkjob/{job.pk}/change/",
        "categories": f"{cases}/faultcategory/",
        "holders": f"{feedback}/badcasereview/holders/",
        "training": f"{feedback}/agentfeedback/export/",
        "modes": f"{feedback}/failuremode/",
        "mode": f"{feedback}/failuremode/HALLUCINATION/change/",
        "seconds": f"{feedback}/secondreview/",
        "second": f"{feedback}/secondreview/{second.pk}/change/",
        "agreement": f"{feedback}/secondreview/agreement/",
        "erasures": f"{feedback}/erasure/",
        "erase": f"{feedback}/erasure/add/",
    }


@pytest.mark.parametrize(("width", "scheme"), [(1280, "light"), (390, "dark")])
def test_no_page_shuts_anybody_out(
    width, scheme, addresses, signed_in, admin_user, reviewer, lead, screenshot  # noqa: F811
):  # fmt: skip
    page = signed_in(admin_user, viewport={"width": width, "height": 900}, color_scheme=scheme)
    faults: dict[str, list[str]] = {}
    for name, address in (addresses | further(reviewer, lead)).items():
        assert page.goto(address).status == 200, address
        expect(page.locator("#content")).to_be_visible()
        if found := violations(page):
            faults[name] = found
        screenshot(page, f"{name}-{scheme}-{width}")
    assert faults == {}
