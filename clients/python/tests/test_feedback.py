"""What people thought, on its way to the server."""

import asyncio
from datetime import datetime, timezone

import pytest
from product_server import wait_until


def test_each_kind_arrives_as_the_contract_has_it(new_collector, product):
    collector = new_collector(agent_id="oncall/1.0", api_key="dk_feedback")
    collector.thumbs("s-1", "down", "too vague")
    collector.thumbs("s-1", True)
    collector.star("s-1", 4, turn_id="t-2")
    collector.correction("s-1", "restart it", "raise the pool", "seen before")
    collector.edit("s-1", "restart it", "restart them", consent=False)
    collector.re_ask("s-1", "why, again?", "why?")
    assert collector.flush()
    without_ids = [
        {
            key: value
            for key, value in event.items()
            if key not in {"clientEventId", "createdAt", "sessionId", "agentId"}
        }
        for event in product.events
    ]
    assert without_ids == [
        {"type": "thumbs", "value": "down", "payload": {"comment": "too vague"}},
        {"type": "thumbs", "value": "up", "payload": {}},
        {"type": "star", "value": 4, "payload": {}, "turnId": "t-2"},
        {
            "type": "correction",
            "payload": {"original": "restart it", "corrected": "raise the pool", "userNote": "seen before"},
        },
        {"type": "edit", "payload": {"original": "restart it", "edited": "restart them"}, "consent": False},
        {"type": "re_ask", "payload": {"question": "why, again?", "previousQuestion": "why?"}},
    ]
    assert {event["sessionId"] for event in product.events} == {"s-1"}
    assert {event["agentId"] for event in product.events} == {"oncall/1.0"}
    assert len({event["clientEventId"] for event in product.events}) == 6
    assert all(datetime.fromisoformat(event["createdAt"]).tzinfo for event in product.events)
    assert len(product.requests) == 1
    assert product.requests[0][1]["authorization"] == "Bearer dk_feedback"


def test_a_moment_and_an_id_may_be_given(new_collector, product):
    collector = new_collector()
    given = collector.record(
        "s", "star", 1, created_at=datetime(2026, 1, 2, 3, tzinfo=timezone.utc), client_event_id="mine", token="t"
    )
    assert collector.flush()
    assert given == "mine"
    event = product.events[0]
    assert (event["clientEventId"], event["createdAt"], event["token"]) == ("mine", "2026-01-02T03:00:00+00:00", "t")


def test_a_server_that_is_away_loses_nothing_and_a_retry_keeps_its_id(new_collector, product):
    collector = new_collector()
    product.stop()
    ids = [collector.star("s", 3) for _ in range(700)]
    assert not collector.flush(0.2)
    product.start()
    product.misbehave(503)
    product.misbehave(500)
    product.misbehave(429, headers={"Retry-After": "0"})
    assert collector.flush(10)
    assert [event["clientEventId"] for event in product.events] == ids
    assert len(product.requests) == 5, "three refusals, then 500 and 200"
    assert collector.dropped == 0


def test_a_full_buffer_drops_the_oldest_and_counts_them(new_collector, product, caplog):
    collector = new_collector(capacity=5)
    product.stop()
    ids = [collector.star("s", 3) for _ in range(8)]
    assert collector.dropped == 3
    product.start()
    assert collector.flush(5)
    assert [event["clientEventId"] for event in product.events] == ids[3:]
    assert "1 feedback events dropped so far" in caplog.text


def test_what_the_server_refuses_is_dropped_saying_why(new_collector, product, caplog):
    collector = new_collector()
    collector.star("s-1", 3)
    collector.star("s-1", 9)
    collector.star("s-1", 4)
    assert collector.flush()
    assert [event["value"] for event in product.events] == [3, 4]
    assert collector.dropped == 1
    assert "star of s-1" in caplog.text
    assert "Expected 1 to 5." in caplog.text


@pytest.mark.parametrize("status", [400, 401, 403, 404])
def test_a_refused_request_is_given_up_saying_why(new_collector, product, caplog, status):
    product.misbehave(status, body=b'{"message": "because"}', headers={"Content-Type": "application/json"})
    collector = new_collector()
    collector.star("s", 3)
    assert collector.flush()
    assert collector.dropped == 1
    assert len(product.requests) == 1
    assert "because" in caplog.text


def test_a_session_that_is_still_on_its_way_is_waited_for(new_collector, product):
    product.unknown_sessions = {"late"}
    collector = new_collector()
    collector.star("late", 5)
    collector.star("here", 5)
    assert not collector.flush(2)
    assert [event["sessionId"] for event in product.events] == ["here"]
    product.unknown_sessions = set()
    assert collector.flush(5)
    assert [event["sessionId"] for event in product.events] == ["here", "late"]
    assert collector.dropped == 0


def test_an_unknown_session_is_not_waited_for_for_ever(new_collector, product, caplog, monkeypatch):
    monkeypatch.setattr("diagnosis_client._outbox.FIRST_WAIT_SECONDS", 0.001)
    product.unknown_sessions = {"never"}
    collector = new_collector()
    collector.star("never", 5)
    assert collector.flush(5)
    assert collector.dropped == 1
    assert len(product.requests) == 8
    assert "There is no such session." in caplog.text


def test_a_fault_of_the_server_does_not_block_the_rest_for_ever(new_collector, product, monkeypatch):
    monkeypatch.setattr("diagnosis_client._outbox.FIRST_WAIT_SECONDS", 0.001)
    product.misbehave(500, times=8)
    collector = new_collector()
    collector.star("poison", 5)
    assert collector.flush(5)
    assert collector.dropped == 1
    collector.star("fine", 5)
    assert collector.flush(5)
    assert [event["sessionId"] for event in product.events] == ["fine"]


def test_a_batch_too_large_is_parted(new_collector, product):
    product.max_body = 60_000
    collector = new_collector()
    for _ in range(10):
        collector.edit("s", "a" * 9_000, "b" * 9_000)
    assert collector.flush()
    assert len(product.events) == 10


def test_a_text_longer_than_the_server_takes_is_cut_with_a_mark(new_collector, product):
    collector = new_collector()
    collector.edit("s", "a" * 50_000, "b")
    assert collector.flush()
    original = product.events[0]["payload"]["original"]
    assert len(original) <= 20_000
    assert original.endswith("[cut, 50000 characters]")


def test_events_leave_by_themselves(new_collector, product):
    collector = new_collector(flush_seconds=0.05)
    collector.star("s", 3)
    wait_until(lambda: len(product.events) == 1)


def test_a_full_batch_does_not_wait_for_its_time(new_collector, product):
    collector = new_collector(flush_seconds=60)
    for _ in range(500):
        collector.star("s", 3)
    wait_until(lambda: len(product.events) == 500)


def test_a_flush_does_not_hold_the_event_loop(new_collector, product):
    product.misbehave(200, delay_seconds=0.3)

    async def run():
        collector = new_collector()
        collector.star("s", 3)
        ticks = 0
        flushing = asyncio.create_task(collector.aflush(5))
        while not flushing.done():
            await asyncio.sleep(0.01)
            ticks += 1
        assert await flushing
        return ticks

    assert asyncio.run(run()) > 10
    assert len(product.events) == 1


@pytest.mark.parametrize(
    ("session_id", "value", "payload"),
    [(None, float("nan"), None), ("s", object(), {"comment": "\ud800"}), (7, {1}, {3: float("inf")})],
)
def test_nothing_that_is_given_breaks_the_caller(new_collector, product, session_id, value, payload):
    collector = new_collector()
    collector.record(session_id, "star", value, payload)
    collector.star("fine", 3)
    assert collector.flush()
    assert product.events[-1]["sessionId"] == "fine"
