"""Cohen's kappa, against values worked by hand."""

from fractions import Fraction

import pytest

from feedback_app.agreement import agreement_of, agreement_on


def table(both, only_one, only_other, neither):
    return (
        [("yes", "yes")] * both + [("yes", "no")] * only_one + [("no", "yes")] * only_other + [("no", "no")] * neither
    )


@pytest.mark.parametrize(
    ("counts", "observed", "kappa"),
    [
        # observed 35/50; expected 25/50 · 30/50 + 25/50 · 20/50 = 1/2; (7/10 − 1/2) / (1/2) = 2/5
        pytest.param((20, 5, 10, 15), Fraction(7, 10), Fraction(2, 5), id="textbook"),
        # observed 60/100; expected .6 · .7 + .4 · .3 = .54; .06 / .46
        pytest.param((45, 15, 25, 15), Fraction(6, 10), Fraction(6, 46), id="same-share-common-yes"),
        # observed 60/100; expected .6 · .3 + .4 · .7 = .46; .14 / .54
        pytest.param((25, 35, 5, 35), Fraction(6, 10), Fraction(14, 54), id="same-share-other-habits"),
        pytest.param((5, 0, 0, 5), 1, 1, id="always-the-same"),
        pytest.param((0, 5, 5, 0), 0, -1, id="always-the-opposite"),
        # observed 1/4, expected 1/4
        pytest.param((1, 3, 0, 0), Fraction(1, 4), 0, id="no-better-than-chance"),
    ],
)
def test_kappa_of_two(counts, observed, kappa):
    agreement = agreement_of(table(*counts))
    assert agreement.total == sum(counts)
    assert agreement.observed == pytest.approx(float(observed))
    assert agreement.kappa == pytest.approx(float(kappa))


def test_kappa_of_three_verdicts():
    # Same 2 + 3 + 1 = 6 of 10; habits a 4 b 4 c 2 and a 3 b 5 c 2: expected (12 + 20 + 4) / 100; (.6 − .36) / .64
    verdicts = [*["aa", "aa", "ab", "ac", "bb", "bb", "bb", "ba", "cc", "cb"]]
    assert agreement_of([tuple(pair) for pair in verdicts]).kappa == pytest.approx(0.24 / 0.64)


def test_it_does_not_matter_who_is_who():
    verdicts = table(4, 3, 1, 7)
    assert agreement_of(verdicts) == agreement_of([(other, one) for one, other in verdicts])


def test_where_both_always_say_one_thing_chance_explains_all():
    assert agreement_of([("yes", "yes")] * 9) == (9, 1.0, None)


def test_of_nothing_there_is_none():
    assert agreement_of([]) is None


def test_on_one_verdict_against_all_others():
    verdicts = [("a", "a"), ("a", "b"), ("b", "b"), ("c", "c"), ("c", "b")]
    # yes/yes 1, yes/no 1, no/no 3: expected 2/5 · 1/5 + 3/5 · 4/5 = 14/25; (4/5 − 14/25) / (11/25) = 6/11
    assert agreement_on("a", verdicts).kappa == pytest.approx(6 / 11)
    assert agreement_on("d", verdicts) is None
