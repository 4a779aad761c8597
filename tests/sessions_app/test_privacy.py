"""Personal data in text: what goes, what stays, in any language, in linear time."""

from __future__ import annotations

import json
import random
import time
from collections.abc import Iterator
from typing import Any

import phonenumbers
import pytest
from django.test import override_settings
from hypothesis import given
from hypothesis import strategies as st

from sessions_app.privacy import KINDS, anonymise, anonymise_json, anonymise_text, fingerprint, personal_data, pseudonym

# -- the design's own example ----------------------------------------------------------------------------------------


def test_the_designs_own_example():
    record = {
        "session_id": "sess-abc123",
        "payload": {"corrected": "Contact me at jane@example.com or 555-123-4567"},
    }
    assert anonymise(record) == {
        "session_id": pseudonym("sess-abc123"),
        "payload": {"corrected": "Contact me at [EMAIL] or [PHONE]"},
    }
    assert record["payload"]["corrected"].endswith("555-123-4567")  # the record itself is left alone


def test_the_sessions_id_becomes_16_characters_that_need_the_key():
    assert len(pseudonym("sess-abc123")) == 16
    assert pseudonym("sess-abc123") == pseudonym("sess-abc123") != pseudonym("sess-abc124")
    assert len(fingerprint("sess-abc123")) == 64
    assert pseudonym("sess-abc123") not in fingerprint("sess-abc123")
    with override_settings(PRIVACY_KEY="another"):
        other = pseudonym("sess-abc123")
    assert other != pseudonym("sess-abc123")


# -- what goes -------------------------------------------------------------------------------------------------------

GONE = {
    # e-mail
    "write to jane.doe+test@mail.example.co.uk, please": "write to [EMAIL], please",
    "请联系jane@example.com谢谢": "请联系[EMAIL]谢谢",
    "пишите на ivan.petrov@example.ru.": "пишите на [EMAIL].",
    "почта@пример.рф": "[EMAIL]",
    "请аа@аа.рф请бб@аа.рф请": "请[EMAIL]请[EMAIL]请",
    "Спасибо. 13812345678": "Спасибо. [PHONE]",
    "用户 jane＠example．com": "用户 [EMAIL]",
    "https://x.example/?email=jane%40example.com&page=2": "https://x.example/?email=[EMAIL]&page=2",
    "<jane@example.com>": "<[EMAIL]>",
    "O'Brien: o'brien@example.ie": "O'Brien: [EMAIL]",
    # phones of Russia
    "Звоните +7 (912) 345-67-89 после 18:00": "Звоните [PHONE] после 18:00",
    "8 (495) 123-45-67": "[PHONE]",
    "(495) 123-45-67": "[PHONE]",
    "8-800-555-35-35": "[PHONE]",
    "8 800 555 35 35": "[PHONE]",
    "мой номер 89123456789, жду": "мой номер [PHONE], жду",
    "8(912)345-67-89/8(495)123-45-67": "[PHONE]/[PHONE]",
    "тел. 123-45-67": "тел. [PHONE]",
    "моб.: 9123456789": "моб.: [PHONE]",
    # phones of China
    "我的手机是13812345678，谢谢": "我的手机是[PHONE]，谢谢",
    "13812345678": "[PHONE]",
    "138-1234-5678": "[PHONE]",
    "电话 138 1234 5678": "电话 [PHONE]",
    "+86 138 1234 5678": "[PHONE]",
    "0086 138 1234 5678": "[PHONE]",
    "86-13812345678": "[PHONE]",
    "请拨打010-62345678": "请拨打[PHONE]",
    "写信或打电话(138-1234-5678)": "写信或打电话(138-1234-5678)".replace("138-1234-5678", "[PHONE]"),
    "(021) 62345678": "[PHONE]",
    "400-820-8820": "[PHONE]",
    "１３８１２３４５６７８": "[PHONE]",
    # phones of North America and elsewhere
    "(555) 123-4567": "[PHONE]",
    "212.555.4567": "[PHONE]",
    "+1 212 555 4567": "[PHONE]",
    "1-800-555-0199": "[PHONE]",
    "call me at 2125554567": "call me at [PHONE]",
    "phone:555-1234": "phone:[PHONE]",
    "+44 20 7946 0958 or +49 30 1234567": "[PHONE] or [PHONE]",
    "took 42 s; 555-123-4567": "took 42 s; [PHONE]",
    # keys
    "Authorization: Bearer abcDEF123456ghiJKL789": "Authorization: Bearer [TOKEN]",
    "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.dBjftJeZ4CVP": "[TOKEN]",
    "dk_Zm9vYmFyYmF6cXV4Zm9vYmFyYmF6cXV4MTIzNDU2Nzg5": "[API_KEY]",
    "key sk-proj-a1B2c3D4e5F6g7H8i9J0": "key [API_KEY]",
    "AKIAIOSFODNN7EXAMPLE": "[API_KEY]",
    "ghp_abcdefghijklmnopqrstuvwxyz0123456789": "[API_KEY]",
    "mysql://root:s3cret@db.example.com:3306/x": "mysql://[CREDENTIALS]@db.example.com:3306/x",
    "password=Tr0ub4dor next": "password=[SECRET] next",
    "пароль: Qwerty123": "пароль: [SECRET]",
    "密码：abc12345。": "密码：[SECRET]。",
    "-----BEGIN RSA PRIVATE KEY-----\nMIIEpAIBAAKCAQEA\n-----END RSA PRIVATE KEY-----": "[PRIVATE_KEY]",
    # documents and cards
    "身份证11010519491231002X。": "身份证[ID_CARD]。",
    "СНИЛС 112-233-445 95": "СНИЛС [ID_CARD]",
    "ИНН 7707083893": "ИНН [ID_CARD]",
    "паспорт 4509 123456": "паспорт [ID_CARD]",
    "SSN 219-09-9999": "SSN [ID_CARD]",
    "4111 1111 1111 1111": "[BANK_CARD]",
    "4111 1111 1111 1111 12/27": "[BANK_CARD] 12/27",
    "5555555555554444 123": "[BANK_CARD] 123",
    "карта 2200-0000-0000-0053": "карта [BANK_CARD]",
    "卡号6222021234567890128": "卡号[BANK_CARD]",
    "378282246310005": "[BANK_CARD]",
}


@pytest.mark.parametrize(("text", "expected"), GONE.items(), ids=range(len(GONE)))
def test_what_points_to_a_person_goes(text, expected):
    assert anonymise_text(text) == expected
    assert anonymise_text(expected) == expected
    assert personal_data(text)
    assert personal_data(expected) == []


def test_what_was_found_is_told_once():
    text = "jane@example.com, john@example.com, 555-123-4567, password=Tr0ub4dor"
    assert personal_data(text) == ["[SECRET]", "[EMAIL]", "[PHONE]"]
    assert personal_data("The pool is exhausted.") == []


# -- what stays ------------------------------------------------------------------------------------------------------

KEPT = """\
1700000000
1700000000123
2024-01-15 10:30:45,123
2024-01-15T10:30:45+0800
2024-01-15T10:30:45.123456789Z
20240115103045
Mon Jan 15 10:30:45 2024 +0300
10.0.0.1:5432
192.168.100.200
89.123.123.123 is an address of the net
138.123.123.12
2001:db8:85a3::8a2e:370:7334
00:1a:2b:3c:4d:5e
deadbeef12345678
0x7fff12345678
4bf92f3577b34da6a3ce929d0e0e4736
123e4567-e89b-12d3-a456-426614174000
00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01
ORA-00060
SQLSTATE 40001
MySQL 1213 (HY000)
ERR-555-123
order 20240115-0001-5678
pid 1234567
latency 1234567.89 ms
8.9123456789
138.12345678
84 951 234 567
1,234,567,890
memory 13812345678 bytes
内存使用13812345678字节
时间戳 17000000001
память 89123456789 байт
заказ 89123456789
13812345678\t/var/lib
  10  212 555 4567  3
172800000 86400000 3600000
procs 5432 5433 5434 5435
1000-2000
v1.2.3.4567
seconds=13812345678
lsn 0/89123456789
[13812345.678901] usb 1-1
UID 1001 GID 1001
2125554567
0.95 0.99 0.999
user@1000.service
node@v4.8.0
npm@2.15.11
@Override
git@localhost
image@sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08
pk_orders_by_customer_identifier
password: required
Bearer authentication_is_required
secret_key_base is not set
4111 1111 1111 1112
11010519491231002
1234567890123456
паспорт системы 2024
ИНН 7707083894
token count 123456789012345678
""".splitlines()


@pytest.mark.parametrize("text", KEPT)
def test_figures_ids_times_and_codes_stay(text):
    assert anonymise_text(text) == text


def _real_lines(shared_data) -> Iterator[str]:
    for path in sorted(shared_data.rglob("*.txt")):
        yield from path.read_text("utf-8", errors="replace").splitlines()
    for line in (shared_data / "dbot_sessions.jsonl").read_text("utf-8").splitlines():
        for text in _texts(json.loads(line)):
            yield from text.splitlines()


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list):
        for item in value.values() if isinstance(value, dict) else value:
            yield from _texts(item)


def test_nothing_changes_in_real_logs(shared_data):
    """They were read through by eye: the few addresses in them stand in other files."""
    lines = [line for line in _real_lines(shared_data) if any(char.isdigit() for char in line)]
    assert len(lines) > 2000
    assert [line for line in lines if anonymise_text(line) != line] == []


# -- whatever is planted ---------------------------------------------------------------------------------------------

WORDS = {
    "en": ["please", "the pool is exhausted,", "restart order-service;", "I waited", "thanks.", "Why", "(see above)"],
    "ru": ["пожалуйста,", "пул исчерпан;", "перезапустите сервис", "спасибо.", "почему", "(см. выше)", "ошибка"],
    "zh": ["请", "连接池已耗尽，", "重启服务；", "谢谢。", "为什么", "（见上文）", "我的号码是"],
}
_LOCAL = st.from_regex(r"[a-z0-9]([a-z0-9._%+-]{0,20}[a-z0-9])?", fullmatch=True)
_CYRILLIC = st.text("абвгдежзиклмнопрстуфхцчшэюя", min_size=2, max_size=12)
ADDRESSES = st.one_of(
    st.builds("{}@{}.{}".format, _LOCAL, st.from_regex(r"[a-z][a-z0-9-]{0,20}[a-z0-9]", fullmatch=True),
              st.sampled_from(["com", "co.uk", "ru", "com.cn", "museum"])),
    st.builds("{}@{}.рф".format, _CYRILLIC, _CYRILLIC),
)  # fmt: skip


def _number(region: str, national: str) -> bool:
    return phonenumbers.is_valid_number(phonenumbers.parse(national, region))


def _digits(pattern: str) -> st.SearchStrategy[str]:
    return st.from_regex(pattern, fullmatch=True).map(lambda text: text.translate(_ASCII))


_ASCII = {ord(char): str(value) for value, char in enumerate("0123456789")}
_RU = _digits(r"9[0-9]{9}|(?:495|812|383)[0-9]{7}").filter(lambda number: _number("RU", "8" + number))
_CN = _digits(r"1(?:3[0-9]|5[0-35-9]|8[0-9])[0-9]{8}").filter(lambda number: _number("CN", number))
_US = _digits(r"(?:212|415|650|305)[2-9][0-9]{6}").filter(lambda number: _number("US", number))


def _written(number: str, forms: list[str]) -> st.SearchStrategy[str]:
    return st.sampled_from(forms).map(lambda form: _fill(form, number))


def _fill(form: str, number: str) -> str:
    digits = iter(number)
    return "".join(next(digits) if char == "#" else char for char in form)


PHONES = st.one_of(
    _RU.flatmap(lambda number: _written(number, [
        "+7##########", "+7 ### ###-##-##", "+7 (###) ###-##-##", "+7-###-###-##-##", "8 (###) ###-##-##",
        "8 ### ### ## ##", "8-###-###-##-##", "8(###)#######", "7 ### ###-##-##", "(###) ###-##-##", "тел. 8##########",
    ])),
    _CN.flatmap(lambda number: _written(number, [
        "###########", "###-####-####", "### #### ####", "+86###########", "+86 ### #### ####", "+86-###########",
        "86-###-####-####", "0086 ### #### ####", "(+86)###########", "电话：###########", "###.####.####",
    ])),
    _US.flatmap(lambda number: _written(number, [
        "###-###-####", "(###) ###-####", "(###)###-####", "###.###.####", "+1##########", "+1 (###) ###-####",
        "1-###-###-####", "+1-###-###-####", "### ### ####", "phone ##########",
    ])),
)  # fmt: skip


@st.composite
def planted(draw: Any) -> tuple[str, list[str]]:
    """Prose of one language with addresses and numbers between its words."""
    language = draw(st.sampled_from(list(WORDS)))
    space = "" if language == "zh" and draw(st.booleans()) else " "
    secrets = draw(st.lists(st.one_of(ADDRESSES, PHONES), min_size=1, max_size=4))
    pieces: list[str] = []
    for secret in secrets:
        before = draw(st.sampled_from(WORDS[language]))
        if language == "en" and secret.isdecimal():
            before = "call me at"  # a bare number in English prose could be any figure
        pieces += [before, secret if before.isascii() is False and space == "" else f" {secret} "]
    pieces.append(draw(st.sampled_from(WORDS[language])))
    return space.join(pieces), secrets


@given(planted())
def test_no_planted_address_or_number_survives(case):
    text, secrets = case
    cleaned = anonymise_text(text)
    for secret in secrets:
        assert secret not in cleaned
        figures = "".join(char for char in secret if char.isdigit())[-7:]
        if "@" not in secret:
            assert figures not in "".join(char for char in cleaned if char.isdigit())
        else:
            assert secret.partition("@")[2] not in cleaned
    assert anonymise_text(cleaned) == cleaned


@given(planted(), st.sampled_from(["payload", "userNote", "deep"]))
def test_nor_in_a_record(case, key):
    text, secrets = case
    record = {"session_id": "sess-1", key: [{"note": text}, {text: 1}], "value": 0.5, "consent": True, "none": None}
    cleaned = json.dumps(anonymise(record), ensure_ascii=False)
    assert not [secret for secret in secrets if secret in cleaned]
    assert anonymise(record)["value"] == 0.5
    assert anonymise(record)["consent"] is True


@given(st.text())
def test_any_text_is_taken_and_cleaned_once(text):
    cleaned = anonymise_text(text)
    assert anonymise_text(cleaned) == cleaned
    assert bool(personal_data(text)) == (cleaned != text)


# -- records ---------------------------------------------------------------------------------------------------------


def test_ids_told_under_their_names_become_pseudonyms_everywhere():
    record = {
        "sessionId": "incident-77",
        "turnId": "incident-77",
        "payload": {"question": "What of incident-77?", "user_ref": "u-5", "laterSessionId": "b-1", "other": "u-5"},
        "stars": 4,
    }
    assert anonymise(record) == {
        "sessionId": pseudonym("incident-77"),
        "turnId": pseudonym("incident-77"),
        "payload": {
            "question": f"What of {pseudonym('incident-77')}?",
            "user_ref": pseudonym("u-5"),
            "laterSessionId": pseudonym("b-1"),
            "other": "u-5",
        },
        "stars": 4,
    }


def test_a_short_session_id_is_not_sought_in_texts():
    assert anonymise({"session_id": "a", "text": "a banana"})["text"] == "a banana"


def test_the_name_of_a_field_tells_what_its_value_is():
    value = {
        "phone": 13812345678,
        "Phone_Number": "5551234567",
        "password": "x",
        "total_bytes": 13812345678,
        "tel": None,
    }
    assert anonymise_json(value) == {
        "phone": "[PHONE]",
        "Phone_Number": "[PHONE]",
        "password": "[SECRET]",
        "total_bytes": 13812345678,
        "tel": None,
    }


# -- time ------------------------------------------------------------------------------------------------------------

_RANDOM = random.Random(7)
REPEATED = {
    "letters": "a", "digits": "1", "digits apart": "1 ", "hyphens": "1-", "at": "@", "locals": "a@", "domains": "a@a.",
    "pluses": "+1", "spread plus": "+1 2 3 4 5 6 7 8 9 0 1 2 3 ", "brackets": "1(", "spaces": " ", "lines": "\n",
    "jwt": "eyJ", "sk": "sk-ab_", "password": "password=", "url": "://a:b", "bearer": "bearer ",
    "card": "4111 1111 1111 1112 ",
    "columns": " 212 555 4567", "phone word": "тел. 12-34-56 ", "pem": "-----BEGIN PRIVATE KEY-----" + "a" * 20,
    "chinese": "请联系张三的手机号码或者邮箱，磁盘使用率很高。", "wide": "１３８",
    "json": '{"a":"1234567","b":[1,2,3]},',
    "uuid": "8123-4567-8901-2345 ", "inn": "инн 1234567890 ", "percent": "a%40", "labels": "@a.",
}  # fmt: skip
MANY = {
    "mobiles": lambda: f"138{_RANDOM.randrange(10**8):08} ",
    "written": lambda: f"8 912 {_RANDOM.randrange(1000):03}-{_RANDOM.randrange(100):02}-11, ",
    "abroad": lambda: f"+{_RANDOM.randrange(10**11, 10**12)} ",
    "anything": lambda: "".join(_RANDOM.choice("0123456789 -.()+@:=") for _ in range(50)),
}
MEGABYTE = 1_000_000


def _cases() -> Iterator[Any]:
    for name, unit in REPEATED.items():
        yield pytest.param(unit * (MEGABYTE // len(unit)), id=name)
    for name, make in MANY.items():
        yield pytest.param("".join(make() for _ in range(MEGABYTE // len(make()))), id=name)


def _seconds(text: str) -> float:
    """Of the processor: what else runs on the machine does not count."""
    started = time.process_time()
    anonymise_text(text)
    return time.process_time() - started


@pytest.mark.parametrize("text", list(_cases()))
def test_a_megabyte_of_anything_takes_under_two_seconds_and_grows_linearly(text):
    whole = _seconds(text)
    assert whole < 2
    quarter = min(_seconds(text[: len(text) // 4]) for _ in range(2))
    assert whole < 8 * quarter + 0.1  # a square would take sixteen times as long


def test_every_kind_has_an_example():
    found = {mark for text in GONE for mark in personal_data(text)}
    assert found == {kind.mark for kind in KINDS}
