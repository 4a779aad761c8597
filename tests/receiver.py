"""A receiver of webhooks in a thread: answers as it is told, and keeps what it was sent."""

from __future__ import annotations

import socketserver
import ssl
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from email.message import Message
from http.client import parse_headers
from io import BufferedReader
from typing import Any

Reply = Callable[[Any], None]
"""Writes what it has to say; gets the handler."""


@dataclass(frozen=True)
class Received:
    """One request."""

    path: str
    headers: Message
    body: bytes
    at: float


class Receiver(socketserver.ThreadingTCPServer):
    """`requests` holds what came. Replies are given in turn, the last one for ever; 200 where nobody set one."""

    allow_reuse_address = True
    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Talk)
        self.requests: list[Received] = []
        self.replies: list[Reply] = []
        self.over = threading.Event()
        self.context: ssl.SSLContext | None = None

    @property
    def url(self) -> str:
        """Where it listens."""
        return f"http://127.0.0.1:{self.server_address[1]}"

    def reply(self, status: int, body: str = "", **headers: str) -> None:
        """Answer so."""
        lines = [f"HTTP/1.1 {status} Whatever", f"Content-Length: {len(body.encode())}"]
        lines += [f"{name}: {value}" for name, value in headers.items()]
        self.raw("\r\n".join([*lines, "", body]).encode())

    def raw(self, data: bytes) -> None:
        """Say just this, and hang up."""
        self.replies.append(lambda talk: talk.wfile.write(data))

    def hang(self) -> None:
        """Say nothing."""
        self.replies.append(lambda _talk: self.over.wait(30))

    def drip(self, data: bytes, seconds: float) -> None:
        """Say it byte by byte."""

        def say(talk: Any) -> None:
            for byte in data:
                if self.over.wait(seconds):
                    return
                talk.wfile.write(bytes([byte]))

        self.replies.append(say)

    def flood(self, head: bytes, part: bytes) -> None:
        """Say `part` again and again."""

        def say(talk: Any) -> None:
            talk.wfile.write(head)
            while not self.over.is_set():
                talk.wfile.write(part)

        self.replies.append(say)


class _Talk(socketserver.StreamRequestHandler):
    server: Receiver
    rfile: BufferedReader

    def setup(self) -> None:
        if self.server.context:
            self.request = self.server.context.wrap_socket(
                self.request, server_side=True, do_handshake_on_connect=False
            )
        super().setup()

    def handle(self) -> None:
        try:
            line = self.rfile.readline().decode("latin-1")
        except OSError:  # who did not like the certificate has hung up
            return
        if not line.startswith("POST "):
            return
        headers = parse_headers(self.rfile)
        body = self.rfile.read(int(headers["content-length"]))
        server = self.server
        server.requests.append(Received(line.split()[1], headers, body, time.time()))
        turn = min(len(server.requests), len(server.replies)) - 1
        with suppress(OSError):  # who was told too much has hung up
            if turn < 0:
                self.wfile.write(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
            else:
                server.replies[turn](self)


@contextmanager
def receiver(certificate: tuple[str, str] | None = None) -> Iterator[Receiver]:
    """A receiver for as long as the block lasts; with a certificate and its key (files) it speaks TLS."""
    with Receiver() as server:
        if certificate:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(*certificate)
            server.context = context
        thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
        thread.start()
        try:
            yield server
        finally:
            server.over.set()
            server.shutdown()
            thread.join()
