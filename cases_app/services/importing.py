"""Cases from files: what a file would change, and then the change, each through the service that does it for one."""

from __future__ import annotations

import uuid
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import IO, Any, TypedDict, cast

from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from cases_app import rules
from cases_app.case_files import FIELDS, FileRow, read_cases
from cases_app.models import BulkJob, CaseLibrary, CaseStatus, FaultCategory
from cases_app.services import bulk, enrichment, moving
from cases_app.services.bulk import BulkAction, Order
from cases_app.services.case_bulk import ENRICH, PUBLISH
from cases_app.services.enrichment import CaseContent, content_of
from sessions_app.errors import ConflictError, InvalidInputError

BATCH_ROWS = 100
PART_ROWS = 50
SHOWN = 200
"""Changes and refusals that the preview shows one by one; all are counted."""
SHOWN_CHARS = 160


class ShownChange(TypedDict):
    """A row as the preview shows it."""

    row: int
    kind: str  # new, changed or refused
    case: str  # its id, "" for a new one
    title: str
    changes: list[tuple[str, str, str]]  # field, beginning of what stands, beginning of what is to stand
    reason: str


class ImportItem(TypedDict):
    """What is to be done with a row."""

    row: int
    case: str | None
    version: int
    content: dict[str, str]  # only what the file says: the rest is read when its turn comes


def prepare_import(*, name: str, file: IO[bytes], actor: Any) -> BulkJob:
    """A job that waits for its confirmation, and says what it would change. Writes no case.

    Raises InvalidInputError for a file that cannot be read, or in which nothing is new. `details` of the job holds
    `new`, `changed`, `unchanged`, `refused` and up to SHOWN of `rows` (ShownChange).
    """
    counts: Counter[str] = Counter(new=0, changed=0, unchanged=0, refused=0)
    shown: list[ShownChange] = []
    items: list[ImportItem] = []
    for item, change in _verdicts(read_cases(name, file), actor):
        counts[change["kind"]] += 1
        if change["kind"] != "unchanged" and len(shown) < SHOWN:
            shown.append(change)
        if item is not None:
            items.append(item)
    if not items:
        reason = next((change["reason"] for change in shown if change["reason"]), "")
        nothing = _("Nothing in this file is new.")
        raise InvalidInputError(f"{nothing} {reason}".strip())
    details = {**counts, "rows": shown, "file": name[-100:]}
    return bulk.gather_job(action=IMPORT_CASES, items=items, actor=actor, details=details, size=PART_ROWS)


def _verdicts(rows: Iterable[FileRow], actor: Any) -> Iterator[tuple[ImportItem | None, ShownChange]]:
    categories = set(FaultCategory.objects.values_list("code", flat=True))
    seen: set[str] = set()
    may_publish = actor.has_perm(PUBLISH)
    for batch in _batches(rows):
        named = {key for row in batch if (key := _uuid(row.values.get("case_id", ""))) is not None}
        cases = {str(case.pk): case for case in CaseLibrary.objects.filter(pk__in=named)}
        titles = {row.values["title"] for row in batch if row.values.get("title") and "case_id" not in row.values}
        alike = {_text(content_of(case)) for case in CaseLibrary.objects.filter(title__in=titles)}
        for row in batch:
            yield _verdict(row, cases, alike, categories, seen, may_publish=may_publish)


def _verdict(
    row: FileRow,
    cases: Mapping[str, CaseLibrary],
    alike: set[tuple[str, ...]],
    categories: set[str],
    seen: set[str],
    *,
    may_publish: bool,
) -> tuple[ImportItem | None, ShownChange]:
    values = row.values
    given = str(_uuid(values.get("case_id", "")) or "")
    change = ShownChange(row=row.number, kind="refused", case=given, title="", changes=[], reason=row.reason)
    case = cases.get(given)
    before: dict[str, str] = dict(content_of(case)) if case else dict.fromkeys(FIELDS, "")  # type: ignore[arg-type]
    after = {name: values.get(name, before[name]) for name in FIELDS}
    after["fault_category"] = after["fault_category"] or rules.GENERAL
    change["title"] = (after["title"] or before["title"])[:SHOWN_CHARS]
    if not change["reason"]:
        change["reason"] = _objection(values, case, after, categories, may_publish=may_publish)
    if change["reason"]:
        return None, change
    mark = given or "\x00".join(_text(after))
    if mark in seen:
        change["reason"] = _("The same case stands further up in the file.")
        return None, change
    seen.add(mark)
    if (case and _text(after) == _text(before)) or (not case and _text(after) in alike):
        change["kind"] = "unchanged"
        return None, change
    change["kind"] = "changed" if case else "new"
    change["changes"] = [
        (name, before[name][:SHOWN_CHARS], after[name][:SHOWN_CHARS]) for name in FIELDS if before[name] != after[name]
    ]
    version = case.version if case else 0
    content = {name: after[name] for name in FIELDS if name in values}
    return ImportItem(row=row.number, case=given or None, version=version, content=content), change


def _objection(
    values: Mapping[str, str],
    case: CaseLibrary | None,
    after: Mapping[str, str],
    categories: set[str],
    *,
    may_publish: bool,
) -> str:
    if "case_id" in values and case is None:
        return _("There is no case %(id)s.") % {"id": values["case_id"]}
    if not after["title"]:
        return _("A case needs a title.")
    if after["fault_category"] not in categories:
        return _("There is no category %(code)s.") % {"code": after["fault_category"]}
    if case is None:
        return ""
    if case.status not in rules.SOURCES["enrich"]:
        state = CaseStatus(case.status).label
        return _("This case is %(state)s; it cannot go that way from there.") % {"state": state}
    if case.status == CaseStatus.PUBLISHED:
        if not may_publish:
            return _("This case is published: only who publishes may change it.")
        for objection in rules.objections_to_publication(after):
            return _(objection.text) % objection.params
    return ""


def _apply(order: Order) -> object:
    item: ImportItem = order.item
    if item["case"] is None:
        empty = {**dict.fromkeys(FIELDS, ""), "fault_category": rules.GENERAL}
        return enrichment.create_case(content=_content(empty, item), author=order.actor)
    case_id = uuid.UUID(item["case"])
    case = moving.locked(case_id)
    if case.status == CaseStatus.PUBLISHED and not order.actor.has_perm(PUBLISH):
        raise ConflictError(_("This case is published: only who publishes may change it."))
    content = _content(content_of(case), item)
    return enrichment.enrich_case(case_id=case_id, content=content, version=item["version"], reviewer=order.actor)


def _content(stands: Mapping[str, Any], item: ImportItem) -> CaseContent:
    return cast(CaseContent, {**stands, **item["content"]})


def _name(item: ImportItem) -> str:
    return item["case"] or _("Row %(number)s") % {"number": item["row"]}


def _text(content: Mapping[str, Any]) -> tuple[str, ...]:
    return tuple(content[name].strip() for name in FIELDS)


def _uuid(text: str) -> uuid.UUID | None:
    try:
        return uuid.UUID(text)
    except ValueError:
        return None


def _batches(rows: Iterable[FileRow]) -> Iterator[list[FileRow]]:
    batch: list[FileRow] = []
    for row in rows:
        batch.append(row)
        if len(batch) == BATCH_ROWS:
            yield batch
            batch = []
    if batch:
        yield batch


IMPORT_CASES = BulkAction("case.import", gettext_lazy("Import cases"), ENRICH, _apply, name_of=_name)
