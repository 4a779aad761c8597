"""A web server of a measurement's own, and what its processes used."""

from __future__ import annotations

import http.client
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, TypeVar

ROOT = Path(__file__).resolve().parent.parent
TICKS = os.sysconf("SC_CLK_TCK")

Item = TypeVar("Item")


@contextmanager
def web_server(
    environment: dict[str, str], processes: int, threads: int = 4, stderr: IO[bytes] | None = None
) -> Iterator[tuple[int, int]]:
    """Gunicorn on a free port, its log in `stderr`; yields the port and the master's process id."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
    command = [sys.executable, "-m", "gunicorn", "config.wsgi", "--bind", f"127.0.0.1:{port}", "--log-level", "warning"]
    command += ["--workers", str(processes), "--worker-class", "gthread", "--threads", str(threads)]
    process = subprocess.Popen(command, env=environment, cwd=ROOT, stderr=stderr)
    try:
        _wait_for(port)
        yield port, process.pid
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(20)


def _wait_for(port: int) -> None:
    for _ in range(200):
        try:
            connection = http.client.HTTPConnection("127.0.0.1", port, timeout=5)
            connection.request("GET", "/healthz")
            connection.getresponse().read()
        except OSError:
            time.sleep(0.1)
        else:
            return
    raise SystemExit("The web server did not start.")


def over_connections(
    port: int, connections: int, items: Iterable[Item], send: Callable[[http.client.HTTPConnection, Item], str]
) -> None:
    """Send all items over so many connections at once; what `send` returns is a failure, and ends the run."""
    todo = iter(items)
    lock = threading.Lock()
    failures: list[str] = []

    def work() -> None:
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
        while not failures:
            with lock:
                item = next(todo, None)
            if item is None:
                return
            if failure := send(connection, item):
                failures.append(failure)

    threads = [threading.Thread(target=work) for _ in range(connections)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if failures:
        raise SystemExit(failures[0])


def children(pid: int) -> list[int]:
    """The processes that a process started."""
    return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def cpu_seconds(pid: int) -> float:
    """What a process has used of the processors."""
    fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / TICKS


def peak_mb(pid: int) -> float:
    """The most memory a process has held."""
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmHWM"):
            return int(line.split()[1]) / 1000
    return 0.0


def inside(module: str, environment: dict[str, str], *command: str) -> str:
    """Run a command of a module in a process of its own, with these settings; what it printed."""
    done = subprocess.run(
        [sys.executable, "-m", module, *command],
        env=environment,
        cwd=ROOT,
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    return done.stdout
