"""What a case has said before: its versions, the difference of any two, and the way back to one."""

from __future__ import annotations

from typing import Any

from django.contrib import messages
from django.http import HttpRequest, HttpResponse, HttpResponseBadRequest, QueryDict
from django.shortcuts import redirect
from django.template.response import TemplateResponse
from django.utils.translation import gettext as _

from cases_app.admin.differences import Difference, compare
from cases_app.admin.forms import CONTENT, CaseForm
from cases_app.admin.keys import VERSION_KEYS
from cases_app.models import CaseLibrary, CaseVersion
from cases_app.selectors import enrichment as selectors
from cases_app.selectors import versions
from cases_app.services.enrichment import restore_version
from cases_app.services.moving import StaleCaseError
from sessions_app.errors import ConflictError, DomainError, InvalidInputError, UnknownObjectError
from sessions_app.pages import HTTP_CONFLICT, ObjectPageAdmin

MAX_DIGITS = 9


class VersionsAdmin(ObjectPageAdmin):
    """The page of the versions of a case."""

    def versions_view(self, request: HttpRequest, object_id: str) -> HttpResponse:
        """Which there are, and what differs between two; a POST puts one of them back, as a new version."""
        self.require(request, "view")
        case = selectors.case_with_session(object_id)
        if case is None:
            return self.unknown(request, object_id)
        if request.method != "POST":
            return self._versions_page(request, case)
        self.require(request, "enrich")
        if not self.may_write(request, case):
            self.require(request, "publish")
        number, version = _number(request.POST, "number"), _number(request.POST, "version")
        if number is None or version is None:
            return HttpResponseBadRequest()
        try:
            restored = restore_version(case_id=case.pk, number=number, version=version, reviewer=self.person(request))
        except (ConflictError, InvalidInputError, UnknownObjectError) as refusal:
            stale = _("This case was changed since you opened this page; look again.")
            messages.error(request, stale if isinstance(refusal, StaleCaseError) else _reasons(refusal))
            again = selectors.case_with_session(object_id) or case
            return self._versions_page(request, again, status=HTTP_CONFLICT)
        self.done(request, restored, _("The version is restored, as a new one."))
        return redirect(self.object_url(restored, request))

    def _versions_page(self, request: HttpRequest, case: CaseLibrary, *, status: int = 200) -> TemplateResponse:
        rows = versions.versions_of(case)
        earlier, later = _pair(request.GET, [row.number for row in rows])
        pair = versions.texts_of(case, earlier, later)
        context = {
            "title": _("Versions"),
            "case": case,
            "versions": rows,
            "earlier": earlier,
            "later": later,
            "changes": _changes(pair[earlier], pair[later]) if earlier in pair and later in pair else [],
            "may_restore": self.may_write(request, case),
            "back_url": self.object_url(case, request),
            "keys": VERSION_KEYS,
        }
        template = "admin/cases_app/caselibrary/versions.html"
        return self.page(request, case, context, status=status, template=template)


def _changes(earlier: CaseVersion, later: CaseVersion) -> list[tuple[Any, Difference]]:
    """Label and difference of each field that the two say differently."""
    pairs = [(name, getattr(earlier, name), getattr(later, name)) for name in CONTENT]
    return [(CaseForm.base_fields[name].label, compare(then, now)) for name, then, now in pairs if then != now]


def _pair(data: QueryDict, numbers: list[int]) -> tuple[int | None, int | None]:
    """The two versions that were asked for; else the latest, and the one before it. `numbers` begin with the latest."""
    if not numbers:
        return None, None
    asked = {name: _number(data, name) for name in ("from", "to")}
    later = asked["to"] if asked["to"] in numbers else numbers[0]
    before = [number for number in numbers if later is not None and number < later]
    return (asked["from"] if asked["from"] in numbers else (before or numbers)[0]), later


def _number(data: QueryDict, name: str) -> int | None:
    text = data.get(name, "")[:MAX_DIGITS]
    return int(text) if text.isdecimal() else None


def _reasons(refusal: DomainError) -> str:
    """The refusal, and which fields it is about."""
    labels = [str(CaseForm.base_fields[name].label) for name in refusal.errors if name in CaseForm.base_fields]
    return " ".join([refusal.message, ", ".join(labels)]).strip()
