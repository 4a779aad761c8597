"""Recording LangChain and LangGraph: a callback handler. Needs `langchain-core`, which the rest does not.

with recorder.session(question) as session:
    agent.invoke({"messages": [...]}, config={"callbacks": [DiagnosisCallbackHandler(recorder)]})
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from langchain_core.callbacks import BaseCallbackHandler

from diagnosis_client import _content as content
from diagnosis_client._blocks import Block, ModelCall, Scope, ToolCall, current_scope
from diagnosis_client._guard import guarded

if TYPE_CHECKING:
    from uuid import UUID

    from langchain_core.documents import Document
    from langchain_core.messages import BaseMessage
    from langchain_core.outputs import LLMResult

    from diagnosis_client.recorder import Recorder

MAX_OPEN_RUNS = 10_000


class DiagnosisCallbackHandler(BaseCallbackHandler):
    """Model calls become steps, tools and retrievers tool calls, nested as LangChain nests its runs.

    Use it inside `with recorder.session(…)`; one handler serves any number of sessions at once.
    """

    run_inline = True  # in the caller's own task and thread, where the session is

    def __init__(self, recorder: Recorder) -> None:
        super().__init__()
        self._core = recorder._core  # noqa: SLF001 - the same package
        self._scopes: dict[UUID, Scope] = {}
        self._blocks: dict[UUID, Block] = {}

    # -- models --------------------------------------------------------------------------------------------------------

    def on_chat_model_start(
        self,
        serialized: dict[str, Any],
        messages: list[list[BaseMessage]],
        *,
        run_id: UUID,
        parent_run_id: UUID | None = None,
        tags: list[str] | None = None,
        metadata: dict[str, Any] | None = None,
        **kwargs: Any,
    ) -> None:
        """A chat model is called."""
        self._start_model(messages[0] if messages else [], run_id, parent_run_id, metadata, kwargs)

    def on_llm_start(
        self,
        serialized: dict[str, Any],
        prompts: list[str],
        *,
        run_id: UUID,
        parent_run_id: UUID | None = None,
        tags: list[str] | None = None,
        metadata: dict[str, Any] | None = None,
        **kwargs: Any,
    ) -> None:
        """A completion model is called."""
        self._start_model(prompts, run_id, parent_run_id, metadata, kwargs)

    @guarded
    def _start_model(
        self,
        messages: object,
        run_id: UUID,
        parent_run_id: UUID | None,
        metadata: dict[str, Any] | None,
        more: dict[str, Any],
    ) -> None:
        known = metadata or {}
        asked = more.get("invocation_params") or {}
        model = known.get("ls_model_name") or asked.get("model") or asked.get("model_name")
        call = ModelCall(self._core, known.get("lc_agent_name"), messages, model, known.get("ls_provider"))
        self._open(call, run_id, parent_run_id)

    def on_llm_end(
        self, response: LLMResult, *, run_id: UUID, parent_run_id: UUID | None = None, **kwargs: Any
    ) -> None:
        """The model has answered."""
        call = self._blocks.get(run_id)
        if isinstance(call, ModelCall):
            self._tell_answer(call, response)
        self._close(run_id)

    @guarded
    def _tell_answer(self, call: ModelCall, response: LLMResult) -> None:
        generation = response.generations[0][0]
        message = getattr(generation, "message", None)
        told = getattr(message, "usage_metadata", None) or {}
        totals = (response.llm_output or {}).get("token_usage") or {}
        about = getattr(message, "response_metadata", None) or {}
        reason = about.get("finish_reason") or about.get("stop_reason")
        extra = getattr(message, "additional_kwargs", None) or {}
        call.output(
            message if message is not None else generation.text,
            input_tokens=told.get("input_tokens", totals.get("prompt_tokens")),
            output_tokens=told.get("output_tokens", totals.get("completion_tokens")),
            thought=extra.get("reasoning_content"),
            model=about.get("model_name") or about.get("model"),
        )
        call.detail({"gen_ai.response.finish_reasons": [str(reason)] if reason else None})

    def on_llm_error(
        self, error: BaseException, *, run_id: UUID, parent_run_id: UUID | None = None, **kwargs: Any
    ) -> None:
        """The model has failed."""
        self._close(run_id, error)

    # -- tools ---------------------------------------------------------------------------------------------------------

    @guarded
    def on_tool_start(
        self,
        serialized: dict[str, Any],
        input_str: str,
        *,
        run_id: UUID,
        parent_run_id: UUID | None = None,
        tags: list[str] | None = None,
        metadata: dict[str, Any] | None = None,
        inputs: dict[str, Any] | None = None,
        **kwargs: Any,
    ) -> None:
        """A tool is called."""
        name = (serialized or {}).get("name") or kwargs.get("name") or "tool"
        arguments = inputs if inputs is not None else input_str
        self._open(ToolCall(self._core, name, arguments, kwargs.get("tool_call_id")), run_id, parent_run_id)

    @guarded
    def on_tool_end(self, output: Any, *, run_id: UUID, parent_run_id: UUID | None = None, **kwargs: Any) -> None:
        """The tool has answered, perhaps that it could not."""
        call = self._blocks.get(run_id)
        if isinstance(call, ToolCall):
            call_id = content.get(output, "tool_call_id")  # older versions tell it only now
            is_message = call_id is not None
            call.detail({"gen_ai.tool.call.id": content.name(call_id) if is_message else None})
            call.result(content.get(output, "content") if is_message else output)
            if is_message and content.get(output, "status") == "error":
                call.fail(str(content.get(output, "content")))
        self._close(run_id)

    def on_tool_error(
        self, error: BaseException, *, run_id: UUID, parent_run_id: UUID | None = None, **kwargs: Any
    ) -> None:
        """The tool has failed."""
        self._close(run_id, error)

    # -- retrievers ----------------------------------------------------------------------------------------------------

    @guarded
    def on_retriever_start(
        self,
        serialized: dict[str, Any],
        query: str,
        *,
        run_id: UUID,
        parent_run_id: UUID | None = None,
        tags: list[str] | None = None,
        metadata: dict[str, Any] | None = None,
        **kwargs: Any,
    ) -> None:
        """A retriever is asked; retrieval by meaning is L1."""
        name = kwargs.get("name") or (serialized or {}).get("name") or "retriever"
        self._open(ToolCall(self._core, name, {"query": query}), run_id, parent_run_id)

    @guarded
    def on_retriever_end(
        self, documents: Sequence[Document], *, run_id: UUID, parent_run_id: UUID | None = None, **kwargs: Any
    ) -> None:
        """The retriever has answered."""
        call = self._blocks.get(run_id)
        if isinstance(call, ToolCall):
            call.hits(l1=[_title_and_score(document) for document in documents])
            call.result([document.page_content for document in documents])
        self._close(run_id)

    def on_retriever_error(
        self, error: BaseException, *, run_id: UUID, parent_run_id: UUID | None = None, **kwargs: Any
    ) -> None:
        """The retriever has failed."""
        self._close(run_id, error)

    # -- chains: they only hand their place on -------------------------------------------------------------------------

    @guarded
    def on_chain_start(
        self,
        serialized: dict[str, Any],
        inputs: dict[str, Any],
        *,
        run_id: UUID,
        parent_run_id: UUID | None = None,
        tags: list[str] | None = None,
        metadata: dict[str, Any] | None = None,
        **kwargs: Any,
    ) -> None:
        """A chain or graph node begins."""
        if scope := self._scope_of(parent_run_id):
            self._remember(run_id, scope)

    def on_chain_end(
        self, outputs: dict[str, Any], *, run_id: UUID, parent_run_id: UUID | None = None, **kwargs: Any
    ) -> None:
        """A chain has ended."""
        self._close(run_id)

    def on_chain_error(
        self, error: BaseException, *, run_id: UUID, parent_run_id: UUID | None = None, **kwargs: Any
    ) -> None:
        """A chain has failed; whoever called it will say so."""
        self._close(run_id)

    def _scope_of(self, run_id: UUID | None) -> Scope | None:
        known = self._scopes.get(run_id) if run_id is not None else None
        return known or current_scope(self._core)

    def _open(self, block: Block, run_id: UUID, parent_run_id: UUID | None) -> None:
        block.open(self._scope_of(parent_run_id))
        self._blocks[run_id] = block
        if block.scope is not None:
            self._remember(run_id, block.scope)

    def _remember(self, run_id: UUID, scope: Scope) -> None:
        self._scopes[run_id] = scope
        if len(self._scopes) > MAX_OPEN_RUNS:  # runs whose end was never told
            oldest = next(iter(self._scopes))
            self._scopes.pop(oldest, None)
            self._blocks.pop(oldest, None)

    @guarded
    def _close(self, run_id: UUID, error: BaseException | None = None) -> None:
        self._scopes.pop(run_id, None)
        block = self._blocks.pop(run_id, None)
        if block is not None:
            block.end(None if _is_pause(error) else error)


def _is_pause(error: BaseException | None) -> bool:
    """LangGraph hands control up, to a person say, by raising."""
    return any(kind.__name__ == "GraphBubbleUp" for kind in type(error).__mro__)


def _title_and_score(document: Document) -> tuple[str, float | None]:
    known = document.metadata
    title = known.get("title") or known.get("source") or document.page_content[:80]
    score = known.get("score", known.get("relevance_score"))
    return str(title), score if isinstance(score, (int, float)) else None
