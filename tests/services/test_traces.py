"""The database goes away while traces come: exporters hear of it, send again, and everything is there once."""

from __future__ import annotations

import json
import random
import threading
import time
import urllib.error
import urllib.request
import uuid
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor

from tests.otlp import protobuf, request, span
from tests.proxy import Proxy
from tests.stack import Process, Stack, free_port, wait_until

pytestmark = pytest.mark.services


@pytest.fixture
def proxy(stack) -> Iterator[Proxy]:
    proxy = Proxy(stack.server["HOST"] or "127.0.0.1", int(stack.server["PORT"] or 3306))
    yield proxy
    proxy.cut()


@pytest.fixture
def url(stack, proxy) -> Iterator[str]:
    """A web process of the stack whose way to the database can be cut."""
    port = free_port()
    command = [part.replace(str(stack.web_port), str(port)) for part in stack.web.command]
    server = stack.web.environment["DATABASE_URL"].rsplit("@", 1)
    database_url = f"{server[0]}@127.0.0.1:{proxy.port}/{stack.database}"
    environment = {**stack.web.environment, "DATABASE_URL": database_url, "DATABASE_READ_TIMEOUT": "3"}
    web = Process("web-behind-proxy", command, environment)
    web.start()
    address = f"http://127.0.0.1:{port}"
    try:
        wait_until(lambda: answers(f"{address}/healthz"), 30, web.tail)
        yield f"{address}/v1/traces"
    finally:
        web.stop()


def answers(url: str) -> bool:
    try:
        with urllib.request.urlopen(url, timeout=5) as response:
            return bool(response.status == 200)
    except OSError:
        return False


@pytest.fixture
def exporter(stack, url) -> Callable[..., OTLPSpanExporter]:
    return lambda: OTLPSpanExporter(url, headers={"x-api-key": stack.key}, timeout=90)


def post(stack: Stack, url: str, body: bytes, content_type: str) -> tuple[int, Any, bytes, float]:
    headers = {"Content-Type": content_type, "x-api-key": stack.key}
    start = time.monotonic()
    try:
        with urllib.request.urlopen(urllib.request.Request(url, body, headers), timeout=30) as response:
            return response.status, response.headers, response.read(), time.monotonic() - start
    except urllib.error.HTTPError as error:
        return error.code, error.headers, error.read(), time.monotonic() - start


def record(provider: TracerProvider, session_id: str) -> None:
    """A small run: an agent, a call of its model, a tool."""
    tracer = provider.get_tracer("tests")
    named = {"gen_ai.operation.name": "invoke_agent", "diagnosis.session.id": session_id, "input.value": "why?"}
    with tracer.start_as_current_span("run", attributes={**named, "output.value": f"because of {session_id}"}):
        with tracer.start_as_current_span(
            "chat", attributes={"gen_ai.operation.name": "chat", "gen_ai.usage.input_tokens": 7}
        ):
            pass
        with tracer.start_as_current_span("execute_tool logs", attributes={"gen_ai.tool.name": "logs"}):
            pass


def assert_each_is_there_once(stack: Stack, session_ids: list[str]) -> None:
    rows = stack.sql(
        "SELECT s.session_id, s.status, s.answer, s.step_count, s.tool_call_count, s.total_token_count,"
        "  (SELECT COUNT(*) FROM agent_step x WHERE x.session_id = s.session_id),"
        "  (SELECT COUNT(*) FROM tool_invocation x WHERE x.session_id = s.session_id),"
        "  (SELECT COUNT(*) FROM otlp_trace x WHERE x.session_id = s.session_id)"
        " FROM diagnosis_session s WHERE s.session_id IN %s ORDER BY s.session_id",
        session_ids,
    )
    assert list(rows) == [
        (session_id, "SUCCESS", f"because of {session_id}", 1, 1, 7, 1, 1, 1) for session_id in sorted(session_ids)
    ]


@pytest.mark.parametrize("content_type", ["application/json", "application/x-protobuf"])
def test_without_its_database_the_receiver_says_when_to_send_again(stack, url, proxy, content_type):
    body = request(span(1, "chat", {"gen_ai.operation.name": "chat"}, trace=uuid.uuid4().hex))
    data = json.dumps(body).encode() if content_type.endswith("json") else protobuf(body)
    proxy.cut()
    for _ in range(3):
        code, headers, said, seconds = post(stack, url, data, content_type)
        assert (code, headers["Content-Type"]) == (503, content_type)
        assert int(headers["Retry-After"]) > 0
        assert b"Traceback" not in said
        assert seconds < 5
    proxy.mend()
    assert post(stack, url, data, content_type)[0] == 200


def test_a_database_that_says_nothing_holds_no_request_for_long(stack, url, proxy):
    data = protobuf(request(span(1, "chat", {"gen_ai.operation.name": "chat"}, trace=uuid.uuid4().hex)))
    assert post(stack, url, data, "application/x-protobuf")[0] == 200
    proxy.is_frozen = True
    code, headers, _, seconds = post(stack, url, data, "application/x-protobuf")
    assert (code, bool(headers["Retry-After"])) == (503, True)
    assert seconds < 15
    proxy.is_frozen = False
    proxy.break_connections()
    assert post(stack, url, data, "application/x-protobuf")[0] == 200


def test_an_exporter_delivers_after_the_databases_return_and_everything_is_there_once(stack, proxy, exporter, new_ids):
    ids = new_ids(30)
    provider = TracerProvider()
    provider.add_span_processor(BatchSpanProcessor(exporter(), schedule_delay_millis=200, max_export_batch_size=16))
    for session_id in ids[:10]:
        record(provider, session_id)
    time.sleep(1)
    proxy.cut()
    for session_id in ids[10:]:
        record(provider, session_id)
    time.sleep(3)
    assert len(stack.sql("SELECT 1 FROM diagnosis_session WHERE session_id IN %s", ids)) < 30
    proxy.mend()
    assert provider.force_flush(90_000)
    provider.shutdown()
    assert_each_is_there_once(stack, ids)
    stack.wait_scored(ids, 60)


def test_connections_cut_in_the_middle_of_what_they_do_lose_and_double_nothing(stack, proxy, exporter, new_ids, rng):
    """What was committed before the cut is sent again by exporters that heard a 503."""
    ids = new_ids(60)
    over = threading.Event()

    def trouble() -> None:
        while not over.wait(rng.uniform(0.02, 0.3)):
            proxy.break_connections()

    def send(part: list[str]) -> bool:
        provider = TracerProvider()
        provider.add_span_processor(BatchSpanProcessor(exporter(), schedule_delay_millis=50, max_export_batch_size=8))
        for session_id in part:
            record(provider, session_id)
            time.sleep(random.uniform(0, 0.05))
        flushed = provider.force_flush(90_000)
        provider.shutdown()
        return flushed

    saboteur = threading.Thread(target=trouble)
    saboteur.start()
    try:
        with ThreadPoolExecutor(3) as pool:
            sent = [pool.submit(send, ids[start::3]) for start in range(3)]
            time.sleep(6)
            over.set()
            assert all(each.result() for each in sent)
    finally:
        over.set()
        saboteur.join()
    assert_each_is_there_once(stack, ids)


def test_many_exporters_of_the_same_traces_at_once_end_as_one(stack, new_ids, at_once):
    """Eight clients, the same hundred sessions in an order of their own, twenty times: all 2xx, each once."""
    ids = new_ids(100)
    url = f"{stack.url}/v1/traces"
    agent = {"gen_ai.operation.name": "invoke_agent", "input.value": "why?"}
    chat = {"gen_ai.operation.name": "chat", "gen_ai.usage.input_tokens": 7}
    spans = []
    for session_id in ids:
        trace = uuid.uuid4().hex
        named = {**agent, "diagnosis.session.id": session_id, "output.value": f"because of {session_id}"}
        spans += [
            span(1, "run", named, trace=trace),
            span(2, "chat", chat, parent=1, trace=trace),
            span(3, "execute_tool logs", {"gen_ai.tool.name": "logs"}, parent=1, trace=trace),
        ]

    def client(seed: int) -> list[int]:
        chance = random.Random(seed)
        order = spans * 20
        chance.shuffle(order)
        codes = []
        while order:
            size = chance.randint(20, 120)
            codes.append(post(stack, url, protobuf(request(*order[:size])), "application/x-protobuf")[0])
            order = order[size:]
        return codes

    answers = [code for codes in at_once([lambda seed=seed: client(seed) for seed in range(8)]) for code in codes]
    assert set(answers) == {200}
    assert_each_is_there_once(stack, ids)
