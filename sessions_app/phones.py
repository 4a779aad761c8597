"""Phone numbers in text: shapes that people write, held against the numbering plans of the `phonenumbers` library.

The library's own search finds hundreds of "phones" on a page of logs, and its parser takes 30 µs a candidate, which a
text of nothing but candidates turns into half a minute. So here a candidate must look like what people write: it has a
`+`, or separators between its groups, or a word such as "phone" before it, or it is a mobile number in the middle of
prose. Only then its digits are matched with the plans, which the library keeps as regular expressions: 1 µs each.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from functools import cache
from typing import Any, NamedTuple

from phonenumbers import COUNTRY_CODE_TO_REGION_CODE
from phonenumbers.phonemetadata import PhoneMetadata

MIN_DIGITS, MAX_DIGITS = 7, 15

Span = tuple[int, int]


class Shape(NamedTuple):
    """One way to write a number. `find` gives the part of the match that is one, or None."""

    pattern: re.Pattern[str]
    find: Callable[[re.Match[str]], Span | None]


# -- numbering plans -------------------------------------------------------------------------------------------------

_KINDS = ("fixed_line", "mobile", "toll_free", "premium_rate", "shared_cost", "personal_number", "voip", "uan", "pager")


@cache
def _countries(calling_code: int) -> re.Pattern[str]:
    """What national numbers of this calling code look like, in all its regions, given out or not.

    Many write the national prefix after the code too: +44 (0)20.
    """
    known: Any = PhoneMetadata
    regions = COUNTRY_CODE_TO_REGION_CODE[calling_code]
    plans = [
        known.metadata_for_nongeo_region(calling_code) if region == "001" else known.metadata_for_region(region)
        for region in regions
    ]
    return _either((plan.general_desc for plan in plans), prefix="0?")


@cache
def _region(name: str) -> re.Pattern[str]:
    """The ranges of a region that are given out."""
    known: Any = PhoneMetadata
    plan = known.metadata_for_region(name)
    return _either(getattr(plan, kind) for kind in _KINDS)


def _either(descriptions: Iterable[Any], prefix: str = "") -> re.Pattern[str]:
    patterns = dict.fromkeys(each.national_number_pattern for each in descriptions if each)
    return re.compile(f"{prefix}(?:{'|'.join(f'(?:{pattern})' for pattern in patterns if pattern)})")


def _is_international(digits: str) -> bool:
    """Whether the digits after a `+` are a number of some country. No calling code begins another."""
    for length in (1, 2, 3):
        code = int(digits[:length])
        if code in COUNTRY_CODE_TO_REGION_CODE:
            return _countries(code).fullmatch(digits, length) is not None
    return False


# -- what stands around ----------------------------------------------------------------------------------------------

_WINDOW = 48
_STRONG = (
    r"tele?phone|phone|mobile|cell(?:phone)?|\btel\b|\bfax\b|whats ?app|viber|hotline|\bsms\b"
    r"|电话|手机|座机|热线|传真|致电|拨打|来电|微信"
    r"|телефон\w{0,3}|\bтел\b|моб(?:ильн\w{0,3})?\b|сотов\w{0,3}|факс\w{0,2}|в[ао]т?[сц]ап\w{0,3}|смс"
)
_WEAK = (
    r"\b(?:call|reach|ring|text|dial|contact)(?: (?:me|us|him|her|them|back|at|on)){1,2}"
    r"|联系|短信|号码|звон\w{0,6}|набер\w{0,4}|контакт\w{0,3}|связ\w{0,6}|пиш\w{0,4}|напиш\w{0,4}"
)
_SAYS_PHONE = re.compile(rf"(?i:{_STRONG}|{_WEAK})")
_SHORTEST_WORD = 2
_SAYS_PHONE_STRONGLY = re.compile(rf"(?i:{_STRONG})")
_KEY = re.compile(
    r"(?i)(?:.*(?:phone|mobile|cell)|tel|fax|msisdn|whatsapp|电话|手机|手机号|телефон)(?:number|no|号|号码)?"
)

_SAYS_FIGURE = re.compile(
    r"(?i:字节|内存|使用|占用|已用|容量|剩余|流量|时间戳|编号|订单|流水|单号|偏移|总数|数量|大小|耗时|序列号|主键|行数"
    r"|байт|память|памят|размер|номер заказа|заказ\w{0,2}|идентификатор|смещени\w|всего|\bid\b|№"
    r"|\b(?:pid|uid|offset|size|count|total|bytes|timestamp|order|ticket|serial|lsn|xid|seq)\b)[^\n]{0,8}\Z"
)
_UNIT = re.compile(
    r"[ \t]{0,2}(?i:bytes?|[KMGT]i?B|ms|us|ns|µs|s|sec|rows?|ops|%|次|条|行|个|秒|毫秒|微秒|字节|元"
    r"|байт\w{0,2}|[КМГТ]Б|мс|мкс|сек\w{0,4}|строк\w{0,2}|раз|руб\w{0,3}|шт)(?![A-Za-zА-Яа-я])"
)
_BLANKS = (" ", "\t", "|")
_ENDS_WORD = ':.)"»”-–—'
"""Says nothing alone: what counts is the script of the word before it."""
_ENDS_PART = frozenset("，。；：、！？（“”「」,;(（!?\n\r")


def _words_before(text: str, start: int) -> str:
    """What stands before on the same line, back to the last digit."""
    at = start
    stop = max(0, start - _WINDOW)
    while at > stop and not (text[at - 1].isdigit() or text[at - 1] == "\n"):
        at -= 1
    return text[at:start]


def _is_spoken_of(words: str, said: re.Pattern[str] = _SAYS_PHONE) -> bool:
    """Whether a word for a phone stands close before."""
    return len(words) >= _SHORTEST_WORD and said.search(words) is not None


def _is_in_table(text: str, span: Span, words: str) -> bool:
    """Whether other numbers stand beside it on its line: then spaces part columns, not groups of digits."""
    start, end = span
    beside = start - len(words) - 1
    after = text[end : end + 8]
    stands_after = after[:1] in _BLANKS and after.lstrip(" \t|")[:1].isdigit()
    stands_before = not words.strip(" \t|") and beside >= 0 and text[beside].isdigit()
    return stands_after or stands_before


def _is_in_prose(text: str, span: Span, words: str) -> bool:
    """Whether it stands among words of a script that machines do not write, or alone, and counts nothing."""
    start, end = span
    beside = start - len(words) - 1
    words = words.rstrip(" \t")
    after = text[end : end + 16]
    last = words[-1:] or (text[beside] if beside >= 0 else "\n")
    following = after.lstrip(" \t")[:1]
    if _UNIT.match(after) or _SAYS_FIGURE.search(words):
        return False
    if last in "\r\n":  # at the beginning of a line: of a list of numbers, or of a sentence, not of a table
        return not following or following in _ENDS_PART or (following.isalpha() and not following.isascii())
    if last in _ENDS_WORD:
        letter = words.rstrip(_ENDS_WORD + " ")[-1:]
        return letter.isalpha() and not letter.isascii()
    return last in _ENDS_PART or (last.isalpha() and not last.isascii())


def is_named(key: str) -> bool:
    """Whether the name of a field says that it holds a phone."""
    return _KEY.fullmatch(key[:_WINDOW]) is not None


def is_all_number(text: str) -> bool:
    """Whether a text is nothing but one number, however it is written."""
    return MIN_DIGITS <= len(_digits(text)) <= MAX_DIGITS and _ONLY_NUMBER.fullmatch(text) is not None


_NOT_DIGIT = re.compile("[^0-9]+")


def _digits(text: str) -> str:
    return _NOT_DIGIT.sub("", text)


# -- shapes ----------------------------------------------------------------------------------------------------------

_SEPARATOR = "[ \t\u00a0\u2007\u2009\u202f.\\-\u2010-\u2015\u2212]"
_HYPHEN = "[\\-\u2010-\u2015]"
_JOIN = f"(?:{_SEPARATOR}|[()]){{0,3}}"
_ONLY_NUMBER = re.compile(r"\s*\+?(?:[0-9() \t.\-\u00a0\u2010-\u2015]){7,32}\s*")
# What a number is not a part of. Patterns begin with a set of characters, which the engine looks for quickly, and say
# after it what must not stand before it.
_NEW = r"(?<![A-Za-z0-9_+#$@].)(?<![A-Za-z0-9]-.)(?<![0-9][.:].)"
_END = r"(?![0-9A-Za-z_]|[.\-:][0-9])"

_HAS_SEPARATOR = re.compile("[0-9][^0-9]+[0-9]")
_ONLY_SPACES = re.compile("[0-9 \t\u00a0\u2007\u2009\u202f]+")
_FIGURE = re.compile(
    r"[0-9]+[.,][0-9]+"  # a decimal
    r"|[0-9]{1,3}(?:[ .,\u00a0\u202f][0-9]{3})+"  # thousands
    r"|(?:[0-9]{1,3}\.){3}[0-9]{1,3}"  # an address of the net
    r"|(?:19|20)[0-9]{2}[.\-](?:0[0-9]|1[0-2])[.\-][0-9].*"  # a date
)


def _whole(match: re.Match[str]) -> Span:
    """The match, with the bracket that opens before it."""
    start, end = match.span()
    return (start - 1, end) if match.string[start - 1 : start] == "(" and ")" in match.group() else (start, end)


def _international(match: re.Match[str]) -> Span | None:
    """The longest beginning, at the border of a group, that is a number of the country whose code comes first."""
    text, start, end = match.string, match.start(), match.end()
    while True:
        digits = _digits(text[start:end])
        if len(digits) < MIN_DIGITS:
            return None
        if _is_international(digits) and not _FIGURE.fullmatch(text[start + 1 : end]):
            return start, end
        end = _without_last_group(text, start, end)


def _without_last_group(text: str, start: int, end: int) -> int:
    while end > start and text[end - 1].isdigit():
        end -= 1
    while end > start and not text[end - 1].isdigit():
        end -= 1
    return end


def _double_zero(match: re.Match[str]) -> Span | None:
    """00 in place of the `+`: in groups, or spoken of as a phone."""
    whole = match.group()
    if not _is_international(_digits(whole)[2:]) or _FIGURE.fullmatch(whole):
        return None
    is_said = _HAS_SEPARATOR.search(whole) or _is_spoken_of(_words_before(match.string, match.start()))
    return match.span() if is_said else None


def _national(region: str, *, trunk: str = "", is_mobile: bool = False) -> Callable[[re.Match[str]], Span | None]:
    """Checks a match by the plan of a region, after one of its trunk prefixes (a regular expression).

    Digits without a separator must be spoken of as a phone, or be a mobile number in prose.
    """
    plan = _region(region)
    prefix = re.compile(trunk)

    def find(match: re.Match[str]) -> Span | None:
        digits = _digits(match.group())
        begins = prefix.match(digits)
        if not begins or not plan.fullmatch(digits, begins.end()) or _FIGURE.fullmatch(match.group()):
            return None
        text, span = match.string, _whole(match)
        words = _words_before(text, span[0])
        if _is_spoken_of(words):
            return span
        if not _HAS_SEPARATOR.search(match.group()):
            return span if is_mobile and _is_in_prose(text, span, words) else None
        if _ONLY_SPACES.fullmatch(match.group()) and _is_in_table(text, span, words):
            return None
        return span

    return find


def _spoken_of(match: re.Match[str]) -> Span | None:
    """Any number in groups after a word for a phone."""
    words = _words_before(match.string, match.start())
    if not _is_spoken_of(words, _SAYS_PHONE_STRONGLY):
        return None
    whole = match.group()
    if not MIN_DIGITS - 1 <= len(_digits(whole)) <= MAX_DIGITS or _FIGURE.fullmatch(whole):
        return None
    return _whole(match)


_D = "[0-9]"

SHAPES: tuple[Shape, ...] = (
    # +7 912 345-67-89, +86 138 1234 5678, 00 86 10 …
    Shape(re.compile(rf"\+(?<![A-Za-z0-9_+].){_JOIN}[1-9](?:{_JOIN}{_D}){{6,14}}(?![0-9A-Za-z_])"), _international),
    Shape(re.compile(rf"0{_NEW}0{_JOIN}[1-9](?:{_JOIN}{_D}){{9,14}}{_END}"), _double_zero),
    # China: mobile, with and without the code of the country; area code; 400 and 800.
    Shape(
        re.compile(rf"1{_NEW}[3-9]{_D}(?:{_SEPARATOR}?{_D}){{8}}{_END}"),
        _national("CN", is_mobile=True),
    ),
    Shape(
        re.compile(
            rf"8{_NEW}6\)?{_JOIN}(?:1[3-9]{_D}(?:{_SEPARATOR}?{_D}){{8}}|0?{_D}{{2,3}}{_JOIN}{_D}{{3,4}}{_SEPARATOR}?{_D}{{4}}){_END}"
        ),
        _national("CN", trunk="860?", is_mobile=True),
    ),
    Shape(
        re.compile(rf"0{_NEW}{_D}{{2,3}}\)?{_SEPARATOR}{{0,2}}{_D}{{3,4}}{_SEPARATOR}?{_D}{{4}}{_END}"),
        _national("CN", trunk="0"),
    ),
    Shape(re.compile(rf"[48]{_NEW}00{_SEPARATOR}?{_D}{{3,4}}{_SEPARATOR}?{_D}{{3,4}}{_END}"), _national("CN")),
    # Russia: 8 (495) 123-45-67, 89123456789, (495) 123-45-67.
    Shape(
        re.compile(rf"[78]{_NEW}(?:{_JOIN}{_D}){{10}}{_END}"),
        _national("RU", trunk="[78]", is_mobile=True),
    ),
    Shape(
        re.compile(
            rf"[3489]{_NEW}{_D}{{2}}\)?{_SEPARATOR}{{0,2}}"
            rf"{_D}{{3}}(?:[ ]|{_HYPHEN}){_D}{{2}}(?:[ ]|{_HYPHEN}){_D}{{2}}{_END}"
        ),
        _national("RU"),
    ),
    # North America. A hyphen or brackets show what it is, also where such an area code was never given out.
    Shape(
        re.compile(
            rf"[2-9]{_NEW}{_D}{{2}}(?:(?<=\(...)\){_SEPARATOR}{{0,2}}|{_HYPHEN}){_D}{{3}}{_HYPHEN}{_D}{{4}}{_END}"
        ),
        _whole,
    ),
    Shape(
        re.compile(
            rf"1{_NEW}{_SEPARATOR}{{1,2}}\(?[2-9]{_D}{{2}}(?:\){_SEPARATOR}{{0,2}}|{_HYPHEN}){_D}{{3}}{_HYPHEN}{_D}{{4}}{_END}"
        ),
        _whole,
    ),
    Shape(
        re.compile(
            rf"1{_NEW}{_SEPARATOR}?\(?[2-9]{_D}{{2}}\)?{_SEPARATOR}{{0,2}}[2-9]{_D}{{2}}{_SEPARATOR}?{_D}{{4}}{_END}"
        ),
        _national("US", trunk="1"),
    ),
    Shape(
        re.compile(rf"[2-9]{_NEW}{_D}{{2}}\)?{_SEPARATOR}{{0,2}}[2-9]{_D}{{2}}{_SEPARATOR}?{_D}{{4}}{_END}"),
        _national("US"),
    ),
    # Whatever follows a word for a phone: local numbers, other countries.
    Shape(
        re.compile(rf"{_D}{_NEW}{_D}{{1,4}}\)?(?:{_SEPARATOR}{{1,2}}{_D}{{2,5}}){{1,5}}{_END}"),
        _spoken_of,
    ),
)
