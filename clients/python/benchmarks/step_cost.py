"""What recording costs an agent, in milliseconds a step: `python benchmarks/step_cost.py`.

A step is one model call with its history and one tool call. The "model" takes 2 ms of sleep, as any network call gives
other threads their turn. The server runs in a process of its own, or not at all.
"""

from __future__ import annotations

import argparse
import contextlib
import logging
import multiprocessing
import statistics
import sys
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from multiprocessing.connection import Connection
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "src"))

from diagnosis_client import Recorder

MODEL_SECONDS = 0.002


class Sink(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *args: object) -> None:
        pass

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        self.send_response(200)
        self.send_header("Content-Length", "0")
        self.end_headers()


def serve(pipe: Connection) -> None:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Sink)
    pipe.send(server.server_address[1])
    server.serve_forever()


def run(recorder: Recorder | None, steps: int, history: list[dict[str, str]]) -> list[tuple[float, float]]:
    """Seconds of each step: on the clock, and of this thread on the processor."""
    took = []
    session = recorder.session("Why is checkout slow?") if recorder else contextlib.nullcontext()
    with session:
        for _ in range(steps):
            started, busy = time.perf_counter(), time.thread_time()
            if recorder is None:
                time.sleep(MODEL_SECONDS)
            else:
                step = recorder.before_model("helper", history, model="gpt-4.1")
                time.sleep(MODEL_SECONDS)
                recorder.after_model(
                    step,
                    "I look it up. " * 20,
                    input_tokens=900,
                    output_tokens=120,
                    tool_calls=[{"id": "call_1", "name": "grep", "args": {"pattern": "pool"}}],
                )
                with recorder.tool_call("grep", {"pattern": "pool"}, call_id="call_1") as call:
                    call.result("a line of the log\n" * 50)
            took.append((time.perf_counter() - started, time.thread_time() - busy))
    return took


def history_of(messages: int, characters: int) -> list[dict[str, str]]:
    return [{"role": "user" if n % 2 else "assistant", "content": f"{n} " + "x" * characters} for n in range(messages)]


def report(name: str, took: list[tuple[float, float]], base: list[tuple[float, float]]) -> None:
    """What is added to a step without recording. The processor's time is what busy neighbours touch least."""
    clock, busy = ([1000 * step[n] for step in took] for n in (0, 1))
    base_clock, base_busy = ([1000 * step[n] for step in base] for n in (0, 1))
    print(
        f"{name:46} {statistics.median(clock) - statistics.median(base_clock):10.3f}"
        f" {statistics.quantiles(clock, n=20)[-1] - statistics.quantiles(base_clock, n=20)[-1]:10.3f}"
        f" {statistics.mean(busy) - statistics.mean(base_busy):10.3f}"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=1_000)
    steps = parser.parse_args().steps
    logging.disable(logging.WARNING)
    ours, theirs = multiprocessing.get_context("spawn").Pipe()
    server = multiprocessing.get_context("spawn").Process(target=serve, args=(theirs,), daemon=True)
    server.start()
    up = f"http://127.0.0.1:{ours.recv()}"
    run(None, 50, [])
    base = run(None, steps, [])
    cases = [
        ("server up, history of 10 x 500 characters", up, history_of(10, 500)),
        ("server up, history of 1,000 x 1,000 characters", up, history_of(1_000, 1_000)),
        ("server away, history of 10 x 500 characters", "http://127.0.0.1:9", history_of(10, 500)),
        ("server away, history of 1,000 x 1,000", "http://127.0.0.1:9", history_of(1_000, 1_000)),
    ]
    print(f"{'milliseconds added to a step':46} {'median':>10} {'95th':>10} {'processor':>10}")
    for name, endpoint, history in cases:
        recorder = Recorder(endpoint, "key", "bench")
        run(recorder, 50, history)
        report(name, run(recorder, steps, history), base)
        recorder.close(0.1)
    server.terminate()


if __name__ == "__main__":
    main()
