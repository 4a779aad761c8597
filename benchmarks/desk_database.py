"""The database's side of `benchmarks.desk`, in a process of its own: prepare, cookie, queries.

What is made: sessions in three languages with questions of about 120 and answers of about 2,000 characters, recorded
one after another over 90 days. One fifth of them is rejected, with a triage, and one fifth useful, with a case; these
have 4 steps and 6 tool invocations each, as large as in `benchmarks.workload`, one bad case has LONG_CHAIN steps more.
Rows are written in bulk, past the services, and what services derive from them is derived by the same functions.
"""

from __future__ import annotations

import hashlib
import json
import os
import random
import sys
import time
import uuid
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta
from itertools import accumulate, islice
from typing import Any, TypeVar

import django

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
django.setup()

from django.conf import settings  # noqa: E402
from django.contrib.auth import get_user_model  # noqa: E402
from django.contrib.auth.models import Group  # noqa: E402
from django.db import connection, transaction  # noqa: E402
from django.test import Client  # noqa: E402
from django.test.utils import CaptureQueriesContext  # noqa: E402
from django.utils import timezone  # noqa: E402

from benchmarks.recording_database import prepare as make_database  # noqa: E402
from cases_app.models import CaseLibrary, CaseStatus, CaseTransition, FaultCategory, SourceType  # noqa: E402
from feedback_app import priority  # noqa: E402
from feedback_app.languages import language_of  # noqa: E402
from feedback_app.models import (  # noqa: E402
    AgentFeedback,
    BadCaseReview,
    BadCaseTransition,
    EventType,
    Severity,
    TriageState,
    WeeklyReport,
)
from feedback_app.services.priority import REPEATED  # noqa: E402
from feedback_app.services.reports import make_due_reports  # noqa: E402
from sessions_app.models import DiagnosisSession  # noqa: E402
from sessions_app.search import terms_of  # noqa: E402

ROWS_AT_ONCE = 1000
POST = "POST "
REVIEWERS = 10
WORDS = 3000
ANSWERS = 600
LONG = "desk-00000005"
DAYS = 90
LONG_CHAIN = 1000
WITH_COMMENT, WITH_CORRECTION = 0.4, 0.1
SYLLABLES = {
    "en": "ca ter lo min pod ser quer ind lag net clu ster ba tch time out fail ov er re play ho st",
    "ru": "па мять се ть за дер жка у зел о чер едь база сбо й по ток лим ит кла стер диск рес урс",
    "zh": " ".join("连接池超时内存慢查询重启缓存负载节点磁盘索引锁等待服务网络延迟错误日志告警集群"),
}
Row = TypeVar("Row")
Texts = dict[str, tuple[list[str], list[float]]]


def prepare(sessions: str) -> None:
    """Make the database and fill it."""
    make_database()
    chance = random.Random(5)
    people = _people()
    texts = _vocabulary(chance)
    total = int(sessions)
    answers = {language: [_text(chance, texts, language, 2000) for _ in range(ANSWERS // 3)] for language in texts}
    _note("texts")
    for numbers in batched(range(total), ROWS_AT_ONCE):
        DiagnosisSession.objects.bulk_create(_session(chance, texts, answers, number, total) for number in numbers)
    _note("sessions")
    _add_steps()
    _note("steps and tool invocations")
    rejected = DiagnosisSession.objects.filter(feedback="not_useful").order_by("pk")
    for batch in batched(rejected.iterator(ROWS_AT_ONCE), ROWS_AT_ONCE):
        _reject(chance, texts, people, batch)
    with connection.cursor() as cursor:
        cursor.execute(
            "UPDATE bad_case_review r JOIN (SELECT session_id, MAX(l0_match_count > 0) l0, MAX(is_truncated) cut,"
            " MIN(success) fine FROM tool_invocation GROUP BY session_id) t ON t.session_id = r.session_id"
            " SET r.has_l0_hit = t.l0, r.is_missed = NOT t.l0, r.is_truncated = t.cut, r.has_failed_call = NOT t.fine"
        )
    _note("bad cases")
    categories = list(FaultCategory.objects.values_list("pk", flat=True))
    useful = DiagnosisSession.objects.filter(feedback="useful").order_by("pk")
    for batch in batched(useful.iterator(ROWS_AT_ONCE), ROWS_AT_ONCE):
        _keep(chance, people, categories, batch)
    _note("cases")
    _index_bad_cases()
    _note("search terms of bad cases")
    _index_cases()
    CaseLibrary.objects.update(terms_due_at=None)
    _note("search terms of cases")

    make_due_reports()
    with connection.cursor() as cursor:
        cursor.execute(f"ANALYZE TABLE {', '.join(connection.introspection.table_names())}")
        cursor.fetchall()


def cookie(role: str) -> None:
    """Print a session cookie of somebody with this role."""
    client = Client()
    person = get_user_model().objects.filter(groups__name=role).order_by("pk").first()
    assert person is not None
    client.force_login(person, backend="django.contrib.auth.backends.ModelBackend")
    print(client.cookies[settings.SESSION_COOKIE_NAME].value)


def queries(role: str, *paths: str) -> None:
    """Print for each page, as JSON: how many statements it took, and the slowest of them with its milliseconds."""
    client = Client(HTTP_HOST="127.0.0.1")
    client.force_login(
        get_user_model().objects.filter(groups__name=role).order_by("pk")[0],
        backend="django.contrib.auth.backends.ModelBackend",
    )
    counted = {}
    for path in paths:
        ask = client.post if path.startswith(POST) else client.get
        ask(path.removeprefix(POST))
        with CaptureQueriesContext(connection) as captured:
            ask(path.removeprefix(POST))
        slowest = max(captured.captured_queries, key=lambda query: float(query["time"]))
        counted[path] = [len(captured), float(slowest["time"]) * 1000, slowest["sql"]]
    print(json.dumps(counted))


def keys() -> None:
    """Print the keys of some bad cases, cases, …, as JSON: `{"triages": […], "cases": […], "sessions": […], …}`."""
    found = {
        "long": list(BadCaseReview.objects.filter(session_id=LONG).values_list("pk", flat=True)),
        "reports": list(WeeklyReport.objects.values_list("pk", flat=True)),
        "triages": list(BadCaseReview.objects.filter(state=TriageState.OPEN).values_list("pk", flat=True)[::400]),
        "cases": [str(pk) for pk in CaseLibrary.objects.to_enrich().values_list("pk", flat=True)[::400]],
        "sessions": list(DiagnosisSession.objects.order_by("pk").values_list("pk", flat=True)[:40000:1000]),
    }
    print(json.dumps(found))


# -- texts -----------------------------------------------------------------------------------------------------------


def _vocabulary(chance: random.Random) -> Texts:
    """Made-up words, few of them frequent (Zipf's law), as in any language."""
    texts: Texts = {}
    for language, line in SYLLABLES.items():
        syllables = line.split()
        words = {"".join(chance.choices(syllables, k=chance.choice((1, 2, 2, 3)))) for _ in range(2 * WORDS)}
        some = sorted(words)[:WORDS]
        chance.shuffle(some)
        texts[language] = some, list(accumulate(1 / rank for rank in range(1, len(some) + 1)))
    return texts


def _text(chance: random.Random, texts: Texts, language: str, chars: int) -> str:
    words, weights = texts[language]
    some = chance.choices(words, cum_weights=weights, k=max(3, chars // 6))
    return ("" if language == "zh" else " ").join(some)[:chars]


def batched(rows: Iterable[Row], size: int) -> Iterator[list[Row]]:
    """Some rows at a time; Python has it from 3.12 on."""
    waiting = iter(rows)
    while some := list(islice(waiting, size)):
        yield some


def _note(what: str) -> None:
    print(f"{time.strftime('%H:%M:%S')} {what}", file=sys.stderr)


# -- rows ------------------------------------------------------------------------------------------------------------


def _people() -> list[Any]:
    users = [get_user_model().objects.create(username=f"reviewer-{n}", is_staff=True) for n in range(REVIEWERS)]
    for user in users:
        user.groups.set(Group.objects.filter(name="Reviewer"))
    lead = get_user_model().objects.create(username="lead", is_staff=True)
    lead.groups.set(Group.objects.filter(name="Lead"))
    return users


def _session(
    chance: random.Random, texts: Texts, answers: dict[str, list[str]], number: int, total: int
) -> DiagnosisSession:
    language = chance.choices(("zh", "en", "ru"), (5, 3, 2))[0]
    created_at = timezone.now() - timedelta(days=DAYS * (total - number) / total, seconds=chance.randrange(600))
    score = chance.choice((None, 0, 30, 65, 80, 100))
    return DiagnosisSession(
        session_id=f"desk-{number:08x}",
        query=_text(chance, texts, language, chance.randrange(40, 200)),
        answer=chance.choice(answers[language]),
        status="SUCCESS",
        agent_flow=chance.choice(("CHAT", "AI_OPS")),
        agent_id=f"agent-{chance.randrange(12)}/1.{chance.randrange(4)}",
        conversation_id=f"talk-{number // 3}",
        user_ref=f"person-{number // 30}",
        feedback={0: "not_useful", 1: "useful"}.get(number % 5),
        created_at=created_at,
        started_at=created_at,
        finished_at=created_at + timedelta(seconds=12),
        total_duration_ms=12_000,
        total_token_count=4400,
        step_count=4,
        tool_call_count=6,
        evidence_score=score,
        confidence=chance.choice((None, 40, 60, 85, 95)),
        self_evaluation={"evidence_score": score or 0, "source": "rule", "factors": []},
    )


def _add_steps() -> None:
    """Four steps and six invocations of a session, copied to all that are judged, facts of the calls varied."""
    said = json.dumps([{"role": "system", "content": "pool timeout latency " * 30}] * 2)
    output = "connection reset by peer, 池已满, очередь полна; " * 20
    with connection.cursor() as cursor:
        cursor.execute("CREATE TEMPORARY TABLE four (n INT)")
        cursor.execute("INSERT INTO four VALUES (0),(1),(2),(3)")
        cursor.execute(
            "INSERT INTO agent_step (session_id, step_index, agent_name, model_input, model_output, thought,"
            " has_tool_call, duration_ms, token_count, created_at, input_tokens, output_tokens, model_name, started_at)"
            " SELECT s.session_id, n, IF(n, 'executor', 'planner'), %s, %s, %s, 1, 1500, 1100, s.created_at, 900, 200,"
            " 'model-large-1', s.created_at + INTERVAL n*2 SECOND"
            " FROM diagnosis_session s, four WHERE s.feedback IS NOT NULL",
            [said, json.dumps({"text": output[:460]}), output[:250]],
        )
        cursor.execute(
            "INSERT INTO agent_step (session_id, step_index, agent_name, model_input, model_output, thought,"
            " has_tool_call, duration_ms, token_count, created_at, input_tokens, output_tokens, model_name, started_at)"
            " SELECT session_id, 4 + seq, agent_name, model_input, model_output, thought, 1, 1500, 1100, created_at,"
            " 900, 200, model_name, started_at + INTERVAL seq SECOND FROM agent_step, seq_0_to_999"
            " WHERE session_id = %s AND step_index = 1 AND seq < %s",
            [LONG, LONG_CHAIN],
        )
        cursor.execute("DELETE FROM four WHERE n > 1")
        cursor.execute(
            "INSERT INTO tool_invocation (session_id, step_id, tool_name, input_params, output_preview, output_length,"
            " retrieval_layer, l0_match_count, l1_match_count, is_truncated, duration_ms, success, error_message,"
            " created_at, invocation_id, started_at)"
            " SELECT s.session_id, t.id, IF(n, 'query_logs', 'lookup_knowledge'), '{\"q\": \"pool\"}', %s, 9000,"
            " IF(n, NULL, 'L0'), IF(n, NULL, MOD(s.id, 3)), NULL, MOD(t.id, 40) = 0, 120, MOD(t.id, 50) > 0,"
            " IF(MOD(t.id, 50), NULL, 'timeout'), t.created_at, CONCAT(t.id, '-', n), t.started_at"
            " FROM agent_step t JOIN diagnosis_session s USING (session_id), four WHERE n = 0 OR t.step_index < 2",
            [output],
        )


def _reject(chance: random.Random, texts: Texts, people: list[Any], sessions: list[DiagnosisSession]) -> None:
    now = timezone.now()
    events: list[AgentFeedback] = []
    reviews: list[BadCaseReview] = []
    for session in sessions:
        language = chance.choice(("zh", "en", "ru"))
        comment = _text(chance, texts, language, 80) if chance.random() < WITH_COMMENT else ""
        correction = _text(chance, texts, language, 400) if chance.random() < WITH_CORRECTION else ""
        events += _events(session, comment, correction)
        facts = priority.Facts(
            session.confidence, session.evidence_score, bool(correction), bool(comment), chance.choice((0, 0, 0, 1))
        )
        reviews.append(_review(chance, people, session, facts, now))
    AgentFeedback.objects.bulk_create(events)
    BadCaseReview.objects.bulk_create(reviews)
    made = BadCaseReview.objects.filter(session__in=sessions).values_list("pk", flat=True)
    BadCaseTransition.objects.bulk_create(
        BadCaseTransition(review_id=pk, action="open", from_state="", to_state="OPEN") for pk in made
    )


def _events(session: DiagnosisSession, comment: str, correction: str) -> Iterator[AgentFeedback]:
    about: dict[str, Any] = {
        "session": session,
        "turn_id": session.session_id,
        "agent_id": session.agent_id,
        "created_at": session.created_at,
    }
    yield AgentFeedback(**about, type=EventType.THUMBS, value=-1, payload={"comment": comment} if comment else {})
    if correction:
        payload = {"original": session.answer, "corrected": correction}
        yield AgentFeedback(**about, type=EventType.CORRECTION, value=0.5, payload=payload)


def _review(
    chance: random.Random, people: list[Any], session: DiagnosisSession, facts: priority.Facts, now: datetime
) -> BadCaseReview:
    """Three fifths wait, as where reviewers cannot keep up: then the queue is longest."""
    states, weights = ("OPEN", "IN_REVIEW", "RESOLVED", "DISMISSED"), (57, 3, 30, 10)
    modes = ("HALLUCINATION", "MISSING_KNOWLEDGE", "TOOL_FAILURE", "WRONG_ROOT_CAUSE")
    state = TriageState(chance.choices(states, weights)[0])
    due_at = session.created_at + timedelta(hours=settings.TRIAGE_DUE_HOURS)
    hours = priority.hours_by_rule(facts)
    is_resolved = state == TriageState.RESOLVED
    is_taken = state != TriageState.OPEN
    return BadCaseReview(
        session=session,
        state=state,
        failure_mode=chance.choice(modes) if is_resolved else "",
        severity=chance.choice(Severity.values) if is_resolved else "",
        notes="Seen; the pool was too small, как и раньше, 已确认" if is_resolved else "",
        assignee=chance.choice(people) if is_taken else None,
        claimed_at=now - timedelta(hours=1) if is_taken else None,
        resolved_at=now - timedelta(days=chance.random() * DAYS) if state in ("RESOLVED", "DISMISSED") else None,
        due_at=due_at,
        created_at=session.created_at,
        attention_at=priority.attention_at(due_at, hours),
        priority_hours=hours,
        language=language_of(session.query),
        has_words=facts.has_words,
        **{name: getattr(session, name) for name in REPEATED},
        question_key=priority.question_key(session.query),
        terms_due_at=None,  # `_index_bad_cases` writes them
    )


def _keep(chance: random.Random, people: list[Any], categories: list[str], sessions: list[DiagnosisSession]) -> None:
    cases: list[CaseLibrary] = []
    for session in sessions:
        states, weights = ("DRAFT", "ENRICHED", "PUBLISHED", "RETIRED"), (60, 10, 25, 5)
        status = CaseStatus(chance.choices(states, weights)[0])
        is_worked_on = status != CaseStatus.DRAFT
        cases.append(
            CaseLibrary(
                case_id=uuid.UUID(int=chance.getrandbits(128), version=4),
                diagnosis=session,
                source_type=SourceType.AUTO,
                title=session.query[:200],
                root_cause=session.answer or "",
                solution=session.answer or "",
                error_code=f"ERR_POOL_{chance.randrange(300)}" if is_worked_on else "",
                fault_category_id=chance.choice(categories) if is_worked_on else "GENERAL",
                status=status,
                reviewed_by=chance.choice(people) if is_worked_on else None,
                created_at=session.created_at,
            )
        )
    CaseLibrary.objects.bulk_create(cases)
    CaseTransition.objects.bulk_create(
        CaseTransition(case=case, action="create", from_state="", to_state="DRAFT") for case in cases
    )


# -- what is searched --------------------------------------------------------------------------------------------------


def _index_bad_cases() -> None:
    """As the service would."""
    said: dict[str, list[str]] = {}
    for event in AgentFeedback.objects.filter(session__feedback="not_useful").only("session_id", "payload"):
        said.setdefault(event.session_id, []).append(event.comment)
    reviews = BadCaseReview.objects.values_list("pk", "session_id", "notes", "session__query")
    with _loading() as cursor:
        rows = (
            (term, pk)
            for pk, session_id, *texts in reviews.iterator(ROWS_AT_ONCE)
            for term in terms_of(session_id, *texts, *said.get(session_id, ()))
        )
        _insert(cursor, "bad_case_term (term, owner_id)", rows)


def _index_cases() -> None:
    """As the service would, but the terms of each answer told apart once: few answers, and many cases of each."""
    answers = CaseLibrary.objects.order_by().values_list("root_cause", flat=True).distinct()
    terms = {hashlib.md5(answer.encode()).digest(): terms_of(answer) for answer in answers}
    cases = CaseLibrary.objects.values_list("pk", "root_cause", "title", "error_code", "diagnosis_id")
    own = (
        (term, pk.hex)
        for pk, answer, *texts in cases.iterator(ROWS_AT_ONCE)
        for term in terms_of(str(pk), *texts) - terms[hashlib.md5(answer.encode()).digest()]
    )
    with _loading() as cursor:
        cursor.execute("CREATE TEMPORARY TABLE answer_term (term VARCHAR(48) COLLATE utf8mb4_bin, digest BINARY(16))")
        _insert(cursor, "answer_term", ((term, digest) for digest, some in terms.items() for term in some))
        cursor.execute("ALTER TABLE answer_term ADD KEY (digest)")
        cursor.execute("CREATE TEMPORARY TABLE own_term (term VARCHAR(48) COLLATE utf8mb4_bin, owner_id CHAR(32))")
        _insert(cursor, "own_term", own)
        cursor.execute(
            "INSERT INTO case_term (term, owner_id) SELECT t.term, c.case_id FROM case_library c"
            " JOIN answer_term t ON t.digest = UNHEX(MD5(c.root_cause)) UNION ALL SELECT * FROM own_term"
        )


@contextmanager
def _loading() -> Iterator[Any]:
    """A cursor with which MariaDB takes in the rows of an empty table at once, and then sorts each index of it."""
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute("SET unique_checks = 0, foreign_key_checks = 0")
        yield cursor
        cursor.execute("SET unique_checks = 1, foreign_key_checks = 1")


def _insert(cursor: Any, table: str, rows: Iterable[tuple[Any, ...]]) -> None:
    for some in batched(rows, 5000):
        cursor.executemany(f"INSERT INTO {table} VALUES (%s, %s)", some)


if __name__ == "__main__":
    command, *arguments = sys.argv[1:]
    {"prepare": prepare, "cookie": cookie, "queries": queries, "keys": keys}[command](*arguments)
