"""An agent on the OpenAI library: one line records every model call, streamed ones too.

python examples/stub_model.py &         # a stand-in for OpenAI's API; or set OPENAI_BASE_URL and OPENAI_API_KEY
DIAGNOSIS_API_KEY=… python examples/openai_agent.py
"""

from __future__ import annotations

import json
import logging
import os
from typing import Any

import openai

from diagnosis_client import Recorder

recorder = Recorder(
    os.environ.get("DIAGNOSIS_ENDPOINT", "http://127.0.0.1:8000"),
    api_key=os.environ.get("DIAGNOSIS_API_KEY"),
    agent_id="example/openai",
)
client = recorder.wrap_openai(
    openai.OpenAI(
        base_url=os.environ.get("OPENAI_BASE_URL", "http://127.0.0.1:8001/v1"),
        api_key=os.environ.get("OPENAI_API_KEY", "none"),
    )
)
MODEL = os.environ.get("OPENAI_MODEL", "stub-model")
TOOLS: list[Any] = [
    {
        "type": "function",
        "function": {
            "name": "lookup_knowledge",
            "description": "Find runbooks.",
            "parameters": {"type": "object", "properties": {"query": {"type": "string"}}},
        },
    }
]


def lookup_knowledge(query: str, call_id: str) -> str:
    """A tool whose call id is known, so that it is recorded as a block."""
    with recorder.lookup("lookup_knowledge", query, call_id) as lookup:
        found = [("Connection pool exhausted", 0.91)]
        lookup.hits(l1=found)
        lookup.result(found)
        return "Connection pool exhausted: raise it."


def diagnose(question: str) -> str:
    """The usual loop, then the answer as a stream."""
    with recorder.session(question) as session:
        messages: list[Any] = [{"role": "user", "content": question}]
        asked = client.chat.completions.create(model=MODEL, messages=messages, tools=TOOLS)
        message = asked.choices[0].message
        messages.append(message)
        for call in message.tool_calls or []:
            if call.type == "function":
                found = lookup_knowledge(json.loads(call.function.arguments).get("query", ""), call.id)
                messages.append({"role": "tool", "tool_call_id": call.id, "content": found})
        text = ""
        for chunk in client.chat.completions.create(
            model=MODEL, messages=messages, stream=True, stream_options={"include_usage": True}
        ):
            if chunk.choices:
                text += chunk.choices[0].delta.content or ""
        session.answer(text)
        print(f"Recorded session {session.session_id}: {text}")
        return text


if __name__ == "__main__":
    logging.basicConfig(level=logging.WARNING)
    diagnose("Why is checkout slow?")
