"""Feedback events: to look through, never to change."""

from __future__ import annotations

from typing import Any

from django.contrib import admin
from django.db.models import QuerySet
from django.db.models.fields.json import KT
from django.db.models.functions import Coalesce, Left
from django.http import HttpRequest
from django.template.loader import render_to_string
from django.urls import reverse
from django.utils.html import format_html
from django.utils.translation import gettext_lazy as _
from unfold.admin import ModelAdmin

from feedback_app.admin import filters
from feedback_app.admin.exports import ExportMixin
from feedback_app.models import AgentFeedback, AgentFeedbackQuerySet
from feedback_app.selectors.words import find_later_sessions
from feedback_app.templatetags.words import event_value
from sessions_app.filters import AgentFilter, DayFilter, PeriodFilter
from sessions_app.lists import DeskChangeList
from sessions_app.paging import BoundedPaginator
from sessions_app.saved_views import SavedViewsMixin
from sessions_app.templatetags.desk import excerpt, moment, nothing

ROW_CHARS = 160


@admin.register(AgentFeedback)
class AgentFeedbackAdmin(SavedViewsMixin, ExportMixin, ModelAdmin):
    """What people and systems said of answers. Append-only: nobody adds, changes or deletes here."""

    list_display = ("kind", "reading", "words", "session_name", "agent_id", "source", "when")
    list_filter = (
        filters.EventTypeFilter,
        filters.EventSourceFilter,
        filters.CommentFilter,
        AgentFilter,
        filters.SessionFilter,
        PeriodFilter,
        DayFilter,
    )
    list_filter_submit = True
    list_fullwidth = True
    list_per_page = 50
    list_max_show_all = 0
    list_before_template = "feedback_app/events_top.html"
    paginator = BoundedPaginator
    show_full_result_count = False
    show_facets = admin.ShowFacets.NEVER  # its counts look at every row
    search_fields = ("session_id",)  # shows the box; what is searched: `AgentFeedbackQuerySet.matching`
    search_help_text = _("Comment, or the beginning of a session id")
    sortable_by = ("when",)
    actions = None
    fields = ("kind", "content", "session_link", "agent_id", "turn_id", "source", "client_event_id", "consent", "when")

    def get_changelist(self, request: HttpRequest, **kwargs: Any) -> type[DeskChangeList]:
        """A list whose rows are drawn in one go."""
        return DeskChangeList

    def has_add_permission(self, request: HttpRequest) -> bool:
        """Only by the API."""
        return False

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Never: a record."""
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Never: a record."""
        return False

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> tuple[str, ...]:
        """All of them."""
        return self.fields

    def get_queryset(self, request: HttpRequest) -> QuerySet[AgentFeedback]:
        """Only what a row shows: a correction carries two whole texts."""
        rows: QuerySet[AgentFeedback] = super().get_queryset(request)
        said = Coalesce(KT("payload__comment"), KT("payload__userNote"), KT("payload__question"))
        return rows.defer("payload").annotate(said=Left(said, ROW_CHARS * 2))

    def get_search_results(
        self, request: HttpRequest, queryset: AgentFeedbackQuerySet, search_term: str
    ) -> tuple[AgentFeedbackQuerySet, bool]:
        """Words, found literally."""
        return queryset.matching(search_term), False

    @admin.display(description=_("type"))
    def kind(self, event: AgentFeedback) -> str:
        """What kind of event."""
        return event.get_type_display()

    @admin.display(description=_("value"))
    def reading(self, event: AgentFeedback) -> str:
        """The number it became, as people say it."""
        return event_value(event)

    @admin.display(description=_("comment"))
    def words(self, event: Any) -> str:
        """The beginning of what the person said, or asked again."""
        text = excerpt(event.said, ROW_CHARS)
        return format_html('<q class="desk-cell-said" dir="auto">{}</q>', text) if text else nothing()

    @admin.display(description=_("content"))
    def content(self, event: AgentFeedback) -> str:
        """All that the event carries."""
        find_later_sessions([event])
        return render_to_string("feedback_app/words.html", {"events": [event]})

    @admin.display(description=_("session"))
    def session_name(self, event: AgentFeedback) -> str:
        """Its id; the link stands on the event's page."""
        return str(event.session_id)

    @admin.display(description=_("session"))
    def session_link(self, event: AgentFeedback) -> str:
        """The session it speaks of."""
        url = reverse("admin:sessions_app_diagnosissession_change", args=[event.session.pk])
        return format_html('<a class="desk-link" href="{}">{}</a>', url, event.session_id)

    @admin.display(description=_("created at"), ordering="created_at")
    def when(self, event: AgentFeedback) -> str:
        """How long ago."""
        return moment(event.created_at)
