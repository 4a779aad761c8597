"""The examples run as they stand, each in a process of its own."""

import os
import subprocess
import sys
import threading
from pathlib import Path

from stub_model import ANSWER, make_server

HOME = Path(__file__).parent.parent


def run(example, product, **more):
    environment = {
        **os.environ,
        "PYTHONPATH": str(HOME / "src"),
        "DIAGNOSIS_ENDPOINT": product.url,
        "DIAGNOSIS_API_KEY": "dk_example",
        **more,
    }
    command = [sys.executable, str(HOME / "examples" / example)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    assert done.stdout.startswith("Recorded session ")


def test_the_plain_loop(product):
    run("plain_loop.py", product)
    root = product.one("invoke_agent intelligent_assistant")
    assert root.text("gen_ai.output.messages") == ANSWER
    assert [span.attributes["gen_ai.usage.output_tokens"] for span in product.named("chat")] == [20, 12]
    assert product.one("execute_tool lookup_knowledge").parent_id == product.one("invoke_agent planner").span_id
    assert product.one("execute_tool read_log").parent_id == root.span_id
    assert [event["sessionId"] for event in product.events] == [root.attributes["diagnosis.session.id"]]


def test_the_agent_on_openai(product):
    model = make_server()
    threading.Thread(target=model.serve_forever, daemon=True).start()
    run("openai_agent.py", product, OPENAI_BASE_URL=f"http://127.0.0.1:{model.server_address[1]}/v1")
    model.shutdown()
    asking, answering = product.named("chat")
    assert asking.attributes["gen_ai.usage.input_tokens"] > 0
    assert answering.text("gen_ai.output.messages").strip() == ANSWER
    assert answering.attributes["gen_ai.usage.output_tokens"] == len(ANSWER.split())
    assert product.one("execute_tool").attributes["gen_ai.tool.call.id"] == "call_1"


def test_the_agent_on_langchain(product):
    run("langchain_agent.py", product)
    assert [span.name for span in product.named("execute_tool")] == ["execute_tool read_log"]
    assert len(product.named("chat")) == 2
    assert product.one("invoke_agent").text("gen_ai.output.messages") == ANSWER


def test_an_example_runs_without_a_product(product):
    product.stop()
    environment = {**os.environ, "PYTHONPATH": str(HOME / "src"), "DIAGNOSIS_ENDPOINT": product.url}
    command = [sys.executable, str(HOME / "examples" / "plain_loop.py")]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0
    assert "Recorded session" in done.stdout
    assert done.stderr.count("takes nothing now") == 2, "once for spans, once for feedback"
