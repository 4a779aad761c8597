"""What the library already knows of a session, by error code and by wording."""

import pytest

from cases_app.selectors import similar
from cases_app.selectors.similar import near_duplicates, similar_cases
from cases_app.suggestions.likeness import grams, likeness
from tests.factories import CaseFactory, SessionFactory


@pytest.mark.parametrize(
    ("one", "other", "least", "most"),
    [
        ("Why is checkout slow?", "why is  CHECKOUT slow", 1, 1),
        ("订单服务缓存雪崩怎么办", "缓存雪崩", 0.3, 0.5),
        ("Почему тормозит оплата заказа", "Тормозит оплата", 0.6, 0.8),
        ("Why is checkout slow?", "磁盘空间不足", 0, 0),
        ("", "", 0, 0),
        ("?", "?", 0, 0),
        ("ab", "ab", 1, 1),
    ],
)
def test_likeness(one, other, least, most):
    assert least <= likeness(grams(one), grams(other)) <= most


@pytest.mark.django_db
class TestSimilarCases:
    def case(self, title, **columns):
        return CaseFactory(manual=True, **{"published": True, "title": title, **columns})

    def test_a_code_goes_before_wording_and_what_differs_is_left_out(self):
        session = SessionFactory(query="Checkout is slow, ORA-00060 in the log")
        code = self.case("A deadlock of two writers", error_code="ORA-00060")
        words = self.case("Checkout is slow and the log is full")
        self.case("磁盘空间不足")
        found = similar_cases(session)
        assert [one.case for one in found] == [code, words]
        assert [one.has_code for one in found] == [True, False]

    def test_neither_drafts_nor_retired_ones_nor_its_own(self):
        session = SessionFactory(query="Checkout is slow")
        self.case("Checkout is slow", published=False)
        self.case("Checkout is slow", published=False, status="RETIRED")
        CaseFactory(diagnosis=session, published=True, title="Checkout is slow")
        assert similar_cases(session) == []

    def test_a_few_in_three_queries_whatever_the_library_holds(self, django_assert_num_queries):
        for _ in range(similar.SHOWN + 5):
            self.case("Checkout is slow", error_code="ORA-00060")
        session = SessionFactory(query="Checkout is slow: ORA-00060")
        with django_assert_num_queries(3) as queries:
            found = similar_cases(session)
            assert all(one.case.fault_category.local_name for one in found)
        assert len(found) == similar.SHOWN
        assert not any("root_cause" in query["sql"] for query in queries.captured_queries)

    @pytest.mark.parametrize("query", ["", "\u202e", "x" * 5000])
    def test_any_question_may_be_asked(self, query):
        self.case("Checkout is slow")
        assert similar_cases(SessionFactory(query=query)) == []


@pytest.mark.django_db
class TestNearDuplicates:
    def test_by_code_and_by_title_in_whatever_state_but_retired(self):
        case = CaseFactory(diagnosis=SessionFactory(query="Почему тормозит оплата заказа? ORA-00060"))
        code = CaseFactory(enriched=True, title="Двое пишут сразу", error_code="ORA-00060")
        title = CaseFactory(title="почему тормозит оплата заказов")
        CaseFactory(status="RETIRED", title=case.title)
        CaseFactory(title="Почему тормозит поиск")
        assert [one.case for one in near_duplicates(case)] == [code, title]

    def test_its_own_code_counts_before_what_the_question_suggests(self):
        case = CaseFactory(enriched=True, title="A", error_code="E1", diagnosis=SessionFactory(query="ORA-00060"))
        CaseFactory(enriched=True, title="B", error_code="ORA-00060")
        same = CaseFactory(manual=True, title="C", error_code="E1")
        assert [one.case for one in near_duplicates(case)] == [same]

    def test_in_three_queries(self, django_assert_num_queries):
        for _ in range(20):
            CaseFactory(enriched=True, title="Checkout is slow", error_code="E1")
        case = CaseFactory(enriched=True, title="Checkout is slow", error_code="E1")
        with django_assert_num_queries(3):
            assert len(near_duplicates(case)) == similar.SHOWN
