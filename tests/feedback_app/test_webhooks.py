"""Posting to webhooks: which addresses they reach, how they are signed, and what the other side can do to us."""

from __future__ import annotations

import base64
import hashlib
import hmac
import shutil
import subprocess
import time
from datetime import UTC, datetime

import pytest

from feedback_app.checks import check_alert_hosts
from feedback_app.webhooks.addresses import Allowed, UnreachableHostError, reachable_addresses, system_addresses
from feedback_app.webhooks.posting import ANSWER_CHARS, Failure, post
from feedback_app.webhooks.signing import secret_text, signed_headers
from tests import absent
from tests.receiver import receiver

LOCAL = Allowed.of(["127.0.0.1"])
PUBLIC = "93.184.215.14"


def resolving(*answers):
    """A name server that gives the next answer each time it is asked, the last one for ever."""
    left = list(answers)
    return lambda _host, _port: left.pop(0) if len(left) > 1 else left[0]


# -- addresses -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "address",
    [
        pytest.param("127.0.0.1", id="loopback"),
        pytest.param("127.8.8.8", id="all-of-loopback"),
        pytest.param("0.0.0.0", id="unspecified"),
        pytest.param("10.1.2.3", id="private-10"),
        pytest.param("172.16.0.1", id="private-172"),
        pytest.param("192.168.1.1", id="private-192"),
        pytest.param("100.64.0.1", id="cgnat"),
        pytest.param("100.100.100.200", id="metadata-of-alibaba"),
        pytest.param("169.254.169.254", id="metadata"),
        pytest.param("168.63.129.16", id="metadata-of-azure"),
        pytest.param("192.0.0.192", id="metadata-of-oracle"),
        pytest.param("192.0.2.1", id="documentation"),
        pytest.param("198.18.0.1", id="benchmarks"),
        pytest.param("224.0.0.1", id="multicast"),
        pytest.param("239.1.1.1", id="local-multicast"),
        pytest.param("240.0.0.1", id="reserved"),
        pytest.param("255.255.255.255", id="broadcast"),
        pytest.param("::1", id="v6-loopback"),
        pytest.param("::", id="v6-unspecified"),
        pytest.param("fe80::1", id="v6-link-local"),
        pytest.param("fe80::1%eth0", id="v6-link-local-with-zone"),
        pytest.param("fec0::1", id="v6-site-local"),
        pytest.param("fd00:ec2::254", id="v6-private-metadata-of-aws"),
        pytest.param("ff02::1", id="v6-multicast"),
        pytest.param("ff0e::1", id="v6-global-multicast"),
        pytest.param("::ffff:127.0.0.1", id="mapped"),
        pytest.param("::ffff:93.184.215.14", id="mapped-public"),
        pytest.param("::127.0.0.1", id="compatible"),
        pytest.param("64:ff9b::7f00:1", id="nat64"),
        pytest.param("64:ff9b:1::a00:1", id="nat64-local"),
        pytest.param("2002:7f00:1::1", id="6to4"),
        pytest.param("2001:0:7f00:1::", id="teredo"),
        pytest.param("2001:db8::1", id="v6-documentation"),
        pytest.param("nonsense", id="no-address"),
    ],
)
def test_what_is_not_public_is_refused(address):
    with pytest.raises(UnreachableHostError):
        reachable_addresses("hook.example", 80, allowed=Allowed(), resolve=resolving([address]))


@pytest.mark.parametrize("address", [PUBLIC, "8.8.8.8", "2606:2800:21f:cb07:6820:80da:af6b:8b2c"])
def test_what_is_public_is_reached(address):
    assert reachable_addresses("hook.example", 80, allowed=Allowed(), resolve=resolving([address])) == [address]


def test_of_several_addresses_the_public_ones_are_left():
    resolve = resolving(["10.0.0.1", PUBLIC, "::1"])
    assert reachable_addresses("hook.example", 80, allowed=Allowed(), resolve=resolve) == [PUBLIC]


@pytest.mark.parametrize("spelling", ["127.1", "0x7f000001", "2130706433", "0177.0.0.1", "localhost", "[::1]"])
def test_no_spelling_hides_loopback(spelling):
    outcome = post(f"http://{spelling}:9/", b"", {}, allowed=Allowed())
    assert outcome.failure in (Failure.REFUSED_ADDRESS, Failure.UNKNOWN_HOST)
    assert outcome.status_code is None


@pytest.mark.parametrize(
    ("entries", "host", "address", "is_reached"),
    [
        pytest.param(["10.2.0.0/16"], "h", "10.2.3.4", True, id="network"),
        pytest.param(["10.2.0.0/16"], "h", "10.3.3.4", False, id="another-network"),
        pytest.param(["10.2.3.4"], "h", "10.2.3.4", True, id="address"),
        pytest.param(["fd12::/32"], "h", "fd12::1", True, id="v6-network"),
        pytest.param(["[fd12::1]"], "h", "fd12::1", True, id="v6-in-brackets"),
        pytest.param(["Hooks.Internal"], "hooks.internal.", "10.2.3.4", True, id="name"),
        pytest.param(["internal"], "hooks.internal", "10.2.3.4", False, id="no-name-below"),
        pytest.param(["10.2.0.0/16"], "h", "::ffff:10.2.3.4", False, id="not-mapped"),
        pytest.param(["", " "], "h", "10.2.3.4", False, id="nothing"),
    ],
)
def test_what_a_setting_allows(entries, host, address, is_reached):
    options = {"allowed": Allowed.of(entries), "resolve": resolving([address])}
    if is_reached:
        assert reachable_addresses(host, 80, **options) == [address]
    else:
        with pytest.raises(UnreachableHostError) as error:
            reachable_addresses(host, 80, **options)
        assert error.value.is_refused


@pytest.mark.parametrize("entry", ["10.2.0.1/16", "10.0.0.0/99", "fd12::x"])
def test_a_network_that_is_none_is_told(entry):
    with pytest.raises(ValueError, match=r"."):
        Allowed.of([entry])


# -- one post --------------------------------------------------------------------------------------------------------


def test_what_is_sent_and_what_comes_back():
    with receiver() as server:
        server.reply(200, "fine\x00\x1b[31m ok")
        outcome = post(f"{server.url}/hook?key=1", b'{"a": 1}', {"webhook-id": "m"}, allowed=LOCAL)
    assert (outcome.failure, outcome.status_code, outcome.answer) == ("", 200, "fine  [31m ok")
    [request] = server.requests
    assert (request.path, request.body, request.headers["webhook-id"]) == ("/hook?key=1", b'{"a": 1}', "m")
    assert request.headers["host"] == server.url.removeprefix("http://")


@pytest.mark.parametrize(
    ("status", "failure"),
    [(204, ""), (301, "redirect"), (307, "redirect"), (400, "status"), (404, "status"), (500, "status")],
)
def test_only_2xx_is_success(status, failure):
    with receiver() as server:
        server.reply(status, "", location=f"{server.url}/elsewhere")
        outcome = post(server.url, b"{}", {}, allowed=LOCAL)
    assert (outcome.failure, outcome.status_code) == (failure, status)
    assert len(server.requests) == 1, "no redirect is followed"


def test_a_name_is_asked_for_once_and_the_connection_goes_to_the_address_that_was_checked():
    with receiver() as server:
        port = int(server.url.rpartition(":")[2])
        asked = []

        def rebinding(host, asked_port):
            asked.append(host)
            return [PUBLIC] if len(asked) > 1 else ["127.0.0.1"]

        outcome = post(f"http://hook.example:{port}/", b"{}", {}, allowed=LOCAL, resolve=rebinding)
        assert (outcome.status_code, asked) == (200, ["hook.example"])
        assert server.requests[0].headers["host"] == f"hook.example:{port}"

        # The other way round: public when it is checked, this machine when one would connect by the name.
        outcome = post(
            f"http://localhost:{port}/", b"{}", {}, allowed=Allowed(), resolve=resolving(["192.0.2.9"]), seconds=1
        )
        assert outcome.failure == Failure.REFUSED_ADDRESS
        outcome = post(
            f"http://localhost:{port}/", b"{}", {}, allowed=Allowed(), resolve=resolving([PUBLIC]), seconds=0.3
        )
        assert outcome.failure in (Failure.TIMEOUT, Failure.UNREACHABLE)
    assert len(server.requests) == 1, "never by the name"


def test_a_redirect_to_this_machine_leads_nowhere():
    with receiver() as inside, receiver() as outside:
        outside.reply(302, "", location=inside.url)
        outcome = post(outside.url, b"{}", {}, allowed=LOCAL)
    assert (outcome.failure, inside.requests) == (Failure.REDIRECT, [])


def test_a_receiver_that_hangs_is_left_in_time():
    with receiver() as server:
        server.hang()
        began = time.monotonic()
        outcome = post(server.url, b"{}", {}, allowed=LOCAL, seconds=0.5)
        assert (outcome.failure, outcome.status_code) == (Failure.TIMEOUT, None)
        assert 0.4 < time.monotonic() - began < 2


def test_a_receiver_that_drips_is_left_in_time():
    with receiver() as server:
        server.drip(b"HTTP/1.1 200 OK\r\nX-Slow: " + b"x" * 1000, seconds=0.05)
        began = time.monotonic()
        outcome = post(server.url, b"{}", {}, allowed=LOCAL, seconds=0.5)
        assert outcome.failure == Failure.TIMEOUT
        assert time.monotonic() - began < 2


def test_an_answer_without_end_is_read_no_further_than_its_beginning():
    with receiver() as server:
        server.flood(b"HTTP/1.1 200 OK\r\n\r\n", b"y" * 65536)
        began = time.monotonic()
        outcome = post(server.url, b"{}", {}, allowed=LOCAL)
        assert (outcome.failure, outcome.answer) == ("", "y" * ANSWER_CHARS)
        assert time.monotonic() - began < 2


def test_headers_without_end_are_no_answer():
    with receiver() as server:
        server.flood(b"HTTP/1.1 200 OK\r\nX: ", b"y" * 65536)
        outcome = post(server.url, b"{}", {}, allowed=LOCAL)
    assert outcome.failure == Failure.BROKEN


@pytest.mark.parametrize(
    ("raw", "failure", "status"),
    [
        pytest.param(b"", Failure.BROKEN, None, id="nothing"),
        pytest.param(b"what?\r\n\r\n", Failure.BROKEN, None, id="no-http"),
        pytest.param(b"HTTP/1.1 200 OK\r\nContent-Length: 90\r\n\r\nhalf", "", 200, id="said-and-gone"),
    ],
)
def test_answers_that_break_off(raw, failure, status):
    with receiver() as server:
        server.raw(raw)
        outcome = post(server.url, b"{}", {}, allowed=LOCAL)
    assert (outcome.failure, outcome.status_code) == (failure, status)


def test_nobody_there_and_no_such_name():
    assert post("http://127.0.0.1:9/", b"{}", {}, allowed=LOCAL).failure == Failure.UNREACHABLE

    def unknown(host, port):
        raise OSError

    assert post("http://no.such/", b"{}", {}, allowed=LOCAL, resolve=unknown).failure == Failure.UNKNOWN_HOST


def test_https_asks_for_a_certificate_that_the_system_trusts():
    with receiver() as server:  # speaks no TLS at all
        outcome = post(server.url.replace("http:", "https:"), b"{}", {}, allowed=LOCAL, seconds=2)
    assert outcome.failure in (Failure.TLS, Failure.UNREACHABLE)
    assert server.requests == []


@pytest.fixture(scope="module")
def certificate(tmp_path_factory):
    """A key and a certificate for hook.example, which nobody trusts yet."""
    if not shutil.which("openssl"):
        absent("openssl is absent: apt-get install openssl")
    folder = tmp_path_factory.mktemp("tls")
    key, certificate = folder / "key.pem", folder / "certificate.pem"
    made = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]
    made += ["-keyout", str(key), "-out", str(certificate), "-days", "2", "-subj", "/CN=hook.example"]
    made += ["-addext", "subjectAltName=DNS:hook.example"]
    subprocess.run(made, check=True, capture_output=True)
    return key, certificate


@pytest.mark.parametrize(
    ("host", "is_trusted", "failure"),
    [
        pytest.param("hook.example", True, "", id="trusted"),
        pytest.param("other.example", True, Failure.TLS, id="of-another-name"),
        pytest.param("hook.example", False, Failure.TLS, id="of-nobody-we-trust"),
    ],
)
def test_a_certificate_is_asked_for_the_name_though_the_connection_goes_to_the_address(
    certificate, host, is_trusted, failure, monkeypatch
):
    key, path = certificate
    if is_trusted:
        monkeypatch.setenv("SSL_CERT_FILE", str(path))
    with receiver(certificate=(str(path), str(key))) as server:
        port = server.url.rpartition(":")[2]
        url = f"https://{host}:{port}/"
        outcome = post(url, b"{}", {}, allowed=LOCAL, resolve=resolving(["127.0.0.1"]), seconds=3)
    assert (outcome.failure, len(server.requests)) == (failure, 0 if failure else 1)


def test_of_several_addresses_the_next_is_tried_where_nobody_listens():
    with receiver() as server:
        port = server.url.rpartition(":")[2]
        resolve = resolving(["127.0.0.2", "127.0.0.1"])
        outcome = post(f"http://hook.example:{port}/", b"{}", {}, allowed=Allowed.of(["127.0.0.0/8"]), resolve=resolve)
    assert outcome.status_code == 200


@pytest.mark.parametrize(("hosts", "found"), [([], 0), (["hooks.internal", "10.2.0.0/16"], 0), (["10.2.0.1/16"], 1)])
def test_a_setting_that_names_no_network_is_told_at_the_start(settings, hosts, found):
    settings.ALERT_ALLOWED_PRIVATE_HOSTS = hosts
    assert [each.id for each in check_alert_hosts()] == ["feedback_app.E003"] * found


def test_this_machine_resolves_its_own_name():
    assert set(system_addresses("localhost", 80)) <= {"127.0.0.1", "::1"}


# -- signatures ------------------------------------------------------------------------------------------------------


def test_the_signature_is_that_of_the_standard():
    """The example of https://github.com/standard-webhooks/standard-webhooks/blob/main/spec/standard-webhooks.md"""
    secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
    key = base64.b64decode(secret.removeprefix("whsec_"))
    body = b'{"test": 2432232314}'
    at = datetime.fromtimestamp(1614265330, UTC)
    headers = signed_headers("msg_p5jXN8AQM9LWM0D4loKWxJek", at, body, [key])
    assert headers == {
        "webhook-id": "msg_p5jXN8AQM9LWM0D4loKWxJek",
        "webhook-timestamp": "1614265330",
        "webhook-signature": "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=",
    }
    assert secret_text(key) == secret


def test_each_key_signs():
    at, body = datetime.fromtimestamp(5, UTC), "да".encode()
    signatures = signed_headers("m", at, body, [b"new", b"old"])["webhook-signature"].split()
    expected = [hmac.new(key, b"m.5." + body, hashlib.sha256).digest() for key in (b"new", b"old")]
    assert signatures == [f"v1,{base64.b64encode(digest).decode()}" for digest in expected]
