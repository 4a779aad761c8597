"""Which language a request is answered in, and how people choose theirs."""

from __future__ import annotations

import pytest
from django.conf import settings
from django.contrib.auth.models import Group, Permission
from django.core.management import CommandError, call_command
from django.test import Client
from django.utils.translation import override

from tests.factories import UserFactory

pytestmark = pytest.mark.django_db

LOG_IN = {"zh-hans": "登录", "ru": "Войти", "en": "Log in"}
BACKEND = "django.contrib.auth.backends.ModelBackend"


def signed_in(person, language: str = "") -> Client:
    client = Client(headers={"accept-language": language} if language else {})
    client.force_login(person, backend=BACKEND)
    return client


def html_of(response) -> str:
    return response.content.decode()


@pytest.mark.parametrize(
    ("asked", "spoken"),
    [
        ("", "zh-hans"),
        ("zh-CN,zh;q=0.9", "zh-hans"),
        ("ru-RU,ru;q=0.9,en;q=0.8", "ru"),
        ("en-GB", "en"),
        ("fr-FR,fr;q=0.9", "zh-hans"),
    ],
)
def test_the_login_page_speaks_what_the_browser_asks_for_else_chinese(client, asked, spoken):
    html = html_of(client.get("/admin/login/", headers={"accept-language": asked} if asked else {}))
    assert f'<html lang="{spoken}"' in html
    assert LOG_IN[spoken] in html


def test_whoever_chooses_a_language_on_the_login_page_stays_there_and_keeps_it(client):
    html = html_of(client.get("/admin/login/?next=/admin/metrics/", headers={"accept-language": "zh-CN"}))
    assert all(name in html for name in ("简体中文", "Русский", "English"))
    chosen = client.post("/i18n/setlang/", {"language": "ru", "next": "/admin/login/?next=/admin/metrics/"})
    assert (chosen.status_code, chosen["Location"]) == (302, "/admin/login/?next=/admin/metrics/")
    cookie = chosen.cookies[settings.LANGUAGE_COOKIE_NAME]
    assert (cookie.value, cookie["max-age"]) == ("ru", 365 * 24 * 3600)
    assert LOG_IN["ru"] in html_of(client.get(chosen["Location"], headers={"accept-language": "zh-CN"}))


def test_the_choice_outlives_signing_in_and_out(client, reviewer):
    client.post("/i18n/setlang/", {"language": "en", "next": "/admin/"})
    client.force_login(reviewer, backend=BACKEND)
    assert "Overview" in html_of(client.get("/admin/"))
    client.post("/admin/logout/")
    assert LOG_IN["en"] in html_of(client.get("/admin/login/"))


def test_a_language_that_does_not_exist_changes_nothing(client):
    answer = client.post("/i18n/setlang/", {"language": "xx", "next": "https://elsewhere.example/"})
    assert settings.LANGUAGE_COOKIE_NAME not in answer.cookies
    assert answer["Location"] == "/"


@pytest.mark.parametrize(
    ("language", "word"), [("zh-hans", "没有权限执行此操作"), ("ru", "Это не разрешено"), ("en", "This is not allowed")]
)
def test_who_may_not_see_a_page_is_told_so_in_their_language(language, word):
    answer = signed_in(UserFactory(is_staff=True), language).get("/admin/metrics/")
    assert answer.status_code == 403
    assert word in html_of(answer)


@pytest.mark.parametrize(("language", "word"), [("zh-hans", "此处没有内容"), ("ru", "Здесь ничего нет")])
def test_an_unknown_address_outside_the_api_is_a_page_in_the_language(client, language, word):
    answer = client.get("/nowhere", headers={"accept-language": language})
    assert answer.status_code == 404
    assert word in html_of(answer)


@pytest.mark.parametrize(
    ("language", "message"),
    [("", "会话 nope 不存在。"), ("ru", "Сессии nope нет."), ("en", "There is no session nope.")],
)
def test_the_api_refuses_in_the_language_of_the_caller(api, language, message):
    answer = api.get("/api/sessions/nope", headers={"accept-language": language} if language else {})
    assert (answer.status_code, answer.json()["code"], answer.json()["message"]) == (404, "not_found", message)


@pytest.mark.parametrize(
    ("language", "message"), [("zh-hans", "未知字段。"), ("ru", "Неизвестное поле."), ("en", "Unknown field.")]
)
def test_errors_of_fields_are_in_the_language_and_name_the_field(anonymous, language, message):
    answer = anonymous.post(
        "/api/feedback/events",
        {"sessionId": "s", "type": "thumbs", "value": "up", "payload": {"odd": 1}},
        format="json",
        headers={"accept-language": language},
    )
    assert (answer.status_code, answer.json()["errors"]) == (400, {"payload.odd": [message]})


@pytest.mark.parametrize("language", ["", "zh-CN", "ru"])
def test_exporters_of_traces_are_answered_in_english(anonymous, language):
    headers = {"accept-language": language} if language else {}
    answer = anonymous.post("/v1/traces", b"{", content_type="application/json", headers=headers)
    assert (answer.status_code, answer.json()["message"]) == (401, "This needs a key: Authorization: Bearer <key>")


def test_commands_speak_english_also_of_what_was_refused(tmp_path, capsys):
    file = tmp_path / "odd.jsonl"
    file.write_text('{"sessionId": "s", "status": "ODD"}\n{', "utf-8")
    with override("zh-hans"), pytest.raises(CommandError, match="2 of 2 lines were refused"):
        call_command("load_sessions", str(file))
    assert capsys.readouterr().err.isascii()


def test_roles_and_permissions_are_named_in_the_language(admin_user):
    # As a migration stores it; after the flush of a test with real transactions it is in that test's language.
    Permission.objects.filter(codename="enrich_caselibrary").update(name="Can enrich cases")
    client = signed_in(admin_user, "ru")
    assert "Проверяющий" in html_of(client.get("/admin/auth/group/"))
    page = html_of(client.get(f"/admin/auth/group/{Group.objects.get(name='Reviewer').pk}/change/"))
    assert "Диагностика | сессия | может видеть" in page
    assert "База случаев | случай | Может дополнять случаи" in page
    assert "Can view session" in Permission.objects.get(codename="view_diagnosissession").name  # as Django stores it
