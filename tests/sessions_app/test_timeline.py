"""The decision chain as the page draws it: ordered, nested, bounded, whatever agents sent."""

from __future__ import annotations

from datetime import timedelta
from itertools import pairwise

import pytest
from django.utils import timezone

from sessions_app.errors import UnknownObjectError
from sessions_app.models import AgentStep, ToolInvocation
from sessions_app.selectors.chain import CLIP_CHARS, DEEPEST, STEPS_SHOWN, Span, step_texts, timeline
from tests.factories import InvocationFactory, SessionFactory, StepFactory

pytestmark = pytest.mark.django_db
NOW = timezone.now()


def names(shown) -> list[tuple[str, int]]:
    return [(line.row.agent_name, line.depth) for line in shown.steps]


def test_steps_stand_in_order_under_the_step_that_called_them():
    session = SessionFactory()
    last = StepFactory(session=session, agent_name="reporter", started_at=NOW + timedelta(seconds=9))
    supervisor = StepFactory(session=session, agent_name="supervisor", started_at=NOW)
    StepFactory(session=session, agent_name="executor", started_at=NOW + timedelta(seconds=4), parent_step=supervisor)
    planner = StepFactory(
        session=session, agent_name="planner", started_at=NOW + timedelta(seconds=1), parent_step=supervisor
    )
    StepFactory(session=session, agent_name="helper", started_at=NOW + timedelta(seconds=2), parent_step=planner)
    StepFactory(session=session, agent_name="unclocked", parent_step=last)
    assert names(timeline(session.session_id)) == [
        ("supervisor", 0), ("planner", 1), ("helper", 2), ("executor", 1), ("reporter", 0), ("unclocked", 1),
    ]  # fmt: skip


def test_bars_share_one_axis():
    session = SessionFactory()
    first = StepFactory(session=session, started_at=NOW, duration_ms=1000)
    StepFactory(session=session, started_at=NOW + timedelta(seconds=3), duration_ms=1000)
    StepFactory(session=session, duration_ms=500)
    InvocationFactory(step=first, started_at=NOW + timedelta(seconds=1), duration_ms=None)
    shown = timeline(session.session_id)
    assert shown.length_ms == 4000
    assert [line.span for line in shown.steps] == [Span(0.0, 25.0), Span(75.0, 25.0), None]
    assert shown.steps[0].calls[0].span == Span(25.0, 0.0)


def test_without_clocks_there_is_no_axis():
    step = StepFactory(started_at=None)
    InvocationFactory(step=step, started_at=None)
    shown = timeline(step.session.session_id)
    assert (shown.length_ms, shown.steps[0].span, shown.steps[0].calls[0].span) == (None, None, None)


def test_a_session_without_anything_is_an_empty_timeline():
    shown = timeline(SessionFactory().session_id)
    assert (shown.steps, shown.loose, shown.step_count, shown.call_count, shown.pages) == ([], [], 0, 0, 1)


def test_marks_say_what_happened_to_a_call():
    step = StepFactory()
    InvocationFactory(step=step, l0_hit=True)
    InvocationFactory(step=step, l1_hit=True, is_truncated=True, input_params={"q": 2})
    InvocationFactory(step=step, no_hit=True, input_params={"q": 3})
    InvocationFactory(step=step, failed=True)
    InvocationFactory(step=step)
    InvocationFactory(step=step, tool_name="other")
    shown = timeline(step.session.session_id)
    assert [call.marks for call in shown.steps[0].calls] == [
        ["l0"], ["l1", "truncated"], ["miss"], ["failed"], ["repeated"], [],
    ]  # fmt: skip
    assert [call.times for call in shown.steps[0].calls] == [1, 1, 1, 2, 2, 1]
    assert shown.totals == {"l0": 1, "l1": 1, "truncated": 1, "miss": 1, "failed": 1, "repeated": 1}


def test_calls_without_a_step_stand_at_the_end_also_when_their_step_is_gone():
    step = StepFactory()
    orphan = InvocationFactory(step=step)
    loose = InvocationFactory(step=None, session=step.session)
    ToolInvocation.objects.filter(pk=orphan.pk).update(step_id=step.pk + 999)
    shown = timeline(step.session.session_id)
    assert [call.row.pk for call in shown.loose] == [orphan.pk, loose.pk]
    assert shown.steps[0].calls == []


def test_steps_that_call_each_other_in_a_ring_are_each_shown_once():
    session = SessionFactory()
    a, b = StepFactory(session=session, agent_name="a"), StepFactory(session=session, agent_name="b")
    AgentStep.objects.filter(pk=a.pk).update(parent_step=b)
    AgentStep.objects.filter(pk=b.pk).update(parent_step=a)
    assert sorted(name for name, _ in names(timeline(session.session_id))) == ["a", "b"]


def test_500_nested_steps_come_in_pages_of_bounded_depth(django_assert_num_queries):
    session = SessionFactory()
    AgentStep.objects.bulk_create(AgentStep(session=session, agent_name="x", step_index=n) for n in range(500))
    rows = list(AgentStep.objects.of(session.session_id).order_by("step_index"))
    for parent, child in pairwise(rows):
        child.parent_step = parent
    AgentStep.objects.bulk_update(rows, ["parent_step"])
    ToolInvocation.objects.bulk_create(
        ToolInvocation(session=session, step=row, tool_name="t", invocation_id=f"i{n}") for n, row in enumerate(rows)
    )
    with django_assert_num_queries(3):
        shown = timeline(session.session_id, page=5)
    assert (len(shown.steps), shown.pages, shown.first, shown.step_count) == (STEPS_SHOWN, 5, 401, 500)
    assert max(line.depth for line in shown.steps) == DEEPEST
    assert shown.steps[-1].row.step_index == 499
    assert timeline(session.session_id, page=99).page == 5


def test_long_texts_stay_in_the_database():
    step = StepFactory(thought="t" * 50_000, model_input={"x": "y" * 50_000})
    InvocationFactory(step=step, input_params={"x": "y" * 50_000}, error_message="e" * 50_000, success=False)
    line = timeline(step.session.session_id).steps[0]
    assert (len(line.row.thought_head), len(line.calls[0].input), len(line.calls[0].error)) == (CLIP_CHARS,) * 3
    assert {"model_input", "model_output", "thought"} <= line.row.get_deferred_fields()
    assert line.row.has_input


def test_the_texts_of_a_step_belong_to_its_session():
    step, other = StepFactory(), SessionFactory()
    assert step_texts(step.session.session_id, step.pk).model_output == {"content": "Look at the pool."}
    with pytest.raises(UnknownObjectError):
        step_texts(other.session_id, step.pk)
