"""The one writer: any order, any repetition, the same rows."""

from __future__ import annotations

import copy
import random
from datetime import UTC, datetime, timedelta

import pytest

from sessions_app.errors import InvalidInputError, UnknownObjectError
from sessions_app.models import AgentStep, DiagnosisSession, ToolInvocation
from sessions_app.records import StepKey
from sessions_app.selectors.chain import decision_chain
from sessions_app.services.recording import Recorded, Refused, record_batch, record_sessions

pytestmark = pytest.mark.django_db

START = datetime(2026, 11, 1, 8, 0, tzinfo=UTC)


def whole(session_id="s1", **fields):
    """A session of two agents: a supervisor that asks an executor, which calls two tools."""
    return {
        "session_id": session_id,
        "query": "Why is checkout slow?",
        "status": "SUCCESS",
        "answer": "The pool was exhausted.",
        "started_at": START,
        "finished_at": START + timedelta(seconds=9),
        "steps": [
            {
                "agent_name": "supervisor",
                "step_index": 0,
                "input_tokens": 100,
                "output_tokens": 20,
                "duration_ms": 4000,
            },
            {
                "agent_name": "executor",
                "step_index": 0,
                "parent_step": StepKey("supervisor", 0),
                "token_count": 50,
                "duration_ms": 3000,
                "tool_invocations": [
                    {"tool_name": "lookup_knowledge", "l0_match_count": 1, "output": "hit " * 300},
                    {"tool_name": "query_logs", "success": False, "error_message": "timeout"},
                ],
            },
        ],
        **fields,
    }


def rows_of(session_id="s1"):
    """Everything stored of a session but keys and the time of writing."""
    session = DiagnosisSession.objects.filter(session_id=session_id).values().get()
    for own in ("id", "updated_at", "evaluation_due_at"):
        session.pop(own)
    steps = []
    for step in AgentStep.objects.of(session_id).select_related("parent_step"):
        values = AgentStep.objects.filter(pk=step.pk).values().get()
        for own in ("id", "created_at", "parent_step_id"):
            values.pop(own)
        values["parent"] = str(step.parent_step)
        steps.append(values)
    tools = []
    for tool in ToolInvocation.objects.of(session_id).select_related("step"):
        values = ToolInvocation.objects.filter(pk=tool.pk).values().get()
        for own in ("id", "created_at", "step_id"):
            values.pop(own)
        values["step"] = str(tool.step)
        tools.append(values)
    key = str
    return session, sorted(steps, key=key), sorted(tools, key=key)


def pieces():
    """The same session in pieces, as an agent's spans might arrive."""
    session = whole()
    supervisor, executor = session.pop("steps")
    lookup, logs = executor.pop("tool_invocations")
    lookup["invocation_id"], logs["invocation_id"] = "call-1", "call-2"
    key = StepKey("executor", 0)
    return [
        {"session_id": "s1", "query": session["query"], "started_at": session["started_at"], "status": "RUNNING"},
        session,
        {"session_id": "s1", "steps": [supervisor]},
        {"session_id": "s1", "steps": [executor]},
        {"session_id": "s1", "tool_invocations": [{**lookup, "step": key}]},
        {"session_id": "s1", "tool_invocations": [{**logs, "step": key}]},
    ]


def test_a_whole_session_is_stored_with_its_totals():
    assert record_sessions([whole()]) == [Recorded("s1", is_new=True)]
    session = DiagnosisSession.objects.get()
    assert (session.step_count, session.tool_call_count) == (2, 2)
    assert session.total_token_count == 170
    assert session.total_duration_ms == 9000
    assert session.created_at == START
    assert session.evaluation_due_at is not None
    lookup = ToolInvocation.objects.get(tool_name="lookup_knowledge")
    assert (len(lookup.output_preview), lookup.output_length) == (500, 1200)
    assert lookup.step == AgentStep.objects.get(agent_name="executor")
    assert AgentStep.objects.get(agent_name="executor").parent_step.agent_name == "supervisor"
    assert AgentStep.objects.get(agent_name="executor").has_tool_call
    assert not AgentStep.objects.get(agent_name="supervisor").has_tool_call


@pytest.mark.parametrize("seed", range(12))
def test_every_order_and_repetition_gives_the_same_rows(seed):
    for piece in pieces():
        record_sessions([piece])
    expected = rows_of()
    DiagnosisSession.objects.all().delete()

    order = pieces() * 2
    random.Random(seed).shuffle(order)
    cut = random.Random(seed).randrange(1, len(order))
    record_sessions(copy.deepcopy(order[:cut]))  # some together in one call
    for piece in order[cut:]:
        record_sessions([copy.deepcopy(piece)])
    assert rows_of() == expected


def test_the_same_again_changes_nothing_and_owes_no_score(score_due):
    record_sessions([whole()])
    score_due()
    before, updated = rows_of(), DiagnosisSession.objects.get().updated_at
    record_sessions([whole()])
    assert rows_of() == before
    session = DiagnosisSession.objects.get()
    assert (session.evaluation_due_at, session.updated_at) == (None, updated)


def test_what_is_sent_emptier_takes_nothing_away():
    record_sessions([whole()])
    before = rows_of()
    emptier = whole(query="", answer=None, metadata={})
    emptier["steps"][0] = {"agent_name": "supervisor", "step_index": 0, "thought": "", "token_count": None}
    emptier["steps"][1]["tool_invocations"][0] = {"tool_name": "lookup_knowledge", "output": ""}
    record_sessions([emptier])
    assert rows_of() == before


def test_a_status_never_goes_back():
    record_sessions([whole()])
    record_sessions([{"session_id": "s1", "status": "RUNNING"}])
    record_sessions([{"session_id": "s1", "query": "no status at all"}])
    assert DiagnosisSession.objects.get().status == "SUCCESS"


def test_late_facts_owe_a_new_score_and_a_late_answer_does_not(score_due):
    record_sessions([whole(steps=[])])
    score_due()
    assert DiagnosisSession.objects.get().evidence_score == 0
    record_sessions([{"session_id": "s1", "answer": "A fuller answer."}])
    assert DiagnosisSession.objects.get().evaluation_due_at is None
    record_sessions([{"session_id": "s1", "steps": whole()["steps"]}])
    assert DiagnosisSession.objects.get().evaluation_due_at is not None
    score_due()
    assert DiagnosisSession.objects.get().evidence_score == 65


def test_a_running_session_owes_no_score():
    record_sessions([{"session_id": "s1", "status": "RUNNING", "steps": whole()["steps"]}])
    assert DiagnosisSession.objects.get().evaluation_due_at is None


def test_totals_the_caller_sends_stand_and_the_others_follow_the_rows():
    record_sessions([whole(total_token_count=9_999, step_count=7)])
    record_sessions([{"session_id": "s1", "steps": [{"agent_name": "planner", "step_index": 0, "token_count": 5}]}])
    session = DiagnosisSession.objects.get()
    assert (session.total_token_count, session.step_count, session.tool_call_count) == (9_999, 7, 2)


def test_contradicting_clocks_give_no_duration():
    record_sessions([whole(finished_at=START - timedelta(seconds=1))])
    assert DiagnosisSession.objects.get().total_duration_ms is None


def test_without_clocks_the_duration_is_that_of_the_steps():
    record_sessions([whole(started_at=None, finished_at=None)])
    assert DiagnosisSession.objects.get().total_duration_ms == 7000


def test_a_live_session_is_timed_by_our_clock():
    record_sessions([{"session_id": "s1", "is_live": True}])
    record_sessions([{"session_id": "s1", "is_live": True, "status": "SUCCESS"}])
    session = DiagnosisSession.objects.get()
    assert session.started_at is not None
    assert session.finished_at is not None
    assert 0 <= session.total_duration_ms < 60_000


def test_a_step_that_is_only_spoken_of_is_filled_when_it_comes():
    record_sessions(
        [
            {
                "session_id": "s1",
                "tool_invocations": [{"tool_name": "t", "step": StepKey("执行者", 3), "invocation_id": "i"}],
            }
        ]
    )
    step = AgentStep.objects.get()
    record_sessions(
        [{"session_id": "s1", "steps": [{"agent_name": "执行者", "step_index": 3, "thought": "Now I know."}]}]
    )
    assert AgentStep.objects.get().pk == step.pk
    assert AgentStep.objects.get().thought == "Now I know."
    assert ToolInvocation.objects.get().step_id == step.pk


def test_ids_and_names_that_differ_in_case_are_two():
    record_sessions([whole("ABC"), whole("abc")])
    record_sessions([{"session_id": "abc", "steps": [{"agent_name": "Executor", "step_index": 0}]}])
    assert DiagnosisSession.objects.count() == 2
    assert AgentStep.objects.of("abc").count() == 3
    assert AgentStep.objects.of("ABC").count() == 2


def test_invocations_with_the_same_id_in_two_sessions_are_two():
    row = {"tool_name": "t", "invocation_id": "call-1"}
    record_sessions([{"session_id": sid, "tool_invocations": [row]} for sid in ("a", "b")])
    assert ToolInvocation.objects.count() == 2


def test_the_same_session_twice_in_one_call_is_merged():
    first, second = whole(answer=None), {"session_id": "s1", "answer": "At last."}
    assert [outcome.is_new for outcome in record_sessions([first, second])] == [True, True]
    assert DiagnosisSession.objects.get().answer == "At last."


def test_must_exist_refuses_an_unknown_session_and_writes_nothing():
    with pytest.raises(UnknownObjectError, match="There is no session nope"):
        record_sessions([{"session_id": "nope", "status": "SUCCESS"}], must_exist=True)
    assert not DiagnosisSession.objects.exists()


def test_steps_without_times_keep_their_order():
    names = ["planner", "executor", "analyst", "critic"]
    record_sessions([whole(steps=[{"agent_name": name, "step_index": 0} for name in names])])
    assert [step.agent_name for step in decision_chain("s1")] == names


def test_a_batch_of_many_sessions_is_written_in_chunks_in_order():
    outcomes = list(record_batch([whole(f"s{n}") for n in range(120)]))
    assert [outcome.session_id for outcome in outcomes] == [f"s{n}" for n in range(120)]
    assert DiagnosisSession.objects.count() == 120
    assert ToolInvocation.objects.count() == 240


def test_the_number_of_statements_does_not_grow_with_the_batch(django_assert_max_num_queries):
    with django_assert_max_num_queries(12):
        record_sessions([whole(f"s{n}") for n in range(20)])


@pytest.mark.parametrize("text", ["👩‍👩‍👧‍👦 𠮷 🇩🇪", "退款 возврат", "a\u2028b\ttab\r\nline"])
def test_every_text_comes_back_byte_for_byte(text):
    called = {"tool_name": "t", "input_params": {"q": text}, "output": text, "error_message": text}
    step = {"agent_name": text[:20], "step_index": 0, "thought": text, "model_input": {text: [text]}}
    step["tool_invocations"] = [called]
    record_sessions([whole(query=text, answer=text, metadata={"k": text}, steps=[step])])
    session, stored, tool = DiagnosisSession.objects.get(), AgentStep.objects.get(), ToolInvocation.objects.get()
    assert (session.query, session.answer, session.metadata) == (text, text, {"k": text})
    assert (stored.agent_name, stored.thought, stored.model_input) == (text[:20], text, {text: [text]})
    assert (tool.input_params, tool.output_preview, tool.error_message) == ({"q": text}, text, text)


@pytest.mark.parametrize("chars", [10, 400, 1_300, 1_900, 8_000, 60_000])
def test_texts_that_do_not_pack_are_stored_whole_though_pages_are_small(chars):
    """Every column of a step as long as it may be, of characters that no compression finds alike."""
    chance = random.Random(chars)

    def noise(length, first=0x4E00, last=0x9FA5):
        return "".join(chr(chance.randint(first, last)) for _ in range(length))

    steps = [
        {
            "agent_name": noise(32, 0x61, 0x7A), "step_index": index, "span_id": noise(64, 0x21, 0x7E),
            "model_name": noise(128), "model_input": [{"role": "user", "content": noise(chars)}],
            "model_output": {"text": noise(chars)}, "thought": noise(chars),
        }
        for index in range(6)
    ]  # fmt: skip
    [outcome] = record_batch([{"session_id": "noise", "query": noise(chars), "steps": steps}])
    assert isinstance(outcome, Recorded)
    names = ("agent_name", "step_index", "span_id", "model_name", "model_input", "model_output", "thought")
    assert list(AgentStep.objects.order_by("step_index").values(*names)) == steps


def test_a_loose_invocation_is_another_than_the_one_nested_at_its_position():
    step = StepKey("main", 0)
    item = {
        "session_id": "s1",
        "steps": [{"agent_name": "main", "step_index": 0, "tool_invocations": [{"tool_name": "nested"}]}],
        "tool_invocations": [{"tool_name": "loose", "step": step}],
    }
    record_sessions([item])
    record_sessions([item])
    rows = ToolInvocation.objects.filter(step__step_index=0).values_list("tool_name", flat=True)
    assert sorted(rows) == ["loose", "nested"]


@pytest.mark.parametrize("first", [0, 1], ids=["count-first", "parts-first"])
def test_a_token_count_of_the_callers_own_stays_in_either_order(first):
    said = [{"token_count": 50}, {"input_tokens": 10, "output_tokens": 5}]
    for part in (said[first], said[1 - first]):
        record_sessions([{"session_id": "s1", "steps": [{"agent_name": "main", "step_index": 0, **part}]}])
    assert AgentStep.objects.get().token_count == 50


def test_a_summed_token_count_follows_its_parts():
    for part in ({"input_tokens": 10}, {"output_tokens": 5}, {"input_tokens": 20}):
        record_sessions([{"session_id": "s1", "steps": [{"agent_name": "main", "step_index": 0, **part}]}])
    assert AgentStep.objects.get().token_count == 25


def test_an_object_that_grows_by_parts_is_bounded_and_sinks_no_neighbour():
    record_sessions([{"session_id": "s1", "metadata": {"a": "x" * 400_000}}])
    outcomes = list(record_batch([{"session_id": "s1", "metadata": {"b": "y" * 400_000}}, {"session_id": "s2"}]))
    assert isinstance(outcomes[0], Refused)
    assert outcomes[1] == Recorded("s2", is_new=True)
    assert set(DiagnosisSession.objects.get(session_id="s1").metadata) == {"a"}
    with pytest.raises(InvalidInputError) as caught:
        record_sessions([{"session_id": "s1", "metadata": {"b": "y" * 400_000}}])
    assert list(caught.value.errors) == ["metadata"]


def test_an_empty_output_has_the_length_zero_and_takes_no_longer_one_away():
    for output in ("", "abc", ""):
        tool = {"tool_name": "t", "invocation_id": "i", "output": output}
        record_sessions([{"session_id": "s1", "tool_invocations": [tool]}])
        if not output and ToolInvocation.objects.get().output_preview is None:
            assert ToolInvocation.objects.get().output_length == 0
    assert (ToolInvocation.objects.get().output_length, ToolInvocation.objects.get().output_preview) == (3, "abc")


@pytest.mark.parametrize("said", [[False, True], [True, False], [False, None, True]])
def test_a_refusal_of_consent_stands_in_any_order(said):
    for consent in said:
        record_sessions([whole(consent=consent)])
    assert DiagnosisSession.objects.get().consent is False


def test_consent_is_assumed_until_refused():
    record_sessions([whole()])
    record_sessions([whole(consent=True)])
    assert DiagnosisSession.objects.get().consent is True
