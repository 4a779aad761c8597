"""What happens to spans when the server is away, slow, full, or will not have them. The agent notices nothing."""

import logging
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest
from product_server import Misbehaviour, wait_until

from diagnosis_client import Recorder

SOURCES = Path(__file__).parent.parent / "src"


def record(recorder, count=1, **more):
    for _ in range(count):
        with recorder.session("q", **more):
            pass


def test_a_server_that_is_away_for_a_while_loses_nothing(recorder, product, caplog):
    caplog.set_level(logging.INFO, "diagnosis_client")
    product.stop()
    record(recorder, 300)
    assert not recorder.flush(0.3)
    product.start()
    assert recorder.flush(5)
    assert len(product.spans) == 300
    assert len({span.span_id for span in product.spans}) == 300
    assert recorder.dropped == 0
    messages = [entry.message for entry in caplog.records if entry.name == "diagnosis_client"]
    assert len(messages) == 2, messages
    assert "takes nothing now (ConnectError" in messages[0]
    assert "takes records again" in messages[1]


@pytest.mark.parametrize("status", [429, 502, 503, 504])
def test_a_server_that_asks_for_patience_gets_it(recorder, product, status):
    product.misbehave(status)
    record(recorder)
    assert recorder.flush(5)
    assert len(product.spans) == 1
    assert len(product.requests) == 2


def test_a_server_that_asks_for_no_patience_is_not_hammered(recorder, product):
    product.always = Misbehaviour(429, {"Retry-After": "0"})
    record(recorder)
    assert not recorder.flush(1)
    assert len(product.requests) < 5


def test_an_address_that_has_moved_is_said(recorder, product, caplog):
    product.misbehave(308, headers={"Location": "https://elsewhere.example/v1/traces"})
    record(recorder)
    assert recorder.flush()
    assert "moved to https://elsewhere.example/v1/traces" in caplog.text


def test_retry_after_is_honoured_even_by_a_flush(recorder, product):
    product.misbehave(429, headers={"Retry-After": "1"})
    record(recorder)
    assert not recorder.flush(0.5)
    assert not recorder.flush(0.2)
    assert len(product.requests) == 1
    assert recorder.flush(3)
    assert product.request_times[1] - product.request_times[0] >= 1


@pytest.mark.parametrize("status", [400, 401, 403, 404, 500])
def test_what_must_not_be_sent_again_is_dropped_and_said_once(recorder, product, caplog, status):
    body = b'{"code": "because"}'
    product.misbehave(status, times=2, body=body, headers={"Content-Type": "application/json"})
    for _ in range(2):
        record(recorder)
        assert recorder.flush()
    assert recorder.dropped == 2
    assert len(product.requests) == 2
    said = [entry.message for entry in caplog.records if entry.name == "diagnosis_client"]
    assert len(said) == 1
    assert f"HTTP {status}" in said[0]
    assert "because" in said[0]
    assert "dk_test" not in caplog.text, "the key stays out of the log"


def test_a_slow_server_does_not_slow_the_agent(new_recorder, product):
    recorder = new_recorder(flush_seconds=0.01)
    product.misbehave(200, delay_seconds=0.5)
    record(recorder)
    time.sleep(0.1)  # the sender is now waiting for the server
    started = time.perf_counter()
    record(recorder, 20)
    assert time.perf_counter() - started < 0.2
    assert recorder.flush(5)
    assert len(product.spans) == 21


def test_a_server_that_never_answers_is_given_up_and_asked_again(new_recorder, product):
    recorder = new_recorder(timeout_seconds=0.2)
    product.misbehave(200, delay_seconds=1)
    record(recorder)
    assert recorder.flush(5)
    wait_until(lambda: len(product.spans) == 2)
    assert len({span.span_id for span in product.spans}) == 1, "which the server knows for one span"


def test_a_full_buffer_drops_the_oldest_and_counts_them(new_recorder, product, caplog):
    recorder = new_recorder(max_queue_spans=10)
    product.stop()
    for number in range(25):
        record(recorder, session_id=f"s-{number}")
    assert recorder.dropped == 15
    product.start()
    assert recorder.flush(5)
    kept = [span.attributes["diagnosis.session.id"] for span in product.named("invoke_agent")]
    assert kept == [f"s-{number}" for number in range(15, 25)]
    assert sum("dropped so far" in entry.message for entry in caplog.records) == 2, "at 1 and at 10"


def test_a_span_too_large_takes_no_other_with_it(recorder, product, caplog):
    product.max_body = 30_000
    for number in range(20):
        record(recorder, session_id=f"s-{number}", metadata={"x": os.urandom(20_000).hex() if number == 7 else ""})
    assert recorder.flush()
    kept = {span.attributes["diagnosis.session.id"] for span in product.spans}
    assert kept == {f"s-{number}" for number in range(20)} - {"s-7"}
    assert recorder.dropped == 1
    assert "too large" in caplog.text


def test_a_partial_success_is_counted_and_said(recorder, product, caplog):
    from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceResponse

    answer = ExportTraceServiceResponse()
    answer.partial_success.rejected_spans = 1
    answer.partial_success.error_message = "the session id has spaces"
    product.misbehave(200, body=answer.SerializeToString())
    record(recorder, 2)
    assert recorder.flush()
    assert recorder.dropped == 1
    assert "the session id has spaces" in caplog.text


def test_requests_of_ours_stay_out_of_the_agents_log(recorder, product, caplog):
    caplog.set_level(logging.INFO)
    record(recorder)
    assert recorder.flush()
    assert [entry for entry in caplog.records if entry.name == "httpx"] == []


def test_spans_leave_by_themselves(new_recorder, product):
    recorder = new_recorder(flush_seconds=0.05)
    record(recorder)
    wait_until(lambda: len(product.spans) == 1)


def test_after_close_nothing_is_taken_and_nothing_breaks(recorder, product):
    record(recorder)
    assert recorder.close()
    record(recorder)
    assert len(product.spans) == 1
    assert recorder.dropped == 1
    assert recorder.close()


@pytest.mark.parametrize("endpoint", ["ftp://host", "http://", "http://ho st:80:80"])
def test_an_endpoint_that_is_no_address_is_refused_at_once(endpoint):
    with pytest.raises(ValueError, match="endpoint"):
        Recorder(endpoint)


def test_a_key_is_trimmed_and_a_broken_one_refused_at_once(new_recorder, product):
    recorder = new_recorder(endpoint=f"127.0.0.1:{product.port}/", api_key=" key\n")
    record(recorder)
    assert recorder.flush()
    assert product.requests[0][1]["authorization"] == "Bearer key"
    assert product.requests[0][0] == "/v1/traces"
    with pytest.raises(ValueError, match="api_key"):
        Recorder(api_key="k\ney")


def run_agent(code, url, timeout=20):
    """A process of its own; gives its output and how long it took."""
    environment = {**os.environ, "PYTHONPATH": str(SOURCES), "URL": url}
    started = time.monotonic()
    done = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, timeout=timeout, check=False
    )
    assert done.returncode == 0, done.stderr
    return done, time.monotonic() - started


AGENT = """
import os, time
from diagnosis_client import FeedbackCollector, Recorder
recorder = Recorder(os.environ["URL"], "key", "agent")
collector = FeedbackCollector(os.environ["URL"])
with recorder.session("q", session_id="s-1") as session:
    session.answer("a")
collector.thumbs("s-1", "up")
print(time.monotonic())
"""


def test_a_process_that_ends_sends_what_it_has(product):
    product.knows_only_recorded = True  # the session has to come before the feedback on it
    run_agent(AGENT, product.url)
    assert product.one("invoke_agent").attributes["diagnosis.session.id"] == "s-1"
    assert [event["value"] for event in product.events] == ["up"]


@pytest.mark.parametrize("how", ["away", "silent"])
def test_a_process_ends_in_seconds_though_the_server_does_not_answer(product, how):
    if how == "away":
        product.stop()
    else:
        product.misbehave(200, times=20, delay_seconds=15)
    done, _ = run_agent(AGENT, product.url)
    took = time.monotonic() - float(done.stdout)
    assert took < 10, "3 s for the spans, 3 s for the feedback, and the interpreter's own end"
    assert "Closed before 1 spans could be sent." in done.stderr
    assert "Closed before 1 feedback events could be sent." in done.stderr


FORKING_AGENT = """
import os, time
from diagnosis_client import FeedbackCollector, Recorder
recorder = Recorder(os.environ["URL"], "key", "agent", flush_seconds=60)
collector = FeedbackCollector(os.environ["URL"])
with recorder.session("q", session_id="warm"):
    pass
assert recorder.flush(5)
with recorder.session("q", session_id="parent"):
    pass
collector.star("parent", 5)
children = []
for number in range(3):
    child = os.fork()
    if child == 0:
        with recorder.session("q", session_id=f"child-{number}"):
            pass
        collector.star(f"child-{number}", 4)
        sent = recorder.flush(5) and collector.flush(5)
        os._exit(0 if sent else 1)
    children.append(child)
for child in children:
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
assert recorder.flush(5)
"""


def test_a_forked_child_sends_its_own_and_not_its_parents(product):
    run_agent(FORKING_AGENT, product.url)
    sessions = sorted(span.attributes["diagnosis.session.id"] for span in product.spans)
    assert sessions == ["child-0", "child-1", "child-2", "parent", "warm"]
    assert sorted(event["sessionId"] for event in product.events) == ["child-0", "child-1", "child-2", "parent"]


GLOBAL_AGENT = """
import os
from opentelemetry import trace
from diagnosis_client import Recorder
recorder = Recorder(os.environ["URL"], "key", "agent", set_global=True)
with recorder.session("q"):
    with recorder.tool_call("fetch"), trace.get_tracer("another library").start_as_current_span("GET"):
        pass
    with trace.get_tracer("another library").start_as_current_span("POST"):
        pass
assert not trace.get_current_span().get_span_context().is_valid
"""


def test_as_the_global_provider_it_takes_other_libraries_spans_in(product):
    run_agent(GLOBAL_AGENT, product.url)
    assert product.one("GET").parent_id == product.one("execute_tool").span_id
    assert product.one("POST").parent_id == product.one("invoke_agent").span_id
