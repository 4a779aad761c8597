"""Minimal valid rows. Nothing random: what an assertion may see is counted or fixed."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import timedelta
from typing import Any

import factory
from django.contrib.auth import get_user_model
from django.contrib.auth.models import Group, Permission
from django.utils import timezone
from factory.django import DjangoModelFactory

from cases_app.models import CaseLibrary, CaseStatus, SourceType
from cases_app.services import terms as case_terms
from feedback_app.models import AgentFeedback, BadCaseReview, EventType
from feedback_app.services import priority, terms
from sessions_app.models import AgentFlow, AgentStep, DiagnosisSession, Status, ToolInvocation, Verdict

PASSWORD = "correct horse battery staple"


def _scored_evaluation() -> dict[str, Any]:
    return {
        "evidence_score": 65,
        "source": "rule",
        "factors": [
            {"name": "has_successful_tool_call", "delta": 30, "description": "有成功的工具调用(1次)"},
            {"name": "l0_exact_match", "delta": 35, "description": "L0 精确匹配命中"},
        ],
    }


class SessionFactory(DjangoModelFactory[DiagnosisSession]):
    """A finished session with an answer, no steps and no debt of a score."""

    class Meta:
        model = DiagnosisSession

    session_id = factory.Sequence(lambda n: f"session-{n:05}")
    query = factory.Sequence(lambda n: f"Why is order-service slow? ({n})")
    status = Status.SUCCESS
    agent_flow = AgentFlow.CHAT
    agent_id = "oncall-assistant"
    answer = "The pool of connections is exhausted; raise its limit."
    created_at = factory.LazyFunction(timezone.now)
    started_at = factory.SelfAttribute("created_at")
    finished_at = factory.LazyAttribute(lambda session: session.started_at + timedelta(seconds=12))
    total_duration_ms = 12_000
    total_token_count = 1_500
    step_count = 0
    tool_call_count = 0

    class Params:
        owing = factory.Trait(evaluation_due_at=factory.LazyFunction(timezone.now))
        scored = factory.Trait(
            evidence_score=65,
            self_evaluation=factory.LazyFunction(_scored_evaluation),  # a new one each time: tests change theirs
        )
        rejected = factory.Trait(feedback=Verdict.NOT_USEFUL)
        running = factory.Trait(
            status=Status.RUNNING, answer=None, finished_at=None, total_duration_ms=None, total_token_count=None
        )


class StepFactory(DjangoModelFactory[AgentStep]):
    """One step of the planner; the index counts up within its session."""

    class Meta:
        model = AgentStep

    session = factory.SubFactory(SessionFactory)
    agent_name = "planner"
    step_index = factory.LazyAttribute(
        lambda step: AgentStep.objects.filter(session_id=step.session.session_id, agent_name=step.agent_name).count()
    )
    model_name = "model-1"
    model_input = factory.LazyFunction(lambda: {"messages": [{"role": "user", "content": "Why?"}]})
    model_output = factory.LazyFunction(lambda: {"content": "Look at the pool."})
    thought = "The pool may be exhausted."
    duration_ms = 800
    token_count = 120
    input_tokens = 100
    output_tokens = 20


class InvocationFactory(DjangoModelFactory[ToolInvocation]):
    """A successful call of a tool that is no retrieval, under a step of its own session."""

    class Meta:
        model = ToolInvocation

    session = factory.SelfAttribute("step.session")
    step = factory.SubFactory(StepFactory, has_tool_call=True)
    invocation_id = factory.Sequence(lambda n: f"call-{n:05}")
    tool_name = "query_metrics"
    input_params = factory.LazyFunction(lambda: {"metric": "pool_active"})
    output_preview = "pool_active 50"
    output_length = 14
    duration_ms = 40
    success = True

    class Params:
        l0_hit = factory.Trait(tool_name="lookup_knowledge", retrieval_layer="L0", l0_match_count=1, l1_match_count=0)
        l1_hit = factory.Trait(
            tool_name="lookup_knowledge", retrieval_layer="L0+L1", l0_match_count=0, l1_match_count=2
        )
        no_hit = factory.Trait(
            tool_name="lookup_knowledge", retrieval_layer="L0+L1", l0_match_count=0, l1_match_count=0
        )
        failed = factory.Trait(success=False, error_message="timed out", output_preview=None, output_length=None)


class CaseFactory(DjangoModelFactory[CaseLibrary]):
    """A draft made from a useful session, as the product itself makes it."""

    class Meta:
        model = CaseLibrary
        skip_postgeneration_save = True

    diagnosis = factory.SubFactory(SessionFactory, feedback=Verdict.USEFUL)
    source_type = SourceType.AUTO
    title = factory.LazyAttribute(lambda case: case.diagnosis.query[:100] if case.diagnosis else "A pool runs dry")
    root_cause = factory.LazyAttribute(lambda case: case.diagnosis.answer if case.diagnosis else "The pool is small.")
    solution = factory.SelfAttribute("root_cause")

    class Params:
        manual = factory.Trait(diagnosis=None, source_type=SourceType.MANUAL)
        enriched = factory.Trait(
            status=CaseStatus.ENRICHED,
            fault_category_id="SLOW_RESPONSE",
            root_cause="The pool is too small for the load.",
            solution="Raise the pool's limit to 200.",
        )
        published = factory.Trait(
            status=CaseStatus.PUBLISHED,
            fault_category_id="SLOW_RESPONSE",
            root_cause="The pool is too small for the load.",
            solution="Raise the pool's limit to 200.",
            reviewed_at=factory.LazyFunction(timezone.now),
        )

    @factory.post_generation
    def found(self, create: bool, wanted: bool | None, **_: Any) -> None:
        """Let it be found by its words, as every service does."""
        if create:
            case_terms.refresh([self.pk])


class TriageFactory(DjangoModelFactory[BadCaseReview]):
    """An open triage of a rejected session."""

    class Meta:
        model = BadCaseReview
        skip_postgeneration_save = True

    session = factory.SubFactory(SessionFactory, rejected=True)
    due_at = factory.LazyFunction(lambda: timezone.now() + timedelta(hours=72))

    @factory.post_generation
    def ranked(self, create: bool, wanted: bool | None, **_: Any) -> None:
        """Give it its place in the queue, as every service does; not where `ranked=False`."""
        if create and wanted is not False:
            priority.refresh(self.session_id)
            terms.refresh(self.session_id)
            self.refresh_from_db()


class FeedbackEventFactory(DjangoModelFactory[AgentFeedback]):
    """A thumb up from the reader of a session. It sets no verdict: services do."""

    class Meta:
        model = AgentFeedback
        skip_postgeneration_save = True

    session = factory.SubFactory(SessionFactory)
    turn_id = factory.SelfAttribute("session.session_id")
    agent_id = factory.SelfAttribute("session.agent_id")
    type = EventType.THUMBS
    value = 1.0

    @factory.post_generation
    def found(self, create: bool, wanted: bool | None, **_: Any) -> None:
        """Let its session's bad case be found by its words, as every service does."""
        if create:
            terms.refresh(self.session.session_id)


class UserFactory(DjangoModelFactory[Any]):
    """A person without any right. `role="Reviewer"` or `permissions=["cases_app.view_caselibrary"]` gives some."""

    class Meta:
        model = get_user_model()
        skip_postgeneration_save = True

    username = factory.Sequence(lambda n: f"person-{n:03}")
    email = factory.LazyAttribute(lambda user: f"{user.username}@example.org")
    password = factory.django.Password(PASSWORD)

    @factory.post_generation
    def role(self, create: bool, name: str | None, **_: Any) -> None:
        """Put the person into the group of this name."""
        if create and name:
            self.groups.add(Group.objects.get(name=name))

    @factory.post_generation
    def permissions(self, create: bool, names: Iterable[str] | None, **_: Any) -> None:
        """Give the permissions named `app_label.codename`."""
        if create and names:
            self.user_permissions.add(*(_permission(name) for name in names))


def _permission(name: str) -> Permission:
    app_label, codename = name.split(".")
    return Permission.objects.get(content_type__app_label=app_label, codename=codename)
