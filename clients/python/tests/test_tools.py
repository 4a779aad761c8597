"""Functions as recorded tools."""

import asyncio
import inspect

import pytest


@pytest.fixture
def arrived(recorder, product):
    """Run something in a session and give the tool's span."""

    def run(work):
        with recorder.session("q"):
            outcome = work()
        assert recorder.flush()
        return outcome, product.one("execute_tool")

    return run


def test_a_function_keeps_its_signature_and_its_value(recorder, arrived):
    given = object()

    def grep(pattern: str, *files: str, limit: int = 10, **options: bool) -> object:
        """Find lines."""
        return given

    tool = recorder.tool(grep)
    assert inspect.signature(tool) == inspect.signature(grep)
    assert (tool.__name__, tool.__doc__) == ("grep", "Find lines.")
    value, span = arrived(lambda: tool("pool", "a", "b", icase=True))
    assert value is given
    assert span.name == "execute_tool grep"
    assert span.json("gen_ai.tool.call.arguments") == {"pattern": "pool", "files": ["a", "b"], "icase": True}
    assert span.json("gen_ai.tool.call.result").startswith("<object object")


def test_a_tool_may_have_another_name(recorder, arrived):
    @recorder.tool("lookup_knowledge")
    def search(query):
        recorder.hits(l0=["Pool exhausted"])
        return "found"

    _, span = arrived(lambda: search("pool"))
    assert span.name == "execute_tool lookup_knowledge"
    assert span.attributes["diagnosis.retrieval.layer"] == "L0"


def test_a_method_records_no_self(recorder, arrived):
    class Shell:
        @recorder.tool
        def run(self, command):
            return command.upper()

    value, span = arrived(lambda: Shell().run("ls"))
    assert value == "LS"
    assert span.json("gen_ai.tool.call.arguments") == {"command": "ls"}


def test_an_exception_goes_on_untouched(recorder, arrived):
    problem = PermissionError("no")

    @recorder.tool
    def read():
        raise problem

    def work():
        with pytest.raises(PermissionError) as caught:
            read()
        return caught.value

    value, span = arrived(work)
    assert value is problem
    assert (span.is_error, span.message) == (True, "PermissionError: no")
    assert span.attributes["error.type"] == "PermissionError"
    assert "gen_ai.tool.call.result" not in span.attributes


def test_a_wrong_call_is_refused_by_the_tool_itself(recorder, arrived):
    @recorder.tool
    def read(path):
        return path

    def work():
        with pytest.raises(TypeError, match="missing 1 required positional argument: 'path'"):
            read()

    _, span = arrived(work)
    assert span.is_error


def test_a_coroutine_function_stays_one(recorder, arrived):
    @recorder.tool
    async def fetch(url):
        await asyncio.sleep(0)
        return {"url": url}

    assert inspect.iscoroutinefunction(fetch)
    value, span = arrived(lambda: asyncio.run(fetch("x")))
    assert value == {"url": "x"}
    assert span.json("gen_ai.tool.call.result") == {"url": "x"}


def test_a_generator_stays_one(recorder, arrived):
    received = []

    @recorder.tool
    def tail(path):
        try:
            received.append((yield "line 1\n"))
        except ValueError as error:
            received.append(error)
        yield "line 2\n"
        return "done"

    assert inspect.isgeneratorfunction(tail)

    def work():
        lines = tail("log")
        assert next(lines) == "line 1\n"
        assert recorder.current_session is not None
        with recorder.agent("consumer"):
            assert lines.throw(ValueError("x")) == "line 2\n"
        with pytest.raises(StopIteration) as stop:
            next(lines)
        return stop.value.value

    value, span = arrived(work)
    assert value == "done"
    assert isinstance(received[0], ValueError)
    assert span.json("gen_ai.tool.call.result") == "line 1\nline 2\n"
    assert not span.is_error


def test_a_generator_that_is_left_early_is_no_failure(recorder, arrived):
    closed = []

    @recorder.tool
    def count():
        try:
            yield from range(100)
        finally:
            closed.append(True)

    def work():
        for number in count():
            if number == 2:
                break

    _, span = arrived(work)
    assert closed == [True]
    assert span.json("gen_ai.tool.call.result") == [0, 1, 2]
    assert not span.is_error


def test_a_generator_that_fails_is_a_failure(recorder, arrived):
    @recorder.tool
    def count():
        yield 1
        raise OSError("gone")

    def work():
        with pytest.raises(OSError, match="gone"):
            list(count())

    _, span = arrived(work)
    assert (span.is_error, span.message) == (True, "OSError: gone")
    assert span.json("gen_ai.tool.call.result") == [1]


def test_an_async_generator_stays_one(recorder, arrived):
    @recorder.tool
    async def tail(path):
        for number in range(3):
            await asyncio.sleep(0)
            with recorder.tool_call("inner"):
                yield number

    assert inspect.isasyncgenfunction(tail)

    async def consume():
        return [number async for number in tail("log")]

    with recorder.session("q"):
        assert asyncio.run(consume()) == [0, 1, 2]


def test_the_consumer_of_a_generator_is_not_inside_its_tool(recorder, product):
    @recorder.tool("outer")
    def tail():
        with recorder.tool_call("of-the-tool"):
            pass
        yield 1

    with recorder.session("q"):
        for _ in tail():
            with recorder.tool_call("of-the-consumer"):
                pass
    assert recorder.flush()
    outer, root = product.one("execute_tool outer"), product.one("invoke_agent")
    assert product.one("execute_tool of-the-tool").parent_id == outer.span_id
    assert product.one("execute_tool of-the-consumer").parent_id == root.span_id
