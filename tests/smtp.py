"""A mail server in a thread: takes what is sent, or refuses it. Speaks as much SMTP as `smtplib` asks for."""

from __future__ import annotations

import socketserver
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from email import message_from_bytes, policy
from email.message import EmailMessage
from typing import Any


class MailServer(socketserver.ThreadingTCPServer):
    """`mails` holds what was taken; while `refusal` is set, each mail is answered with it."""

    allow_reuse_address = True
    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Talk)
        self.mails: list[EmailMessage] = []
        self.refusal: str | None = None

    @property
    def url(self) -> str:
        """For EMAIL_URL."""
        return f"smtp://127.0.0.1:{self.server_address[1]}"


class _Talk(socketserver.StreamRequestHandler):
    server: MailServer

    def handle(self) -> None:
        self._say("220 ready")
        for line in self.rfile:
            match line[:4].upper().strip():
                case b"EHLO" | b"HELO" | b"RSET" | b"NOOP":
                    self._say("250 fine")
                case b"MAIL" | b"RCPT":
                    self._say(self.server.refusal or "250 fine")
                case b"DATA":
                    self._say("354 go on")
                    self._take()
                case b"QUIT":
                    self._say("221 bye")
                    return
                case _:
                    self._say("502 what?")

    def _take(self) -> None:
        lines = []
        for line in self.rfile:
            if line == b".\r\n":
                break
            lines.append(line.removeprefix(b"."))
        mail: Any = message_from_bytes(b"".join(lines), policy=policy.default)
        self.server.mails.append(mail)
        self._say("250 taken")

    def _say(self, answer: str) -> None:
        self.wfile.write(f"{answer}\r\n".encode())


@contextmanager
def mail_server() -> Iterator[MailServer]:
    """A server for as long as the block lasts."""
    with MailServer() as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join()
