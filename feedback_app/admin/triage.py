"""The reviewers' desk for bad cases: the queue, and one page for each with all that a verdict needs.

Every button is a POST of `action` to the page of its bad case. Each calls one service, which alone moves the triage.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django.conf import settings
from django.contrib import admin, messages
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse, HttpResponseBadRequest, HttpResponseNotAllowed
from django.shortcuts import redirect
from django.template.loader import render_to_string
from django.template.response import TemplateResponse
from django.urls import path, reverse
from django.utils.functional import cached_property
from django.utils.html import format_html
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from cases_app.admin.differences import Difference
from cases_app.bulk_lists import list_action
from cases_app.selectors.similar import similar_cases
from feedback_app.admin import filters
from feedback_app.admin.buttons import BUTTONS, Press
from feedback_app.admin.forms import AssignForm, VerdictForm
from feedback_app.admin.keys import PAGE_KEYS, QUEUE_KEYS
from feedback_app.models import BadCaseReview, EventType, TriageState
from feedback_app.selectors import exports, words
from feedback_app.selectors import triage as selectors
from feedback_app.selectors.failure_modes import mode_names
from feedback_app.selectors.second_reviews import hidden_from, is_hidden_from
from feedback_app.selectors.triage import TRIAGE_PERMISSION
from feedback_app.services import triage
from feedback_app.services.triage_bulk import TRIAGE_ACTIONS
from feedback_app.templatetags.triage import due_mark, priority_mark, priority_rules
from sessions_app.errors import ConflictError, InvalidInputError
from sessions_app.exporting import EXPORT_ACTIONS, Export, ExportMixin
from sessions_app.filters import AgentFilter, DayFilter, PeriodFilter, ScoreFilter
from sessions_app.forms import NOT_SAVED, ReasonForm
from sessions_app.lists import DeskChangeList
from sessions_app.pages import FROM_LIST, HTTP_CONFLICT, MAX_PAGE_DIGITS, ObjectPageAdmin, Tab
from sessions_app.paging import MOST_COUNTED, BoundedPaginator, bounded_count
from sessions_app.rules import CONFIDENT_ABOVE
from sessions_app.saved_views import SavedViewsMixin
from sessions_app.selectors.chain import timeline
from sessions_app.templatetags.desk import NOTHING, badge, excerpt, flow_name, nothing, number, score_mark

ROW_CHARS = 110
TITLE_CHARS = 60
NEXT_TO_ENRICH = "admin:cases_app_caselibrary_next"


def is_confident(review: BadCaseReview) -> bool:
    """Whether the agent was sure of the answer that its reader rejected."""
    stated = review.confidence
    return stated is not None and stated > CONFIDENT_ABOVE


class TriageChangeList(DeskChangeList):
    """The queue, each row with what its reader said and what this person may do with it."""

    @cached_property
    def counts(self) -> dict[str, dict[str, str]]:
        """Filter → choice → how many rows of the list fall under it, as shown. One query, of MOST_COUNTED rows.

        Where there are more rows, what is counted is the least there are: `12+`.
        """
        counted = [spec for spec in self.filter_specs if isinstance(spec, filters.Counted) and not spec.value()]
        names = sorted({column for spec in counted for column in spec.columns})
        rows = list(self.queryset.values_list(*names)[: MOST_COUNTED + 1]) if names else []
        more = "+" if len(rows) > MOST_COUNTED else ""
        columns = dict(zip(names, zip(*rows[:MOST_COUNTED], strict=True), strict=True)) if rows else {}
        found = {spec.parameter_name: spec.tally(*(columns.get(name, ()) for name in spec.columns)) for spec in counted}
        return {name: {value: f"{number(n)}{more}" for value, n in some.items() if n} for name, some in found.items()}

    def get_results(self, request: HttpRequest) -> None:
        """Three queries more for a page of rows."""
        super().get_results(request)
        sessions = selectors.heads_of_sessions(review.session_id for review in self.result_list)
        # One whose session went meanwhile is gone too.
        self.result_list = [review for review in self.result_list if review.session_id in sessions]
        comments, names = words.latest_comments(review.session_id for review in self.result_list), mode_names()
        for review, url in zip(self.result_list, self.urls, strict=True):
            review.comment = comments.get(review.session_id, "")
            review.session = sessions[review.session_id]
            review.mode_name = names.get(review.failure_mode, review.failure_mode)
            review.is_mine = review.assignee_id == request.user.pk
            review.offers = self.model_admin.offers(request, review)
            review.url = url


@admin.register(BadCaseReview)
class BadCaseReviewAdmin(SavedViewsMixin, ExportMixin, ObjectPageAdmin):
    """Bad cases: what waits, who has what, and the verdicts."""

    list_display = (
        "question", "agent", "score", "stated", "state_mark", "holder", "failure_mode_name", "due", "buttons",
    )  # fmt: skip
    list_filter = (
        filters.StateFilter,
        filters.AssigneeFilter,
        filters.DueFilter,
        filters.BadCaseCommentFilter,
        filters.LanguageFilter,
        filters.FlowFilter,
        AgentFilter,
        ScoreFilter,
        filters.ConfidenceFilter,
        filters.FactsFilter,
        filters.FailureModeFilter,
        filters.SeverityFilter,
        PeriodFilter,
        DayFilter,
    )
    list_filter_submit = True
    list_fullwidth = True
    list_per_page = 50
    list_max_show_all = 0
    paginator = BoundedPaginator
    show_full_result_count = False
    show_facets = admin.ShowFacets.NEVER  # its counts look at every row
    search_fields = ("session__query",)  # shows the box; what is searched: `BadCaseReviewQuerySet.matching`
    search_help_text = gettext_lazy("Question, comment, notes or session id")
    sortable_by = ("score", "stated", "due")
    ordering = ("pk",)  # no column's head is marked as sorted while the order is that of `get_ordering`
    list_before_template = "feedback_app/triage_tabs.html"
    page_template = "admin/feedback_app/badcasereview/change_form.html"
    shows_history = True
    actions = (*map(list_action, TRIAGE_ACTIONS), *EXPORT_ACTIONS)
    export = Export("triages", exports.COLUMNS, exports.exportable_triages, exports.triage_rows)

    # -- who may what ------------------------------------------------------------------------------------------------

    def has_add_permission(self, request: HttpRequest) -> bool:
        """Readers open triages."""
        return False

    def has_triage_permission(self, request: HttpRequest) -> bool:
        """May take bad cases and decide them."""
        return request.user.has_perm(TRIAGE_PERMISSION)

    def has_assign_permission(self, request: HttpRequest) -> bool:
        """May release what others have taken, and reopen."""
        return request.user.has_perm("feedback_app.assign_badcasereview")

    def has_release_permission(self, request: HttpRequest) -> bool:
        """May release one's own or everybody's: whose it is, the service looks up."""
        return self.has_triage_permission(request) or self.has_assign_permission(request)

    def has_make_case_permission(self, request: HttpRequest) -> bool:
        """May make a case of a correction: who takes bad cases and enriches cases."""
        return self.has_triage_permission(request) and request.user.has_perm("cases_app.enrich_caselibrary")

    def has_export_permission(self, request: HttpRequest) -> bool:
        """May take what readers asked out of the product: Leads."""
        return self.has_assign_permission(request)

    def offers(self, request: HttpRequest, review: BadCaseReview) -> list[str]:
        """The buttons that make sense for this person and this bad case now."""
        may_triage, may_assign = self.has_triage_permission(request), self.has_assign_permission(request)
        if review.state not in (TriageState.OPEN, TriageState.IN_REVIEW):
            return ["reopen"] if may_assign else []
        if review.assignee_id == request.user.pk:
            if not may_triage:
                return []
            own = ["save_notes", "resolve", "dismiss", "release", "assign"]
            return [*own, "make_case"] if self.has_make_case_permission(request) else own
        is_free = review.assignee_id is None or review.is_claim_expired
        offers = ["claim"] if may_triage and is_free else []
        if may_assign:
            offers += ["assign"] if review.assignee_id is None else ["release", "assign"]
        return offers

    # -- the queue ---------------------------------------------------------------------------------------------------

    def get_queryset(self, request: HttpRequest) -> QuerySet[BadCaseReview]:
        """Only what a row shows, and of no other table: what is counted and put in order is not joined."""
        rows: QuerySet[BadCaseReview] = super().get_queryset(request)
        return (
            rows.exclude(hidden_from(request.user))
            .select_related("assignee")
            .only(
                "session_id", "agent_id", "agent_flow", "confidence", "state", "failure_mode", "due_at", "resolved_at",
                "assignee__username", "claimed_at", "attention_at", "priority_hours",
            )
        )  # fmt: skip

    def get_ordering(self, request: HttpRequest) -> Any:
        """Of what waits: what deserves attention first; of others: what closed last. A click on a head overrides it."""
        return (
            BadCaseReview.objects.queue_order() if filters.StateFilter.is_waiting(request) else ("-resolved_at", "-pk")
        )

    def get_changelist(self, request: HttpRequest, **kwargs: Any) -> type[TriageChangeList]:
        """With comments and buttons."""
        return TriageChangeList

    def get_search_results(
        self, request: HttpRequest, queryset: Any, search_term: str
    ) -> tuple[QuerySet[BadCaseReview], bool]:
        """Words, found literally."""
        return queryset.matching(search_term), False

    def get_list_display(self, request: HttpRequest) -> list[str]:
        """The column of buttons only for those who may press one."""
        columns: list[str] = list(super().get_list_display(request))
        return columns if self.has_release_permission(request) else columns[:-1]

    def list_context(self, request: HttpRequest) -> dict[str, Any]:
        """The tabs, and the ways from here."""
        reviews, user = BadCaseReview.objects, self.person(request)
        waiting, mine = reviews.waiting(), reviews.waiting().filter(assignee_id=user.pk)
        assignee, state = filters.AssigneeFilter, filters.StateFilter
        tabs = [
            Tab.among(request, _("Waiting"), bounded_count(waiting)),
            Tab.among(request, _("Mine"), bounded_count(mine), assignee=assignee.MINE),
            Tab.among(request, _("Unassigned"), bounded_count(reviews.free()), assignee=assignee.NOBODY),
            Tab.among(request, _("Overdue"), bounded_count(reviews.overdue()), due=filters.DueFilter.OVERDUE),
            Tab.among(request, _("Closed"), state=state.CLOSED),
            Tab.among(request, _("All"), state=state.EVERY),
        ]
        return {
            "tabs": tabs,
            "order_rules": priority_rules() if filters.StateFilter.is_waiting(request) else [],
            "next_url": self.next_url(request),
            "keys": QUEUE_KEYS,
            "holders_url": self.view_url("holders", None) if self.has_assign_permission(request) else None,
            "export_links": self.export_links(request),
        }

    @admin.display(description=gettext_lazy("question and comment"))
    def question(self, review: Any) -> str:
        """What was asked, and below it the reader's own words."""
        comment = excerpt(review.comment, ROW_CHARS)
        return format_html(
            '<span class="desk-cell-question" dir="auto">{}</span>{}',
            excerpt(review.session.query_head, ROW_CHARS) or review.session_id,
            format_html('<q class="desk-cell-said" dir="auto">{}</q>', comment) if comment else "",
        )

    @admin.display(description=gettext_lazy("agent"))
    def agent(self, review: Any) -> str:
        """Which agent, in which flow."""
        return format_html(
            '<span class="desk-two" title="{}"><bdi>{}</bdi><small><bdi>{}</bdi></small></span>',
            review.agent_id or "",
            review.agent_id or NOTHING,
            excerpt(flow_name(review.agent_flow)) if review.agent_flow else "",
        )

    @admin.display(description=gettext_lazy("evidence"), ordering="evidence_score")
    def score(self, review: BadCaseReview) -> str:
        """How sufficiently evidence was gathered."""
        return score_mark(review.session)

    @admin.display(description=gettext_lazy("stated"), ordering="confidence")
    def stated(self, review: BadCaseReview) -> str:
        """How sure the agent said it was; marked where that was much."""
        confidence = review.confidence
        if confidence is None:
            return nothing()
        percent = f"{confidence:.0f}%"
        return (
            badge("confident", percent, _("Rejected though stated with confidence"))
            if is_confident(review)
            else percent
        )

    @admin.display(description=gettext_lazy("state"))
    def state_mark(self, review: BadCaseReview) -> str:
        """Where the triage stands."""
        return badge(review.state, review.get_state_display())

    @admin.display(description=gettext_lazy("assignee"))
    def holder(self, review: Any) -> str:
        """Who has it; oneself marked."""
        if review.is_mine:
            return badge("mine", _("Me"))
        return review.assignee.get_username() if review.assignee else nothing()

    @admin.display(description=gettext_lazy("failure mode"))
    def failure_mode_name(self, review: Any) -> str:
        """What went wrong, once somebody said so."""
        return review.mode_name or nothing()

    @admin.display(description=gettext_lazy("due"), ordering="due_at")
    def due(self, review: BadCaseReview) -> str:
        """Until when, or since when it is overdue or closed."""
        return format_html('<span class="desk-two">{}{}</span>', due_mark(review), priority_mark(review))

    @admin.display(description="")
    def buttons(self, review: Any) -> str:
        """Claim or release, in place. The form they belong to stands outside the list's own."""
        return render_to_string("feedback_app/row_buttons.html", {"review": review})

    # -- the buttons of the list and of the page ---------------------------------------------------------------------

    def get_urls(self) -> list[Any]:
        """Also the button that takes the next."""
        wrap = self.admin_site.admin_view
        return [
            path("next/", wrap(self.take_next), name="feedback_app_badcasereview_next"),
            path("holders/", wrap(self.holders), name="feedback_app_badcasereview_holders"),
            *super().get_urls(),
        ]

    def next_url(self, request: HttpRequest) -> str | None:
        """Where the button leads; None for those who may not press it."""
        return self.view_url("next", request) if self.has_triage_permission(request) else None

    def take_next(self, request: HttpRequest) -> HttpResponse:
        """Claim the free bad case that deserves attention first, and open it."""
        if request.method != "POST":
            return HttpResponseNotAllowed(["POST"])
        self.require(request, "triage")
        review = triage.claim_next(reviewer=self.person(request))
        if review is None:
            messages.info(request, _("No bad case is free."))
            return redirect(self.list_url(request))
        self.done(request, review, BUTTONS["claim"].done)
        return redirect(self.object_url(review, request))

    def holders(self, request: HttpRequest) -> HttpResponse:
        """Who holds what: for those who may give it to somebody else."""
        self.require(request, "assign")
        if request.method not in ("GET", "HEAD"):
            return HttpResponseNotAllowed(["GET"])
        people, nobody, progress = selectors.holdings()
        context = {
            "title": _("Who holds what"),
            "people": people,
            "nobody": nobody,
            "progress": progress,
            "days": selectors.DAYS_OF_PROGRESS,
            "claim_hours": settings.TRIAGE_CLAIM_HOURS,
        }
        return self.page(request, None, context, template="admin/feedback_app/badcasereview/holders.html")

    def change_view(
        self, request: HttpRequest, object_id: str, form_url: str = "", extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        """The page of one bad case; a POST presses one of its buttons."""
        self.require(request, "view")
        review = selectors.bad_case(object_id)
        if review is None:
            return self.unknown(request, object_id)
        if is_hidden_from(request.user, review):  # its second reviewer must not know the first verdict
            messages.info(request, _("This bad case waits for a second verdict."))
            return redirect(reverse("admin:feedback_app_secondreview_changelist"))
        if request.method == "POST":
            return self._press(request, review)
        return self._page(request, review, VerdictForm.of(review))

    def _press(self, request: HttpRequest, review: BadCaseReview) -> HttpResponse:
        name = request.POST.get("action", "")
        button = BUTTONS.get(name)
        if button is None:
            return HttpResponseBadRequest()
        self.require(request, button.permission)
        # The list, and the page of somebody who may not write, have no fields to send.
        form = VerdictForm.of(review, request.POST) if "notes" in request.POST else None
        if form is None and button.needs_fields:
            return HttpResponseBadRequest()
        if form and not form.is_valid() and name != "claim":
            return self._page(request, review, form)
        reason = ReasonForm.given(request.POST)
        try:
            press = Press(
                review, self.person(request), form, reason, self.has_assign_permission(request), self._assignee(request)
            )
            button.move(press)
        except InvalidInputError as refusal:
            if form is None or not set(refusal.errors) & set(form.fields):  # what is wrong is in no field of the form
                messages.error(request, refusal.message)
                return self._page(request, review, form or VerdictForm.of(review))
            form.refuse(refusal.errors)
            return self._page(request, review, form)
        except ConflictError as refusal:
            return self._refused(request, review, form, refusal.message)
        self.done(request, review, button.done)
        if name == "claim" and form and form.has_changed():  # written before it was theirs
            messages.warning(request, NOT_SAVED)
            review = self._again(review)
            return self._page(request, review, form.over(review), meanwhile=form.stored_meanwhile(review))
        return redirect(self.list_url(request) if FROM_LIST in request.POST else self.object_url(review, request))

    def _sees_cases(self, request: HttpRequest) -> bool:
        return request.user.has_perm("cases_app.view_caselibrary")

    def _assignee(self, request: HttpRequest) -> Any:
        wanted = request.POST.get("assignee", "")[:MAX_PAGE_DIGITS]
        return selectors.reviewers().filter(pk=int(wanted)).first() if wanted.isdecimal() else None

    def _refused(
        self, request: HttpRequest, review: BadCaseReview, form: VerdictForm | None, message: str
    ) -> HttpResponse:
        """Somebody was first: say who; what was written stays in its fields."""
        messages.error(request, message)
        if FROM_LIST in request.POST:
            return redirect(self.list_url(request))
        review = self._again(review)
        if form is None:
            return self._page(request, review, VerdictForm.of(review), status=HTTP_CONFLICT)
        if form.has_changed():
            messages.warning(request, NOT_SAVED)
        # What is saved now is saved over what this page shows.
        meanwhile = form.stored_meanwhile(review)
        return self._page(request, review, form.over(review), meanwhile=meanwhile, status=HTTP_CONFLICT)

    def _again(self, review: BadCaseReview) -> BadCaseReview:
        return selectors.bad_case(str(review.pk)) or review

    def _page(
        self,
        request: HttpRequest,
        review: BadCaseReview,
        form: VerdictForm,
        *,
        meanwhile: Sequence[tuple[Any, Difference]] = (),
        status: int = 200,
    ) -> TemplateResponse:
        offers = self.offers(request, review)
        feedback = words.feedback_on(review.session)
        corrections = [event for event in feedback.explicit if event.type == EventType.CORRECTION]
        context = {
            "title": excerpt(review.session.query, TITLE_CHARS) or review.session_id,
            "review": review,
            "session": review.session,
            "is_confident": is_confident(review),
            "timeline": timeline(review.session_id, self.steps_page(request)),
            "feedback": feedback,
            "mode_names": mode_names(),
            "history": selectors.history(review),
            "similar_cases": similar_cases(review.session) if self._sees_cases(request) else None,
            "same_question": selectors.same_question(review, request.user),
            "same_conversation": selectors.same_conversation(review.session),
            "form": form,
            "reason_form": ReasonForm(),
            "assign_form": AssignForm(without=review.assignee_id) if "assign" in offers else None,
            "offers": offers,
            "is_writing": form.is_bound or "resolve" in offers,
            "meanwhile": meanwhile,
            "next_url": self.next_url(request),
            "enrich_url": reverse(NEXT_TO_ENRICH) if request.user.has_perm("cases_app.enrich_caselibrary") else None,
            "keys": PAGE_KEYS,
            "corrections": {"corrected_answer": [event.payload.get("corrected", "") for event in corrections]},
        }
        return self.page(request, review, context, status=status)
