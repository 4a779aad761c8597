"""A hand-written agent loop, with every hook there is.

    DIAGNOSIS_API_KEY=… python examples/plain_loop.py

Where no product listens on port 8000 it runs all the same; that is the point.
"""

from __future__ import annotations

import logging
import os
from dataclasses import dataclass, field

from diagnosis_client import FeedbackCollector, Recorder

ENDPOINT = os.environ.get("DIAGNOSIS_ENDPOINT", "http://127.0.0.1:8000")

recorder = Recorder(ENDPOINT, api_key=os.environ.get("DIAGNOSIS_API_KEY"), agent_id="example/plain-loop")
collector = FeedbackCollector(ENDPOINT, agent_id="example/plain-loop")


@dataclass
class Reply:
    """What a model gives."""

    text: str
    tool_calls: list[dict[str, object]] = field(default_factory=list)
    input_tokens: int = 0
    output_tokens: int = 0


def call_model(messages: list[dict[str, object]]) -> Reply:
    """Stand in for a model: first it wants the log, then it knows."""
    if messages[-1]["role"] == "tool":
        return Reply("The connection pool was exhausted. Raise it to 50.", input_tokens=180, output_tokens=12)
    wish: dict[str, object] = {"id": "call_1", "name": "read_log", "arguments": {"service": "checkout"}}
    return Reply("I look at the log.", [wish], input_tokens=90, output_tokens=20)


@recorder.tool
def read_log(service: str) -> str:
    """Stand in for a tool."""
    return f"{service}: timeout waiting for a connection from the pool"


@recorder.tool("lookup_knowledge")
def lookup(query: str) -> list[str]:
    """Stand in for a retrieval by exact key and by meaning."""
    recorder.hits(l0=["Connection pool exhausted"], l1=[("Slow checkout", 0.82)])
    return [f"Raise the pool. (about {query})"]


def diagnose(question: str) -> str:
    """One session; gives its id."""
    with recorder.session(question, conversation_id="c-1", metadata={"source": "example"}) as session:
        messages: list[dict[str, object]] = [{"role": "user", "content": question}]
        with recorder.agent("planner"):
            messages.append({"role": "system", "content": lookup(question)[0]})
        while True:
            step = recorder.before_model("intelligent_assistant", messages, model="stub-model")
            reply = call_model(messages)
            recorder.after_model(
                step,
                reply.text,
                input_tokens=reply.input_tokens,
                output_tokens=reply.output_tokens,
                tool_calls=reply.tool_calls,
            )
            if not reply.tool_calls:
                break
            messages.append({"role": "assistant", "content": reply.text, "tool_calls": reply.tool_calls})
            messages.append({"role": "tool", "tool_call_id": "call_1", "content": read_log("checkout")})
        session.answer(reply.text)
        session.evaluate(confidence=85, reasoning="The log says so.", evidence_count=2)
        return session.session_id


def main() -> None:
    """Ask once, and like the answer."""
    logging.basicConfig(level=logging.WARNING)
    session_id = diagnose("Why is checkout slow?")
    recorder.flush()
    collector.thumbs(session_id, "up", "That was it.")
    print(f"Recorded session {session_id}.")


if __name__ == "__main__":
    main()
