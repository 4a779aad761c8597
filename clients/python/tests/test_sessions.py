"""What an agent's own hooks become on the wire."""

import asyncio
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest


def text(role, content):
    return [{"role": role, "parts": [{"type": "text", "content": content}]}]


def test_a_session_with_steps_and_tools_arrives_as_one_trace(recorder, product):
    with recorder.session(
        "Why is checkout slow?",
        session_id="s-1",
        agent_flow="AI_OPS",
        agent_name="supervisor",
        conversation_id="c-9",
        user_ref="u-3fa9",
        metadata={"alert": "P99"},
    ) as session:
        step = recorder.before_model(
            "supervisor", [{"role": "user", "content": "Why?"}], model="gpt-4.1", provider="openai"
        )
        recorder.after_model(
            step,
            "I look it up.",
            input_tokens=900,
            output_tokens=120,
            thought="the pool?",
            tool_calls=[{"id": "call_1", "function": {"name": "grep", "arguments": '{"pattern": "pool"}'}}],
            model="gpt-4.1-2026",
        )
        with recorder.tool_call("grep", {"pattern": "pool"}, call_id="call_1") as call:
            call.result("3 lines")
        session.answer("The pool was exhausted.")
        session.evaluate(
            confidence=85, reasoning="seen in the log", evidence_count=1, tools_proposed=2, tools_accepted=1
        )
    assert recorder.flush()

    root, chat, tool = product.one("invoke_agent"), product.one("chat"), product.one("execute_tool")
    assert root.name == "invoke_agent supervisor"
    assert root.parent_id == ""
    assert root.attributes == {
        "gen_ai.operation.name": "invoke_agent",
        "gen_ai.agent.name": "supervisor",
        "gen_ai.agent.id": "oncall/1.0",
        "gen_ai.conversation.id": "c-9",
        "gen_ai.input.messages": root.attributes["gen_ai.input.messages"],
        "gen_ai.output.messages": root.attributes["gen_ai.output.messages"],
        "diagnosis.session.id": "s-1",
        "diagnosis.agent_flow": "AI_OPS",
        "diagnosis.user_ref": "u-3fa9",
        "diagnosis.consent": True,
        "diagnosis.metadata": '{"alert":"P99"}',
        "diagnosis.self_evaluation": root.attributes["diagnosis.self_evaluation"],
    }
    assert root.json("gen_ai.input.messages") == text("user", "Why is checkout slow?")
    assert root.json("gen_ai.output.messages") == text("assistant", "The pool was exhausted.")
    assert root.json("diagnosis.self_evaluation") == {
        "confidence": 85,
        "reasoning": "seen in the log",
        "evidence_count": 1,
        "tools_proposed": 2,
        "tools_accepted": 1,
    }
    assert chat.name == "chat gpt-4.1"
    assert chat.kind == "CLIENT"
    assert (chat.trace_id, chat.parent_id) == (root.trace_id, root.span_id)
    assert {key: chat.attributes[key] for key in chat.attributes if "messages" not in key} == {
        "gen_ai.operation.name": "chat",
        "diagnosis.session.id": "s-1",
        "gen_ai.provider.name": "openai",
        "gen_ai.request.model": "gpt-4.1",
        "gen_ai.response.model": "gpt-4.1-2026",
        "gen_ai.agent.name": "supervisor",
        "gen_ai.usage.input_tokens": 900,
        "gen_ai.usage.output_tokens": 120,
        "diagnosis.step.thought": "the pool?",
    }
    assert chat.json("gen_ai.output.messages")[0]["parts"] == [
        {"type": "text", "content": "I look it up."},
        {"type": "tool_call", "id": "call_1", "name": "grep", "arguments": {"pattern": "pool"}},
    ]
    assert (tool.name, tool.parent_id, tool.is_error) == ("execute_tool grep", root.span_id, False)
    assert tool.attributes == {
        "diagnosis.session.id": "s-1",
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": "grep",
        "gen_ai.tool.call.id": "call_1",
        "gen_ai.tool.call.arguments": '{"pattern":"pool"}',
        "gen_ai.tool.call.result": '"3 lines"',
    }
    assert not root.is_error
    headers = product.requests[0][1]
    assert headers["authorization"] == "Bearer dk_test"
    assert recorder.dropped == 0


def test_without_an_id_each_session_has_its_own(recorder, product):
    ids = []
    for _ in range(2):
        with recorder.session("q") as session:
            ids.append(session.session_id)
    assert recorder.flush()
    roots = product.named("invoke_agent")
    assert [root.attributes["diagnosis.session.id"] for root in roots] == ids
    assert len(set(ids)) == 2
    assert len({root.trace_id for root in roots}) == 2
    assert all(len(id_) == 32 for id_ in ids)


def test_an_exception_marks_the_session_and_goes_on(recorder, product):
    def agent():
        with recorder.session("q"):
            recorder.before_model("a", "q", model="m")
            raise ZeroDivisionError("by nothing")

    with pytest.raises(ZeroDivisionError):
        agent()
    assert recorder.flush()
    root, step = product.one("invoke_agent"), product.one("chat")
    assert (root.is_error, root.message) == (True, "ZeroDivisionError: by nothing")
    assert root.attributes["error.type"] == "ZeroDivisionError"
    assert step.is_error, "the model call that nobody ended failed with its session"


def test_a_session_can_be_said_to_have_failed(recorder, product):
    with recorder.session("q") as session:
        session.fail("no permission to read the log")
    assert recorder.flush()
    root = product.one("invoke_agent")
    assert (root.is_error, root.message) == (True, "no permission to read the log")
    assert root.attributes["error.type"] == "_OTHER"


def test_a_step_that_nobody_ended_ends_with_its_session(recorder, product):
    with recorder.session("q"):
        recorder.before_model("a", "q", model="m")
    assert recorder.flush()
    assert not product.one("chat").is_error


def test_sub_agents_nest(recorder, product):
    with recorder.session("q", agent_name="supervisor"):
        with recorder.agent("planner", "make a plan") as planner:
            with recorder.model_call(model="m", messages="plan") as call:
                call.output("1. look", input_tokens=5, output_tokens=2)
            planner.answer("1. look")
        with recorder.agent("executor"), recorder.tool_call("shell", {"cmd": "ls"}):
            pass
        with recorder.model_call(model="m"):
            pass
    assert recorder.flush()
    root, planner, executor = (product.one(f"invoke_agent {name}") for name in ("supervisor", "planner", "executor"))
    assert planner.parent_id == executor.parent_id == root.span_id
    assert planner.text("gen_ai.input.messages") == "make a plan"
    assert "diagnosis.agent_flow" not in planner.attributes
    first, last = product.named("chat")
    assert (first.parent_id, first.attributes["gen_ai.agent.name"]) == (planner.span_id, "planner")
    assert (last.parent_id, last.attributes["gen_ai.agent.name"]) == (root.span_id, "supervisor")
    assert product.one("execute_tool").parent_id == executor.span_id


def test_a_lookup_says_what_each_layer_found(recorder, product):
    with recorder.session("q"):
        with recorder.lookup("lookup_knowledge", "pool exhausted") as lookup:
            lookup.hits(l0=["Pool exhausted"], l1=[], truncated=True)
        with recorder.lookup("lookup_knowledge", "slow") as lookup:
            lookup.hits(l0=["A"], l1=[("B", 0.91), "C"])
        with recorder.lookup("lookup_knowledge", "nothing") as lookup:
            lookup.hits(l0=[], l1=[])
        with recorder.lookup("lookup_knowledge", "by meaning") as lookup:
            lookup.hits(l1=[("B", 0.5)])
    assert recorder.flush()
    prefix = "diagnosis.retrieval."
    found = [
        tuple(span.attributes.get(prefix + key) for key in ("layer", "l0_match_count", "l1_match_count", "truncated"))
        for span in product.named("execute_tool")
    ]
    assert found == [("L0", 1, 0, True), ("L0+L1", 1, 2, False), ("L0+L1", 0, 0, False), ("L1", None, 1, False)]
    second = product.named("execute_tool")[1]
    assert second.json("gen_ai.tool.call.arguments") == {"query": "slow"}
    assert second.json(prefix + "details") == {"l0_titles": ["A"], "l1_titles": ["B", "C"], "l1_scores": [0.91, None]}


def test_two_sessions_at_once_in_tasks_do_not_mix(recorder, product):
    async def think(name):
        async with recorder.session(name, session_id=name, agent_name=name):
            for round_ in range(5):
                async with recorder.model_call(model="m", messages=f"{name} {round_}"):
                    await asyncio.sleep(0.001)
                await asyncio.gather(use("x", name), use("y", name))

    async def use(tool, name):
        async with recorder.tool_call(tool, {"session": name}):
            await asyncio.sleep(0.001)

    async def both():
        await asyncio.gather(think("one"), think("two"))

    asyncio.run(both())
    assert recorder.flush()
    assert_apart(product, steps=5, tools=10)


def test_two_sessions_at_once_in_threads_do_not_mix(recorder, product):
    def think(name):
        with recorder.session(name, session_id=name, agent_name=name), ThreadPoolExecutor(2) as pool:
            bound = recorder.executor(pool)
            for round_ in range(5):
                with recorder.model_call(model="m", messages=f"{name} {round_}"):
                    pass
                list(bound.map(use, ["x", "y"], [name, name]))

    def use(tool, name):
        with recorder.tool_call(tool, {"session": name}):
            assert recorder.current_session.session_id == name

    threads = [threading.Thread(target=think, args=(name,)) for name in ("one", "two")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert recorder.flush()
    assert_apart(product, steps=5, tools=10)


def assert_apart(product, steps, tools):
    roots = {root.attributes["diagnosis.session.id"]: root for root in product.named("invoke_agent")}
    assert set(roots) == {"one", "two"}
    for name, root in roots.items():
        own_steps = [span for span in product.named("chat") if span.trace_id == root.trace_id]
        own_tools = [span for span in product.named("execute_tool") if span.trace_id == root.trace_id]
        assert [span.text("gen_ai.input.messages") for span in own_steps] == [f"{name} {n}" for n in range(steps)]
        assert len(own_tools) == tools
        assert all(span.json("gen_ai.tool.call.arguments") == {"session": name} for span in own_tools)
        assert all(span.parent_id == root.span_id for span in [*own_steps, *own_tools])


def test_a_bound_function_takes_its_session_into_a_thread(recorder, product):
    seen = []

    def work():
        seen.append(recorder.current_session)

    with recorder.session("q") as session:
        bound = recorder.bind(work)
    for function in (work, bound):
        thread = threading.Thread(target=function)
        thread.start()
        thread.join()
    assert seen == [None, session]


def test_a_bound_coroutine_function_stays_one(recorder):
    async def work():
        await asyncio.sleep(0)
        return recorder.current_session

    with recorder.session("q") as session:
        bound = recorder.bind(work)
    assert asyncio.iscoroutinefunction(bound)
    assert asyncio.run(bound()) is session


def test_what_ends_late_still_belongs_to_its_session(recorder, product):
    async def slow_tool():
        with recorder.tool_call("slow") as call:
            await asyncio.sleep(0.02)
            call.result("late")

    async def run():
        with recorder.session("q"):
            task = asyncio.create_task(slow_tool())
            await asyncio.sleep(0)
        await task

    asyncio.run(run())
    assert recorder.flush()
    tool = product.one("execute_tool")
    assert tool.trace_id == product.one("invoke_agent").trace_id
    assert tool.json("gen_ai.tool.call.result") == "late"


def test_sessions_in_generators_that_take_turns_leave_nothing_behind(recorder, product):
    def stream(name):
        with recorder.session(name, session_id=name) as session:
            yield 1
            with session.active(), recorder.tool_call("t", {"session": name}):
                yield 2

    one, two = stream("one"), stream("two")
    for generator in (one, two, one, two):
        next(generator)
    one.close()
    list(two)
    assert recorder.current_session is None
    assert recorder.flush()
    roots = {root.trace_id: root for root in product.named("invoke_agent")}
    for tool in product.named("execute_tool"):
        assert (
            tool.json("gen_ai.tool.call.arguments")["session"]
            == roots[tool.trace_id].attributes["diagnosis.session.id"]
        )
    assert not any(root.is_error for root in roots.values()), "a consumer that had enough is no failure"


def test_outside_a_session_nothing_is_recorded_and_it_is_said_once(recorder, product, caplog):
    for _ in range(3):
        with recorder.tool_call("t") as call:
            call.result(1)
        recorder.after_model(recorder.before_model("a", "q"), "x", input_tokens=1)
    assert recorder.flush()
    assert product.spans == []
    assert sum("outside" in record.message for record in caplog.records) == 1


def test_two_recorders_keep_apart(new_recorder, product):
    one, two = new_recorder(), new_recorder(agent_id="other")
    sessions = one.session("q1", session_id="s1"), two.session("q2", session_id="s2")
    with sessions[0], sessions[1], one.tool_call("of-one"), two.tool_call("of-two"):
        pass
    assert one.flush()
    assert two.flush()
    roots = {root.attributes["diagnosis.session.id"]: root for root in product.named("invoke_agent")}
    assert product.one("execute_tool of-one").trace_id == roots["s1"].trace_id
    assert product.one("execute_tool of-two").trace_id == roots["s2"].trace_id


def test_a_traced_application_keeps_its_traces_and_we_keep_ours(recorder, product):
    from opentelemetry import trace
    from opentelemetry.sdk.trace import TracerProvider

    tracer = TracerProvider().get_tracer("the application's")
    with tracer.start_as_current_span("request") as theirs, recorder.session("q"), recorder.tool_call("t"):
        assert trace.get_current_span() is theirs
    assert recorder.flush()
    assert product.one("invoke_agent").parent_id == ""
    assert {span.name for span in product.spans} == {"invoke_agent intelligent_assistant", "execute_tool t"}


def test_settings_of_another_tracing_do_not_reach_ours(monkeypatch, new_recorder, product):
    monkeypatch.setenv("OTEL_TRACES_SAMPLER", "always_off")
    monkeypatch.setenv("OTEL_ATTRIBUTE_VALUE_LENGTH_LIMIT", "10")
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_HEADERS", "x-vendor-key=secret")
    recorder = new_recorder()
    with recorder.session("a question of more than ten characters"):
        pass
    assert recorder.flush()
    assert product.one("invoke_agent").text("gen_ai.input.messages").endswith("characters")
    assert "x-vendor-key" not in product.requests[0][1]


def test_recording_can_be_switched_off_from_outside(monkeypatch, new_recorder, product):
    monkeypatch.setenv("OTEL_SDK_DISABLED", "true")
    recorder = new_recorder()
    with recorder.session("q", session_id="s") as session, recorder.tool_call("t") as call:
        call.result(1)
    assert session.session_id == "s"
    assert recorder.flush()
    assert product.requests == []
