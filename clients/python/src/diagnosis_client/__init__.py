"""Records what a diagnosing agent did, and what people thought of it. README.md starts with three lines."""

from diagnosis_client._blocks import Agent, ModelCall, Session, ToolCall
from diagnosis_client._version import __version__
from diagnosis_client.feedback import FeedbackCollector
from diagnosis_client.recorder import Recorder

__all__ = ["Agent", "FeedbackCollector", "ModelCall", "Recorder", "Session", "ToolCall", "__version__"]
