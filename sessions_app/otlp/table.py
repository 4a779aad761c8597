"""The table of `dialects` in Markdown, as `docs/otlp.md` shows it: `python -m sessions_app.otlp.table`."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping

from sessions_app.otlp import dialects
from sessions_app.otlp.messages import EVENT_MESSAGES, INDEXED_MESSAGES

BECOMES: Mapping[str, str] = {
    "session_id": "session: `session_id`; without it the trace id",
    "agent_flow": "session: `agent_flow`",
    "consent": "session: `consent`; false from any span",
    "metadata": "session: `metadata`, a JSON object, merged over all spans",
    "self_evaluation": "session: `self_evaluation`, a JSON object, merged over all spans",
    "user": "session: `user_ref`; of an e-mail address, or what is no id, a digest",
    "conversation": "session: `conversation_id`; of what is no id, a digest",
    "agent_id": "session: `agent_id`",
    "agent": "step: `agent_name` (an agent's or a model's span)",
    "model": "step: `model_name`",
    "input_tokens": "step: `input_tokens`",
    "output_tokens": "step: `output_tokens`",
    "total_tokens": "step: `token_count` where the two above are not told",
    "usage": "step: the three above, from a JSON object",
    "thought": "step: `thought`; else the reasoning parts of the output",
    "tool": "invocation: `tool_name`; else the name of the span",
    "call_id": "invocation: which step asked for it",
    "arguments": "invocation: `input_params`",
    "result": "invocation: `output_preview`, `output_length`, and whether it failed",
    "input": "step: `model_input`; of the run's span the session's `query`",
    "output": "step: `model_output`; of the run's span the session's `answer`",
    "documents": "invocation: `retrieval_details`, and L1 with their number; else `retrieval.documents.0.document.*`, "
    "events `db.query.result`, or a retriever's result",
    "layer": "invocation: `retrieval_layer` (L0, L1, L0+L1)",
    "l0": "invocation: `l0_match_count`",
    "l1": "invocation: `l1_match_count`",
    "truncated": "invocation: `is_truncated`",
    "retrieval_details": "invocation: `retrieval_details`, a JSON object",
    "level": "session or invocation: `ERROR` is a failure, as the status of the span is",
    "error": "invocation: `error_message`; of the run's span `metadata.error`; after the status and the exception",
}
"""Fact → the column it fills."""


def markdown() -> str:
    """All tables, with their headings."""
    named = ", ".join(f"`{pattern.pattern}` → {kind}" for pattern, kind in dialects.NAMED_KINDS)
    by_name = (
        f"Spans of Google ADK's own scope are also told by their names: {named}. What nothing marks is told by an "
        "attribute that only such a span has:"
    )
    prefixes = _codes(f"{prefix}.0.{word}" for prefix, word in dialects.ANNOTATIONS)
    indexed = ((f"{direction} messages", names) for direction, names in INDEXED_MESSAGES.items())
    return "\n\n".join(
        (
            "### Kinds of spans",
            _table(("attribute", "kind", "values"), _kinds()),
            by_name,
            _table(("attribute", "kind"), ((_code(name), kind) for name, kind in dialects.TELLING)),
            "### Facts",
            _table(
                ("fact", "becomes", "attributes, the first that is there"),
                ((fact, BECOMES[fact], _codes(names)) for fact, names in dialects.FIELDS.items()),
            ),
            "### Messages",
            "Messages may be flattened into attributes, which goes before one attribute with all of them:",
            _table(("messages", "prefixes"), ((what, _codes(names)) for what, names in indexed)),
            "or be events of the span, where no attribute has them:",
            _table(
                ("event", "direction", "role"),
                ((_code(name), direction, role) for name, (direction, role) in EVENT_MESSAGES.items()),
            ),
            "### Judgements",
            f"Events `{dialects.EVALUATION_EVENT}`:",
            _table(("what", "attributes"), ((what, _codes(names)) for what, names in dialects.EVALUATIONS.items())),
            f"and attributes such as `annotations.0.annotation.score`, under these prefixes: {prefixes}.",
        )
    )


def _kinds() -> Iterable[tuple[str, ...]]:
    for attribute, values in dialects.KINDS:
        for kind in dict.fromkeys(values.values()):
            yield _code(attribute), kind or "nothing", _codes(value for value, own in values.items() if own == kind)


def _table(head: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> str:
    lines = [head, tuple("---" for _ in head), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _codes(words: Iterable[str]) -> str:
    return ", ".join(_code(word) for word in words)


def _code(word: str) -> str:
    return f"`{word}`"


if __name__ == "__main__":
    sys.stdout.write(f"{markdown()}\n")
