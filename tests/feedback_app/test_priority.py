"""Which bad case comes first: the table, and that services keep each row in step with the facts."""

from datetime import UTC, datetime, timedelta

import pytest
from django.utils import timezone

from feedback_app import priority, tasks
from feedback_app.models import BadCaseReview
from feedback_app.priority import Facts, attention_at, hours_by_rule, question_key
from feedback_app.services import submission, triage
from feedback_app.templatetags.triage import RULE_LABELS
from sessions_app.services import evaluation
from tests.factories import InvocationFactory, SessionFactory, TriageFactory


class TestTable:
    @pytest.mark.parametrize(
        ("facts", "hours"),
        [
            pytest.param(Facts(), {}, id="nothing"),
            pytest.param(Facts(confidence=80), {}, id="80-is-not-above-80"),
            pytest.param(Facts(confidence=80.5), {"confident": 72}, id="confident"),
            pytest.param(Facts(evidence_score=59), {}, id="partial-evidence"),
            pytest.param(Facts(evidence_score=60), {"strong_evidence": 24}, id="strong-evidence"),
            pytest.param(Facts(has_correction=True, has_words=True), {"correction": 24, "words": 12}, id="words"),
            pytest.param(Facts(re_asks=2), {"re_asks": 24}, id="asked-again-twice"),
            pytest.param(Facts(re_asks=99), {"re_asks": 36}, id="asked-again-capped"),
            pytest.param(Facts(repeats=3), {"repeats": 18}, id="repeats"),
            pytest.param(Facts(repeats=99), {"repeats": 48}, id="repeats-capped"),
        ],
    )
    def test_hours(self, facts, hours):
        assert hours_by_rule(facts) == hours

    def test_hours_bring_the_due_date_forward(self):
        due = datetime(2026, 3, 5, tzinfo=UTC)
        assert attention_at(due, {"confident": 72, "words": 12}) == datetime(2026, 3, 1, 12, tzinfo=UTC)
        assert attention_at(due, {}) == due

    @pytest.mark.parametrize(
        ("one", "other"),
        [
            ("Why is it slow?", "  why IS it\nslow "),
            ("订单服务为什么慢？", "订单服务为什么慢"),
            ("Почему медленно?", "ПОЧЕМУ МЕДЛЕННО"),
            ("ＣＰＵ 100%", "cpu 100"),
        ],
    )
    def test_one_question_has_one_key(self, one, other):
        assert question_key(one) == question_key(other)
        assert question_key(one) != question_key(f"{one} 2")

    @pytest.mark.parametrize("nothing", ["", "  ", "?!", "\u202e"])
    def test_no_question_is_nobody_s_repeat(self, nothing):
        assert question_key(nothing) == priority.NO_QUESTION

    def test_each_rule_has_words(self):
        assert set(RULE_LABELS) == {rule.name for rule in priority.RULES}


@pytest.mark.django_db
class TestInStep:
    def reject(self, session, **said):
        submission.submit_verdict(session_id=session.session_id, verdict="not_useful", **said)
        return BadCaseReview.objects.get(session=session)

    def test_of_a_verdict_with_words(self):
        review = self.reject(SessionFactory(confidence=95, evidence_score=20), comment="It was DNS.")
        assert review.priority_hours == {"confident": 72, "words": 12}
        assert review.attention_at == review.due_at - timedelta(hours=84)

    @pytest.mark.parametrize(
        ("event", "hours"),
        [
            ({"type": "correction", "payload": {"original": "a", "corrected": "b"}}, {"correction": 24}),
            (
                {"type": "correction", "payload": {"original": "a", "corrected": "b", "userNote": "see"}},
                {"correction": 24, "words": 12},
            ),
            ({"type": "re_ask", "payload": {"question": "a", "previousQuestion": "b"}}, {"re_asks": 12}),
            ({"type": "star", "value": 1, "payload": {"comment": "No"}}, {"words": 12}),
            ({"type": "star", "value": 1}, {}),
        ],
    )
    def test_of_an_event_that_comes_later(self, event, hours):
        session = SessionFactory()
        self.reject(session)
        submission.record_event({"session_id": session.session_id, **event})
        review = BadCaseReview.objects.get()
        assert review.priority_hours == hours
        assert review.attention_at == review.due_at - timedelta(hours=sum(hours.values()))

    def test_an_event_without_a_triage_makes_none(self):
        session = SessionFactory()
        submission.record_event({"session_id": session.session_id, "type": "star", "value": 1})
        assert not BadCaseReview.objects.exists()

    def test_of_a_score_that_comes_later(self):
        session = SessionFactory(owing=True)
        InvocationFactory(step__session=session, l0_hit=True)
        assert self.reject(session).priority_hours == {}
        evaluation.evaluate_session(session.session_id)
        assert BadCaseReview.objects.get().priority_hours == {"strong_evidence": 24}

    def test_of_a_question_that_others_asked_too(self):
        first, second, third = (
            self.reject(SessionFactory(query=query)) for query in ("Why slow?", "why  SLOW", "Why fast?")
        )
        first.refresh_from_db()
        assert (first.priority_hours, second.priority_hours, third.priority_hours) == (
            {"repeats": 6},
            {"repeats": 6},
            {},
        )

    def test_many_repeats_count_to_a_limit_and_touch_few_rows(self, django_assert_max_num_queries):
        for _ in range(priority.MOST_REPEATS + 3):
            self.reject(SessionFactory(query="Why slow?"))
        hours = {review.priority_hours["repeats"] for review in BadCaseReview.objects.all()}
        assert hours == {6 * priority.MOST_REPEATS}
        session = SessionFactory(query="Why slow?")
        with django_assert_max_num_queries(25):
            self.reject(session)

    def test_no_questions_repeat_each_other_not(self):
        for _ in range(2):
            self.reject(SessionFactory(query=""))
        assert [review.priority_hours for review in BadCaseReview.objects.all()] == [{}, {}]

    def test_the_worker_counts_those_from_before(self):
        session = SessionFactory(rejected=True, confidence=99)
        old = TriageFactory(session=session, ranked=False)
        assert (old.question_key, old.priority_hours) == ("", {})
        tasks.rank_bad_cases()
        old.refresh_from_db()
        assert (old.question_key, old.priority_hours) == (question_key(session.query), {"confident": 72})
        assert old.attention_at == old.due_at - timedelta(hours=72)

    def test_next_takes_the_earliest_turn_and_age_counts_by_itself(self, reviewer):
        now = timezone.now()
        plain = TriageFactory(due_at=now + timedelta(hours=10))
        sure = TriageFactory(due_at=now + timedelta(hours=72), session=SessionFactory(rejected=True, confidence=90))
        long_overdue = TriageFactory(due_at=now - timedelta(hours=1))
        taken = [triage.claim_next(reviewer=reviewer).pk for _ in range(3)]
        assert taken == [long_overdue.pk, sure.pk, plain.pk]
