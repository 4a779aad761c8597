"""Which language somebody sees: the choice made before signing in stays."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

from tests.factories import PASSWORD, UserFactory

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]


@pytest.mark.parametrize("browser_language", ["zh-hans"])
def test_the_choice_made_before_signing_in_outlives_it_and_the_browser(new_context):
    UserFactory(username="rita", is_staff=True, role="Reviewer")
    context = new_context()
    page = context.new_page()
    page.goto("/admin/login/?next=/admin/metrics/")
    expect(page.get_by_role("button", name="登录")).to_be_visible()
    page.get_by_role("button", name="Русский").click()
    expect(page.locator("html")).to_have_attribute("lang", "ru")
    assert page.url.endswith("/admin/login/?next=/admin/metrics/")
    page.get_by_label("Имя пользователя").fill("rita")
    page.get_by_label("Пароль").fill(PASSWORD)
    page.get_by_role("button", name="Войти").click()
    expect(page.get_by_role("heading", name="Показатели")).to_be_visible()
    [cookie] = [each for each in context.cookies() if each["name"] == "django_language"]
    assert cookie["expires"] > 0  # not only for as long as the browser runs
    page.locator("button[aria-controls=desk-person]").click()
    page.get_by_role("button", name="Выйти").click()
    page.goto("/admin/")
    expect(page.get_by_role("button", name="Войти")).to_be_visible()
