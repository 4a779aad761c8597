"""Every move of a case, from each status; what a stale form meets; what a reader's change of mind does."""

import uuid

import pytest
from django.utils import timezone

from cases_app.models import CaseLibrary, CaseStatus, CaseTransition, SourceType
from cases_app.services import enrichment
from cases_app.services.moving import StaleCaseError
from feedback_app.services import submission
from sessions_app.errors import ConflictError, InvalidInputError, UnknownObjectError
from sessions_app.models import DiagnosisSession
from tests.factories import CaseFactory, SessionFactory, UserFactory

pytestmark = pytest.mark.django_db

CONTENT = {
    "fault_category": "CACHE",
    "error_code": " REDIS_TIMEOUT ",
    "title": "Keys expire all at once",
    "root_cause": "One TTL for all keys.",
    "solution": "Spread the TTLs.",
}
DRAFT, ENRICHED, PUBLISHED, RETIRED = (status.value for status in CaseStatus)
COMPLETE = {"fault_category_id": "SLOW_RESPONSE", "root_cause": "The pool is small.", "solution": "Raise it."}
MOVES = {
    "enrich": lambda case, by: enrichment.enrich_case(
        case_id=case.pk, content=CONTENT, version=case.version, reviewer=by
    ),
    "publish": lambda case, by: enrichment.publish_case(case_id=case.pk, reviewer=by),
    "enrich_and_publish": lambda case, by: enrichment.enrich_and_publish_case(
        case_id=case.pk, content=CONTENT, version=case.version, reviewer=by
    ),
    "unpublish": lambda case, by: enrichment.unpublish_case(case_id=case.pk, reviewer=by, reason="Outdated"),
    "retire": lambda case, by: enrichment.retire_case(case_id=case.pk, reviewer=by, reason="Wrong"),
    "restore": lambda case, by: enrichment.restore_case(case_id=case.pk, reviewer=by),
}
# move → status → where it leads; what is not named here is refused
ALLOWED = {
    "enrich": {DRAFT: ENRICHED, ENRICHED: ENRICHED, PUBLISHED: PUBLISHED},
    "publish": {ENRICHED: PUBLISHED},
    "enrich_and_publish": {DRAFT: PUBLISHED, ENRICHED: PUBLISHED},
    "unpublish": {PUBLISHED: ENRICHED},
    "retire": {DRAFT: RETIRED, ENRICHED: RETIRED, PUBLISHED: RETIRED},
    "restore": {RETIRED: ENRICHED},
}


@pytest.fixture
def rita(db):
    return UserFactory(username="rita")


def columns(case):
    return CaseLibrary.objects.filter(pk=case.pk).values().get()


@pytest.mark.parametrize("status", CaseStatus.values)
@pytest.mark.parametrize("move", MOVES)
def test_each_move_from_each_status(move, status, rita):
    case, bystander = CaseFactory(status=status, **COMPLETE), CaseFactory()
    before, other = columns(case), columns(bystander)
    session = DiagnosisSession.objects.values().get(pk=case.diagnosis.pk)
    target = ALLOWED[move].get(status)
    if target is None:
        with pytest.raises(ConflictError):
            MOVES[move](case, rita)
        assert columns(case) == before
        assert not CaseTransition.objects.exists()
    else:
        MOVES[move](case, rita)
        case.refresh_from_db()
        steps = ["enrich", "publish"] if move == "enrich_and_publish" else [move]
        assert (case.status, case.reviewed_by, case.version) == (target, rita, before["version"] + len(steps))
        assert case.reviewed_at is not None
        history = list(CaseTransition.objects.order_by("id").values_list("action", "actor__username"))
        assert history == [(step, "rita") for step in steps]
        last = CaseTransition.objects.latest("id")
        assert last.to_state == target
        assert len(steps) > 1 or last.from_state == status
    assert columns(bystander) == other
    assert DiagnosisSession.objects.values().get(pk=case.diagnosis.pk) == session


def test_enriching_writes_what_the_reviewer_wrote(rita):
    case = CaseFactory()
    MOVES["enrich"](case, rita)
    case.refresh_from_db()
    assert (case.fault_category_id, case.error_code, case.title) == ("CACHE", "REDIS_TIMEOUT", CONTENT["title"])
    assert (case.root_cause, case.solution) == (CONTENT["root_cause"], CONTENT["solution"])
    assert (case.source_type, case.created_by) == (SourceType.AUTO, "system")


def test_retiring_takes_a_reason(rita):
    case = CaseFactory()
    MOVES["retire"](case, rita)
    assert CaseTransition.objects.get(case=case).reason == "Wrong"


def test_restoring_a_general_case_makes_it_a_draft(rita):
    case = CaseFactory(status=RETIRED)
    enrichment.restore_case(case_id=case.pk, reviewer=rita)
    case.refresh_from_db()
    assert case.status == DRAFT


class TestCompleteness:
    @pytest.mark.parametrize(
        ("lacking", "field"),
        [
            pytest.param({"fault_category_id": "GENERAL"}, "fault_category", id="general"),
            pytest.param({"title": " "}, "title", id="title"),
            pytest.param({"root_cause": ""}, "root_cause", id="root-cause"),
            pytest.param({"solution": "\n"}, "solution", id="solution"),
        ],
    )
    def test_publishing_names_what_is_missing(self, lacking, field, rita):
        case = CaseFactory(status=ENRICHED, **(COMPLETE | lacking))
        before = columns(case)
        with pytest.raises(InvalidInputError) as refusal:
            enrichment.publish_case(case_id=case.pk, reviewer=rita)
        assert list(refusal.value.errors) == [field]
        assert columns(case) == before

    def test_saving_and_publishing_is_both_or_neither(self, rita):
        case = CaseFactory()
        before = columns(case)
        with pytest.raises(InvalidInputError) as refusal:
            enrichment.enrich_and_publish_case(
                case_id=case.pk,
                content={**CONTENT, "fault_category": "GENERAL", "solution": ""},
                version=case.version,
                reviewer=rita,
            )
        assert set(refusal.value.errors) == {"fault_category", "solution"}
        assert columns(case) == before
        assert not CaseTransition.objects.exists()

    def test_a_published_case_stays_complete(self, rita):
        case = CaseFactory(published=True)
        with pytest.raises(InvalidInputError):
            enrichment.enrich_case(
                case_id=case.pk, content={**CONTENT, "solution": ""}, version=case.version, reviewer=rita
            )

    def test_an_unknown_category_is_refused(self, rita):
        case = CaseFactory()
        with pytest.raises(InvalidInputError) as refusal:
            enrichment.enrich_case(
                case_id=case.pk, content={**CONTENT, "fault_category": "BAD_LUCK"}, version=0, reviewer=rita
            )
        assert list(refusal.value.errors) == ["fault_category"]


class TestStaleness:
    def test_a_form_of_an_older_version_is_refused_with_what_stands_there_now(self, rita):
        case = CaseFactory()
        otto = UserFactory(username="otto")
        enrichment.enrich_case(case_id=case.pk, content={**CONTENT, "title": "Otto's"}, version=0, reviewer=otto)
        before = columns(case)
        with pytest.raises(StaleCaseError) as refusal:
            enrichment.enrich_case(case_id=case.pk, content=CONTENT, version=0, reviewer=rita)
        assert (refusal.value.current.title, refusal.value.current.version) == ("Otto's", 1)
        assert columns(case) == before
        assert CaseTransition.objects.count() == 1

    def test_knowing_the_newer_version_it_may_be_saved(self, rita):
        case = CaseFactory(version=3)
        enrichment.enrich_case(case_id=case.pk, content=CONTENT, version=3, reviewer=rita)
        assert columns(case)["version"] == 4

    def test_a_verdict_makes_forms_stale(self, rita):
        case = CaseFactory(enriched=True)
        submission.submit_verdict(session_id=case.diagnosis_id, verdict="not_useful")
        with pytest.raises(StaleCaseError):
            enrichment.enrich_case(case_id=case.pk, content=CONTENT, version=0, reviewer=rita)


class TestChangeOfMind:
    def say(self, case, verdict):
        submission.submit_verdict(session_id=case.diagnosis_id, verdict=verdict)
        case.refresh_from_db()

    def test_a_draft_is_retired_and_restored(self):
        case = CaseFactory()
        self.say(case, "not_useful")
        assert (case.status, case.is_flagged) == (RETIRED, False)
        self.say(case, "useful")
        assert (case.status, case.retired_by_verdict) == (DRAFT, False)
        assert [row.action for row in case.transitions.all()] == ["restore", "retire"]

    @pytest.mark.parametrize("kind", ["enriched", "published"])
    def test_what_a_reviewer_worked_on_is_flagged_and_unflagged(self, kind):
        case = CaseFactory(**{kind: True})
        status, text = case.status, case.root_cause
        self.say(case, "not_useful")
        assert (case.status, case.is_flagged, case.root_cause) == (status, True, text)
        self.say(case, "useful")
        assert (case.status, case.is_flagged, case.root_cause) == (status, False, text)

    def test_saying_it_twice_flags_once(self):
        case = CaseFactory(enriched=True)
        self.say(case, "not_useful")
        since = case.flagged_at
        self.say(case, "not_useful")
        assert case.flagged_at == since
        assert [row.action for row in case.transitions.all()] == ["flag"]

    def test_what_a_reviewer_retired_stays_retired(self, rita):
        case = CaseFactory()
        enrichment.retire_case(case_id=case.pk, reviewer=rita)
        self.say(case, "not_useful")
        self.say(case, "useful")
        assert (case.status, case.is_flagged) == (RETIRED, False)

    def test_working_on_a_flagged_case_takes_the_flag_off(self, rita):
        case = CaseFactory(enriched=True)
        self.say(case, "not_useful")
        enrichment.enrich_case(case_id=case.pk, content=CONTENT, version=case.version, reviewer=rita)
        case.refresh_from_db()
        assert not case.is_flagged


class TestByHand:
    def test_a_case_is_written_by_hand(self, rita):
        case = enrichment.create_case(content=CONTENT, author=rita)
        assert (case.source_type, case.status, case.created_by) == (SourceType.MANUAL, ENRICHED, "rita")
        assert case.diagnosis is None
        assert case.transitions.get().action == "create"

    @pytest.mark.parametrize(
        ("wrong", "field"), [({"title": "  "}, "title"), ({"fault_category": "BAD_LUCK"}, "fault_category")]
    )
    def test_it_needs_a_title_and_a_known_category(self, wrong, field, rita):
        with pytest.raises(InvalidInputError) as refusal:
            enrichment.create_case(content={**CONTENT, **wrong}, author=rita)
        assert list(refusal.value.errors) == [field]
        assert not CaseLibrary.objects.exists()


@pytest.mark.parametrize("move", ["publish", "unpublish", "retire", "restore"])
def test_an_unknown_case_is_said_to_be_unknown(move, rita):
    with pytest.raises(UnknownObjectError):
        MOVES[move](CaseLibrary(case_id=uuid.uuid4()), rita)


def test_the_queues_hold_what_they_say(rita):
    now = timezone.now()
    cases = {
        "draft": CaseFactory(),
        "general": CaseFactory(status=ENRICHED),
        "enriched": CaseFactory(enriched=True),
        "published": CaseFactory(published=True, flagged_at=now),
        "retired": CaseFactory(status=RETIRED),
        "manual": CaseFactory(manual=True, status=ENRICHED),
    }
    holds = {
        "to_enrich": {"draft", "general"},
        "to_publish": {"enriched"},
        "published": {"published"},
        "flagged": {"published"},
        "retired": {"retired"},
        "all": set(cases),
    }
    for queue, names in holds.items():
        assert set(CaseLibrary.objects.in_queue(queue)) == {cases[name] for name in names}, queue
    assert CaseLibrary.objects.count_by_queue() == {queue: len(names) for queue, names in holds.items()}


class TestSearch:
    @pytest.mark.parametrize(
        "text",
        [
            pytest.param("缓存", id="two-chinese-characters"),
            pytest.param("100%_sure", id="wildcards-are-themselves"),
            pytest.param("redis_TIMEOUT", id="error-code-in-any-case"),
            pytest.param("spread ttls", id="words-in-any-order"),
            pytest.param("Одинаковый", id="russian"),
            pytest.param("s-4711", id="session"),
        ],
    )
    def test_finds(self, text):
        CaseFactory()
        case = CaseFactory(
            diagnosis=SessionFactory(session_id="s-4711"),
            error_code="REDIS_TIMEOUT",
            title="缓存雪崩 100%_sure",
            root_cause="Одинаковый TTL",
            solution="TTLs: spread them",
        )
        assert list(CaseLibrary.objects.matching(text)) == [case]

    @pytest.mark.parametrize("text", ["%", "_", "100__sure", "-", "雪缓"])
    def test_finds_nothing_by_wildcards(self, text):
        CaseFactory(title="Why is it slow", root_cause="100 is sure 雪 缓", solution="?", diagnosis=None)
        assert not CaseLibrary.objects.matching(text).exists()

    def test_finds_by_case_id_and_its_beginning(self):
        CaseFactory()
        case = CaseFactory()
        for text in (str(case.pk), str(case.pk)[:8], str(case.pk)[:13].upper()):
            assert list(CaseLibrary.objects.matching(text)) == [case]
