"""What points to a person, taken out of text: addresses, phone numbers, cards, keys. One table of kinds, `KINDS`.

Pure but for the key of the pseudonyms. Linear in the length of any text: each pattern either begins where the same run
of characters cannot begin again, or is bounded; what a pattern finds is looked at with a bounded window around it.

Names of people are not found: no table of patterns knows them. They go when the person is erased.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from django.conf import settings
from django.utils.crypto import salted_hmac

from sessions_app import phones

PSEUDONYM_CHARS = 16

Span = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Kind:
    """One kind of personal data. `find` gives the part of a match that goes; None where it is no such thing."""

    name: str
    mark: str
    pattern: re.Pattern[str]
    find: Callable[[re.Match[str]], Span | None] = lambda match: match.span()


def pseudonym(value: str) -> str:
    """16 hexadecimal characters that stand for an id: always the same here, and meaningless without the key."""
    return _keyed("sessions_app.privacy.pseudonym", value)[:PSEUDONYM_CHARS]


def fingerprint(value: str) -> str:
    """64 hexadecimal characters by which an id that is kept nowhere is known again."""
    return _keyed("sessions_app.privacy.fingerprint", value)


def anonymise_text(text: str) -> str:
    """The text with a mark such as `[EMAIL]` for each piece of personal data. Doing it again changes nothing."""
    seen = _narrow(text)
    for kind in KINDS:
        text, seen = _replace(kind, text, seen)
    return text


def personal_data(text: str) -> list[str]:
    """The marks of what a text holds, each once, such as `[EMAIL]`: what must be gone before others may read it."""
    found: dict[str, None] = {}
    seen = _narrow(text)
    for kind in KINDS:
        cleaned, seen = _replace(kind, text, seen)
        if cleaned != text:
            found[kind.mark] = None
            text = cleaned
    return list(found)


def anonymise(record: Mapping[str, Any]) -> dict[str, Any]:
    """A copy of a record without what points to a person; numbers, dates and other keys stay.

    Ids of a session, its conversation and its person become pseudonyms, wherever in the record they are told under
    their names, and the session's id also where a text repeats it.
    """
    own = next((record[name] for name in ("session_id", "sessionId") if isinstance(record.get(name), str)), "")
    return {_text(key, own): _value(key, value, own) for key, value in record.items()}


def anonymise_json(value: Any) -> Any:
    """A JSON value with every text in it anonymised, keys too. Ids stay, for rows refer to each other by them."""
    return _value("", value, None)


_ID_KEYS = {"turnid", "conversationid", "userref", "userid", "clienteventid", "diagnosisid", "traceid"}
_SECRET_KEYS = {
    "password", "passwd", "pwd", "secret", "clientsecret", "apikey", "accesstoken", "refreshtoken", "authorization",
    "cookie", "setcookie", "xapikey", "privatekey", "密码", "пароль",
}  # fmt: skip
MIN_OWN_ID_CHARS = 4
"""A shorter id of a session could stand in any text by chance."""


def _value(key: str, value: Any, own: str | None) -> Any:
    """`own` is the id of the record's session; None where ids stay."""
    name = key.replace("_", "").replace("-", "").lower()
    match value:
        case str():
            if value and _is_id_key(name):
                return value if own is None else pseudonym(value)
            return "[SECRET]" if value and name in _SECRET_KEYS else _told_under(name, value, own)
        case dict():
            return {_text(str(inner), own): _value(str(inner), item, own) for inner, item in value.items()}
        case list() | tuple():
            return [_value(key, item, own) for item in value]
        case int() if not isinstance(value, bool) and _is_id_key(name):
            return value if own is None else pseudonym(str(value))
        case int() if phones.is_named(name) and phones.MIN_DIGITS <= len(str(abs(value))) <= phones.MAX_DIGITS:
            return "[PHONE]"
    return value


def _is_id_key(name: str) -> bool:
    """Whether a field of this name holds the id of a session (`laterSessionId` too), a conversation or a person."""
    return name in _ID_KEYS or name.endswith("sessionid")


def _told_under(name: str, value: str, own: str | None) -> str:
    """A text whose key may say that it is a phone."""
    if phones.is_named(name) and phones.is_all_number(value):
        return "[PHONE]"
    return _text(value, own)


def _text(value: str, own: str | None) -> str:
    if own and len(own) >= MIN_OWN_ID_CHARS and own in value:
        value = value.replace(own, pseudonym(own))
    return anonymise_text(value)


_WIDE = str.maketrans("０１２３４５６７８９＠＋－．（）", "0123456789@+-.()")
_HAS_WIDE = re.compile("[０-９＠＋－．（）]")


def _narrow(text: str) -> str:
    """The text with the wide digits and signs of Chinese keyboards as ASCII: of the same length, to search in."""
    return text.translate(_WIDE) if _HAS_WIDE.search(text) else text


def _replace(kind: Kind, text: str, seen: str) -> tuple[str, str]:
    """Put the mark of a kind into a text and into the form of it that is searched."""
    spans = list(_spans(kind, seen))
    if not spans:
        return text, seen
    cleaned = _with_mark(text, spans, kind.mark)
    return cleaned, cleaned if seen is text else _with_mark(seen, spans, kind.mark)


def _with_mark(text: str, spans: list[Span], mark: str) -> str:
    parts: list[str] = []
    kept = 0
    for start, end in spans:
        parts += (text[kept:start], mark)
        kept = end
    return "".join((*parts, text[kept:]))


def _spans(kind: Kind, text: str) -> Iterator[Span]:
    """What is to go, from left to right. Of what the check refuses, the next beginning may lie inside."""
    at = kept = 0
    while match := kind.pattern.search(text, at):
        span = kind.find(match)
        if span is None or span[0] < kept:
            at = match.start() + 1
        else:
            yield span
            kept = at = max(span[1], match.start() + 1)


def _keyed(salt: str, value: str) -> str:
    return salted_hmac(salt, value, secret=settings.PRIVACY_KEY, algorithm="sha256").hexdigest()


# -- e-mail ----------------------------------------------------------------------------------------------------------

_MAX_LOCAL = 64
_LOCAL_SIGNS = frozenset("._%+-'~")
"""Others, which the standard allows too, stand between a name and its value far more often than in an address."""
_UNSPACED = "\u2e80"
"""From here on scripts that put no space between words: what stands before an address is a word, not a part of it."""
# From the sign on: labels of ASCII, of another script with spaces, of any; the last one begins with a letter.
_AT = re.compile(
    r"(?:@|%40)(?=[^\W_])"
    r"(?:(?:[A-Za-z0-9-]{1,63}\.){1,8}[A-Za-z][A-Za-z0-9-]{1,62}"
    r"|(?:[A-Za-z0-9\u00c0-\u1fff-]{1,63}\.){1,8}[A-Za-z\u00c0-\u1fff][A-Za-z0-9\u00c0-\u1fff-]{1,62}"
    r"|(?:[\w-]{1,63}\.){1,8}[^\W\d_][\w-]{1,62})"
)
_UNIT_FILES = frozenset(
    ("service", "socket", "target", "timer", "slice", "scope", "mount", "automount", "path", "device", "swap")
)
"""`user@1000.service` is a unit of systemd."""


def _is_local(char: str, *, is_spaced: bool) -> bool:
    return char in _LOCAL_SIGNS or (char.isalnum() and (not is_spaced or char < _UNSPACED))


def _email(match: re.Match[str]) -> Span | None:
    text, at = match.string, match.start()
    first = at - 1
    if first < 0:
        return None
    is_spaced = text[first] < _UNSPACED
    stop = max(0, at - _MAX_LOCAL)
    while first >= stop and _is_local(text[first], is_spaced=is_spaced):
        first -= 1
    kept = text[first + 1 : at].lstrip("._%+-'~")
    if not kept or match.group().rpartition(".")[2].lower() in _UNIT_FILES:
        return None
    return at - len(kept), match.end()


# -- keys and tokens -------------------------------------------------------------------------------------------------

# All patterns begin with a set of characters, which the engine looks for quickly; what must not stand before it is said
# after it, so that no run of characters is read twice.
_NEW_WORD = r"(?<![A-Za-z0-9_-].)"

_API_KEY = re.compile(
    rf"[dsprgxALhnySG0-9]{_NEW_WORD}(?:"
    r"(?<=d)k_[A-Za-z0-9_-]{20,}"  # ours
    r"|(?<=[spr])k[-_](?:[A-Za-z0-9]{2,12}[-_]){0,3}[A-Za-z0-9_-]{16,}"
    r"|(?<=g)(?:h[pousr]_[A-Za-z0-9]{20,}|ithub_pat_[A-Za-z0-9_]{20,}|l(?:pat|ptt|rt)-[A-Za-z0-9_-]{16,})"
    r"|(?<=g)lsa_[A-Za-z0-9_]{20,}"
    r"|(?<=x)(?:ox[abeoprs]-[A-Za-z0-9-]{10,}|app-[A-Za-z0-9-]{10,})"
    r"|(?<=A)(?:(?:KIA|SIA|ROA|IDA)[A-Z0-9]{16}|KID[A-Za-z0-9]{16,}|Iza[A-Za-z0-9_-]{30,}|QVN[A-Za-z0-9_-]{20,})"
    r"|(?<=L)TAI[A-Za-z0-9]{12,}"
    r"|(?<=h)(?:f_[A-Za-z0-9]{20,}|vs\.[A-Za-z0-9_-]{20,})"
    r"|(?<=n)pm_[A-Za-z0-9]{20,}"
    r"|(?<=p)ypi-[A-Za-z0-9_-]{20,}"
    r"|(?<=d)op_v1_[a-f0-9]{32,}"
    r"|(?<=y)a29\.[A-Za-z0-9_-]{20,}"
    r"|(?<=S)G\.[A-Za-z0-9_-]{16,}\.[A-Za-z0-9_-]{16,}"
    r"|(?<=[0-9])[0-9]{7,9}:AA[A-Za-z0-9_-]{30,}"  # bots of Telegram
    r")"
)
_BEARER = re.compile(r"[BbTt](?<!\w.)(?i:earer|asic|oken)[ \t]{1,8}(?P<value>[A-Za-z0-9._~+/=-]{16,})")
_JWT = re.compile(r"e(?<![A-Za-z0-9_.-].)yJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{4,}(?:\.[A-Za-z0-9_-]*)?")
_PRIVATE_KEY = re.compile(
    r"-----BEGIN [A-Z ]{0,24}PRIVATE KEY-----[A-Za-z0-9+/=\s\\]{16,8192}(?:-----END [A-Z ]{0,24}PRIVATE KEY-----)?"
)
_NAMED_SECRET = re.compile(
    r"[AaCcSsPpПп密口](?:(?<=[Aa])(?i:pi[_-]?key|ccess[_-]?token)|(?<=[Cc])(?i:lient[_-]?secret)"
    r"|(?<=[Ss])(?i:ecret[_-]?key)|(?<=[Pp])(?i:assword|asswd|wd)|(?<=[Пп])(?i:ароль)|(?<=密)码|(?<=口)令)"
    r"[\"']?[ \t]{0,3}(?:[=:：]|is|是|为)[ \t]{0,3}[\"']?(?P<value>[^\s\"',;，；。<>\[\]{}()]{6,128})"
)
_RANDOM = re.compile(r"(?=[^0-9]*[0-9])(?=[^A-Za-z]*[A-Za-z])")


def _key(match: re.Match[str]) -> Span | None:
    """Keys of `sk-` and the like are random; a name such as `pk_orders_by_customer_id` is not."""
    return match.span() if _RANDOM.match(match.group()) else None


def _secret(match: re.Match[str]) -> Span | None:
    return match.span("value") if _RANDOM.match(match["value"]) else None


def _value_alone(match: re.Match[str]) -> Span:
    return match.span("value")


# -- documents and cards ---------------------------------------------------------------------------------------------


_NOT_DIGIT = re.compile(r"[^0-9]+")


def _digits(text: str) -> list[int]:
    return [int(digit) for digit in _NOT_DIGIT.sub("", text)]


_MOD_11_WEIGHTS = (7, 9, 10, 5, 8, 4, 2, 1, 6, 3, 7, 9, 10, 5, 8, 4, 2)


def _chinese_id(match: re.Match[str]) -> Span | None:
    """GB 11643: region, date of birth, serial number, check character by ISO 7064 MOD 11-2."""
    number = match.group()
    total = sum(int(digit) * weight for digit, weight in zip(number, _MOD_11_WEIGHTS, strict=False))
    return match.span() if "10X98765432"[total % 11] == number[-1].upper() else None


def _snils(match: re.Match[str]) -> Span | None:
    """The last two digits check the nine before them."""
    *number, tens, ones = _digits(match.group())
    total = sum(digit * weight for digit, weight in zip(number, range(9, 0, -1), strict=True))
    return match.span() if total % 101 % 100 == tens * 10 + ones else None


_INN_10 = (2, 4, 10, 3, 5, 9, 4, 6, 8)
_INN_11 = (7, *_INN_10)
_INN_12 = (3, *_INN_11)


def _inn(match: re.Match[str]) -> Span | None:
    """Said to be one, and its check digits hold."""
    digits = _digits(match.group("value"))
    weights = (_INN_10,) if len(digits) == len(_INN_10) + 1 else (_INN_11, _INN_12)
    holds = all(sum(map(int.__mul__, digits, each)) % 11 % 10 == digits[len(each)] for each in weights)
    return match.span("value") if holds else None


_CARD_LENGTHS: tuple[tuple[re.Pattern[str], frozenset[int]], ...] = (
    (re.compile(r"4"), frozenset({16})),
    (re.compile(r"5[1-5]|222[1-9]|22[3-9]|2[3-6]|27[01]|2720"), frozenset({16})),
    (re.compile(r"220[0-4]"), frozenset({16, 19})),
    (re.compile(r"62|81"), frozenset({16, 17, 18, 19})),
    (re.compile(r"3[47]"), frozenset({15})),
    (re.compile(r"35(?:2[89]|[3-8])"), frozenset({16})),
    (re.compile(r"6011|65|64[4-9]"), frozenset({16})),
)
"""Issuers by the first digits, and how long their numbers are: Visa, Mastercard, Mir, UnionPay, American Express, …"""
_DOUBLED = (0, 2, 4, 6, 8, 1, 3, 5, 7, 9)


_SIXTEEN_DIGITS = re.compile(r"[0-9](?:[ -]?[0-9]){15}(?![0-9])")


def _card(match: re.Match[str]) -> Span | None:
    """All of it, or its first sixteen digits: what follows may be the month of expiry or the code on the back."""
    head = _SIXTEEN_DIGITS.match(match.group())
    for text in (match.group(), head.group() if head else ""):
        if _is_card(_NOT_DIGIT.sub("", text)):
            return match.start(), match.start() + len(text)
    return None


def _is_card(number: str) -> bool:
    if not any(len(number) in lengths and prefix.match(number) for prefix, lengths in _CARD_LENGTHS):
        return False
    digits = [int(digit) for digit in number]
    backwards = digits[::-1]
    luhn = sum(backwards[::2]) + sum(_DOUBLED[digit] for digit in backwards[1::2])
    return luhn % 10 == 0 and len(set(digits)) > 1


# What an id of a document or a card is not a part of.
_BARE = r"(?<![A-Za-z0-9_.+-].)"
_BARE_END = r"(?![A-Za-z0-9_]|[.-][0-9])"

KINDS: tuple[Kind, ...] = (
    # The name and password before the host of an address: `mysql://user:word@host`.
    Kind(
        "credentials",
        "[CREDENTIALS]",
        re.compile(r"://(?P<value>[^\s/:@\[\]'\"<>]{1,128}:[^\s/@\[\]'\"<>]{1,128})@"),
        _value_alone,
    ),
    Kind("token", "[TOKEN]", _BEARER, _secret),
    Kind("token", "[TOKEN]", _JWT),
    Kind("API key", "[API_KEY]", _API_KEY, _key),
    Kind("private key", "[PRIVATE_KEY]", _PRIVATE_KEY),
    Kind("secret", "[SECRET]", _NAMED_SECRET, _secret),
    Kind("e-mail", "[EMAIL]", _AT, _email),
    Kind(
        "ID card",
        "[ID_CARD]",
        re.compile(
            r"[1-9](?<![A-Za-z0-9_].)[0-9]{5}(?:18|19|20)[0-9]{2}(?:0[1-9]|1[0-2])(?:0[1-9]|[12][0-9]|3[01])"
            r"[0-9]{3}[0-9Xx](?![A-Za-z0-9_])"
        ),
        _chinese_id,
    ),
    Kind(
        "SNILS",
        "[ID_CARD]",
        re.compile(rf"[0-9]{_BARE}[0-9]{{2}}-[0-9]{{3}}-[0-9]{{3}}[ -][0-9]{{2}}{_BARE_END}"),
        _snils,
    ),
    Kind(
        "INN",
        "[ID_CARD]",
        re.compile(r"[ИиIi](?<!\w.)(?i:нн|nn)[\s:№#]{0,4}(?P<value>[0-9]{10}(?:[0-9]{2})?)(?![0-9])"),
        _inn,
    ),
    Kind(
        "passport",
        "[ID_CARD]",
        re.compile(
            r"[ПпPp护](?i:(?<=п)аспорт\w{0,3}|(?<=p)assport|(?<=护)照)"
            r"(?:[ \t]{1,2}(?i:рф|no\.?|number|серии|серия|номер)){0,2}[号码\s:：№#]{0,4}"
            r"(?P<value>[0-9]{2} ?[0-9]{2}[ №]{0,3}[0-9]{6}|[A-Z]{1,2}[0-9]{7,8})(?![A-Za-z0-9])"
        ),
        _value_alone,
    ),
    Kind(
        "social security number",
        "[ID_CARD]",
        re.compile(rf"[0-8]{_BARE}[0-9]{{2}}(?<!000)(?<!666)-(?!00)[0-9]{{2}}-(?!0000)[0-9]{{4}}{_BARE_END}"),
    ),
    Kind(
        "bank card",
        "[BANK_CARD]",
        re.compile(
            rf"[2-68]{_BARE}(?:[0-9]{{3}}(?:[ -]?[0-9]{{4}}){{3}}(?:[ -]?[0-9]{{1,3}})?"
            rf"|(?<=3)[47][0-9]{{2}}[ -]?[0-9]{{6}}[ -]?[0-9]{{5}}){_BARE_END}"
        ),
        _card,
    ),
    *(Kind("phone", "[PHONE]", shape.pattern, shape.find) for shape in phones.SHAPES),
)
"""In order: what may hold another comes before it. A new kind is a line here."""
