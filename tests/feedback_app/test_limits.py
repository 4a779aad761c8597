"""Limits on feedback: by address, key and session; whole lists counted by their events; forged headers."""

from __future__ import annotations

import itertools
import os
import sqlite3
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest
from redis.exceptions import RedisError

from feedback_app.models import AgentFeedback
from sessions_app.access import limits
from sessions_app.access.buckets import Draw, FileBuckets, Rate, RedisBuckets, merged, name_of
from sessions_app.services.recording import record_sessions
from tests.stack import Redis

EVENT = {"sessionId": "s1", "type": "star", "value": 4}
WIDE = (1_000_000, 60)


@pytest.fixture
def sessions(db):
    record_sessions([{"session_id": "s1"}, {"session_id": "s2"}])


@pytest.fixture
def rates(settings):
    """Narrow some of the rates, widen the others: `rates(address=(3, 60))`."""

    def narrow(**given):
        settings.FEEDBACK_RATES = {"address": WIDE, "session": WIDE, "key": WIDE} | given

    return narrow


def say(client, session_id="s1", address="203.0.113.9", forwarded=None, verdict="useful"):
    headers = {"x-forwarded-for": forwarded} if forwarded else {}
    body = {"sessionId": session_id, "feedback": verdict}
    return client.post("/api/feedback", body, format="json", headers=headers, REMOTE_ADDR=address)


def send(client, count, session_id="s1", address="203.0.113.9"):
    events = [{**EVENT, "sessionId": session_id}] * count
    return client.post("/api/feedback/events", events, format="json", REMOTE_ADDR=address)


# -- by whom -----------------------------------------------------------------------------------------------------------


def test_an_address_has_its_rate_whatever_it_forges(anonymous, sessions, rates):
    rates(address=(3, 60))
    codes = [say(anonymous, forwarded=f"198.51.100.{n}, 192.0.2.{n}").status_code for n in range(5)]
    assert codes == [200, 200, 200, 429, 429]
    assert AgentFeedback.objects.count() == 3
    assert say(anonymous, address="203.0.113.10").status_code == 200


def test_a_refusal_has_the_one_form_and_says_when_to_come_again(anonymous, sessions, rates):
    rates(address=(2, 60))
    say(anonymous), say(anonymous)
    refused = say(anonymous)
    assert refused.status_code == 429
    assert sorted(refused.json()) == ["code", "errors", "message", "success"]
    assert (refused.json()["success"], refused.json()["code"]) == (False, "throttled")
    assert "60" in refused.json()["message"]
    assert 58 <= int(refused["Retry-After"]) <= 61


def test_behind_a_proxy_its_clients_are_told_apart_and_forge_nothing(anonymous, sessions, rates, settings):
    settings.TRUSTED_PROXIES = 1
    rates(address=(2, 60))
    proxy = "10.0.0.1"
    ann = [say(anonymous, address=proxy, forwarded=f"198.51.100.{n}, 203.0.113.1").status_code for n in range(4)]
    bob = [say(anonymous, address=proxy, forwarded=f"203.0.113.1, 203.0.113.{n}").status_code for n in (2, 2, 2, 3)]
    assert ann == [200, 200, 429, 429]
    assert bob == [200, 200, 429, 200]


@pytest.mark.parametrize(
    ("proxies", "peer", "forwarded", "expected"),
    [
        (0, "203.0.113.9", "198.51.100.1", "203.0.113.9"),
        (0, "", None, ""),
        (1, "10.0.0.1", "198.51.100.1", "198.51.100.1"),
        (1, "10.0.0.1", "6.6.6.6, 198.51.100.1", "198.51.100.1"),
        (2, "10.0.0.1", "6.6.6.6, 198.51.100.1, 10.0.0.2", "198.51.100.1"),
        (2, "198.51.100.1", "6.6.6.6", "198.51.100.1"),
        (1, "198.51.100.1", None, "198.51.100.1"),
        (1, "10.0.0.1", "unknown", "10.0.0.1"),
        (1, "10.0.0.1", "6.6.6.6,", "10.0.0.1"),
        (1, "10.0.0.1", "198.51.100.1:50443", "198.51.100.1"),
        (1, "10.0.0.1", "[2001:db8:1:2:3::4]:443", "2001:db8:1:2::/64"),
        (1, "10.0.0.1", "::ffff:198.51.100.1", "198.51.100.1"),
        (0, "2001:db8:1:2:ffff::1", None, "2001:db8:1:2::/64"),
        (0, "fe80::1%eth0", None, "fe80::/64"),
    ],
)
def test_whose_a_request_is(rf, settings, proxies, peer, forwarded, expected):
    settings.TRUSTED_PROXIES = proxies
    extra = {"headers": {"x-forwarded-for": forwarded}} if forwarded else {}
    assert limits.address_of(rf.post("/api/feedback", REMOTE_ADDR=peer, **extra)) == expected


def test_a_session_has_its_rate_from_however_many_addresses(anonymous, sessions, rates):
    rates(session=(3, 60))
    codes = [say(anonymous, address=f"203.0.113.{n}").status_code for n in range(5)]
    assert codes == [200, 200, 200, 429, 429]
    assert say(anonymous, session_id="s2").status_code == 200


def test_a_key_has_its_rate_from_however_many_addresses_and_sessions(client_with, anonymous, sessions, rates):
    rates(key=(2, 60))
    one, other = client_with("feedback"), client_with("feedback")
    codes = [say(one, f"s{n % 2 + 1}", address=f"203.0.113.{n}").status_code for n in range(4)]
    assert codes == [200, 200, 429, 429]
    assert say(other).status_code == 200
    assert say(anonymous).status_code == 200


def test_a_recording_agent_is_not_limited(api, sessions, rates):
    rates(address=(1, 60), session=(1, 60), key=(1, 60))
    assert [send(api, 100).status_code for _ in range(3)] == [200, 200, 200]


def test_who_may_not_speak_uses_up_nothing_of_the_session(anonymous, sessions, rates, settings):
    settings.FEEDBACK_AUTH = "token"
    rates(session=(2, 60))
    assert [say(anonymous).status_code for _ in range(4)] == [403] * 4
    assert [send(anonymous, 4).json()["accepted"] for _ in range(2)] == [0, 0]
    settings.FEEDBACK_AUTH = "anonymous"
    assert say(anonymous).status_code == 200


# -- how much ----------------------------------------------------------------------------------------------------------


def test_a_list_counts_as_its_events(anonymous, sessions, rates):
    rates(address=(300, 60))
    assert [send(anonymous, 100).status_code for _ in range(4)] == [200, 200, 200, 429]
    assert AgentFeedback.objects.count() == 300


def test_a_list_larger_than_the_rate_is_taken_once_and_paid_for(anonymous, sessions, rates):
    rates(address=(100, 60))
    assert send(anonymous, 500).json()["accepted"] == 500
    refused = send(anonymous, 1)
    assert refused.status_code == 429
    assert 295 <= int(refused["Retry-After"]) <= 301
    assert AgentFeedback.objects.count() == 500


def test_bad_events_count_too_and_of_a_refused_list_nothing_is_stored(anonymous, sessions, rates):
    rates(address=(3, 60))
    bad = {**EVENT, "value": 9}
    body = anonymous.post("/api/feedback/events", [bad, EVENT, 7], format="json").json()
    assert (body["accepted"], len(body["rejected"])) == (1, 2)
    assert anonymous.post("/api/feedback/events", [EVENT, EVENT], format="json").status_code == 429
    assert AgentFeedback.objects.count() == 1


def test_one_full_session_refuses_a_list_and_charges_its_neighbours_nothing(anonymous, sessions, rates):
    rates(session=(1, 60))
    say(anonymous, "s1")
    both = [EVENT, {**EVENT, "sessionId": "s2"}]
    assert anonymous.post("/api/feedback/events", both, format="json").status_code == 429
    assert say(anonymous, "s2").status_code == 200


def test_a_field_named_like_a_column_is_no_session(anonymous, sessions):
    body = anonymous.post("/api/feedback/events", [{**EVENT, "session_id": "s1"}], format="json").json()
    assert body == {"accepted": 0, "rejected": [{"index": 0, "errors": {"session_id": ["未知字段。"]}}]}


def test_a_large_body_is_refused_unread_when_there_is_no_room(anonymous, sessions, rates, monkeypatch):
    rates(address=(1, 60))
    say(anonymous)
    monkeypatch.setattr("sessions_app.wire.parsers.loads_strict", lambda _body: pytest.fail("was read"))
    large = '{"sessionId": "s1", "feedback": "useful", "comment": "' + "x" * limits.LARGE_BODY_BYTES + '"}'
    answer = anonymous.generic("POST", "/api/feedback", large, "application/json", REMOTE_ADDR="203.0.113.9")
    assert answer.status_code == 429


def test_room_comes_back_with_time(tmp_path, monkeypatch):
    buckets = FileBuckets(tmp_path / "limits.sqlite3")
    now = time.time()
    monkeypatch.setattr("sessions_app.access.buckets.time.time", lambda: now)
    draw = [Draw("a", Rate(4, 60), 1)]
    assert [buckets.draw(draw) > 0 for _ in range(5)] == [False] * 4 + [True]
    now += 59
    assert buckets.draw(draw) == pytest.approx(1, abs=0.01)
    now += 2
    assert [buckets.draw(draw) > 0 for _ in range(5)] == [False] * 4 + [True]
    now -= 100_000  # somebody set the clock back
    assert buckets.draw(draw) == 0


# -- where it is counted -----------------------------------------------------------------------------------------------


@pytest.fixture(params=["file", "redis"])
def kept(request, tmp_path):
    """How another process or object reaches the same buckets."""
    if request.param == "file":
        yield lambda: FileBuckets(tmp_path / "limits.sqlite3")
        return
    server = Redis(tmp_path / "redis")
    server.start()
    yield lambda: RedisBuckets(server.url)
    server.stop()


def test_whoever_counts_counts_together_and_lets_exactly_so_many_through(kept):
    """Four counters, as four processes would have them, and 16 threads; the rate is slow enough to add nothing."""
    counters = [kept() for _ in range(4)]
    draw = [Draw("a", Rate(50, 86_400), 1), Draw("b", Rate(1000, 86_400), 1)]
    barrier = threading.Barrier(16)

    def hammer(number):
        barrier.wait(10)
        return sum(counters[number % 4].draw(draw) == 0 for _ in range(20))

    with ThreadPoolExecutor(16) as pool:
        assert sum(pool.map(hammer, range(16))) == 50
    # What was refused was not charged: the second bucket holds 50 too.
    assert counters[0].draw([Draw("b", Rate(1000, 86_400), 950)]) == 0
    assert counters[1].draw([Draw("b", Rate(1000, 86_400), 1)]) > 0


def test_a_look_takes_nothing(kept):
    buckets = kept()
    look, take = [Draw("a", Rate(1, 60), 0)], [Draw("a", Rate(1, 60), 1)]
    assert [buckets.draw(look), buckets.draw(look), buckets.draw(take)] == [0, 0, 0]
    assert 59 <= buckets.draw(look) <= 60
    buckets.forget()
    assert buckets.draw(take) == 0


def test_what_was_taken_too_much_lengthens_the_wait(kept):
    buckets = kept()
    assert buckets.draw([Draw("a", Rate(100, 60), 99), Draw("b", Rate(1_000_000, 60), 500)]) == 0
    assert buckets.draw([Draw("a", Rate(100, 60), 500), Draw("b", Rate(1_000_000, 60), 500)]) == 0
    assert buckets.draw([Draw("a", Rate(100, 60), 1)]) == pytest.approx(60 + 499 * 0.6, abs=2)
    assert buckets.draw([Draw("b", Rate(1_000_000, 60), 500)]) == 0


def test_a_bucket_is_emptied_after_its_period(kept):
    buckets = kept()
    draw = [Draw("a", Rate(1, 1), 1)]
    assert buckets.draw(draw) == 0
    wait = buckets.draw(draw)
    assert 0 < wait <= 1
    time.sleep(wait + 0.05)
    assert buckets.draw(draw) == 0


def test_two_draws_on_one_bucket_are_one():
    rate = Rate(5, 60)
    assert merged([Draw("a", rate, 1), Draw("b", rate, 1), Draw("a", rate, 1)]) == [
        Draw("a", rate, 2), Draw("b", rate, 1),
    ]  # fmt: skip


def test_old_buckets_are_swept_away(tmp_path, monkeypatch):
    moments = itertools.count(time.time())
    monkeypatch.setattr("sessions_app.access.buckets.time.time", lambda: next(moments))
    path = tmp_path / "limits.sqlite3"
    buckets = FileBuckets(path)
    for number in range(2100):
        buckets.draw([Draw(str(number), Rate(1_000_000, 1), 1)])
    with sqlite3.connect(path) as connection:
        assert connection.execute("SELECT COUNT(*) FROM bucket").fetchone()[0] < 1100


def test_nobody_reads_an_address_or_id_from_a_bucket():
    name = name_of("address", "203.0.113.9")
    assert name == name_of("address", "203.0.113.9") != name_of("session", "203.0.113.9")
    assert "203" not in name.partition(":")[2]
    assert len(name_of("session", "x" * 64)) < 40


@pytest.fixture
def no_redis(settings, monkeypatch):
    monkeypatch.setattr(limits, "_away_until", 0.0)
    settings.CACHE_URL = "redis://127.0.0.1:1/0"
    with pytest.raises(RedisError):
        limits.stores(settings.CACHE_URL, settings.DATA_DIR)[0].draw([Draw("a", Rate(1, 60), 1)])


def test_while_redis_is_away_the_machine_counts_for_itself_and_nobody_waits(anonymous, sessions, rates, no_redis):
    rates(address=(3, 60))
    start = time.monotonic()
    assert [say(anonymous).status_code for _ in range(5)] == [200, 200, 200, 429, 429]
    assert time.monotonic() - start < 3
    assert limits._away_until > time.monotonic()


def test_with_nowhere_to_count_feedback_is_let_in(anonymous, sessions, rates, no_redis, settings, tmp_path):
    settings.DATA_DIR = tmp_path / "nowhere"
    rates(address=(3, 60))
    assert [say(anonymous).status_code for _ in range(5)] == [200] * 5


@pytest.mark.parametrize("rate", ["", "none", "0/min", "5", "5/week", "-1/min", "1.5/min"])
def test_a_rate_that_is_none_stops_the_start(rate):
    program = "import config.settings"
    done = subprocess.run(
        [sys.executable, "-c", program], env={**os.environ, "FEEDBACK_RATE_PER_KEY": rate},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode != 0
    assert "is no rate" in done.stderr
