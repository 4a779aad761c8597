"""How far two reviewers agree beyond chance. Pure.

J. Cohen, "A coefficient of agreement for nominal scales", Educational and Psychological Measurement 20 (1960) 37–46:
κ = (observed − expected) / (1 − expected), where `expected` is how often two people with these habits would say the
same by chance.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Sequence
from typing import NamedTuple

Verdicts = Sequence[tuple[Hashable, Hashable]]
"""What the one said and what the other said, of each object."""


class Agreement(NamedTuple):
    """Of `total` objects judged by two. `kappa` is None where both always said the same one thing."""

    total: int
    observed: float
    kappa: float | None


def agreement_of(verdicts: Verdicts) -> Agreement | None:
    """None of nothing."""
    total = len(verdicts)
    if not total:
        return None
    same = sum(one == other for one, other in verdicts)
    ones, others = Counter(one for one, _ in verdicts), Counter(other for _, other in verdicts)
    # In whole numbers, so that what is exactly certain is not certain up to rounding.
    by_chance = sum(count * others[said] for said, count in ones.items())
    spread = total * total - by_chance
    return Agreement(total, same / total, (same * total - by_chance) / spread if spread else None)


def agreement_on(said: Hashable, verdicts: Verdicts) -> Agreement | None:
    """On one verdict against all others. None where neither ever gave it."""
    told = [(one == said, other == said) for one, other in verdicts]
    return agreement_of(told) if any(one or other for one, other in told) else None
