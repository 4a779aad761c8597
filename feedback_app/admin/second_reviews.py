"""Second reviews: a verdict by somebody who does not know the first, and how far reviewers agree."""

from __future__ import annotations

from typing import Any

from django import forms
from django.contrib import admin, messages
from django.core.exceptions import PermissionDenied
from django.db.models import Q, QuerySet
from django.db.models.functions import Left
from django.http import HttpRequest, HttpResponse, HttpResponseBadRequest
from django.shortcuts import redirect
from django.template.response import TemplateResponse
from django.urls import path
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from unfold.widgets import UnfoldAdminSelectWidget, UnfoldAdminTextareaWidget

from feedback_app.models import SecondReview, SecondState
from feedback_app.selectors import second_reviews as selectors
from feedback_app.selectors import words
from feedback_app.selectors.failure_modes import verdict_choices, verdict_names
from feedback_app.selectors.triage import TRIAGE_PERMISSION
from feedback_app.services import second_reviews
from sessions_app.errors import ConflictError, InvalidInputError
from sessions_app.forms import LongTextField
from sessions_app.pages import HTTP_CONFLICT, ObjectPageAdmin
from sessions_app.paging import BoundedPaginator
from sessions_app.selectors.chain import timeline
from sessions_app.templatetags.desk import badge, excerpt, moment

TITLE_CHARS = 60
ROW_CHARS = 110


class SecondVerdictForm(forms.Form):
    """What somebody says who does not know the first verdict."""

    mode = forms.ChoiceField(
        label=gettext_lazy("What went wrong"),
        choices=lambda: [("", _("Choose what went wrong")), *verdict_choices()],
        widget=UnfoldAdminSelectWidget,
    )
    notes = LongTextField(
        label=gettext_lazy("Notes"), required=False, widget=UnfoldAdminTextareaWidget(attrs={"rows": 5})
    )


class SettlementForm(forms.Form):
    """What a Lead decides."""

    mode = SecondVerdictForm.base_fields["mode"]

    def __init__(self, second: SecondReview, data: Any = None) -> None:
        super().__init__(data)
        offered, names = dict(verdict_choices()), verdict_names()
        said = {code: names.get(code, code) for code in (second.first_mode, second.mode)}
        mode: Any = self.fields["mode"]
        mode.choices = [("", _("Choose what went wrong")), *(offered | said).items()]


@admin.register(SecondReview)
class SecondReviewAdmin(ObjectPageAdmin):
    """What waits for a second verdict, and what two judged."""

    list_display = ("question", "state_mark", "created")
    list_per_page = 50
    list_max_show_all = 0
    paginator = BoundedPaginator
    show_full_result_count = False
    list_fullwidth = True
    sortable_by = ()
    list_before_template = "feedback_app/second_reviews_top.html"
    page_template = "admin/feedback_app/secondreview/change_form.html"

    def has_add_permission(self, request: HttpRequest) -> bool:
        """Closing a triage owes them."""
        return False

    def has_view_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Whoever may triage."""
        return request.user.has_perm(TRIAGE_PERMISSION)

    def has_module_permission(self, request: HttpRequest) -> bool:
        """As the list."""
        return self.has_view_permission(request)

    def has_settle_permission(self, request: HttpRequest) -> bool:
        """May decide between two: Leads."""
        return request.user.has_perm("feedback_app.assign_badcasereview")

    def get_queryset(self, request: HttpRequest) -> QuerySet[SecondReview]:
        """What this person can judge, and what is judged. Of a question its beginning alone."""
        rows: QuerySet[SecondReview] = super().get_queryset(request)
        judgeable = Q(pk__in=selectors.waiting_for(request.user).values("pk"))
        return (
            rows.filter(judgeable | ~Q(state=SecondState.WAITING))
            .annotate(query_head=Left("review__session__query", 4 * ROW_CHARS))
            .order_by("-state", "pk")
        )

    def get_ordering(self, request: HttpRequest) -> tuple[str, ...]:
        """What waits first: its name comes last."""
        return ("-state", "pk")

    def changelist_view(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> Any:
        """The list, with the way to the agreement."""
        url = self.view_url("agreement", None) if self.has_settle_permission(request) else None
        return super().changelist_view(request, {"agreement_url": url, **(extra_context or {})})

    @admin.display(description=gettext_lazy("question"))
    def question(self, second: Any) -> str:
        """What was asked."""
        return excerpt(second.query_head, ROW_CHARS) or str(second.pk)

    @admin.display(description=gettext_lazy("state"))
    def state_mark(self, second: SecondReview) -> str:
        """Where it stands."""
        return badge(second.state, second.get_state_display())

    @admin.display(description=gettext_lazy("created"))
    def created(self, second: SecondReview) -> str:
        """When the first verdict was given."""
        return moment(second.created_at)

    # -- pages -------------------------------------------------------------------------------------------------------

    def get_urls(self) -> list[Any]:
        """Also how far reviewers agree."""
        view = self.admin_site.admin_view(self.agreement_view)
        return [path("agreement/", view, name="feedback_app_secondreview_agreement"), *super().get_urls()]

    def agreement_view(self, request: HttpRequest) -> HttpResponse:
        """Cohen's kappa, for Leads."""
        self.require(request, "settle")
        request.current_app = self.admin_site.name
        context = {
            **self.admin_site.each_context(request),
            "opts": self.opts,
            "title": _("Agreement of reviewers"),
            "list_url": self.view_url("changelist", None),
            "agreement": selectors.agreement_table(),
            "most": selectors.MOST_JUDGED,
        }
        return TemplateResponse(request, "admin/feedback_app/secondreview/agreement.html", context)

    def change_view(
        self, request: HttpRequest, object_id: str, form_url: str = "", extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        """The page of one; a POST judges or settles."""
        self.require(request, "view")
        second = selectors.second_review(object_id)
        if second is None:
            return self.unknown(request, object_id)
        if second.state == SecondState.WAITING and second.first_reviewer_id == request.user.pk:
            raise PermissionDenied
        if request.method != "POST":
            return self._page(request, second, self._form(second))
        action = request.POST.get("action")
        if action not in ("judge", "settle"):
            return HttpResponseBadRequest()
        if action == "settle":
            self.require(request, "settle")
        form = SecondVerdictForm(request.POST) if action == "judge" else SettlementForm(second, request.POST)
        if not form.is_valid():
            return self._page(request, second, form)
        person, said = self.person(request), form.cleaned_data
        try:
            if action == "judge":
                second_reviews.judge(second_id=second.pk, reviewer=person, **said)
            else:
                second_reviews.settle(second_id=second.pk, lead=person, **said)
        except (ConflictError, InvalidInputError) as refusal:
            messages.error(request, refusal.message)
            second = selectors.second_review(object_id) or second
            return self._page(request, second, self._form(second), status=HTTP_CONFLICT)
        self.done(request, second, _("Your verdict is given.") if action == "judge" else _("It is settled."))
        return redirect(self.object_url(second, request))

    def _form(self, second: SecondReview) -> forms.Form:
        return SecondVerdictForm() if second.state == SecondState.WAITING else SettlementForm(second)

    def _page(
        self, request: HttpRequest, second: SecondReview, form: forms.Form, *, status: int = 200
    ) -> TemplateResponse:
        session = second.review.session
        is_waiting = second.state == SecondState.WAITING
        context = {
            "title": excerpt(session.query, TITLE_CHARS) or session.session_id,
            "second": second,
            "mode_names": {} if is_waiting else verdict_names(),
            "session": session,
            "form": form,
            "is_waiting": is_waiting,
            "may_settle": second.state == SecondState.DISAGREED and self.has_settle_permission(request),
            "timeline": timeline(session.session_id, self.steps_page(request)),
            "feedback": words.feedback_on(session),
        }
        return self.page(request, second, context, status=status)
