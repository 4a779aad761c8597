"""The real OpenAI library against a stand-in for its API."""

import asyncio
import gc
import threading

import openai
import pytest
from stub_model import ANSWER, MODEL, make_server

ASK = {"model": "stub-model", "messages": [{"role": "user", "content": "Why is checkout slow?"}]}
TOOLS = [{"type": "function", "function": {"name": "lookup_knowledge", "parameters": {"type": "object"}}}]
IN, OUT = "gen_ai.usage.input_tokens", "gen_ai.usage.output_tokens"
PROMPT_TOKENS = 7
ANSWER_TOKENS = len(ANSWER.split())


@pytest.fixture
def model():
    server = make_server()
    threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()
    yield server
    server.shutdown()
    server.server_close()


@pytest.fixture
def settings(model):
    return {"base_url": f"http://127.0.0.1:{model.server_address[1]}/v1", "api_key": "sk-test", "max_retries": 0}


@pytest.fixture
def client(recorder, settings):
    return recorder.wrap_openai(openai.OpenAI(**settings))


@pytest.fixture
def async_client(recorder, settings):
    return recorder.wrap_openai(openai.AsyncOpenAI(**settings))


@pytest.fixture
def step(recorder, product):
    """The one step that arrived."""

    def arrived():
        assert recorder.flush()
        return product.one("chat")

    return arrived


def tokens(span):
    return span.attributes.get(IN), span.attributes.get(OUT), span.attributes.get("diagnosis.usage.is_estimate")


def test_a_call_becomes_a_step(recorder, client, step):
    with recorder.session("q", agent_name="helper"):
        answer = client.chat.completions.create(**ASK, temperature=0.2, max_completion_tokens=100)
    assert isinstance(answer, openai.types.chat.ChatCompletion)
    assert answer.choices[0].message.content == ANSWER
    span = step()
    assert span.name == "chat stub-model"
    assert tokens(span) == (PROMPT_TOKENS, ANSWER_TOKENS, None)
    assert span.text("gen_ai.input.messages") == "Why is checkout slow?"
    assert span.text("gen_ai.output.messages") == ANSWER
    assert {
        key: span.attributes[key]
        for key in span.attributes
        if key.startswith(("gen_ai.re", "gen_ai.provider", "gen_ai.agent"))
    } == {
        "gen_ai.provider.name": "openai",
        "gen_ai.agent.name": "helper",
        "gen_ai.request.model": "stub-model",
        "gen_ai.request.temperature": 0.2,
        "gen_ai.request.max_tokens": 100,
        "gen_ai.response.model": MODEL,
        "gen_ai.response.id": "chatcmpl-1",
        "gen_ai.response.finish_reasons": ["stop"],
    }


def test_a_whole_loop_with_a_tool(recorder, client, product):
    @recorder.tool
    def lookup_knowledge(query):
        return f"about {query}"

    messages = list(ASK["messages"])
    with recorder.session("q"):
        while True:
            message = client.chat.completions.create(model="m", messages=messages, tools=TOOLS).choices[0].message
            if not message.tool_calls:
                break
            messages.append(message)  # as the library gave it, no dict
            messages += [
                {"role": "tool", "tool_call_id": call.id, "content": lookup_knowledge("pool")}
                for call in message.tool_calls
            ]
    assert recorder.flush()
    first, second = product.named("chat")
    call = {"type": "tool_call", "id": "call_1", "name": "lookup_knowledge", "arguments": {"query": "checkout slow"}}
    assert first.json("gen_ai.output.messages") == [{"role": "assistant", "parts": [call]}]
    assert second.json("gen_ai.input.messages")[1:] == [
        {"role": "assistant", "parts": [call]},
        {"role": "tool", "parts": [{"type": "tool_call_response", "id": "call_1", "response": "about pool"}]},
    ]
    assert product.one("execute_tool").start > first.end


@pytest.mark.parametrize("asks", [True, False])
def test_a_stream_passes_through_and_is_counted(recorder, client, step, asks):
    options = {"stream_options": {"include_usage": True}} if asks else {}
    with recorder.session("q"):
        stream = client.chat.completions.create(**ASK, stream=True, **options)
        assert isinstance(stream, openai.Stream)
        assert stream.response.status_code == 200
        chunks = list(stream)
    assert "".join(chunk.choices[0].delta.content or "" for chunk in chunks if chunk.choices).strip() == ANSWER
    assert len(chunks) == ANSWER_TOKENS + 2 + asks
    span = step()
    assert tokens(span) == ((PROMPT_TOKENS, ANSWER_TOKENS, None) if asks else (None, ANSWER_TOKENS, True))
    assert span.text("gen_ai.output.messages").strip() == ANSWER
    assert span.attributes["gen_ai.request.stream"] is True
    assert span.attributes["gen_ai.response.finish_reasons"] == ["stop"]


def test_usage_can_be_asked_for_in_the_agents_stead(recorder, settings, step):
    client = recorder.wrap_openai(openai.OpenAI(**settings), ask_usage=True)
    with recorder.session("q"):
        chunks = list(client.chat.completions.create(**ASK, stream=True))
    assert len(chunks) == ANSWER_TOKENS + 2
    assert all(chunk.choices for chunk in chunks), "the extra chunk stays hidden"
    assert tokens(step()) == (PROMPT_TOKENS, ANSWER_TOKENS, None)


def test_streamed_tool_calls_are_put_together(recorder, client, step):
    with recorder.session("q"):
        for _ in client.chat.completions.create(**ASK, tools=TOOLS, stream=True):
            pass
    assert step().json("gen_ai.output.messages")[0]["parts"] == [
        {"type": "tool_call", "id": "call_1", "name": "lookup_knowledge", "arguments": {"query": "checkout slow"}}
    ]


@pytest.mark.parametrize("how", ["break", "close", "with", "session", "kept"])
def test_a_stream_that_is_left_early_is_counted_so_far(recorder, client, step, product, how):
    with recorder.session("q"):
        stream = client.chat.completions.create(**ASK, stream=True)
        seen = [next(stream) for _ in range(4)]
        if how == "break":
            del stream
            gc.collect()
        elif how == "close":
            stream.close()
        elif how == "with":
            with stream:
                pass
        if how in {"break", "close", "with"}:
            assert recorder.flush()
            assert len(product.named("chat")) == 1, "it ended before its session did"
    if how == "kept":
        stream.close()
    assert len(seen) == 4
    span = step()
    assert tokens(span) == (None, 3, True)
    assert span.text("gen_ai.output.messages") == "The connection pool "
    assert not span.is_error


def test_a_stream_can_be_left_and_taken_up_again(recorder, client, step):
    with recorder.session("q"):
        stream = client.chat.completions.create(**ASK, stream=True)
        for _ in stream:
            break
        rest = list(stream)
    assert len(rest) == ANSWER_TOKENS + 1
    assert step().text("gen_ai.output.messages").strip() == ANSWER


def test_the_librarys_own_stream_helper_is_one_step(recorder, client, step):
    with recorder.session("q"), client.chat.completions.stream(**ASK) as stream:
        for _ in stream:
            pass
        assert stream.get_final_completion().choices[0].message.content.strip() == ANSWER
    assert step().text("gen_ai.output.messages").strip() == ANSWER


def test_an_error_of_the_api_goes_on_and_is_recorded(recorder, client, model, step):
    model.RequestHandlerClass.error_status = 429
    with recorder.session("q"), pytest.raises(openai.RateLimitError):
        client.chat.completions.create(**ASK)
    span = step()
    assert span.is_error
    assert span.attributes["error.type"] == "openai.RateLimitError"
    assert "out of order" in span.message


def test_raw_responses_are_counted_and_stay_raw(recorder, client, step):
    with recorder.session("q"):
        raw = client.chat.completions.with_raw_response.create(**ASK)
        assert raw.headers["content-type"] == "application/json"
        assert raw.parse().choices[0].message.content == ANSWER
    assert tokens(step()) == (PROMPT_TOKENS, ANSWER_TOKENS, None)


def test_copies_of_a_client_are_recorded_and_none_twice(recorder, client, step):
    again = recorder.wrap_openai(client)
    assert again is client
    with recorder.session("q"):
        client.with_options(timeout=5).chat.completions.create(**ASK)
    assert tokens(step()) == (PROMPT_TOKENS, ANSWER_TOKENS, None)


def test_without_a_session_the_client_works_as_before(recorder, client, product):
    assert client.chat.completions.create(**ASK).choices[0].message.content == ANSWER
    assert len(list(client.chat.completions.create(**ASK, stream=True))) == ANSWER_TOKENS + 2
    assert recorder.flush()
    assert product.spans == []


def test_what_is_no_client_is_left_alone(recorder, caplog):
    thing = object()
    assert recorder.wrap_openai(thing) is thing
    assert "does not look like an OpenAI client" in caplog.text


def test_async_calls_and_streams(recorder, async_client, product):
    async def run():
        async with recorder.session("q"):
            answer = await async_client.chat.completions.create(**ASK)
            assert answer.choices[0].message.content == ANSWER
            stream = await async_client.chat.completions.create(
                **ASK, stream=True, stream_options={"include_usage": True}
            )
            assert isinstance(stream, openai.AsyncStream)
            assert len([chunk async for chunk in stream]) == ANSWER_TOKENS + 3
            async with await async_client.chat.completions.create(**ASK, stream=True) as stream:
                async for _ in stream:
                    break
        await async_client.close()

    asyncio.run(run())
    assert recorder.flush()
    whole, streamed, left = product.named("chat")
    assert tokens(whole) == tokens(streamed) == (PROMPT_TOKENS, ANSWER_TOKENS, None)
    assert tokens(left) == (None, None, None), "nothing had come yet"


def test_sessions_at_once_keep_their_calls(recorder, async_client, product):
    async def think(name):
        async with recorder.session(name, session_id=name):
            for _ in range(3):
                ask = {"model": "m", "messages": [{"role": "user", "content": name}]}
                async for _ in await async_client.chat.completions.create(**ask, stream=True):
                    pass

    async def both():
        await asyncio.gather(think("one"), think("two"), think("three"))

    asyncio.run(both())
    assert recorder.flush()
    roots = {root.trace_id: root.attributes["diagnosis.session.id"] for root in product.named("invoke_agent")}
    found = [(roots[span.trace_id], span.text("gen_ai.input.messages")) for span in product.named("chat")]
    assert sorted(found) == sorted([(name, name) for name in ("one", "two", "three") for _ in range(3)])


@pytest.mark.parametrize("is_streamed", [False, True])
def test_the_responses_api(recorder, client, step, is_streamed):
    with recorder.session("q"):
        answer = client.responses.create(model="stub-model", input="Why is checkout slow?", stream=is_streamed)
        if is_streamed:
            assert [event.type for event in answer][-1] == "response.completed"
        else:
            assert answer.output_text == ANSWER
    span = step()
    assert span.attributes[OUT] == ANSWER_TOKENS
    assert span.attributes["gen_ai.usage.cache_read.input_tokens"] == 2
    assert span.attributes["gen_ai.usage.reasoning.output_tokens"] == 1
    assert span.attributes["diagnosis.step.thought"] == "It is the pool."
    assert span.text("gen_ai.input.messages") == "Why is checkout slow?"
    assert span.text("gen_ai.output.messages") == ANSWER


def test_a_call_of_the_responses_api(recorder, client, step):
    with recorder.session("q"):
        client.responses.create(model="m", input="q", tools=[{"type": "function", "name": "lookup_knowledge"}])
    assert step().json("gen_ai.output.messages")[0]["parts"] == [
        {"type": "tool_call", "id": "call_1", "name": "lookup_knowledge", "arguments": {"query": "checkout slow"}}
    ]
