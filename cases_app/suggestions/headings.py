"""What a heading says: whether the root cause stands below it, the solution, or something else. In three languages."""

from __future__ import annotations

import re
from collections.abc import Sequence
from enum import Enum, auto
from typing import NamedTuple

MAX_CHARS = 80
"""A longer line is no heading but a sentence."""


class Role(Enum):
    """What a part of an answer is for."""

    TITLE = auto()
    CAUSE = auto()
    SOLUTION = auto()
    OTHER = auto()  # a part of its own that ends the one before it: impact, evidence


class Meaning(NamedTuple):
    """What a heading says, how plainly, and whether it says just that."""

    role: Role | None = None
    surety: int = 0
    is_exact: bool = False


SURE, PLAIN, HINT = 3, 2, 1


def meaning_of(label: str, *, is_sentence: bool) -> Meaning:
    """What `label` is the heading of. Of what may be a sentence as well, all of it must say so."""
    if len(label) > 2 * MAX_CHARS:
        return Meaning()
    text = plain(label).lower().replace("ё", "е")
    if number := NUMBER.match(text):
        text = _DECORATION.sub("", text[number.end() :])
    if not text or _SAYS_OTHERWISE.search(text):
        return Meaning()
    exact = next((role for role, pattern in _SAYS_JUST if pattern.fullmatch(text)), None)
    if exact in (Role.TITLE, Role.OTHER):
        return Meaning(exact, SURE, is_exact=True)
    if is_sentence and exact is None:
        return Meaning()
    said = [(surety, role, found.start()) for role, surety, pattern in _SAYS if (found := pattern.search(text))]
    if not said or (len({role for _, role, _ in said}) > 1 and _AND.search(text)):
        return Meaning()  # "cause and solution" names neither
    surety, role, _ = max(said, key=lambda one: (one[0], -one[2]))
    return Meaning(role, surety, exact == role)


def plain(label: str) -> str:
    """A label without its markup."""
    return _DECORATION.sub("", _MARKUP.sub(" ", label[: 2 * MAX_CHARS]))


_DIGIT = r"[一二三四五六七八九十\d]{1,3}"
NUMBER = re.compile(rf"(?:第?{_DIGIT}(?:步|部分|[、.)．）:：])|[(（]{_DIGIT}[)）]|[IVX]{{1,4}}[.)])[ \t]{{0,4}}")
"""What counts a heading: `1.`, `(2)`, `三、`, `第一步`, `IV.`"""

_DECORATION = re.compile(r"^[\W_]+|[\W_]+$")
_MARKUP = re.compile(r"[\s*_`]+")


def _any(*patterns: str) -> re.Pattern[str]:
    return re.compile("|".join(patterns))


_SAYS: Sequence[tuple[Role, int, re.Pattern[str]]] = (
    (Role.CAUSE, SURE, _any(r"\broot[ -]?causes?\b", "根因|根本原因|根源", r"первопричин|корнев\w+ причин")),
    (Role.CAUSE, PLAIN, _any(r"\bcauses?\b|\bwhat went wrong\b|\bwhy (?:it|this|did)\b", "原因|成因", "причин|почему")),
    (
        Role.CAUSE,
        HINT,
        _any(
            r"\bconclusions?\b|\bdiagnosis\b|\bfindings?\b|\bmeaning\b",
            "结论|诊断结果|(?:问题|故障|原理)分析|分析结果",
            "вывод|диагноз|заключени|что (?:случилось|произошло)",
        ),
    ),
    (
        Role.SOLUTION,
        SURE,
        _any(r"\bsolutions?\b|\bresolutions?\b", "解决|修复方案|处理方案|处置方案", "решени[еяй]"),
    ),
    (
        Role.SOLUTION,
        PLAIN,
        _any(
            r"\bfix(?:es)?\b|\bremed\w+|\bmitigat\w+|\bworkarounds?\b|\brecommend\w+|\bcorrective\b|\bnext steps\b",
            r"\bhow to (?:fix|resolve|solve)|\baction (?:plan|items?)\b|\bimmediate actions?\b|\bwhat to do\b",
            "建议|处理|处置|措施|修复|应对|恢复步骤|整改|优化方案",
            r"рекомендаци|исправ|устранени|план действий|\bмеры\b|\bдействия\b|как починить",
            "что (?:надо |нужно )?(?:делать|сделать)",
        ),
    ),
    (
        Role.SOLUTION,
        HINT,
        _any(
            r"\bprevent\w*|\bfollow[ -]?up|\bsteps\b",
            "预防|防护|后续|步骤",
            "профилактик|предотвра|что проверить",
        ),
    ),
)
_SAYS_OTHERWISE = _any(
    r"\bruled out\b|\bnot the cause\b|\bprocess\b|\bverif\w+", "排除|排查|过程|验证", "исключен|процесс|ход диагностики"
)
_AND = re.compile(r"\band\b|&|/|及|和|与|、|\bи\b")

_ENGLISH = (
    r"(?:(?:the|most|likely|possible|probable|main|primary|underlying|direct|final|identified|confirmed|recommended|"
    r"suggested|proposed|immediate|short[ -]term|long[ -]term|quick) ){0,3}(?:%s)(?: (?:analysis|summary|steps|plan))?"
)
_CHINESE = (
    r"(?:问题|故障|可能的?|直接|主要|最终|常见|异常|本次|产生|告警|报警|事故|推荐的?|可行的?|临时|紧急|应急|长期|短期|具体){0,3}"
    r"(?:%s)(?:分析|定位|结论|判断|诊断|说明|推断|如下|步骤){0,2}"
)
_RUSSIAN = (
    r"(?:(?:вероятн|возможн|основн|корнев|главн|непосредственн|наиболее|рекомендуем|предлагаем|временн|быстр)\w{0,4} )"
    r"{0,3}(?:%s)(?: (?:сбоя|инцидента|проблемы|ошибки|аварии|отказа|алерта))?"
)


def _just(english: str, chinese: str, russian: str) -> re.Pattern[str]:
    return _any(_ENGLISH % english, _CHINESE % chinese, _RUSSIAN % russian)


_SAYS_JUST: Sequence[tuple[Role, re.Pattern[str]]] = (
    (Role.TITLE, _just("title", "标题|题目", "заголовок|тема")),
    (
        Role.CAUSE,
        _just(
            "root[ -]?causes?|causes?|conclusion|diagnosis",
            "根因|根本原因|原因|结论",
            "первопричин[аы]|причин[аы]|вывод|диагноз",
        ),
    ),
    (
        Role.SOLUTION,
        _just(
            "solutions?|resolution|fix(?:es)?|remediation|mitigation|recommendations?|recommended actions?|actions?|"
            "suggested actions?|workarounds?|action plan|next steps|how to fix(?: it)?|what to do",
            "解决(?:方案|办法|方法|措施|步骤)?|(?:处理|处置|修复|应对|改进|优化|整改|应急)(?:建议|方案|方法|措施|步骤)|"
            "建议|措施|方案",
            "решени[ея]|рекомендаци[ия]|исправление|устранение|что делать|как (?:исправить|устранить)|план действий|"
            "меры|действия|способы? (?:решения|устранения)",
        ),
    ),
    (
        Role.OTHER,
        _just(
            "impact|evidence|symptoms?|timeline|severity|confidence|summary|background|description|verification",
            "影响(?:范围)?|证据|现象|时间线|严重(?:程度|级别)|置信度|背景|描述|验证|概述|总结",
            "влияние|последствия|доказательства|симптомы?|хронология|уверенность|описание|проверка",
        ),
    ),
)
