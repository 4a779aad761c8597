"""Second reviews: who may see what, and how far reviewers agree."""

from __future__ import annotations

from collections import defaultdict
from typing import Any, NamedTuple

from django.contrib.auth import get_user_model
from django.db.models import Q, QuerySet

from feedback_app.agreement import Agreement, agreement_of, agreement_on
from feedback_app.models import BadCaseReview, SecondReview, SecondState
from feedback_app.selectors.failure_modes import verdict_names

MOST_JUDGED = 20_000
"""The latest that agreement is counted over."""


def hidden_from(user: Any) -> Q:
    """Triages whose verdict this person must not know yet: all that wait for a second one, but for one's own."""
    waiting = SecondReview.objects.filter(state=SecondState.WAITING).exclude(first_reviewer_id=user.pk)
    return Q(pk__in=waiting.values("review_id"))


def is_hidden_from(user: Any, review: BadCaseReview) -> bool:
    """Whether a triage is one of them. No query where `review` was selected with its `second`."""
    second: SecondReview | None = getattr(review, "second", None)
    return second is not None and second.state == SecondState.WAITING and second.first_reviewer_id != user.pk


def waiting_for(user: Any) -> QuerySet[SecondReview]:
    """What this person could judge."""
    waiting = SecondReview.objects.filter(state=SecondState.WAITING)
    return waiting.filter(Q(first_reviewer=None) | ~Q(first_reviewer_id=user.pk))


def second_review(second_id: str) -> SecondReview | None:
    """With its session; None for an unknown or impossible id."""
    if not second_id.isdecimal():
        return None
    related = SecondReview.objects.select_related("review__session", "first_reviewer", "reviewer", "settled_by")
    return related.filter(pk=int(second_id)).first()


class PairAgreement(NamedTuple):
    """Two reviewers: how far they agree, in all and on each verdict that either gave."""

    names: tuple[str, str]
    overall: Agreement
    by_mode: list[tuple[str, Agreement]]


class AgreementTable(NamedTuple):
    """All reviewers taken together, and each pair."""

    overall: Agreement | None
    by_mode: list[tuple[str, Agreement]]
    pairs: list[PairAgreement]


def agreement_table() -> AgreementTable:
    """Over the latest judged triages. A pair's verdicts are kept by person, whoever was first."""
    judged = (
        SecondReview.objects.exclude(state=SecondState.WAITING)
        .exclude(Q(first_reviewer=None) | Q(reviewer=None))
        .order_by("-pk")
    )
    rows = list(judged.values_list("first_reviewer_id", "first_mode", "reviewer_id", "mode")[:MOST_JUDGED])
    everybody: list[tuple[str, str]] = [(first, second) for _, first, _, second in rows]
    pairs: defaultdict[tuple[int, int], list[tuple[str, str]]] = defaultdict(list)
    for one, said, other, answered in rows:
        if one < other:
            pairs[one, other].append((said, answered))
        else:
            pairs[other, one].append((answered, said))
    people = {key for pair in pairs for key in pair}
    names = dict(get_user_model().objects.filter(pk__in=people).values_list("pk", "username"))
    modes = verdict_names()
    listed = [
        PairAgreement((names[one], names[other]), overall, _by_mode(verdicts, modes))
        for (one, other), verdicts in pairs.items()
        if (overall := agreement_of(verdicts)) is not None
    ]
    return AgreementTable(
        agreement_of(everybody),
        _by_mode(everybody, modes),
        sorted(listed, key=lambda pair: (-pair.overall.total, pair.names)),
    )


def _by_mode(verdicts: list[tuple[str, str]], names: dict[str, str]) -> list[tuple[str, Agreement]]:
    return [
        (label, agreement) for mode, label in names.items() if (agreement := agreement_on(mode, verdicts)) is not None
    ]
