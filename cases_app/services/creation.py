"""Cases that follow a verdict or a correction. Callers hold the session's lock, so each of these happens once."""

from __future__ import annotations

from collections.abc import Collection

from django.contrib.auth.models import AbstractBaseUser
from django.db.models import F
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import gettext_noop

from cases_app import rules
from cases_app.models import CaseLibrary, CaseStatus, CaseTransition, SourceType
from cases_app.suggestions.answers import split_answer
from sessions_app.errors import ConflictError
from sessions_app.models import DiagnosisSession, Verdict


def case_of_useful_session(session: DiagnosisSession) -> CaseLibrary | None:
    """The session's case: made if there is none, given back if a verdict had retired it.

    None while the session has no answer; `follow_answers` makes the case when it comes.
    """
    case = CaseLibrary.objects.select_for_update().filter(diagnosis_id=session.session_id).first()
    if case is None:
        return _create(session) if session.answer else None
    if case.retired_by_verdict:
        _move_by_verdict(case, CaseStatus.DRAFT, retired_by_verdict=False)
        _fill_from_answer(case, session)
    elif case.is_flagged:
        CaseLibrary.objects.filter(pk=case.pk).update(flagged_at=None, version=F("version") + 1)
        _log(case, "unflag", case.status, gettext_noop("The reader found the answer useful again."))
    return case


def withdraw_case(session: DiagnosisSession) -> None:
    """The reader took "useful" back: retire a case nobody worked on, flag one that a reviewer did."""
    case = CaseLibrary.objects.select_for_update().filter(diagnosis_id=session.session_id).first()
    if case is None or case.status == CaseStatus.RETIRED or case.source_type == SourceType.CORRECTION:
        return  # a correction says itself what was wrong with the answer
    if case.source_type == SourceType.AUTO and case.status == CaseStatus.DRAFT:
        _move_by_verdict(case, CaseStatus.RETIRED, retired_by_verdict=True)
    elif not case.is_flagged:
        CaseLibrary.objects.filter(pk=case.pk).update(flagged_at=timezone.now(), version=F("version") + 1)
        _log(case, "flag", case.status, gettext_noop("The reader no longer finds the answer useful."))


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
        CaseLibrary.objects.filter(pk=case.pk).update(
            **columns,
            status=CaseStatus.DRAFT,
            retired_by_verdict=False,
            flagged_at=None,
            version=F("version") + 1,
            updated_at=timezone.now(),
        )
        case.refresh_from_db()
    _log(case, "correct", source, "", author)
    return case


def follow_answers(session_ids: Collection[str]) -> None:
    """Answers came or changed: make the cases that waited for them, and keep those nobody worked on in step."""
    useful = DiagnosisSession.objects.answered().filter(session_id__in=session_ids, feedback=Verdict.USEFUL)
    for session in useful.order_by("session_id"):
        case = case_of_useful_session(session)
        if case is not None and case.status == CaseStatus.DRAFT and case.source_type == SourceType.AUTO:
            _fill_from_answer(case, session)


def _create(session: DiagnosisSession) -> CaseLibrary:
    """Make it. Somebody who does not hold the session's lock may be first: then the caller's transaction runs again."""
    case = CaseLibrary.objects.create(
        diagnosis_id=session.session_id,
        source_type=SourceType.AUTO,
        title=rules.title_of(session.query),
        root_cause=session.answer or "",
        solution=session.answer or "",
    )
    _log(case, "create", "", gettext_noop("A reader found the answer useful."))
    return case


def _fill_from_answer(case: CaseLibrary, session: DiagnosisSession) -> None:
    answer = session.answer or ""
    title = rules.title_of(session.query)
    if (case.title, case.root_cause, case.solution) == (title, answer, answer):
        return
    CaseLibrary.objects.filter(pk=case.pk, status=CaseStatus.DRAFT).update(
        title=title, root_cause=answer, solution=answer, version=F("version") + 1, updated_at=timezone.now()
    )


def _move_by_verdict(case: CaseLibrary, target: CaseStatus, *, retired_by_verdict: bool) -> None:
    source = case.status
    CaseLibrary.objects.filter(pk=case.pk, status=source).update(
        status=target, retired_by_verdict=retired_by_verdict, version=F("version") + 1, updated_at=timezone.now()
    )
    case.status, case.retired_by_verdict = target, retired_by_verdict
    _log(case, "retire" if retired_by_verdict else "restore", source, gettext_noop("The reader changed their mind."))


def _log(case: CaseLibrary, action: str, source: str, reason: str, author: AbstractBaseUser | None = None) -> None:
    CaseTransition.objects.create(
        case=case,
        action=action,
        from_state=source,
        to_state=case.status,
        reason=reason,
        actor_id=author.pk if author else None,
    )
