"""A way to a server that can be cut: what the product sees when its database goes away."""

from __future__ import annotations

import socket
import threading
import time
from contextlib import suppress

from tests.stack import free_port


class Proxy:
    """Passes TCP on to a server.

    `cut` ends all connections and refuses new ones; `mend` lets them through again. While `is_frozen`, connections are
    taken and what comes is kept, but nothing goes on.
    """

    is_frozen = False

    def __init__(self, host: str, port: int) -> None:
        self.target = (host, port)
        self.port = free_port()
        self._open: set[socket.socket] = set()
        self._lock = threading.Lock()
        self._listener: socket.socket | None = None
        self.mend()

    def mend(self) -> None:
        """Listen."""
        listener = socket.create_server(("127.0.0.1", self.port))
        self._listener = listener
        threading.Thread(target=self._accept, args=(listener,), daemon=True).start()

    def cut(self) -> None:
        """Stop listening, and end what is open in the middle of whatever it does."""
        if self._listener is not None:
            with suppress(OSError):
                self._listener.shutdown(socket.SHUT_RDWR)
            self._listener.close()
            self._listener = None
        self.break_connections()

    def break_connections(self) -> None:
        """End what is open; new connections are taken."""
        with self._lock:
            for connection in self._open:
                with suppress(OSError):
                    connection.shutdown(socket.SHUT_RDWR)

    def _accept(self, listener: socket.socket) -> None:
        with suppress(OSError):
            while True:
                client, _ = listener.accept()
                threading.Thread(target=self._serve, args=(client,), daemon=True).start()

    def _serve(self, client: socket.socket) -> None:
        with client, suppress(OSError), socket.create_connection(self.target) as server:
            with self._lock:
                self._open |= {client, server}
            back = threading.Thread(target=self._copy, args=(server, client), daemon=True)
            back.start()
            self._copy(client, server)
            back.join()
            with self._lock:
                self._open -= {client, server}

    def _copy(self, source: socket.socket, target: socket.socket) -> None:
        with suppress(OSError):
            while data := source.recv(65_536):
                while self.is_frozen:
                    time.sleep(0.05)
                target.sendall(data)
        with suppress(OSError):
            target.shutdown(socket.SHUT_WR)
