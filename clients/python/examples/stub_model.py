"""A stand-in for OpenAI's API, so that the examples run without a key: `python examples/stub_model.py`, port 8001.

It asks for the first tool it is offered, then answers. It knows chat completions and responses, plain and streamed,
and counts a token for each word.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

MODEL = "stub-model-2026"
ANSWER = "The connection pool was exhausted. Raise it to 50."
ARGUMENTS = '{"query": "checkout slow"}'

Json = dict[str, Any]


class StubModel(BaseHTTPRequestHandler):
    """Answers POST /v1/chat/completions and /v1/responses."""

    protocol_version = "HTTP/1.1"
    error_status = 0  # answer with this error, once set

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the base's name
        """Say nothing."""

    def do_POST(self) -> None:
        """Answer one call."""
        request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if self.error_status:
            self._send("application/json", json.dumps({"error": {"message": "out of order"}}), self.error_status)
        elif self.path.endswith("/responses"):
            self._answer(request, _response(request), _response_events(request))
        else:
            self._answer(request, _completion(request), _completion_chunks(request))

    def _answer(self, request: Json, whole: Json, pieces: Iterator[Json]) -> None:
        if not request.get("stream"):
            self._send("application/json", json.dumps(whole))
            return
        lines = []
        for piece in pieces:
            if "type" in piece:
                lines.append(f"event: {piece['type']}\n")
            lines.append(f"data: {json.dumps(piece)}\n\n")
        self._send("text/event-stream", "".join(lines) + "data: [DONE]\n\n")

    def _send(self, kind: str, text: str, status: int = 200) -> None:
        with contextlib.suppress(OSError):  # the caller had enough
            body = text.encode()
            self.send_response(status)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)


def _wants_tool(request: Json) -> str | None:
    """The tool to ask for, until its result is there."""
    tools = request.get("tools")
    said = request.get("messages") or request.get("input")
    is_answered = isinstance(said, list) and any(
        item.get("role") == "tool" or item.get("type") == "function_call_output" for item in said
    )
    if not tools or is_answered:
        return None
    tool = tools[0]
    return str(tool.get("function", tool)["name"])


def _words(request: Json) -> int:
    return len(json.dumps(request.get("messages") or request.get("input")).split())


def _usage(request: Json, output: str) -> Json:
    taken, given = _words(request), len(output.split())
    return {"prompt_tokens": taken, "completion_tokens": given, "total_tokens": taken + given}


def _completion(request: Json) -> Json:
    tool = _wants_tool(request)
    message: Json = {"role": "assistant", "content": None if tool else ANSWER}
    if tool:
        message["tool_calls"] = [
            {"id": "call_1", "type": "function", "function": {"name": tool, "arguments": ARGUMENTS}}
        ]
    choice = {"index": 0, "message": message, "finish_reason": "tool_calls" if tool else "stop"}
    return {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "created": 1,
        "model": MODEL,
        "choices": [choice],
        "usage": _usage(request, ARGUMENTS if tool else ANSWER),
    }


def _completion_chunks(request: Json) -> Iterator[Json]:
    frame = {"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1, "model": MODEL}
    tool = _wants_tool(request)
    deltas: list[Json]
    if tool:
        deltas = [
            {
                "tool_calls": [
                    {"index": 0, "id": "call_1", "type": "function", "function": {"name": tool, "arguments": ""}}
                ]
            },
            *(
                {"tool_calls": [{"index": 0, "function": {"arguments": part}}]}
                for part in (ARGUMENTS[:5], ARGUMENTS[5:])
            ),
        ]
    else:
        deltas = [{"content": f"{word} "} for word in ANSWER.split()]
    for delta in [{"role": "assistant", "content": ""}, *deltas]:
        yield {**frame, "choices": [{"index": 0, "delta": delta, "finish_reason": None}]}
    yield {**frame, "choices": [{"index": 0, "delta": {}, "finish_reason": "tool_calls" if tool else "stop"}]}
    if (request.get("stream_options") or {}).get("include_usage"):
        yield {**frame, "choices": [], "usage": _usage(request, ARGUMENTS if tool else ANSWER)}


def _response(request: Json) -> Json:
    tool = _wants_tool(request)
    if tool:
        item: Json = {"type": "function_call", "id": "fc_1", "call_id": "call_1", "name": tool, "arguments": ARGUMENTS}
    else:
        part = {"type": "output_text", "text": ANSWER, "annotations": []}
        item = {"type": "message", "id": "msg_1", "role": "assistant", "status": "completed", "content": [part]}
    thought = {"type": "reasoning", "id": "rs_1", "summary": [{"type": "summary_text", "text": "It is the pool."}]}
    usage = _usage(request, ARGUMENTS if tool else ANSWER)
    return {
        "id": "resp_1",
        "object": "response",
        "created_at": 1,
        "status": "completed",
        "model": MODEL,
        "output": [thought, item],
        "parallel_tool_calls": True,
        "tool_choice": "auto",
        "tools": [],
        "usage": {
            "input_tokens": usage["prompt_tokens"],
            "input_tokens_details": {"cached_tokens": 2, "cache_write_tokens": 0},
            "output_tokens": usage["completion_tokens"],
            "output_tokens_details": {"reasoning_tokens": 1},
            "total_tokens": usage["total_tokens"],
        },
    }


def _response_events(request: Json) -> Iterator[Json]:
    whole = _response(request)
    yield {"type": "response.created", "sequence_number": 0, "response": {**whole, "output": [], "usage": None}}
    for number, word in enumerate(ANSWER.split(), 1):
        yield {
            "type": "response.output_text.delta",
            "sequence_number": number,
            "item_id": "msg_1",
            "output_index": 1,
            "content_index": 0,
            "delta": f"{word} ",
            "logprobs": [],
        }
    yield {"type": "response.completed", "sequence_number": 99, "response": whole}


def make_server(port: int = 0) -> ThreadingHTTPServer:
    """A server on this machine; port 0 takes any free one."""
    handler = type("Handler", (StubModel,), {})
    server = ThreadingHTTPServer(("127.0.0.1", port), handler)
    server.daemon_threads = True
    return server


if __name__ == "__main__":
    with contextlib.suppress(KeyboardInterrupt):
        make_server(8001).serve_forever()
