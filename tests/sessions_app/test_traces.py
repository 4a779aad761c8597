"""Real traces become the right rows, in any order and number of pieces."""

from __future__ import annotations

import random

import pytest

from sessions_app.models import AgentStep, DiagnosisSession, OtlpTrace, ToolInvocation
from sessions_app.otlp.json_form import decode_json
from sessions_app.otlp.spans import Span, split
from sessions_app.services.traces import record_spans

pytestmark = pytest.mark.django_db


@pytest.fixture
def kagent(shared_data) -> list[Span]:
    """A real run of a Helm agent: 96 spans, mostly HTTP and messaging."""
    good, bad = split(decode_json((shared_data / "otlp" / "kagent_helm.json").read_bytes()))
    assert (len(good), bad) == (96, [])
    return good


def rows():
    """Everything stored but keys, times of writing and debts."""

    def read(model, *more):
        columns = [column.name for column in model._meta.concrete_fields if column.name not in own]
        return list(model.objects.order_by("pk").values(*columns, *more))

    own = {"id", "updated_at", "evaluation_due_at", "step", "parent_step"}
    sessions = read(DiagnosisSession)
    own.add("created_at")
    steps = read(AgentStep, "parent_step__agent_name", "parent_step__step_index")
    invocations = read(ToolInvocation, "step__agent_name", "step__step_index")
    return sorted(sessions, key=str), sorted(steps, key=str), sorted(invocations, key=str)


def test_a_real_run_among_http_noise_is_one_session_with_two_steps_and_one_tool(kagent, score_due):
    outcome = record_spans(kagent)
    assert (outcome.accepted, outcome.rejected) == (96, [])
    session = DiagnosisSession.objects.get()
    assert session.session_id == kagent[0].trace_id
    assert session.query == "list all Helm releases"
    assert session.answer.startswith("There are two Helm releases installed in the cluster:")
    assert (session.status, session.step_count, session.tool_call_count) == ("SUCCESS", 2, 1)
    assert session.total_token_count == 3906
    assert session.conversation_id == "ctx-7ed9780f-3688-4fc0-b10b-2e4df2f83cf0"
    assert session.user_ref.startswith("u-"), "an e-mail address is no pseudonym"
    steps = list(AgentStep.objects.order_by("step_index"))
    assert [(step.agent_name, step.input_tokens, step.output_tokens) for step in steps] == [
        ("helm_agent", 1820, 13),
        ("helm_agent", 1956, 117),
    ]
    tool = ToolInvocation.objects.get()
    assert (tool.tool_name, tool.success, tool.step) == ("helm_list_releases", True, steps[0])
    assert tool.output_preview.startswith("NAME       \tNAMESPACE")
    score_due()
    session.refresh_from_db()
    assert session.evidence_score == 30


@pytest.mark.parametrize("seed", range(20))
def test_any_order_any_cut_and_any_repetition_give_the_same_rows(kagent, seed):
    record_spans(kagent)
    expected = rows()
    DiagnosisSession.objects.all().delete()
    OtlpTrace.objects.all().delete()
    chance = random.Random(seed)
    order = kagent + chance.choices(kagent, k=20)
    chance.shuffle(order)
    while order:
        cut = chance.randint(1, 30)
        record_spans(order[:cut])
        order = order[cut:]
    assert rows() == expected
    assert len(expected[0]) == 1
