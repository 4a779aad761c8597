"""Claims: they run out, are handed over and assigned; and of many who press "Next" each gets their own."""

import threading
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

import pytest
from django.db import connection
from django.utils import timezone

from feedback_app.models import BadCaseReview, BadCaseTransition
from feedback_app.selectors.triage import holdings
from feedback_app.services import triage
from feedback_app.services.triage import TakenError
from sessions_app.errors import ConflictError, InvalidInputError
from sessions_app.models import DiagnosisSession
from tests.factories import SessionFactory, TriageFactory, UserFactory

pytestmark = pytest.mark.django_db

LONG_AGO = timedelta(hours=9)


@pytest.fixture
def expired(other_reviewer):
    """Claimed by Otto, too long ago."""
    return TriageFactory(state="IN_REVIEW", assignee=other_reviewer, claimed_at=timezone.now() - LONG_AGO)


class TestExpiry:
    def test_an_expired_claim_is_free_again(self, expired, reviewer, other_reviewer):
        taken = triage.claim(review_id=expired.pk, reviewer=reviewer)
        assert (taken.state, taken.assignee) == ("IN_REVIEW", reviewer)
        assert timezone.now() - taken.claimed_at < timedelta(minutes=1)
        row = taken.transitions.get()
        assert (row.action, row.from_state, row.to_state, row.actor) == (
            "take_over",
            "IN_REVIEW",
            "IN_REVIEW",
            reviewer,
        )
        with pytest.raises(TakenError, match="rita"):
            triage.save_notes(review_id=expired.pk, reviewer=other_reviewer, notes="Late", corrected_answer="")

    def test_next_finds_it_in_its_place(self, expired, reviewer):
        BadCaseReview.objects.filter(pk=expired.pk).update(attention_at=timezone.now() - timedelta(days=1))
        TriageFactory()
        assert triage.claim_next(reviewer=reviewer) == expired

    def test_a_fresh_claim_is_not_free(self, reviewer, other_reviewer):
        held = TriageFactory(state="IN_REVIEW", assignee=other_reviewer, claimed_at=timezone.now())
        with pytest.raises(TakenError):
            triage.claim(review_id=held.pk, reviewer=reviewer)
        assert triage.claim_next(reviewer=reviewer) is None
        assert not BadCaseTransition.objects.exists()

    def test_with_no_limit_none_expires(self, expired, reviewer, settings):
        settings.TRIAGE_CLAIM_HOURS = 0
        assert triage.claim_next(reviewer=reviewer) is None
        with pytest.raises(TakenError):
            triage.claim(review_id=expired.pk, reviewer=reviewer)

    def test_until_somebody_takes_it_its_holder_may_go_on(self, expired, other_reviewer, reviewer):
        triage.save_notes(review_id=expired.pk, reviewer=other_reviewer, notes="Still here", corrected_answer="")
        expired.refresh_from_db()
        assert not expired.is_claim_expired
        with pytest.raises(TakenError):
            triage.claim(review_id=expired.pk, reviewer=reviewer)

    def test_its_holder_renews_it_without_a_word_in_the_history(self, expired, other_reviewer):
        assert not triage.claim(review_id=expired.pk, reviewer=other_reviewer).is_claim_expired
        assert not BadCaseTransition.objects.exists()


class TestInOtherHands:
    def test_its_holder_hands_it_over(self, reviewer, other_reviewer):
        review = triage.claim(review_id=TriageFactory().pk, reviewer=reviewer)
        triage.assign(review_id=review.pk, actor=reviewer, assignee=other_reviewer, reason="Knows Redis")
        review.refresh_from_db()
        assert (review.state, review.assignee) == ("IN_REVIEW", other_reviewer)
        row = review.transitions.first()
        assert (row.action, row.actor, row.reason) == ("hand_over", reviewer, "To otto. Knows Redis")

    @pytest.mark.parametrize("state", ["OPEN", "IN_REVIEW"])
    def test_a_lead_assigns_what_waits(self, state, lead, reviewer, other_reviewer):
        review = TriageFactory(state=state, assignee=other_reviewer if state == "IN_REVIEW" else None)
        triage.assign(review_id=review.pk, actor=lead, assignee=reviewer, is_lead=True)
        review.refresh_from_db()
        assert (review.state, review.assignee) == ("IN_REVIEW", reviewer)
        assert review.claimed_at is not None
        assert review.transitions.get().action == "assign"

    def test_who_does_not_hold_it_may_not(self, reviewer, other_reviewer):
        for review in (TriageFactory(), TriageFactory(state="IN_REVIEW", assignee=other_reviewer)):
            before = BadCaseReview.objects.values().get(pk=review.pk)
            with pytest.raises(ConflictError):
                triage.assign(review_id=review.pk, actor=reviewer, assignee=reviewer)
            assert BadCaseReview.objects.values().get(pk=review.pk) == before
        assert not BadCaseTransition.objects.exists()

    def test_nor_is_anything_given_to_who_may_not_triage(self, lead, operator):
        review, gone = TriageFactory(), UserFactory(role="Reviewer", is_active=False)
        for person in (operator, gone):
            with pytest.raises(InvalidInputError, match="may not triage"):
                triage.assign(review_id=review.pk, actor=lead, assignee=person, is_lead=True)
        review.refresh_from_db()
        assert review.assignee is None

    def test_what_is_closed_goes_nowhere(self, lead, reviewer):
        review = TriageFactory(state="RESOLVED", assignee=lead)
        with pytest.raises(ConflictError):
            triage.assign(review_id=review.pk, actor=lead, assignee=reviewer, is_lead=True)


class TestHoldings:
    def test_who_holds_what(self, reviewer, other_reviewer, lead, operator, expired, django_assert_num_queries):
        now = timezone.now()
        TriageFactory(state="IN_REVIEW", assignee=reviewer, claimed_at=now, due_at=now - timedelta(hours=1))
        TriageFactory(state="RESOLVED", assignee=reviewer, resolved_at=now - timedelta(days=2))
        TriageFactory(state="RESOLVED", assignee=reviewer, resolved_at=now - timedelta(days=8))
        TriageFactory(state="DISMISSED", resolved_at=now)
        TriageFactory()
        with django_assert_num_queries(3):
            people, nobody, progress = holdings()
        figures = {
            one.user.username: (one.held, one.overdue, one.expired, one.resolved, one.dismissed) for one in people
        }
        assert figures == {"rita": (1, 1, 0, 1, 0), "otto": (1, 0, 1, 0, 0), "lena": (0, 0, 0, 0, 0)}
        assert people[0].user == reviewer
        assert (nobody.held, nobody.dismissed) == (1, 1)
        assert (progress.waiting, progress.closed, progress.share) == (3, 2, 40)


@pytest.mark.django_db(transaction=True)
def test_ten_press_next_at_once_two_hundred_times_and_nobody_gets_another_s():
    rounds, hands = (200 if connection.vendor == "mysql" else 20), 10  # SQLite writes one after another anyway
    sessions = DiagnosisSession.objects.bulk_create(SessionFactory.build_batch(rounds * hands, rejected=True))
    now = timezone.now()
    BadCaseReview.objects.bulk_create(
        BadCaseReview(session=session, due_at=now, attention_at=now, question_key=f"{n}")
        for n, session in enumerate(sessions)
    )
    people = [UserFactory() for _ in range(hands)]
    barrier = threading.Barrier(hands, timeout=60)

    def work(person):
        taken = []
        try:
            for _ in range(rounds):
                barrier.wait()
                taken.append(triage.claim_next(reviewer=person))
        finally:
            connection.close()
        return taken

    with ThreadPoolExecutor(hands) as pool:
        hauls = list(pool.map(work, people))
    times = Counter(review.pk for haul in hauls for review in haul)
    assert (len(times), max(times.values())) == (rounds * hands, 1)
    for person, haul in zip(people, hauls, strict=True):
        assert {review.assignee_id for review in haul} == {person.pk}
        assert BadCaseReview.objects.filter(assignee=person, state="IN_REVIEW").count() == rounds
    assert BadCaseTransition.objects.filter(action="claim").count() == rounds * hands
