"""Every page, as people see it who see little, no colours, or nothing: axe-core finds nothing serious."""

from __future__ import annotations

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Page, expect

from tests.browser.test_languages import addresses  # noqa: F401 - the fixture of pages of every kind

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


@pytest.mark.parametrize(("width", "scheme"), [(1280, "light"), (390, "dark")])
def test_no_page_shuts_anybody_out(width, scheme, addresses, signed_in, admin_user, screenshot):  # noqa: F811
    page = signed_in(admin_user, viewport={"width": width, "height": 900}, color_scheme=scheme)
    faults: dict[str, list[str]] = {}
    for name, address in addresses.items():
        page.goto(address)
        expect(page.locator("#content")).to_be_visible()
        if found := violations(page):
            faults[name] = found
        screenshot(page, f"{name}-{scheme}-{width}")
    assert faults == {}
