"""Cases that follow a verdict or a correction. Callers hold the session's lock, so each of these happens once."""

from __future__ import annotations

from collections.abc import Collection

from django.contrib.auth.models import AbstractBaseUser
from django.db.models import F, Q
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import gettext_noop

from cases_app import rules
from cases_app.models import CaseLibrary, CaseStatus, SourceType
from cases_app.services import terms
from cases_app.services.moving import keep_former_version, keep_version, log
from cases_app.suggestions.answers import split_answer
from sessions_app.errors import ConflictError
from sessions_app.models import DiagnosisSession, Verdict
from sessions_app.services import indexing
from sessions_app.services.bulk import insert, new_row, select_one


def case_of_useful_session(session: DiagnosisSession) -> CaseLibrary | None:
    """The session's case: made if there is none, given back if a verdict had retired it; where it was merged, the kept.

    None while the session has no answer; `follow_answers` makes the case when it comes.
    """
    case = _case_of(session)
    if case is None:
        return _create(session) if session.answer else None
    if case.retired_by_verdict:
        _move_by_verdict(case, CaseStatus.DRAFT, retired_by_verdict=False)
        _fill_from_answer(case, session)
    elif case.is_flagged and not _is_doubted(case):
        CaseLibrary.objects.filter(pk=case.pk).update(flagged_at=None, version=F("version") + 1)
        log(case, "unflag", case.status, actor=None, reason=gettext_noop("The reader found the answer useful again."))
    return case


def withdraw_case(session: DiagnosisSession) -> None:
    """The reader took "useful" back: retire a case nobody worked on, flag one that a reviewer did."""
    case = _case_of(session)
    if case is None or case.status == CaseStatus.RETIRED:
        return
    is_own = case.diagnosis_id == session.session_id
    if is_own and case.source_type == SourceType.CORRECTION:
        return  # a correction says itself what was wrong with the answer
    if case.source_type == SourceType.AUTO and case.status == CaseStatus.DRAFT and not _is_shared(case):
        _move_by_verdict(case, CaseStatus.RETIRED, retired_by_verdict=True)
    elif not case.is_flagged:
        CaseLibrary.objects.filter(pk=case.pk).update(flagged_at=timezone.now(), version=F("version") + 1)
        log(case, "flag", case.status, actor=None, reason=gettext_noop("The reader no longer finds the answer useful."))


def case_of_correction(session: DiagnosisSession, *, corrected_answer: str, author: AbstractBaseUser) -> CaseLibrary:
    """A draft from what the agent should have answered, split at its headings where it has any.

    A session has one case at most: one that nobody worked on becomes this one. Raises ConflictError where somebody did.
    """
    split = split_answer(corrected_answer)
    columns = {
        "source_type": SourceType.CORRECTION,
        "title": rules.title_of(session.query) or rules.title_of(corrected_answer),
        "root_cause": split.root_cause.text if split.root_cause else corrected_answer,
        "solution": split.solution.text if split.solution else corrected_answer,
        "created_by": author.get_username(),
    }
    case = CaseLibrary.objects.select_for_update().filter(diagnosis_id=session.session_id).first()
    source = ""
    if case is None:
        case = CaseLibrary.objects.create(diagnosis_id=session.session_id, **columns)
    else:
        is_untouched = case.status == CaseStatus.DRAFT or case.retired_by_verdict
        if case.source_type != SourceType.AUTO or not is_untouched:
            raise ConflictError(_("This session has a case that somebody worked on; correct it there."))
        source = case.status
        keep_former_version(case)
        CaseLibrary.objects.filter(pk=case.pk).update(
            **columns,
            status=CaseStatus.DRAFT,
            retired_by_verdict=False,
            flagged_at=None,
            version=F("version") + 1,
            updated_at=timezone.now(),
        )
        case.refresh_from_db()
    log(case, "correct", source, actor=author)
    keep_version(case, "correct", actor=author)
    terms.owe([case.pk])
    return case


def follow_answers(session_ids: Collection[str]) -> None:
    """Answers came or changed: make the cases that waited for them, and keep those nobody worked on in step."""
    useful = DiagnosisSession.objects.answered().filter(session_id__in=session_ids, feedback=Verdict.USEFUL)
    for session in useful.order_by("session_id"):
        case = case_of_useful_session(session)
        if case is not None and case.status == CaseStatus.DRAFT and case.source_type == SourceType.AUTO:
            _fill_from_answer(case, session)


def _case_of(session: DiagnosisSession) -> CaseLibrary | None:
    """The session's case, or the one that it was merged into. Locked in the order of ids, as a merge locks them."""
    own = select_one(CaseLibrary, "diagnosis_id", session.session_id, ("merged_into_id",))
    if own is None:
        return None
    keys = [key for key in (own.pk, own.merged_into_id) if key]
    rows = CaseLibrary.objects.select_for_update().filter(pk__in=keys).order_by("pk")
    cases = {case.pk: case for case in rows}
    case = cases.get(own.pk)
    if case is None or case.merged_into_id is None:
        return case
    return cases.get(case.merged_into_id) or _case_of(session)  # merged since we looked


def _is_shared(case: CaseLibrary) -> bool:
    return CaseLibrary.objects.filter(merged_into=case).exists()


def _is_doubted(case: CaseLibrary) -> bool:
    """Whether a reader of any of its sessions finds the answer not useful."""
    sources = Q(case=case) | Q(case__merged_into=case)
    return DiagnosisSession.objects.filter(sources, feedback=Verdict.NOT_USEFUL).exists()


def _create(session: DiagnosisSession) -> CaseLibrary:
    """Make it. Somebody who does not hold the session's lock may be first: then the caller's transaction runs again."""
    case = new_row(
        CaseLibrary,
        diagnosis_id=session.session_id,
        source_type=SourceType.AUTO,
        title=rules.title_of(session.query),
        root_cause=session.answer or "",
        solution=session.answer or "",
    )
    insert(CaseLibrary, [case])
    log(case, "create", "", actor=None, reason=gettext_noop("A reader found the answer useful."))
    indexing.announce()
    return case


def _fill_from_answer(case: CaseLibrary, session: DiagnosisSession) -> None:
    """Keep a draft in step that no person ever wrote into."""
    if case.diagnosis_id != session.session_id or _is_shared(case) or case.versions.exists():
        return
    answer = session.answer or ""
    title = rules.title_of(session.query)
    if (case.title, case.root_cause, case.solution) == (title, answer, answer):
        return
    CaseLibrary.objects.filter(pk=case.pk, status=CaseStatus.DRAFT).update(
        title=title, root_cause=answer, solution=answer, version=F("version") + 1, updated_at=timezone.now()
    )
    terms.owe([case.pk])


def _move_by_verdict(case: CaseLibrary, target: CaseStatus, *, retired_by_verdict: bool) -> None:
    source = case.status
    CaseLibrary.objects.filter(pk=case.pk, status=source).update(
        status=target, retired_by_verdict=retired_by_verdict, version=F("version") + 1, updated_at=timezone.now()
    )
    case.status, case.retired_by_verdict = target, retired_by_verdict
    reason = gettext_noop("The reader changed their mind.")
    log(case, "retire" if retired_by_verdict else "restore", source, actor=None, reason=reason)
