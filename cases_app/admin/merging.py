"""The page that shows what merging two cases would do, and does it."""

from __future__ import annotations

from typing import Any, NamedTuple

from django import forms
from django.contrib import messages
from django.http import HttpRequest, HttpResponse, HttpResponseBadRequest
from django.shortcuts import redirect
from django.template.response import TemplateResponse
from django.utils.translation import gettext as _

from cases_app import rules
from cases_app.admin.differences import Difference, compare
from cases_app.admin.forms import CaseForm
from cases_app.admin.keys import MERGE_KEYS
from cases_app.models import CaseLibrary, CaseStatus
from cases_app.selectors import enrichment as selectors
from cases_app.selectors.similar import SimilarCase, near_duplicates
from cases_app.services.merging import merge_cases, taken
from cases_app.services.moving import StaleCaseError
from sessions_app.errors import ConflictError
from sessions_app.forms import ReasonForm
from sessions_app.pages import HTTP_CONFLICT, ObjectPageAdmin

TEXTS = ("title", "root_cause", "solution")
STANDING = (CaseStatus.DRAFT, CaseStatus.ENRICHED, CaseStatus.PUBLISHED)


class Duplicate(NamedTuple):
    """A case that may be the same, and where the two can be merged; None for who may not."""

    similar: SimilarCase
    merge_url: str | None


class MergeForm(ReasonForm):
    """Why, and the versions that the page shows."""

    kept_version = forms.IntegerField(widget=forms.HiddenInput)
    merged_version = forms.IntegerField(widget=forms.HiddenInput)


class MergingAdmin(ObjectPageAdmin):
    """What the page of a case needs to offer a merge, and the page of the merge itself."""

    def duplicates(self, request: HttpRequest, case: CaseLibrary) -> list[Duplicate]:
        """Cases much alike; of two, the one that is further stays, else the older."""
        if case.status == CaseStatus.RETIRED:
            return []
        may_merge = self.has_publish_permission(request)
        return [
            Duplicate(one, self._merge_url(request, *_kept_first(case, one.case)) if may_merge else None)
            for one in near_duplicates(case)
        ]

    def merge_view(self, request: HttpRequest, object_id: str, other_id: str) -> HttpResponse:
        """What becomes of both; a POST merges the second into the first."""
        self.require(request, "publish")
        kept, merged = selectors.case_with_session(object_id), selectors.case_with_session(other_id)
        if kept is None or merged is None or kept.pk == merged.pk:
            return self.unknown(request, other_id)
        if request.method != "POST":
            return self._preview(request, kept, merged)
        form = MergeForm(request.POST)
        if not form.is_valid():
            return HttpResponseBadRequest()
        versions = {name: form.cleaned_data[name] for name in ("kept_version", "merged_version")}
        reason, reviewer = form.cleaned_data["reason"], self.person(request)
        try:
            merge_cases(kept_id=kept.pk, merged_id=merged.pk, reviewer=reviewer, reason=reason, **versions)
        except ConflictError as refusal:
            stale = _("One of the two was changed since you opened this page; look again.")
            messages.error(request, stale if isinstance(refusal, StaleCaseError) else refusal.message)
            again = [selectors.case_with_session(str(case.pk)) or case for case in (kept, merged)]
            return self._preview(request, *again, status=HTTP_CONFLICT)
        self.log_change(request, merged, _("Merged into another case."))
        self.done(request, kept, _("The cases are merged."))
        return redirect(self.object_url(kept, request))

    def _preview(
        self, request: HttpRequest, kept: CaseLibrary, merged: CaseLibrary, *, status: int = 200
    ) -> TemplateResponse:
        takes = taken(kept, merged)
        context = {
            "title": _("Merge two cases"),
            "kept": kept,
            "merged": merged,
            "objection": _(objection) if (objection := rules.objection_to_merging(kept.status, merged.status)) else "",
            "category": merged.fault_category if "fault_category_id" in takes else None,
            "error_code": takes.get("error_code"),
            "takes_doubt": "flagged_at" in takes,
            "changes": list(_changes(kept, merged)),
            "sources": [kept, *selectors.merged_cases(kept), merged, *selectors.merged_cases(merged)],
            "form": MergeForm(initial={"kept_version": kept.version, "merged_version": merged.version}),
            "swap_url": self._merge_url(request, merged, kept),
            "back_url": self.object_url(kept, request),
            "keys": MERGE_KEYS,
        }
        return self.page(request, kept, context, status=status, template="admin/cases_app/caselibrary/merge.html")

    def _merge_url(self, request: HttpRequest, kept: CaseLibrary, merged: CaseLibrary) -> str:
        return self.view_url("merge", request, kept.pk, merged.pk)


def _kept_first(one: CaseLibrary, other: CaseLibrary) -> tuple[CaseLibrary, CaseLibrary]:
    first, second = sorted((one, other), key=lambda case: (-STANDING.index(CaseStatus(case.status)), case.created_at))
    return first, second


def _changes(kept: CaseLibrary, merged: CaseLibrary) -> list[tuple[Any, Difference]]:
    """Label and difference of each text, from what the kept case says to what the other does."""
    pairs = [(name, getattr(kept, name), getattr(merged, name)) for name in TEXTS]
    return [(CaseForm.base_fields[name].label, compare(own, others)) for name, own, others in pairs if own != others]
