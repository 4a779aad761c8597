"""The real LangChain, with models that need no network."""

import asyncio
from concurrent.futures import ThreadPoolExecutor

import pytest
from langchain_core.documents import Document
from langchain_core.language_models.fake_chat_models import FakeMessagesListChatModel, GenericFakeChatModel
from langchain_core.language_models.llms import LLM
from langchain_core.messages import AIMessage, HumanMessage
from langchain_core.retrievers import BaseRetriever
from langchain_core.runnables import RunnableLambda, RunnableParallel
from langchain_core.tools import tool

from diagnosis_client.langchain import DiagnosisCallbackHandler

USAGE = {"input_tokens": 11, "output_tokens": 4, "total_tokens": 15}


@tool
def lookup(query: str) -> str:
    """Look something up."""
    if query == "broken":
        raise OSError("index is away")
    return f"about {query}"


class Library(BaseRetriever):
    def _get_relevant_documents(self, query, *, run_manager):
        return [
            Document("Raise the pool.", metadata={"title": "Pool exhausted", "score": 0.9}),
            Document("Restart it.", metadata={"source": "runbook.md"}),
        ]


@pytest.fixture
def config(recorder):
    return {"callbacks": [DiagnosisCallbackHandler(recorder)]}


def answer(text, **more):
    return AIMessage(
        text, usage_metadata=USAGE, response_metadata={"model_name": "m-2026", "finish_reason": "stop"}, **more
    )


def test_a_chain_becomes_steps_and_tools(recorder, product, config):
    call = {"name": "lookup", "args": {"query": "pool"}, "id": "call_1"}
    model = FakeMessagesListChatModel(responses=[answer("", tool_calls=[call]), answer("The pool.")])

    def agent(question, config):
        history = [HumanMessage(question)]
        while (message := model.invoke(history, config)).tool_calls:
            history += [message, *(lookup.invoke({**call, "type": "tool_call"}, config) for call in message.tool_calls)]
        return message.content

    with recorder.session("q", agent_name="helper"):
        assert RunnableLambda(agent).invoke("Why is it slow?", config) == "The pool."
    assert recorder.flush()
    root, tool_span = product.one("invoke_agent"), product.one("execute_tool")
    first, second = product.named("chat")
    assert {span.parent_id for span in (first, second, tool_span)} == {root.span_id}
    assert first.text("gen_ai.input.messages") == "Why is it slow?"
    assert first.json("gen_ai.output.messages")[0]["parts"] == [
        {"type": "tool_call", "id": "call_1", "name": "lookup", "arguments": {"query": "pool"}}
    ]
    assert [message["role"] for message in second.json("gen_ai.input.messages")] == ["user", "assistant", "tool"]
    assert second.attributes["gen_ai.usage.input_tokens"] == 11
    assert second.attributes["gen_ai.usage.output_tokens"] == 4
    assert second.attributes["gen_ai.response.model"] == "m-2026"
    assert second.attributes["gen_ai.agent.name"] == "helper"
    assert tool_span.name == "execute_tool lookup"
    assert tool_span.attributes["gen_ai.tool.call.id"] == "call_1"
    assert tool_span.json("gen_ai.tool.call.arguments") == {"query": "pool"}
    assert tool_span.json("gen_ai.tool.call.result") == "about pool"


def test_what_a_tool_does_hangs_from_it(recorder, product, config):
    model = FakeMessagesListChatModel(responses=[answer("sub-answer")])

    @tool
    def ask_expert(question: str, callbacks: object = None) -> str:
        """Ask another agent."""
        return model.invoke(question, {"callbacks": callbacks}).content

    with recorder.session("q"):
        assert ask_expert.invoke({"question": "why?"}, config) == "sub-answer"
    assert recorder.flush()
    assert product.one("chat").parent_id == product.one("execute_tool").span_id


def test_errors_go_on_and_are_recorded(recorder, product, config):
    with recorder.session("q"), pytest.raises(OSError, match="away"):
        lookup.invoke({"query": "broken"}, config)
    assert recorder.flush()
    span = product.one("execute_tool")
    assert (span.is_error, span.message) == (True, "OSError: index is away")


def test_a_retriever_is_a_lookup_by_meaning(recorder, product, config):
    with recorder.session("q"):
        assert len(Library().invoke("pool", config)) == 2
    assert recorder.flush()
    span = product.one("execute_tool")
    assert span.name == "execute_tool Library"
    assert span.attributes["diagnosis.retrieval.layer"] == "L1"
    assert span.json("diagnosis.retrieval.details") == {
        "l0_titles": [],
        "l1_titles": ["Pool exhausted", "runbook.md"],
        "l1_scores": [0.9, None],
    }


def test_streams_and_completion_models(recorder, product, config):
    class Echo(LLM):
        @property
        def _llm_type(self):
            return "echo"

        def _call(self, prompt, stop=None, run_manager=None, **kwargs):
            return prompt.upper()

    chat = GenericFakeChatModel(messages=iter([AIMessage("one two")]))
    with recorder.session("q"):
        assert "".join(chunk.content for chunk in chat.stream("hi", config)) == "one two"
        assert Echo().invoke("hi", config) == "HI"
    assert recorder.flush()
    assert [span.text("gen_ai.output.messages") for span in product.named("chat")] == ["one two", "HI"]


def test_sessions_at_once_share_a_handler_and_keep_apart(recorder, product, config):
    async def think(name):
        model = FakeMessagesListChatModel(responses=[answer(name)])
        async with recorder.session(name, session_id=name):
            parallel = RunnableParallel(a=model, b=RunnableLambda(lambda _: "x") | lookup)
            await parallel.ainvoke(name, config)

    async def both():
        await asyncio.gather(*(think(name) for name in ("one", "two", "three")))

    asyncio.run(both())
    assert recorder.flush()
    roots = {root.trace_id: root.attributes["diagnosis.session.id"] for root in product.named("invoke_agent")}
    assert {(roots[span.trace_id], span.text("gen_ai.output.messages")) for span in product.named("chat")} == {
        (name, name) for name in ("one", "two", "three")
    }
    assert sorted(roots[span.trace_id] for span in product.named("execute_tool")) == ["one", "three", "two"]


def test_nothing_is_kept_of_what_has_ended(recorder, config):
    handler = config["callbacks"][0]
    model = FakeMessagesListChatModel(responses=[answer("x")])
    with recorder.session("q"), ThreadPoolExecutor(2) as pool:
        bound = recorder.executor(pool)
        list(
            bound.map(
                lambda _: RunnableLambda(lambda question: model.invoke(question, config)).invoke("q", config), range(4)
            )
        )
    assert handler._scopes == {}
    assert handler._blocks == {}


def test_a_pause_for_a_person_is_no_failure(recorder, product, config):
    class GraphBubbleUp(Exception):  # noqa: N818 - LangGraph's name
        pass

    @tool
    def ask_person(question: str) -> str:
        """Ask."""
        raise GraphBubbleUp

    with recorder.session("q"), pytest.raises(GraphBubbleUp):
        ask_person.invoke({"question": "may I?"}, config)
    assert recorder.flush()
    assert not product.one("execute_tool").is_error
