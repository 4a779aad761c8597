"""Where the texts of one person's sessions stand: found by walking the models, so that a new table is not forgotten."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from typing import Any, NamedTuple

from django.apps import apps
from django.db import models
from django.db.models import Q, QuerySet

from cases_app.models import CaseLibrary, SourceType
from feedback_app.models import AgentFeedback, AlertCondition, AlertRule, BadCaseReview, Erasure, EventType
from sessions_app.models import ApiKey, DiagnosisSession, ErasedId, Heartbeat, OtlpTrace

OWN_APPS = ("sessions_app", "cases_app", "feedback_app")
SPEAK_OF_NOBODY: tuple[type[models.Model], ...] = (ApiKey, ErasedId, Heartbeat, Erasure, AlertRule, AlertCondition)
"""Tables without any text of people: names of keys, agents and addresses of programs, digests."""


def sessions_of(user_ref: str) -> list[str]:
    """The ids of a person's sessions, in their order.

    A conversation is one person's (DESIGN), so its sessions that name nobody are theirs too. So is a session that
    stood in, under the id of a trace, until a span told the right one.
    """
    own = DiagnosisSession.objects.filter(user_ref=user_ref)
    conversations = own.exclude(conversation_id=None).order_by().values("conversation_id").distinct()
    beside = DiagnosisSession.objects.filter(user_ref=None, conversation_id__in=conversations)
    found = set(own.values_list("session_id", flat=True)) | set(beside.values_list("session_id", flat=True))
    stood_in = DiagnosisSession.objects.filter(user_ref=None, session_id__in=traces_of(found))
    return sorted(found | set(stood_in.values_list("session_id", flat=True)))


def traces_of(session_ids: Iterable[str]) -> set[str]:
    """The ids of the traces that tell of these sessions."""
    ledgers = OtlpTrace.objects.filter(session_id__in=list(session_ids))
    return set(ledgers.values_list("trace_id", flat=True))


def cases_of(session_ids: Sequence[str]) -> QuerySet[CaseLibrary]:
    """Cases that were made of these sessions, or of a reviewer's correction of their answers."""
    made = Q(diagnosis__session_id__in=session_ids)
    corrected = Q(source_type=SourceType.CORRECTION, triages__session_id__in=session_ids)
    keys = CaseLibrary.objects.filter(made | corrected).order_by().values_list("pk", flat=True)
    return CaseLibrary.objects.filter(pk__in=list(keys))


def all_of(model: type[models.Model]) -> QuerySet[Any]:
    """All rows of a table."""
    return model._default_manager.all()  # noqa: SLF001 - Django's documented face


def table_of(model: type[models.Model] | None) -> str:
    """The name of a table."""
    return str(model._meta.db_table) if model else ""  # noqa: SLF001 - Django's documented face


@cache
def tables_below(root: type[models.Model]) -> tuple[tuple[type[models.Model], str], ...]:
    """Each table whose rows go with a row of `root` → the way there, such as `review__session`."""
    found: dict[type[models.Model], str] = {}
    waiting: list[tuple[type[models.Model], str]] = [(root, "")]
    while waiting:
        model, path = waiting.pop(0)
        relations: Any = model._meta.related_objects  # noqa: SLF001 - Django's documented face
        for relation in relations:
            child = relation.related_model
            if relation.on_delete is models.CASCADE and child not in found:
                found[child] = "__".join(filter(None, (relation.field.name, path)))
                waiting.append((child, found[child]))
    return tuple(found.items())


def rows_below(root: type[models.Model], keys: Sequence[Any]) -> dict[type[models.Model], QuerySet[Any]]:
    """Table → its rows that go with these rows of `root`; what hangs on another comes before it."""
    return {model: all_of(model).filter(**{f"{path}__in": keys}) for model, path in reversed(tables_below(root))}


def rows_of(session_ids: Sequence[str]) -> dict[type[models.Model], QuerySet[Any]]:
    """Table → all rows that hold texts of these sessions; what hangs on another comes before it."""
    cases = cases_of(session_ids)
    case_ids = list(cases.values_list("pk", flat=True))
    rows: dict[type[models.Model], QuerySet[Any]] = {}
    rows |= rows_below(CaseLibrary, case_ids)
    rows[CaseLibrary] = cases
    for model, path in reversed(tables_below(DiagnosisSession)):
        rows[model] = all_of(model).filter(**{f"{path}__session_id__in": session_ids})
    rows[AgentFeedback] = AgentFeedback.objects.filter(
        pk__in=[*rows[AgentFeedback].values_list("pk", flat=True), *quoted_by(session_ids)]
    )
    rows[OtlpTrace] = OtlpTrace.objects.filter(session_id__in=session_ids)
    rows[DiagnosisSession] = DiagnosisSession.objects.filter(session_id__in=session_ids)
    return rows


def quoted_by(session_ids: Sequence[str]) -> list[Any]:
    """Events of other sessions that quote a question of these: it was asked again in their conversation."""
    asked_in = DiagnosisSession.objects.filter(session_id__in=session_ids).exclude(conversation_id=None)
    conversations = list(asked_in.order_by().values_list("conversation_id", flat=True).distinct())
    if not conversations:
        return []
    asked = AgentFeedback.objects.filter(type=EventType.RE_ASK, session__conversation_id__in=conversations)
    return [
        pk
        for pk, payload in asked.values_list("pk", "payload")
        if isinstance(payload, dict) and payload.get("laterSessionId") in session_ids
    ]


@cache
def tables_apart() -> Mapping[type[models.Model], tuple[str, ...]]:
    """Tables that hang on no session but may quote one, such as reports: model → its columns of text and JSON."""
    below = {
        DiagnosisSession,
        CaseLibrary,
        OtlpTrace,
        *dict(tables_below(DiagnosisSession)),
        *dict(tables_below(CaseLibrary)),
    }
    apart: dict[type[models.Model], tuple[str, ...]] = {}
    for label in OWN_APPS:
        for model in apps.get_app_config(label).get_models():
            if model in below or model in SPEAK_OF_NOBODY:
                continue
            columns = tuple(
                field.attname
                for field in model._meta.concrete_fields  # noqa: SLF001 - Django's documented face
                if isinstance(field, models.CharField | models.TextField | models.JSONField)
                and not (field.primary_key or field.choices or field.is_relation)
            )
            if columns:
                apart[model] = columns
    return apart


class Written(NamedTuple):
    """A table of cases or triages in which reviewers write. `read`: the object's key, its session's words, columns."""

    model: type[models.Model]
    root: type[models.Model]  # CaseLibrary or BadCaseReview
    root_path: str
    columns: tuple[str, ...]
    read: tuple[str, ...]


@cache
def written_by_reviewers() -> tuple[Written, ...]:
    """Cases, triages, and what hangs on them: found by walking, so that a new table is not forgotten."""
    found: list[Written] = []
    for root, session in ((CaseLibrary, "diagnosis"), (BadCaseReview, "session")):
        for model, path in ((root, ""), *tables_below(root)):
            fields: Any = model._meta.concrete_fields  # noqa: SLF001 - Django's documented face
            columns = tuple(
                each.attname for each in fields if isinstance(each, models.TextField) or each.attname == "title"
            )
            if columns:
                way = f"{path}__" if path else ""
                own = (f"{way}{session}__query", f"{way}{session}__answer")
                found.append(Written(model, root, f"{way}pk", columns, (f"{way}pk", *own, *columns)))
    return tuple(found)
