"""An agent on LangChain: one callback handler records models, tools and retrievers.

    pip install langchain-core
    DIAGNOSIS_API_KEY=… python examples/langchain_agent.py

The model is LangChain's own stand-in; put any chat model in its place.
"""

from __future__ import annotations

import logging
import os

from langchain_core.language_models.fake_chat_models import FakeMessagesListChatModel
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage
from langchain_core.runnables import RunnableConfig, RunnableLambda
from langchain_core.tools import tool

from diagnosis_client import Recorder
from diagnosis_client.langchain import DiagnosisCallbackHandler

recorder = Recorder(
    os.environ.get("DIAGNOSIS_ENDPOINT", "http://127.0.0.1:8000"),
    api_key=os.environ.get("DIAGNOSIS_API_KEY"),
    agent_id="example/langchain",
)
model = FakeMessagesListChatModel(
    responses=[
        AIMessage("", tool_calls=[{"name": "read_log", "args": {"service": "checkout"}, "id": "call_1"}]),
        AIMessage("The connection pool was exhausted. Raise it to 50."),
    ]
)


@tool
def read_log(service: str) -> str:
    """Read the log of a service."""
    return f"{service}: timeout waiting for a connection from the pool"


def think(question: str, config: RunnableConfig) -> str:
    """Call tools until the model has an answer."""
    history: list[BaseMessage] = [HumanMessage(question)]
    while True:
        message = model.invoke(history, config)
        history.append(message)
        if not isinstance(message, AIMessage) or not message.tool_calls:
            return str(message.content)
        history += [read_log.invoke({**call, "type": "tool_call"}, config) for call in message.tool_calls]


agent = RunnableLambda(think)


def diagnose(question: str) -> str:
    """One session."""
    with recorder.session(question) as session:
        answer = agent.invoke(question, {"callbacks": [DiagnosisCallbackHandler(recorder)]})
        session.answer(answer)
        print(f"Recorded session {session.session_id}: {answer}")
        return answer


if __name__ == "__main__":
    logging.basicConfig(level=logging.WARNING)
    diagnose("Why is checkout slow?")
