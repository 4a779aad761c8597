"""The six questions of the design, against sessions small enough to count by hand."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from django.db import transaction
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from sessions_app import rules
from sessions_app.models import ToolInvocation
from sessions_app.rules import InvocationFacts
from sessions_app.selectors.questions import (
    Retrievals,
    ToolUse,
    confident_but_rejected,
    decision_chain,
    retrievals,
    step_durations,
    tools_of_session,
)
from sessions_app.selectors.slices import Average, Period, Rate, Slice
from tests.factories import InvocationFactory, SessionFactory, StepFactory

pytestmark = pytest.mark.django_db

ALL = Slice()
NOON = datetime(2026, 11, 10, 12, tzinfo=UTC)


def test_tools_of_one_session_are_counted_by_name():
    session = SessionFactory()
    step = StepFactory(session=session)
    for duration_ms in (40, 60):
        InvocationFactory(step=step, tool_name="query_logs", duration_ms=duration_ms)
    InvocationFactory(step=step, tool_name="query_logs", failed=True, duration_ms=None)
    InvocationFactory(step=None, session=session, l0_hit=True, duration_ms=None)
    InvocationFactory(tool_name="of_another_session")
    assert tools_of_session(session.session_id) == [
        ToolUse("lookup_knowledge", calls=1, failed=0, duration_ms=None),
        ToolUse("query_logs", calls=3, failed=1, duration_ms=100),
    ]


def test_a_session_without_tools_used_none():
    assert tools_of_session(SessionFactory().session_id) == []


def test_retrievals_are_told_apart_by_where_they_hit():
    def retrieval(layer=None, l0=None, l1=None, **more):
        more.setdefault("tool_name", "lookup_knowledge")
        InvocationFactory(retrieval_layer=layer, l0_match_count=l0, l1_match_count=l1, **more)

    retrieval("L0", 2, 0, is_truncated=True)  # L0 only
    retrieval("L0")  # L0 only: no count, so the layer's name counts
    retrieval("L0+L1", 1, 3)  # both
    retrieval("L0+L1", 0, 3, is_truncated=True)  # L1 only
    retrieval("L0+L1", 0, 0)  # miss
    retrieval("L0", 0)  # miss: the count of zero outweighs the name
    retrieval()  # unsaid: known as a retrieval by its tool's name alone
    retrieval(l1=1, tool_name="search_wiki")  # L1 only: a match count makes any tool a retrieval
    InvocationFactory(tool_name="query_logs", is_truncated=True)  # no retrieval at all

    found = retrievals(ALL)

    assert found == Retrievals(l0_only=2, l1_only=2, both=1, miss=2, unsaid=1, truncated=2)
    assert found.total == 2 + 2 + 1 + 2 + 1
    assert found.l0_hit_rate == Rate(2 + 1, 8)
    assert found.truncation_rate == Rate(2, 8)


LAYERS = st.sampled_from([None, "", "L0", "L1", "L0+L1"])
COUNTS = st.sampled_from([None, 0, 1, 7])
TOOLS = ["lookup_knowledge", "Lookup_Knowledge", "search_wiki", "query_logs"]
FACTS = st.builds(InvocationFacts, st.sampled_from(TOOLS), st.booleans(), LAYERS, COUNTS, COUNTS)


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(facts=st.lists(FACTS, min_size=1, max_size=12), retrieval_tools=st.lists(st.sampled_from(TOOLS), unique=True))
def test_the_database_and_the_rules_agree_on_retrievals_and_hits(facts, retrieval_tools, db):
    with transaction.atomic():
        session = SessionFactory()
        ToolInvocation.objects.bulk_create(
            ToolInvocation(
                session=session,
                invocation_id=f"call-{index}",
                tool_name=each.tool_name,
                success=each.success,
                retrieval_layer=each.retrieval_layer,
                l0_match_count=each.l0_match_count,
                l1_match_count=each.l1_match_count,
            )
            for index, each in enumerate(facts)
        )

        def matching(condition):
            return set(session.tool_invocations.filter(condition).values_list("invocation_id", flat=True))

        def expected(test):
            return {f"call-{index}" for index, each in enumerate(facts) if test(each)}

        assert matching(rules.is_retrieval(retrieval_tools)) == expected(lambda f: f.is_retrieval(retrieval_tools))
        assert matching(rules.hits("L0")) == expected(lambda f: f.hits("L0"))
        assert matching(rules.hits("L1")) == expected(lambda f: f.hits("L1"))
        transaction.set_rollback(True)


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(facts=st.lists(FACTS, max_size=12))
def test_the_kinds_of_retrieval_add_up_and_agree_with_the_rules(facts, db):
    with transaction.atomic():
        for each in facts:
            InvocationFactory(
                tool_name=each.tool_name,
                retrieval_layer=each.retrieval_layer,
                l0_match_count=each.l0_match_count,
                l1_match_count=each.l1_match_count,
            )
        mine = [each for each in facts if each.is_retrieval(["lookup_knowledge"])]
        hits = [(each.hits("L0"), each.hits("L1")) for each in mine]
        nothing = [not e.retrieval_layer and e.l0_match_count is None and e.l1_match_count is None for e in mine]
        assert retrievals(ALL) == Retrievals(
            l0_only=hits.count((True, False)),
            l1_only=hits.count((False, True)),
            both=hits.count((True, True)),
            miss=hits.count((False, False)) - sum(nothing),
            unsaid=sum(nothing),
            truncated=0,
        )
        transaction.set_rollback(True)


def test_step_durations_are_averaged_agent_by_agent():
    session = SessionFactory()
    for duration_ms in (100, 200, 600):
        StepFactory(session=session, agent_name="executor", duration_ms=duration_ms)
    StepFactory(session=session, agent_name="executor", duration_ms=None)  # did not say: no part of the average
    StepFactory(session=session, agent_name="planner", duration_ms=50)
    StepFactory(session=session, agent_name="silent", duration_ms=None)

    # executor (100 + 200 + 600) / 3 = 300; planner 50 / 1
    executor, planner = step_durations(ALL)
    assert (executor.agent_name, executor.duration_ms) == ("executor", Average(900, 3))
    assert executor.duration_ms.value == 300
    assert (planner.agent_name, planner.duration_ms.value) == ("planner", 50)

    [only] = step_durations(Slice(agent_name="planner"))
    assert only == planner


def test_the_decision_chain_is_in_order():
    session = SessionFactory()
    late = StepFactory(session=session, agent_name="executor", started_at=NOON + timedelta(seconds=5))
    early = StepFactory(session=session, agent_name="planner", started_at=NOON)
    assert decision_chain(session.session_id) == [early, late]


def test_confident_sessions_that_were_rejected():
    def session(confidence, **more):
        return SessionFactory(confidence=confidence, **more)

    older = session(95.0, rejected=True, created_at=NOON)
    newer = session(80.5, rejected=True, created_at=NOON + timedelta(days=1))
    session(80.0, rejected=True)  # above 80, not from 80
    session(None, rejected=True)
    session(99.0, feedback="useful")
    session(99.0, feedback=None)
    assert list(confident_but_rejected(ALL)) == [newer, older]
    assert list(confident_but_rejected(Slice(Period(NOON, NOON + timedelta(hours=1))))) == [older]


def test_an_empty_database_has_answers(django_assert_num_queries):
    with django_assert_num_queries(3):
        assert retrievals(ALL) == Retrievals(0, 0, 0, 0, 0, 0)
        assert step_durations(ALL) == []
        assert list(confident_but_rejected(ALL)) == []
    assert retrievals(ALL).l0_hit_rate.value is None
    assert retrievals(ALL).truncation_rate.value is None
