"""Every move of a triage: from each state, by its holder and by others."""

import threading
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

import pytest
from django.db import connection
from django.utils import timezone

from feedback_app.models import BadCaseReview, BadCaseTransition, TriageState
from feedback_app.services import submission, triage
from feedback_app.services.triage import TakenError
from sessions_app.errors import ConflictError, InvalidInputError, UnknownObjectError
from sessions_app.models import DiagnosisSession
from tests.factories import SessionFactory, TriageFactory, UserFactory

pytestmark = pytest.mark.django_db

VERDICT = {"failure_mode": "HALLUCINATION", "notes": "Made up a metric.", "corrected_answer": "It was DNS."}
MOVES = {
    "claim": lambda pk, by: triage.claim(review_id=pk, reviewer=by),
    "release": lambda pk, by: triage.release(review_id=pk, reviewer=by),
    "release_as_lead": lambda pk, by: triage.release(review_id=pk, reviewer=by, is_lead=True),
    "save_notes": lambda pk, by: triage.save_notes(review_id=pk, reviewer=by, notes="So far", corrected_answer=""),
    "resolve": lambda pk, by: triage.resolve(review_id=pk, reviewer=by, **VERDICT),
    "dismiss": lambda pk, by: triage.dismiss(review_id=pk, reviewer=by, notes="Asked about another product."),
    "reopen": lambda pk, by: triage.reopen(review_id=pk, reviewer=by),
}
START = {
    "open": {"state": TriageState.OPEN},
    "mine": {"state": TriageState.IN_REVIEW},
    "theirs": {"state": TriageState.IN_REVIEW},
    "orphaned": {"state": TriageState.IN_REVIEW},
    "resolved": {"state": TriageState.RESOLVED, "failure_mode": "HALLUCINATION"},
    "dismissed": {"state": TriageState.DISMISSED},
}
OPEN, IN_REVIEW, RESOLVED, DISMISSED = (state.value for state in TriageState)
# move → start → where it leads; what is not named here is refused
ALLOWED = {
    "claim": {"open": IN_REVIEW, "mine": IN_REVIEW, "orphaned": IN_REVIEW},
    "release": {"mine": OPEN},
    "release_as_lead": {"mine": OPEN, "theirs": OPEN, "orphaned": OPEN},
    "save_notes": {"mine": IN_REVIEW},
    "resolve": {"mine": RESOLVED},
    "dismiss": {"mine": DISMISSED},
    "reopen": {"resolved": OPEN, "dismissed": OPEN},
}
WITHOUT_HISTORY = {("claim", "mine"), ("save_notes", "mine")}


@pytest.fixture
def people(db):
    return {"mine": UserFactory(username="rita"), "theirs": UserFactory(username="otto")}


def begin(start, people):
    return TriageFactory(assignee=people.get(start), notes="Before", **START[start])


def columns(review):
    return BadCaseReview.objects.filter(pk=review.pk).values().get()


@pytest.mark.parametrize("start", START)
@pytest.mark.parametrize("move", MOVES)
def test_each_move_from_each_state(move, start, people):
    review, bystander = begin(start, people), TriageFactory()
    before, other, session = (
        columns(review),
        columns(bystander),
        DiagnosisSession.objects.values().get(pk=review.session.pk),
    )
    target = ALLOWED[move].get(start)
    if target is None:
        with pytest.raises(ConflictError):
            MOVES[move](review.pk, people["mine"])
        assert columns(review) == before
        assert not BadCaseTransition.objects.exists()
    else:
        MOVES[move](review.pk, people["mine"])
        review.refresh_from_db()
        assert review.state == target
        history = list(BadCaseTransition.objects.values_list("action", "from_state", "to_state", "actor__username"))
        kind = "release" if move == "release_as_lead" else move
        expected = [] if (move, start) in WITHOUT_HISTORY else [(kind, before["state"], target, "rita")]
        assert history == expected
    assert columns(bystander) == other
    assert DiagnosisSession.objects.values().get(pk=review.session.pk) == session


def test_a_claim_says_who_and_when(people):
    review = triage.claim(review_id=TriageFactory().pk, reviewer=people["mine"])
    assert review.assignee == people["mine"]
    assert timezone.now() - review.claimed_at < timedelta(minutes=1)


@pytest.mark.parametrize("move", ["claim", "release", "save_notes", "resolve", "dismiss"])
def test_who_comes_second_is_told_who_has_it(move, people):
    review = begin("theirs", people)
    with pytest.raises(TakenError, match="otto") as refusal:
        MOVES[move](review.pk, people["mine"])
    assert refusal.value.holder == "otto"


def test_release_keeps_the_notes_for_the_next(people):
    review = begin("mine", people)
    triage.release(review_id=review.pk, reviewer=people["mine"], reason="Holiday")
    review.refresh_from_db()
    assert (review.assignee, review.claimed_at, review.notes) == (None, None, "Before")
    assert review.transitions.get().reason == "Holiday"


def test_notes_are_kept_with_the_chosen_failure_mode(people):
    review = begin("mine", people)
    triage.save_notes(
        review_id=review.pk,
        reviewer=people["mine"],
        notes="New",
        corrected_answer="Better",
        failure_mode="INCOMPLETE",
    )
    review.refresh_from_db()
    assert (review.notes, review.corrected_answer, review.failure_mode) == ("New", "Better", "INCOMPLETE")
    assert review.resolved_at is None


def test_resolving_keeps_the_verdict(people):
    review = begin("mine", people)
    triage.resolve(review_id=review.pk, reviewer=people["mine"], **VERDICT)
    review.refresh_from_db()
    assert {name: getattr(review, name) for name in VERDICT} == VERDICT
    assert review.resolved_at is not None
    assert review.assignee == people["mine"]


@pytest.mark.parametrize(
    ("move", "field"),
    [
        pytest.param(
            lambda pk, by: triage.resolve(review_id=pk, reviewer=by, failure_mode=""), "failure_mode", id="no-mode"
        ),
        pytest.param(
            lambda pk, by: triage.resolve(review_id=pk, reviewer=by, failure_mode="BAD_LUCK"),
            "failure_mode",
            id="unknown-mode",
        ),
        pytest.param(
            lambda pk, by: triage.save_notes(
                review_id=pk, reviewer=by, notes="", corrected_answer="", failure_mode="BAD_LUCK"
            ),
            "failure_mode",
            id="unknown-mode-in-notes",
        ),
        pytest.param(lambda pk, by: triage.dismiss(review_id=pk, reviewer=by, notes="  \n"), "notes", id="no-reason"),
    ],
)
def test_an_incomplete_verdict_names_its_field_and_changes_nothing(move, field, people):
    review = begin("mine", people)
    before = columns(review)
    with pytest.raises(InvalidInputError) as refusal:
        move(review.pk, people["mine"])
    assert list(refusal.value.errors) == [field]
    assert columns(review) == before


@pytest.mark.parametrize("move", MOVES)
def test_an_unknown_bad_case_is_said_to_be_unknown(move, people):
    with pytest.raises(UnknownObjectError):
        MOVES[move](4711, people["mine"])


class TestClaimNext:
    def test_takes_what_deserves_attention_first(self, people):
        now = timezone.now()
        late = TriageFactory(due_at=now + timedelta(days=9))
        soon = TriageFactory(due_at=now + timedelta(days=1))
        sure = TriageFactory(due_at=now + timedelta(days=3), session=SessionFactory(rejected=True, confidence=95))
        overdue = TriageFactory(due_at=now - timedelta(hours=1))
        overdue_and_sure = TriageFactory(due_at=now, session=SessionFactory(rejected=True, confidence=81))
        TriageFactory(due_at=now - timedelta(days=2), state=TriageState.IN_REVIEW, assignee=people["theirs"])
        TriageFactory(due_at=now - timedelta(days=2), state=TriageState.RESOLVED)
        taken = [triage.claim_next(reviewer=people["mine"]) for _ in range(5)]
        assert [review.pk for review in taken] == [r.pk for r in (overdue_and_sure, overdue, sure, soon, late)]
        assert triage.claim_next(reviewer=people["mine"]) is None

    def test_takes_what_a_deleted_reviewer_left(self, people):
        left = TriageFactory(state=TriageState.IN_REVIEW, assignee=None)
        assert triage.claim_next(reviewer=people["mine"]) == left


class TestChangeOfMind:
    def say(self, session, verdict):
        submission.submit_verdict(session_id=session.session_id, verdict=verdict)
        return BadCaseReview.objects.get(session=session)

    def test_a_triage_nobody_took_closes_and_opens_again(self):
        session = SessionFactory()
        assert self.say(session, "not_useful").state == OPEN
        assert self.say(session, "useful").state == DISMISSED
        review = self.say(session, "not_useful")
        assert (review.state, review.resolved_at) == (OPEN, None)
        actions = [(row.action, row.actor) for row in review.transitions.all()]
        assert actions == [("reopen", None), ("dismiss", None), ("open", None)]

    def test_a_triage_in_review_stays_with_its_reviewer(self, people):
        session = SessionFactory()
        review = self.say(session, "not_useful")
        triage.claim(review_id=review.pk, reviewer=people["mine"])
        review = self.say(session, "useful")
        assert (review.state, review.assignee) == (IN_REVIEW, people["mine"])

    def test_a_reviewer_s_decision_stays(self, people):
        session = SessionFactory()
        review = self.say(session, "not_useful")
        triage.claim(review_id=review.pk, reviewer=people["mine"])
        triage.dismiss(review_id=review.pk, reviewer=people["mine"], notes="Spam")
        self.say(session, "useful")
        assert self.say(session, "not_useful").state == DISMISSED


@pytest.mark.django_db(transaction=True)
class TestAtOnce:
    """Eight reviewers press at the same moment."""

    def race(self, move):
        people = [UserFactory() for _ in range(8)]
        barrier = threading.Barrier(len(people))

        def press(person):
            barrier.wait()
            try:
                return person, move(person)
            except ConflictError:
                return person, None
            finally:
                connection.close()

        with ThreadPoolExecutor(len(people)) as pool:
            return [(person, review) for person, review in pool.map(press, people) if review is not None]

    def test_one_gets_the_bad_case(self):
        review = TriageFactory()
        [(winner, _)] = self.race(lambda person: triage.claim(review_id=review.pk, reviewer=person))
        review.refresh_from_db()
        assert review.assignee == winner
        assert [row.actor for row in review.transitions.all()] == [winner]

    def test_everybody_gets_a_next_one_of_their_own(self):
        reviews = {TriageFactory().pk for _ in range(10)}
        taken = self.race(lambda person: triage.claim_next(reviewer=person))
        assert len(taken) == 8
        assert len({review.pk for _, review in taken} & reviews) == 8
