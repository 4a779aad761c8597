"""Sessions: facts to look through. Nobody adds, edits or deletes them here; a score may be asked for again."""

from __future__ import annotations

import time
from typing import Any

from django.contrib import admin, messages
from django.contrib.admin.models import CHANGE, LogEntry
from django.db.models import Q, QuerySet
from django.db.models.functions import Left
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.template.response import TemplateResponse
from django.urls import URLPattern, path
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext
from django.views.decorators.http import require_POST

from sessions_app.admin import filters
from sessions_app.db import holds
from sessions_app.errors import UnknownObjectError
from sessions_app.filters import AgentFilter, DayFilter, FlowFilter, PeriodFilter, ScoreFilter
from sessions_app.lists import DeskChangeList
from sessions_app.models import AgentFlow, DiagnosisSession
from sessions_app.pages import ObjectPageAdmin
from sessions_app.paging import BoundedPaginator
from sessions_app.panels import panels_of
from sessions_app.saved_views import SavedViewsMixin
from sessions_app.selectors.chain import step_texts, timeline
from sessions_app.services.evaluation import request_evaluation
from sessions_app.templatetags import desk
from sessions_app.text import is_id

FIRST_LOOK, LOOKS = 1_000, 6
"""Where each row must be looked at: so many of the newest of the period, then twice as many older ones, and so on."""
LOOK_SECONDS = 0.1
"""No further look is begun that may well end later than this."""
SLOWER = 4
"""Twice as many, and older ones are less often in the database's memory."""
ENOUGH = 900
"""Who found so many needs another filter, not more rows. MariaDB takes another, slow way to find 1,000 keys or more."""
NARROWED_BY_INDEX = 1
"""So many filters an index can follow."""
MAX_NAMED = 1000
RESCORE_BATCH = 1000
TITLE_CHARS = 60


class SessionChangeList(DeskChangeList):
    """Bounds what no index helps: searches in texts, filters on what tools did, several filters at once."""

    searched: int | None = None
    """How many sessions were looked at, where older ones of the period were not."""

    def get_queryset(self, request: HttpRequest, exclude_parameters: Any = None) -> QuerySet[DiagnosisSession]:
        """The filtered sessions. Where each row must be looked at, that is done once, and for keys alone."""
        sessions: QuerySet[DiagnosisSession] = super().get_queryset(request, exclude_parameters)
        period: QuerySet[DiagnosisSession] = DiagnosisSession.objects.all()
        reads_rows = bool(self.query) and named_sessions(self.query) is None
        narrowing = 0
        for spec in self.filter_specs:
            if isinstance(spec, PeriodFilter | DayFilter):
                period = spec.queryset(request, period)
            elif any(self.filter_params.get(name) for name in spec.expected_parameters()):
                narrowing += 1
                reads_rows |= isinstance(spec, filters.FactsFilter | AgentFilter)
        if not reads_rows and narrowing <= NARROWED_BY_INDEX:
            return sessions
        found_sessions: QuerySet[DiagnosisSession] = self.root_queryset.filter(pk__in=self._look(sessions, period))
        return found_sessions.order_by(*self.get_ordering(request, found_sessions))

    def _look(self, sessions: QuerySet[DiagnosisSession], period: QuerySet[DiagnosisSession]) -> list[int]:
        """Keys of those of `sessions` that are found in good time, the newest first. Two queries a look."""
        found: list[int] = []
        looked, size, started = 0, FIRST_LOOK, time.monotonic()
        for _look in range(LOOKS):
            before = time.monotonic()
            oldest = period.order_by("-created_at").values_list("created_at", flat=True)[size - 1 : size].first()
            since = Q(created_at__gte=oldest) if oldest else Q()
            found += sessions.filter(since).order_by("-created_at").values_list("pk", flat=True)
            if oldest is None and len(found) <= ENOUGH:
                return found
            looked += size
            now = time.monotonic()
            if oldest is None or len(found) >= ENOUGH or now + SLOWER * (now - before) > started + LOOK_SECONDS:
                break
            sessions, period, size = (
                sessions.filter(created_at__lt=oldest),
                period.filter(created_at__lt=oldest),
                2 * size,
            )
        self.searched = looked
        return found[:ENOUGH]

    def get_ordering(self, request: HttpRequest, queryset: QuerySet[DiagnosisSession]) -> list[Any]:
        """All in one direction: then an index gives the order, and nothing need be sorted."""
        ordering = list(super().get_ordering(request, queryset))
        descends = str(ordering[0]).startswith("-")
        return ordering if descends else ["pk" if column == "-pk" else column for column in ordering]


def named_sessions(term: str) -> list[int] | None:
    """Keys of the session or the conversation with exactly this id; None when the term names none."""
    if not is_id(term):
        return None
    named = DiagnosisSession.objects.filter(Q(session_id=term) | Q(conversation_id=term))
    return list(named.order_by().values_list("pk", flat=True)[:MAX_NAMED]) or None


@admin.register(DiagnosisSession)
class DiagnosisSessionAdmin(SavedViewsMixin, ObjectPageAdmin):
    """The list of sessions, the page of one, and the one thing to do: score again."""

    page_template = "admin/sessions_app/diagnosissession/page.html"
    list_display = ("question", "agent", "run", "score", "verdict", "work", "took", "created")
    list_display_links = ("question",)
    sortable_by = ("score", "created")
    list_filter = (
        filters.ScoringFilter,
        ScoreFilter,
        filters.VerdictFilter,
        filters.FactsFilter,
        PeriodFilter,
        DayFilter,
        filters.StatusFilter,
        FlowFilter,
        AgentFilter,
    )
    list_filter_submit = True
    list_fullwidth = True
    list_per_page = 50
    list_max_show_all = 0
    list_before_template = "desk/list_top.html"
    show_full_result_count = False
    show_facets = admin.ShowFacets.NEVER
    paginator = BoundedPaginator
    search_fields = ("session_id",)
    search_help_text = gettext_lazy("Session, question, conversation, user")
    actions = ("score_again",)

    # -- who may what ------------------------------------------------------------------------------------------------

    def has_add_permission(self, request: HttpRequest) -> bool:
        """Nobody: agents record sessions."""
        return False

    def has_view_permission(self, request: HttpRequest, obj: DiagnosisSession | None = None) -> bool:
        """Whoever may see sessions; to have them scored again alone shows none."""
        return bool(request.user.has_perm("sessions_app.view_diagnosissession"))

    def has_rescore_permission(self, request: HttpRequest) -> bool:
        """Whoever may change a session may have it scored again."""
        return bool(request.user.has_perm("sessions_app.change_diagnosissession"))

    # -- the list ----------------------------------------------------------------------------------------------------

    def get_changelist(self, request: HttpRequest, **kwargs: Any) -> type[SessionChangeList]:
        """A list whose searches are bounded."""
        return SessionChangeList

    def get_queryset(self, request: HttpRequest) -> QuerySet[DiagnosisSession]:
        """The columns of the list and the beginning of the question; never an answer."""
        return DiagnosisSession.objects.only(
            "session_id", "status", "agent_flow", "agent_id", "feedback", "created_at", "step_count",
            "tool_call_count", "total_duration_ms", "total_token_count", "evidence_score", "evaluation_due_at",
            "evaluation_error",
        ).annotate(question_head=Left("query", desk.EXCERPT_CHARS * 4))  # fmt: skip

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet[DiagnosisSession], search_term: str
    ) -> tuple[QuerySet[DiagnosisSession], bool]:
        """The session or conversation of that id; else by question, beginning of the id, or user."""
        term = search_term.strip()
        if not term:
            return queryset, False
        if (named := named_sessions(term)) is not None:
            return queryset.filter(pk__in=named), False
        return queryset.filter(holds("query", term) | Q(session_id__startswith=term) | Q(user_ref=term)), False

    @admin.display(description=gettext_lazy("question"))
    def question(self, session: Any) -> SafeString:
        """The question in short; the id of a session without one."""
        text = desk.excerpt(session.question_head)
        return format_html('<span class="desk-cell-question" dir="auto">{}</span>', text or session.session_id)

    @admin.display(description=gettext_lazy("agent"))
    def agent(self, session: DiagnosisSession) -> SafeString:
        """Who answered, in which flow."""
        flow = dict(AgentFlow.choices).get(session.agent_flow or "", session.agent_flow)
        return format_html(
            '<span class="desk-two" title="{}"><bdi>{}</bdi><small><bdi>{}</bdi></small></span>',
            session.agent_id or "",
            session.agent_id or desk.NOTHING,
            desk.excerpt(str(flow)) if flow else "",
        )

    @admin.display(description=gettext_lazy("status"))
    def run(self, session: DiagnosisSession) -> SafeString:
        """How it went."""
        return desk.status_badge(session.status)

    @admin.display(description=gettext_lazy("evidence"), ordering="evidence_score")
    def score(self, session: DiagnosisSession) -> SafeString:
        """The score and its band, or why there is none."""
        return desk.score_mark(session)

    @admin.display(description=gettext_lazy("feedback"))
    def verdict(self, session: DiagnosisSession) -> SafeString:
        """What the reader said."""
        return desk.verdict_badge(session.feedback)

    @admin.display(description=gettext_lazy("steps / tools"))
    def work(self, session: DiagnosisSession) -> SafeString:
        """How many of each."""
        figures = f"{desk.number(session.step_count)} / {desk.number(session.tool_call_count)}"
        return format_html('<span class="desk-figure">{}</span>', figures)

    @admin.display(description=gettext_lazy("duration / tokens"))
    def took(self, session: DiagnosisSession) -> SafeString:
        """What it cost: time over tokens, to save a column."""
        return format_html(
            '<span class="desk-two desk-figure"><span>{}</span><small title="{}">{}</small></span>',
            desk.duration(session.total_duration_ms),
            _("Tokens"),
            desk.number(session.total_token_count),
        )

    @admin.display(description=gettext_lazy("created"), ordering="created_at")
    def created(self, session: DiagnosisSession) -> SafeString:
        """How long ago, and when exactly."""
        return desk.moment(session.created_at)

    @admin.action(description=gettext_lazy("Score again"), permissions=["rescore"])
    def score_again(self, request: HttpRequest, queryset: QuerySet[DiagnosisSession]) -> None:
        """Owe a score again for those of the selected sessions that have ended."""
        chosen = list(queryset.order_by().values_list("session_id", flat=True)[: BoundedPaginator.MAX_COUNT])
        owed = 0
        for start in range(0, len(chosen), RESCORE_BATCH):
            batch = chosen[start : start + RESCORE_BATCH]
            owed += request_evaluation(session_ids=batch)
            rows = DiagnosisSession.objects.only("session_id").finished().filter(session_id__in=batch)
            LogEntry.objects.log_actions(request.user.pk or 0, rows, CHANGE, _("Asked for a new score."))
        self._report(request, owed, len(chosen) - owed)

    def _report(self, request: HttpRequest, owed: int, unfinished: int) -> None:
        if owed:
            text = ngettext("%(n)s session will be scored again.", "%(n)s sessions will be scored again.", owed)
            messages.success(request, text % {"n": desk.number(owed)})
        if unfinished:
            text = ngettext(
                "%(n)s session has not ended and cannot be scored yet.",
                "%(n)s sessions have not ended and cannot be scored yet.",
                unfinished,
            )
            messages.warning(request, text % {"n": desk.number(unfinished)})

    # -- one session -------------------------------------------------------------------------------------------------

    def get_urls(self) -> list[URLPattern]:
        """One step's texts, and the button."""
        name = "sessions_app_diagnosissession"
        own = [
            path("<int:pk>/steps/<int:step_id>/", self.admin_site.admin_view(self.step_view), name=f"{name}_step"),
            path("<int:pk>/score-again/", self.admin_site.admin_view(self.score_again_view), name=f"{name}_rescore"),
        ]
        return [*own, *super().get_urls()]

    def change_view(
        self, request: HttpRequest, object_id: str, form_url: str = "", extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        """The page of one session: question, answer, evidence, feedback, facts, decision chain."""
        self.require(request, "view")
        session = DiagnosisSession.objects.filter(pk=object_id).first() if object_id.isdecimal() else None
        if session is None:
            return self.unknown(request, object_id)
        context = {
            "title": desk.excerpt(session.query, TITLE_CHARS) or session.session_id,
            "session": session,
            "timeline": timeline(session.session_id, self.steps_page(request)),
            "panels": panels_of(request, session),
            "may_rescore": session.is_finished and self.has_rescore_permission(request),
        }
        return self.page(request, session, context)

    def step_view(self, request: HttpRequest, pk: int, step_id: int) -> HttpResponse:
        """What one step's model was given and gave: a fragment, fetched when its fold is opened."""
        self.require(request, "view")
        session_id = DiagnosisSession.objects.filter(pk=pk).values_list("session_id", flat=True).first()
        try:
            step = step_texts(session_id or "", step_id)
        except UnknownObjectError as error:
            raise Http404 from error
        return TemplateResponse(request, "desk/step_texts.html", {"step": step})

    def score_again_view(self, request: HttpRequest, pk: int) -> HttpResponse:
        """The button of the page."""
        return require_POST(self._score_again)(request, pk)

    def _score_again(self, request: HttpRequest, pk: int) -> HttpResponse:
        self.require(request, "view")
        self.require(request, "rescore")
        session = DiagnosisSession.objects.only("session_id", "status").filter(pk=pk).first()
        if session is None:
            raise Http404
        owed = request_evaluation(session_ids=[session.session_id])
        if owed:
            self.log_change(request, session, _("Asked for a new score."))
        self._report(request, owed, 1 - owed)
        return HttpResponseRedirect(self.object_url(session, request))
