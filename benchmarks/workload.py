"""Made-up sessions of a realistic size: 1 session, 4 steps, 6 tool invocations, about 26 kB as a trace.

As with real agents, an agent's system prompt is the same in every call, and a call repeats what was said before it.
"""

from __future__ import annotations

import json
import random
from datetime import UTC, datetime
from typing import Any

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

STEPS, TOOLS = 4, 6
_WORDS = (
    "pool connection timeout latency checkout replica index lock query memory heap pod restart quota cache eviction",
    "node disk inode traffic spike config rollout deploy пул память задержка узел",
    "连接池 超时 内存 慢查询 重启 缓存 负载",
)
_VOCABULARY = [word for line in _WORDS for word in line.split()]


def _text(chance: random.Random, chars: int) -> str:
    words: list[str] = []
    length = 0
    while length < chars:
        words.append(chance.choice(_VOCABULARY))
        length += len(words[-1]) + 1
    return " ".join(words)


_PROMPTS = {agent: _text(random.Random(agent), 600) for agent in ("planner", "executor")}


def session(number: int) -> dict[str, Any]:
    """One whole session in the wire form of contract 3."""
    chance = random.Random(number)

    def text(chars: int) -> str:
        return _text(chance, chars)

    question = text(200)
    said: list[dict[str, str]] = [{"role": "user", "content": question}]
    start = 1_780_000_000 + number
    steps: list[dict[str, Any]] = []
    for index in range(STEPS):
        count = (2, 2, 1, 1)[index]
        calls = [
            {"id": f"call-{number}-{index}-{n}", "name": "query_logs", "arguments": {"q": text(60)}}
            for n in range(count)
        ]
        agent = "executor" if index else "planner"
        output = text(460)
        steps.append(
            {
                "agentName": agent,
                "stepIndex": max(index - 1, 0),
                "modelName": "model-large-1",
                "modelInput": [{"role": "system", "content": _PROMPTS[agent]}, *said[-2:]],
                "modelOutput": {"text": output, "tool_calls": calls},
                "thought": text(250),
                "durationMs": 1500,
                "inputTokens": 900 + index,
                "outputTokens": 200,
                "startedAt": _moment(start + index * 2),
                "toolInvocations": [
                    {
                        "invocationId": f"{number:08x}{index:04x}{n:04x}",
                        "toolName": "lookup_knowledge" if n == 0 else "query_logs",
                        "inputParams": call["arguments"],
                        "output": text(1000),
                        "l0MatchCount": 1 if n == 0 else None,
                        "durationMs": 120,
                        "success": True,
                        "startedAt": _moment(start + index * 2 + 1),
                    }
                    for n, call in enumerate(calls)
                ],
            }
        )
        said.append({"role": "assistant", "content": output})
    return {
        "sessionId": f"bench-{number:08x}",
        "agentId": "bench",
        "agentFlow": "AI_OPS",
        "query": question,
        "status": "SUCCESS",
        "answer": text(2000),
        "selfEvaluation": {"confidence": 80, "reasoning": text(200)},
        "startedAt": _moment(start),
        "finishedAt": _moment(start + 10),
        "steps": steps,
    }


def batch_body(numbers: range) -> bytes:
    """A REST batch."""
    return json.dumps([session(number) for number in numbers], ensure_ascii=False).encode()


def otlp_body(numbers: range) -> bytes:
    """The same sessions as an OTLP request, a trace each."""
    request = ExportTraceServiceRequest()
    resource = request.resource_spans.add()
    _set(resource.resource.attributes, {"service.name": "bench"})
    scope = resource.scope_spans.add()
    scope.scope.name = "bench"
    for number in numbers:
        _add_session(scope.spans, session(number), number)
    return request.SerializeToString()


def _add_session(spans: Any, whole: dict[str, Any], number: int) -> None:
    trace_id = (number + 1).to_bytes(16, "big")
    start = (1_780_000_000 + number) * 10**9
    root_id = (number * 100 + 1).to_bytes(8, "big")

    def add(span_id: bytes, parent: bytes, name: str, begin: int, seconds: float, attributes: dict[str, Any]) -> None:
        span = spans.add(
            trace_id=trace_id,
            span_id=span_id,
            parent_span_id=parent,
            name=name,
            start_time_unix_nano=begin,
            end_time_unix_nano=begin + int(seconds * 10**9),
        )
        _set(span.attributes, attributes)

    root = {
        "gen_ai.operation.name": "invoke_agent",
        "gen_ai.agent.name": "planner",
        "diagnosis.session.id": whole["sessionId"],
        "diagnosis.agent_flow": whole["agentFlow"],
        "gen_ai.input.messages": _messages("user", whole["query"]),
        "gen_ai.output.messages": _messages("assistant", whole["answer"]),
        "diagnosis.self_evaluation": json.dumps(whole["selfEvaluation"], ensure_ascii=False),
    }
    add(root_id, b"", "invoke_agent planner", start, 10, root)
    next_id = number * 100 + 2
    for index, step in enumerate(whole["steps"]):
        step_id = next_id.to_bytes(8, "big")
        next_id += 1
        begin = start + index * 2 * 10**9
        calls = [{"type": "tool_call", **call} for call in step["modelOutput"]["tool_calls"]]
        output = [{"role": "assistant", "parts": [{"type": "text", "content": step["modelOutput"]["text"]}, *calls]}]
        model = {
            "gen_ai.operation.name": "chat",
            "gen_ai.agent.name": step["agentName"],
            "gen_ai.request.model": step["modelName"],
            "gen_ai.usage.input_tokens": step["inputTokens"],
            "gen_ai.usage.output_tokens": step["outputTokens"],
            "gen_ai.input.messages": json.dumps(
                [{"role": m["role"], "parts": [{"type": "text", "content": m["content"]}]} for m in step["modelInput"]],
                ensure_ascii=False,
            ),
            "gen_ai.output.messages": json.dumps(output, ensure_ascii=False),
            "diagnosis.step.thought": step["thought"],
        }
        add(step_id, root_id, "chat model-large-1", begin, 1.5, model)
        for tool in step["toolInvocations"]:
            attributes = {
                "gen_ai.operation.name": "execute_tool",
                "gen_ai.tool.name": tool["toolName"],
                "gen_ai.tool.call.arguments": json.dumps(tool["inputParams"], ensure_ascii=False),
                "gen_ai.tool.call.result": tool["output"],
            }
            if tool["l0MatchCount"]:
                attributes["diagnosis.retrieval.l0_match_count"] = tool["l0MatchCount"]
            add(
                next_id.to_bytes(8, "big"), step_id, f"execute_tool {tool['toolName']}", begin + 10**9, 0.12, attributes
            )
            next_id += 1


def _messages(role: str, text: str) -> str:
    return json.dumps([{"role": role, "parts": [{"type": "text", "content": text}]}], ensure_ascii=False)


def _set(target: Any, attributes: dict[str, Any]) -> None:
    for key, value in attributes.items():
        pair = target.add(key=key)
        if isinstance(value, int):
            pair.value.int_value = value
        else:
            pair.value.string_value = value


def _moment(second: int) -> str:
    return datetime.fromtimestamp(second, tz=UTC).isoformat()
