"""Error codes and alert names in the texts of a session: one table of patterns, and what only looks like a code.

Agents look cases up by the code, exactly; so a code is given as it stands in logs and alerts, but for a status of HTTP,
which people write in many ways.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise

from cases_app.suggestions.clues import MAX_CODE_CHARS, READ_CHARS, Clues, Found, Source, alert_names, strings_of

SUGGESTIONS = 3
MAX_FINDINGS = 200
EXCERPT_CHARS = 30

NAMED = 200
"""A name that the metadata gives as that of an alert, or as an error code, needs no pattern."""

SOURCES: Mapping[Source, int] = {
    Source.QUESTION: 100,
    Source.METADATA: 90,
    Source.TITLE: 40,
    Source.CAUSE: 30,
    Source.ANSWER: 20,
    Source.ERROR: 10,  # a tool that failed tells of the tool first
}
"""What was asked about comes before what an answer mentions, whatever the kind of code."""


@dataclass(frozen=True, slots=True)
class CodeSuggestion:
    """A code, and where it stands: with a few words around it where they are needed to see that it is one."""

    code: str
    weight: int
    evidence: tuple[Found, ...]


def rank_codes(clues: Clues) -> list[CodeSuggestion]:
    """The SUGGESTIONS codes that most likely name the fault, the likeliest first."""
    weights: dict[str, int] = {}
    evidence: dict[str, dict[Found, None]] = {}

    def note(code: str, weight: int, found: Found) -> None:
        code = code[:MAX_CODE_CHARS]
        weights[code] = max(weight, weights.get(code, 0))
        evidence.setdefault(code, {})[found] = None

    for place, name in enumerate(alert_names(clues.metadata)):
        note(name, NAMED - min(place, SUGGESTIONS), Found(name, Source.ALERT))
    told = "\n".join(text for _path, text in strings_of(clues.metadata))[:READ_CHARS]
    texts = [(source, text) for source, text in clues.texts() if source in SOURCES]
    for source, text in [*texts, (Source.METADATA, told)]:
        for match in _codes_of(text):
            if source == Source.METADATA and match.code in evidence:
                continue  # the name of the alert itself
            if match.weight > 0 or source == Source.QUESTION:
                note(match.code, SOURCES[source] + match.weight, Found(match.excerpt, source))
    ranked = sorted(weights, key=lambda code: -weights[code])[:SUGGESTIONS]  # stable: what came first stays first
    return [CodeSuggestion(code, weights[code], tuple(evidence[code])[:SUGGESTIONS]) for code in ranked]


# -- patterns --------------------------------------------------------------------------------------------------------

WEAK = -60
"""Of what is a code only by its looks: taken from the question alone, and after all else. Answers are full of names."""


@dataclass(frozen=True, slots=True)
class _Kind:
    """One kind of code. The group `code` is what it is; `form` says how it is written where that differs."""

    pattern: re.Pattern[str]
    weight: int
    is_code: Callable[[re.Match[str]], bool] = bool  # a match is true
    form: str = "{code}"


@dataclass(frozen=True, slots=True)
class _Match:
    code: str
    weight: int
    excerpt: str


def _codes_of(text: str) -> Iterator[_Match]:
    """Each code of each kind, at most MAX_FINDINGS of a kind; a place is read once, as the kind that weighs most."""
    taken = bytearray(len(text))
    for kind in KINDS:
        for count, match in enumerate(kind.pattern.finditer(text)):
            if count >= MAX_FINDINGS:
                break
            start, end = match.span("code")
            if any(taken[start:end]) or not kind.is_code(match):
                continue
            taken[start:end] = b"x" * (end - start)
            code = kind.form.format(**match.groupdict(""))
            whole = match.group() if len(match.group()) <= EXCERPT_CHARS else match.group("code")
            yield _Match(code, kind.weight, " ".join(whole.split())[:MAX_CODE_CHARS])


_SYMPTOM_WORDS = """
    ABORT ABORTED ABSENT BACKOFF BAD BLOCKED BROKEN BURN CONFLICT CORRUPT CORRUPTED CRASH CRASHED CRASHING CRASHLOOPING
    DEADLOCK DEGRADED DENIED DISCONNECTED DOWN ERR ERROR ERRORS EVICTED EXCEEDED EXCEPTION EXHAUSTED EXPIRED EXPIRING
    FAIL FAILED FAILING FAILURE FAILURES FATAL FILL FILLING FORBIDDEN FULL HIGH HUNG INCONSISTENT INSUFFICIENT INVALID
    KILLED LAG LEAK LIMITED LOOPING LOST LOW MISMATCH MISSING NOTFOUND NOTREADY OOM OOMKILLED OUTAGE OUTOF OVERCOMMIT
    OVERFLOW OVERLOAD OVERLOADED PANIC PENDING PRESSURE REFUSED REJECTED RESET RESTARTED RESTARTING RESTARTS SATURATED
    SATURATION SHORTAGE SLOW SPIKE SPLIT STALE STOPPED STUCK TERMINATED THROTTLED THROTTLING TIMEOUT TIMEOUTS TOOLONG
    TOOMANY UNAUTHORIZED UNAVAILABLE UNHEALTHY UNKNOWN UNREACHABLE UNSCHEDULABLE VIOLATION
"""
_SYMPTOMS = frozenset(_SYMPTOM_WORDS.split())
"""Words that make a code of a name."""

_PARAMETER_WORDS = """
    ADDR ADDRESS ARGS BYTES CHARSET CLASS COLLATION COLUMN COMMAND CONCAT CONFIG CONNECTIONS COUNT CPU DATABASE DATE
    DAYS DB DIR DOMAIN ENABLED ENDPOINT ENV FILE FLAGS FORMAT HEADER HOME HOST HOSTNAME ID INCREMENT INTERVAL IP KEY
    LEVEL LIST MAX MB MIN MODE MS NAME NAMESPACE NUMBER OPTIONS OPTS PASS PASSWORD PATH PATTERN POD POOL PORT PREFIX
    PROXY REGION REPLICAS RETRIES ROOT SCHEMA SECONDS SECRET SERVER SIZE STATUS TABLE TABLES TAG THREADS TIME
    TIMESTAMP TOKEN TTL TYPE URI URL USER USERNAME VALUE VARIABLES VERSION ZONE
"""
_PARAMETERS = frozenset(_PARAMETER_WORDS.split())
"""Last words of what is configured or asked of a database: HTTP_PROXY, MAX_CONNECTIONS, GROUP_CONCAT are no codes."""

_HUMPS = re.compile(r"[A-Z]+(?![a-z])|[A-Z][a-z0-9]*")


_NO_FAULTS = frozenset({"OnFailure", "ErrorHandler", "FailFast", "FailOver", "FailureThreshold"})


def _names_a_fault(match: re.Match[str]) -> bool:
    """CamelCase of which a word is a symptom: NodeCpuHigh and OutOfMemoryError, neither RabbitMQ nor HikariPool."""
    words = [word.upper() for word in _HUMPS.findall(match["code"])]
    pairs = [first + second for first, second in pairwise(words)]
    if not pairs or match["code"] in _NO_FAULTS or _is_set(match):
        return False
    return not (_SYMPTOMS.isdisjoint(words) and _SYMPTOMS.isdisjoint(pairs))


def _is_symptom(match: re.Match[str]) -> bool:
    words = match["code"].upper().split("_")
    return not _SYMPTOMS.isdisjoint(words) and words[-1] not in _PARAMETERS and not _is_set(match)


def _is_no_parameter(match: re.Match[str]) -> bool:
    words = match["code"].split("_")
    return _PARAMETERS.isdisjoint((words[-1],)) and not _is_set(match) and any(map(str.isalpha, words))


def _is_set(match: re.Match[str]) -> bool:
    """Whether it is a variable or a function: `$NAME`, `${NAME}`, `-DNAME`, `NAME=`, `export NAME`, `NAME(`."""
    text, (start, end) = match.string, match.span("code")
    return (
        text[max(0, start - 2) : start].endswith(("$", "${", "-", "@"))
        or text[end : end + 2].lstrip()[:1] in {"=", "("}
        or text[max(0, start - 7) : start] == "export "
    )


_NO_VENDORS = """
    AES BUG CVE CWE DIN EN GB GMT GPT INC ISO ISSUE JIRA MD OPS PR REQ RFC RSA SHA TASK TICKET UTC UTF WO X
"""
_NOT_VENDORS = frozenset(_NO_VENDORS.split())


def _is_vendor(match: re.Match[str]) -> bool:
    return match["code"].partition("-")[0] not in _NOT_VENDORS


_NOT_COUNTED = re.compile(
    r"\s?(?:(?:ms|us|s|sec|min|h|d|k|m|g|b|kb|mb|gb|tb|kib|mib|gib|qps|tps|rps|rpm|rows?|times?|lines?|requests?|records?|"
    r"messages?|users?|connections?|bytes?|items?|orders?|entries|files?|hours?|days?|seconds?|minutes?|threads?|"
    r"с|мс|раз|ч|кб|мб|гб)(?![a-zа-яё])|"
    r"%|℃|°|毫秒|秒|分|小时|天|行|条|次|个|万|亿|元|台|年|月|日|字节|"
    r"(?:строк|сек|мин|час|дн|тыс|млн|сообщени|запрос|запис|байт|штук|руб|пользовател|соединени))",
    re.IGNORECASE,
)
_ID_BEFORE = re.compile(
    r"(?:\b(?:port|pid|id|uid|ids|no|number|order|user|ticket|issue|session|trace|sku|shop|version|build|line|pod|job|"
    r"порт|заказ\w*|номер|строк\w*|id)|端口|编号|单号|订单|用户|工单|第|=|#|№|[-_/.:,\\@+*<>≥≤~¥$])\s{0,2}[:：=#]?\s{0,2}$",
    re.IGNORECASE,
)
_YEAR = re.compile(r"(?:19|20)\d\d(?:0[1-9]|1[0-2])(?:0[1-9]|[12]\d|3[01])")
_ROUND = re.compile(r"\d+?0{3,}|(\d)\1+")
LOOK_BACK = 16


def _is_not_counted(match: re.Match[str]) -> bool:
    return _NOT_COUNTED.match(match.string, match.end("code")) is None


def _is_bare_number(match: re.Match[str]) -> bool:
    """Neither a date, a port, an id, nor an amount: nothing is said to be counted, nothing names it."""
    digits, text = match["code"], match.string
    return not (
        _YEAR.fullmatch(digits)
        or _ROUND.fullmatch(digits)
        or not _is_not_counted(match)
        or _ID_BEFORE.search(text[max(0, match.start("code") - LOOK_BACK) : match.start("code")])
    )


_PORTS_AND_YEARS = re.compile(r"3306|33060|5432|6379|26379|27017|1433|1521|9092|50000|(?:19|20)\d\d")


def _is_no_port(match: re.Match[str]) -> bool:
    """`MySQL 1213` is an error; `Redis 6379` and `SQL Server 2019` are not, unless an error is spoken of."""
    return bool(match["said"]) or (_PORTS_AND_YEARS.fullmatch(match["code"]) is None and _is_bare_number(match))


def _kind(pattern: str, weight: int, *, form: str = "{code}", flags: int = 0, **checks: Callable[..., bool]) -> _Kind:
    return _Kind(re.compile(pattern, flags), weight, form=form, **checks)


# Boundaries: no letter or digit of these before or after. `\b` would see none between a Chinese word and a code.
_B, _E = r"(?<![A-Za-z0-9_])", r"(?![A-Za-z0-9_])"
_CAMEL = r"(?:[A-Z][a-z0-9]{1,40}[A-Z]|[A-Z]{2,20}[a-z])[A-Za-z0-9]{0,80}"
_CODE_WORD = (
    r"(?:error[ _-]?code|err(?:or)?[ _-]?no|error|code|alarm|错误码|错误代码|错误|报错|告警码|返回码|"
    r"код(?:ом)?(?: (?:ошибки|возврата))?|ошибк[аиуой]{1,2})"
)
_STATUS_WORD = (
    r"(?:http(?:s)?(?:/\d(?:\.\d)?)?(?: (?:status|code|error|код|ошибка))?(?: code)?|status(?: code)?|response code|"
    r"error|状态码|返回码?|响应码?|报错?|大量|出现|\bcode|\bкод(?:ом)?(?: (?:ответа|состояния))?|статус(?:ом)?|"
    r"ошибк[аиуой]{1,2}|ответ(?:ы|ом)?)"
)

KINDS: tuple[_Kind, ...] = (
    # vendors: Oracle and its kin, SQLSTATE, MySQL, DB2, MongoDB, WildFly, Windows
    _kind(
        rf"{_B}(?P<code>(?:ORA|TNS|PLS|PLW|RMAN|CRS|PRV[FG]|KUP|SP2|DIA|LRM|OCI|MY|GAUSS|OBE|DM|DPI|JBAS|BEA|CIB|CWW)-?\d{{3,6}}){_E}",
        40,
    ),
    _kind(rf"{_B}(?P<code>SQL\d{{4,5}}[NWC]){_E}", 40),
    _kind(rf"{_B}(?P<code>SQLSTATE)[ \[=:('`]{{1,3}}(?P<state>[0-9A-Z]{{5}}){_E}", 40, form="SQLSTATE {state}"),
    _kind(
        rf"{_B}(?P<vendor>MySQL|MariaDB|MSSQL|SQL Server|Sybase|DB2|MongoDB|Redis|Kafka|Oracle|PostgreSQL)"
        rf"[ :,]{{1,2}}(?P<said>(?:(?:error|errno|code|错误码|错误|报错|код|ошибка)[ :：]{{0,2}}){{0,2}})"
        rf"(?P<code>\d{{3,5}}){_E}(?![.:/]\d)",
        40,
        form="{vendor} {code}",
        flags=re.IGNORECASE,
        is_code=_is_no_port,
    ),
    _kind(rf"{_B}ERROR (?P<code>\d{{4}}) ?\([0-9A-Z]{{5}}\)", 38, form="MySQL {code}"),
    _kind(rf"{_B}(?P<code>E11000){_E}", 38),
    _kind(rf"{_B}(?P<code>0x[89A-F][0-9A-Fa-f]{{7}}){_E}", 36),
    _kind(rf"{_B}(?P<code>(?:NET::)?ERR_[A-Z][A-Z0-9]{{1,20}}(?:_[A-Z0-9]{{1,20}}){{0,6}}){_E}", 38),
    # what the C library calls an error
    _kind(
        rf"{_B}(?P<code>E(?:CONNREFUSED|CONNRESET|CONNABORTED|TIMEDOUT|PIPE|NOSPC|MFILE|NFILE|NOMEM|ACCES|PERM|NOENT|IO|"
        rf"ROFS|DQUOT|ADDRINUSE|HOSTUNREACH|NETUNREACH|AI_AGAIN)){_E}",
        36,
    ),
    _kind(
        rf"{_B}(?P<code>[A-Z][A-Z0-9]{{1,24}}(?:_[A-Z0-9]{{1,24}}){{1,7}}){_E}", 34, is_code=_is_symptom
    ),
    _kind(
        rf"{_B}(?P<code>{_CAMEL}){_E}",
        32,
        is_code=_names_a_fault,
    ),
    # CamelCase that somebody calls an alert needs no symptom
    _kind(
        rf"(?:\balert|\balarm|告警|报警|алерт|[\[【]P\d[\]】])[ :：\"'`“「]{{0,3}}(?P<code>(?-i:{_CAMEL})){_E}",
        32,
        flags=re.IGNORECASE,
    ),
    _kind(rf"{_B}(?P<code>{_CAMEL})[\"'`”」]? ?(?:is firing|fired|alert\b|告警|报警|触发|сработал)", 32),
    _kind(rf"{_B}(?P<code>[A-Z][A-Z0-9]{{1,7}}-\d{{4,6}})(?=[:：])", 30, is_code=_is_vendor),
    _kind(rf"{_B}(?P<code>[a-z]{{2,24}}(?:_[a-z]{{2,24}}){{1,5}}_exception){_E}", 28),
    # statuses of HTTP
    _kind(
        rf"{_STATUS_WORD}[ :：=`\"'“]{{0,3}}(?P<code>[45]\d\d){_E}(?![.,:]\d)",
        20,
        form="HTTP {code}",
        flags=re.IGNORECASE,
        is_code=_is_not_counted,
    ),
    _kind(
        rf"{_B}(?P<code>[45]\d\d) ?(?:Unauthorized|Forbidden|Not Found|Request Timeout|Conflict|Too Many Requests|"
        rf"Internal Server Error|Bad Gateway|Service Unavailable|Gateway Time-?out|Bad Request|错误|响应|状态码)",
        20,
        form="HTTP {code}",
        flags=re.IGNORECASE,
    ),
    _kind(
        rf"(?:exit(?:s|ed)?(?: with)?[ _-](?:code|status)|退出码|"
        rf"код(?:ом)? (?:выхода|завершения))[ :：=`]{{0,3}}(?P<code>\d{{1,3}}){_E}",
        19,
        form="exit code {code}",
        flags=re.IGNORECASE,
    ),
    # numbers: said to be codes, then those of which nothing else is said
    _kind(
        rf"{_CODE_WORD}(?:[ :：=#`\"'“(\[]{{1,4}}|(?<=[码误错]))(?P<code>\d{{4,9}}){_E}(?![.,:]\d)", 18,
        flags=re.IGNORECASE, is_code=_is_not_counted,
    ),
    _kind(
        rf"{_B}(?P<code>[A-Z][A-Z0-9]{{1,24}}(?:_[A-Z0-9]{{1,24}}){{1,7}}){_E}", WEAK, is_code=_is_no_parameter
    ),
    _kind(rf"{_B}(?P<code>\d{{5,9}}){_E}(?![.,:/-]\d)", WEAK - 5, is_code=_is_bare_number),
)  # fmt: skip
"""The kinds of codes, the surest first."""
