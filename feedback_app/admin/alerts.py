"""Alerts: a list, a page for each with its test and its secret, and what was told with the last answers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django import forms
from django.conf import settings
from django.contrib import admin, messages
from django.db.models import OuterRef, QuerySet, Subquery
from django.http import HttpRequest, HttpResponse, HttpResponseBadRequest, QueryDict
from django.shortcuts import redirect
from django.urls import reverse
from django.utils.html import format_html
from django.utils.translation import get_language, gettext_lazy, ngettext
from django.utils.translation import gettext as _
from unfold.contrib.filters.admin import DropdownFilter
from unfold.widgets import (
    UnfoldAdminCheckboxSelectMultipleWidget,
    UnfoldAdminIntegerFieldWidget,
    UnfoldAdminSelectWidget,
    UnfoldAdminTextInputWidget,
    UnfoldBooleanSwitchWidget,
)

from feedback_app.alerts.words import why_failed
from feedback_app.models import AlertChannel, AlertDelivery, AlertKind, AlertRule, AlertState
from feedback_app.services import alert_rules, alert_sending, alerts
from feedback_app.services.alert_rules import RuleData
from feedback_app.services.reports import leads
from sessions_app.errors import ConflictError, InvalidInputError
from sessions_app.forms import ServiceForm
from sessions_app.pages import HTTP_CONFLICT, ObjectPageAdmin
from sessions_app.paging import BoundedPaginator
from sessions_app.templatetags.desk import badge, excerpt, moment, nothing

MAX_KEY_DIGITS = 18
DELIVERIES_SHOWN = 20
ANSWER_CHARS = 60
DEFAULT_PERCENT, DEFAULT_DAYS, DEFAULT_VERDICTS = 60, 7, 10

MARKS: Mapping[str, str] = {
    AlertState.WAITING: "pending",
    AlertState.FAILED: "overdue",
    AlertState.SENT: "success",
    AlertState.GIVEN_UP: "failed",
}
"""State → mark of `sessions_app.templatetags.desk`."""


class AlertForm(ServiceForm):
    """What is told, and to whom. Which fields count follows from what is chosen; `alerts.css` hides the others."""

    THRESHOLDS: Mapping[str, str] = {AlertKind.OVERDUE: "overdue_from", AlertKind.SATISFACTION: "below_percent"}
    """Kind → the field that holds its threshold."""

    # No `max_length`: a browser would cut silently what is pasted; the service says that it is too long.
    name = forms.CharField(label=gettext_lazy("Name"), widget=UnfoldAdminTextInputWidget)
    kind = forms.ChoiceField(
        label=gettext_lazy("What is told"), choices=AlertKind.choices, widget=UnfoldAdminSelectWidget
    )
    agent_id = forms.CharField(
        label=gettext_lazy("Agent"),
        required=False,
        widget=UnfoldAdminTextInputWidget(attrs={"autocomplete": "off", "spellcheck": "false"}),
        help_text=gettext_lazy("With all its versions: ops is ops/2 too. Empty: every agent."),
    )
    overdue_from = forms.IntegerField(
        label=gettext_lazy("From how many overdue bad cases on"),
        required=False,
        widget=UnfoldAdminIntegerFieldWidget,
        help_text=gettext_lazy("Told once a day, until no more than half as many are overdue."),
    )
    below_percent = forms.IntegerField(
        label=gettext_lazy("Below how many percent"),
        required=False,
        widget=UnfoldAdminIntegerFieldWidget,
        help_text=gettext_lazy(
            "Of the verdicts, how many found the answer useful. Told once a period, until it is five points above."
        ),
    )
    period_days = forms.IntegerField(
        label=gettext_lazy("Sessions of how many days"), required=False, widget=UnfoldAdminIntegerFieldWidget
    )
    min_votes = forms.IntegerField(
        label=gettext_lazy("From how many verdicts on"), required=False, widget=UnfoldAdminIntegerFieldWidget
    )
    channel = forms.ChoiceField(label=gettext_lazy("How"), choices=AlertChannel.choices, widget=UnfoldAdminSelectWidget)
    url = forms.CharField(
        label=gettext_lazy("Address"),
        required=False,
        widget=UnfoldAdminTextInputWidget(attrs={"autocomplete": "off", "spellcheck": "false", "inputmode": "url"}),
        help_text=gettext_lazy("https://… It gets JSON, signed as Standard Webhooks says."),
    )
    language = forms.ChoiceField(
        label=gettext_lazy("Language of its sentence"),
        choices=settings.LANGUAGES,
        required=False,
        widget=UnfoldAdminSelectWidget,
    )
    recipients = forms.MultipleChoiceField(
        label=gettext_lazy("Recipients"),
        required=False,
        widget=UnfoldAdminCheckboxSelectMultipleWidget,
        help_text=gettext_lazy("Leads with an e-mail address. None: all of them."),
    )
    is_active = forms.BooleanField(label=gettext_lazy("Active"), required=False, widget=UnfoldBooleanSwitchWidget)
    version = forms.IntegerField(widget=forms.HiddenInput, required=False)

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.meanwhile: list[tuple[Any, Any]] = []  # labels and what somebody else stored
        people: Any = self.fields["recipients"]
        people.choices = [(str(person.pk), person.get_username()) for person in leads()]

    @classmethod
    def new(cls, data: Any = None) -> AlertForm:
        """The form for one that does not exist."""
        initial = {
            "overdue_from": 1,
            "below_percent": DEFAULT_PERCENT,
            "period_days": DEFAULT_DAYS,
            "min_votes": DEFAULT_VERDICTS,
            "language": get_language(),
            "is_active": True,
        }
        return cls(data, initial=initial)

    @classmethod
    def of(cls, rule: AlertRule, data: Any = None, *, may_change: bool = True) -> AlertForm:
        """The form over what is stored. Kind and channel stay."""
        initial = {name: getattr(rule, name) for name in cls.base_fields if hasattr(rule, name)}
        initial["recipients"] = [str(pk) for pk in rule.recipients.values_list("pk", flat=True)]
        if threshold := cls.THRESHOLDS.get(rule.kind):
            initial[threshold] = rule.threshold
        form = cls(data, initial=initial)
        people: Any = form.fields["recipients"]
        named = {str(person.pk): person.get_username() for person in rule.recipients.all()}
        people.choices = [*(dict(people.choices) | named).items()]
        for name, field in form.fields.items():
            field.disabled = not may_change or name in ("kind", "channel")
        return form

    def said(self) -> RuleData:
        """As the service takes it."""
        said = dict(self.cleaned_data)
        threshold = said.get(self.THRESHOLDS.get(said["kind"], ""))
        recipients = [int(key) for key in said["recipients"]]
        unasked = ("version", *self.THRESHOLDS.values())
        for name in unasked:
            said.pop(name)
        data: Any = {**said, "threshold": threshold, "recipients": recipients}
        return data  # type: ignore[no-any-return]

    def over(self, rule: AlertRule) -> AlertForm:
        """The same text, to be written over what stands there now: knowingly, for `meanwhile` is shown."""
        data: Any = self.data.copy() if isinstance(self.data, QueryDict) else dict(self.data)
        data["version"] = str(rule.version)
        form = AlertForm.of(rule, data)
        form.is_valid()
        form.meanwhile = [
            (form[name].label, form.initial[name])
            for name in form.changed_data
            if name in form.initial and name not in ("recipients", "version")
        ]
        return form

    def refuse_alert(self, refusal: InvalidInputError) -> None:
        """Put what the service refused beside its field."""
        names = {"threshold": self.THRESHOLDS.get(self.cleaned_data["kind"], "")}
        errors = {names.get(name, name): texts for name, texts in refusal.errors.items()}
        self.refuse(errors or {"": [refusal.message]})


def _state_badge(state: str) -> str:
    return badge(MARKS[state], AlertState(state).label)


def _outcome(delivery: AlertDelivery) -> str:
    """What the last try brought: a status and the beginning of an answer, or why there was none."""
    if delivery.tried_at is None:
        return nothing()
    parts = [str(delivery.status_code)] if delivery.status_code else []
    if delivery.failure and not delivery.status_code:
        parts.append(why_failed(delivery.failure))
    said = format_html("<b>{}</b>", " ".join(parts)) if parts else ""
    answer = excerpt(delivery.answer, ANSWER_CHARS)
    return format_html('{} <bdi class="desk-quiet">{}</bdi>', said, answer) if answer else said or nothing()


def _found(rows: Any, object_id: str) -> Any:
    is_key = object_id.isdecimal() and len(object_id) <= MAX_KEY_DIGITS
    return rows.filter(pk=int(object_id)).first() if is_key else None


@admin.register(AlertRule)
class AlertRuleAdmin(ObjectPageAdmin):
    """What is told to whom: Leads keep it, Operators see it."""

    list_display = ("label", "kind", "channel", "state_mark", "last_told")
    list_display_links = ("label",)
    list_per_page = 50
    list_max_show_all = 0
    sortable_by = ()
    paginator = BoundedPaginator
    show_full_result_count = False
    list_fullwidth = True
    list_before_template = "feedback_app/alerts_top.html"
    page_template = "admin/feedback_app/alertrule/change_form.html"

    def has_view_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Leads and Operators."""
        return request.user.has_perm("feedback_app.view_alertrule")

    def has_keep_permission(self, request: HttpRequest) -> bool:
        """May change alerts, test them, and have things sent again: Leads."""
        return request.user.has_perm("feedback_app.change_alertrule")

    def changelist_view(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> Any:
        """The list, with the way to what was told."""
        url = reverse("admin:feedback_app_alertdelivery_changelist")
        return super().changelist_view(request, {"deliveries_url": url, **(extra_context or {})})

    @admin.display(description=gettext_lazy("name"))
    def label(self, rule: AlertRule) -> str:
        """As a Lead called it."""
        return format_html("<bdi>{}</bdi>", excerpt(rule.name))

    @admin.display(description=gettext_lazy("state"))
    def state_mark(self, rule: AlertRule) -> str:
        """Whether it tells anything."""
        return badge("success", _("Active")) if rule.is_active else badge("retired", _("Off"))

    def get_queryset(self, request: HttpRequest) -> QuerySet[AlertRule]:
        """With what became of the latest that each told."""
        latest = AlertDelivery.objects.filter(rule=OuterRef("pk")).order_by("-pk")
        rows: QuerySet[AlertRule] = super().get_queryset(request)
        return rows.annotate(
            told_state=Subquery(latest.values("state")[:1]), told_at=Subquery(latest.values("created_at")[:1])
        )

    @admin.display(description=gettext_lazy("last told"))
    def last_told(self, rule: Any) -> str:
        """What became of the latest."""
        return format_html("{} {}", _state_badge(rule.told_state), moment(rule.told_at)) if rule.told_at else nothing()

    # -- pages -------------------------------------------------------------------------------------------------------

    def add_view(
        self, request: HttpRequest, form_url: str = "", extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        """Ask what is to be told; make it; show a webhook's secret in this very response, and nowhere else ever."""
        self.require(request, "add")
        form = AlertForm.new(request.POST or None)
        if request.method == "POST" and form.is_valid():
            try:
                rule, secret = alert_rules.create_rule(**form.said())
            except InvalidInputError as refusal:
                form.refuse_alert(refusal)
            else:
                self.log_addition(request, rule, [{"added": {}}])
                if secret:
                    return self._secret_page(request, rule, secret)
                messages.success(request, _("The alert is made."))
                return redirect(self.object_url(rule, request))
        context = {"title": _("New alert"), "form": form}
        return self.page(request, None, context, template="admin/feedback_app/alertrule/add.html")

    def change_view(
        self, request: HttpRequest, object_id: str, form_url: str = "", extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        """The page of one; a POST saves it, tests it, or makes a new secret."""
        self.require(request, "view")
        rule = _found(AlertRule.objects.all(), object_id)
        if rule is None:
            return self.unknown(request, object_id)
        if request.method != "POST":
            return self._page(request, rule, AlertForm.of(rule, may_change=self.has_keep_permission(request)))
        self.require(request, "keep")
        match request.POST.get("action"):
            case "save":
                return self._save(request, rule)
            case "test":
                return self._test(request, rule)
            case "secret" if rule.channel == AlertChannel.WEBHOOK:
                secret = alert_rules.renew_secret(rule_id=rule.pk)
                self.log_change(request, rule, _("A new secret was made."))
                return self._secret_page(request, rule, secret)
        return HttpResponseBadRequest()

    def _save(self, request: HttpRequest, rule: AlertRule) -> HttpResponse:
        form = AlertForm.of(rule, request.POST)
        if not form.is_valid():
            return self._page(request, rule, form)
        try:
            changed = alert_rules.change_rule(rule_id=rule.pk, version=form.cleaned_data["version"] or 0, **form.said())
        except InvalidInputError as refusal:
            form.refuse_alert(refusal)
            return self._page(request, rule, form)
        except ConflictError as refusal:
            messages.error(request, refusal.message)
            rule.refresh_from_db()
            return self._page(request, rule, form.over(rule), status=HTTP_CONFLICT)
        self.done(request, changed, _("The alert is saved."))
        return redirect(self.object_url(changed, request))

    def _test(self, request: HttpRequest, rule: AlertRule) -> HttpResponse:
        try:
            delivery = alert_sending.send_test(rule_id=rule.pk, actor=self.person(request))
        except InvalidInputError as refusal:
            messages.error(request, refusal.message)
            return redirect(self.object_url(rule, request))
        self.log_change(request, rule, _("A test was sent."))
        if delivery.failure:
            messages.error(request, _("The test did not arrive. %(why)s") % {"why": why_failed(delivery.failure)})
        else:
            messages.success(request, _("The test has arrived."))
        return redirect(f"{self.object_url(rule, request)}#told")

    def _page(self, request: HttpRequest, rule: AlertRule, form: AlertForm, *, status: int = 200) -> HttpResponse:
        deliveries = rule.deliveries.select_related("recipient")[:DELIVERIES_SHOWN]
        context = {
            "title": excerpt(rule.name),
            "rule": rule,
            "form": form,
            "may_keep": self.has_keep_permission(request),
            "deliveries": [(row, _state_badge(row.state), _outcome(row)) for row in deliveries],
            "all_url": f"{reverse('admin:feedback_app_alertdelivery_changelist')}?alert={rule.pk}",
            "has_mail_server": bool(settings.EMAIL_URL),
            "reaches_nobody": not alerts.recipients(rule),
        }
        return self.page(request, rule, context, status=status)

    def _secret_page(self, request: HttpRequest, rule: AlertRule, secret: str) -> HttpResponse:
        context = {
            "title": _("The webhook's secret"),
            "rule": rule,
            "secret": secret,
            "rule_url": self.object_url(rule),
        }
        return self.page(request, rule, context, template="admin/feedback_app/alertrule/secret.html")


class AlertFilter(DropdownFilter):
    """One alert."""

    title = gettext_lazy("alert")
    parameter_name = "alert"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, Any]]:
        """By name."""
        return [(str(rule.pk), rule.name) for rule in AlertRule.objects.order_by("name", "pk")]

    def queryset(self, request: HttpRequest, queryset: QuerySet[AlertDelivery]) -> QuerySet[AlertDelivery]:
        """A value that is no alert finds nothing."""
        value = self.value()
        if not value:
            return queryset
        return queryset.filter(rule_id=int(value)) if value in dict(self.lookup_choices) else queryset.none()


class AlertStateFilter(DropdownFilter):
    """One state."""

    title = gettext_lazy("state")
    parameter_name = "state"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, Any]]:
        """In the order in which they follow each other."""
        return list(AlertState.choices)

    def queryset(self, request: HttpRequest, queryset: QuerySet[AlertDelivery]) -> QuerySet[AlertDelivery]:
        """An unknown one finds nothing."""
        value = self.value()
        return queryset.filter(state=value) if value else queryset


@admin.register(AlertDelivery)
class AlertDeliveryAdmin(ObjectPageAdmin):
    """What was told, the newest first. Nobody changes it; a Lead may have it sent again."""

    list_display = ("alert", "event", "to", "state_mark", "outcome", "attempts", "created")
    list_display_links = ("alert",)
    list_filter = (AlertStateFilter, AlertFilter)
    list_per_page = 50
    list_max_show_all = 0
    list_select_related = ("rule", "recipient")
    sortable_by = ()
    paginator = BoundedPaginator
    show_full_result_count = False
    list_fullwidth = True
    page_template = "admin/feedback_app/alertdelivery/change_form.html"

    def has_add_permission(self, request: HttpRequest) -> bool:
        """Alerts add them."""
        return False

    def has_view_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Who may see alerts may see what they told."""
        return request.user.has_perm("feedback_app.view_alertrule")

    def has_module_permission(self, request: HttpRequest) -> bool:
        """As the list."""
        return self.has_view_permission(request)

    def has_keep_permission(self, request: HttpRequest) -> bool:
        """May have it sent again: Leads."""
        return request.user.has_perm("feedback_app.change_alertrule")

    @admin.display(description=gettext_lazy("alert"))
    def alert(self, delivery: AlertDelivery) -> str:
        """Which told it."""
        return format_html("<bdi>{}</bdi>", excerpt(delivery.rule.name))

    @admin.display(description=gettext_lazy("recipient"))
    def to(self, delivery: AlertDelivery) -> str:
        """Whom, by mail."""
        return format_html("<bdi>{}</bdi>", delivery.recipient.get_username()) if delivery.recipient else nothing()

    @admin.display(description=gettext_lazy("state"))
    def state_mark(self, delivery: AlertDelivery) -> str:
        """Where it stands."""
        return _state_badge(delivery.state)

    @admin.display(description=gettext_lazy("last answer"))
    def outcome(self, delivery: AlertDelivery) -> str:
        """What the last try brought."""
        return _outcome(delivery)

    @admin.display(description=gettext_lazy("created"))
    def created(self, delivery: AlertDelivery) -> str:
        """When it was noticed."""
        return moment(delivery.created_at)

    def change_view(
        self, request: HttpRequest, object_id: str, form_url: str = "", extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        """One, with its last answer; a POST has it sent again."""
        self.require(request, "view")
        delivery = _found(AlertDelivery.objects.select_related("rule", "recipient"), object_id)
        if delivery is None:
            return self.unknown(request, object_id)
        if request.method != "POST":
            return self._page(request, delivery)
        self.require(request, "keep")
        if request.POST.get("action") != "try_again":
            return HttpResponseBadRequest()
        try:
            alert_sending.try_again(delivery_id=delivery.pk)
        except ConflictError as refusal:
            messages.error(request, refusal.message)
            return self._page(request, delivery, status=HTTP_CONFLICT)
        self.done(request, delivery, _("It is sent again."))
        return redirect(self.object_url(delivery, request))

    def _page(self, request: HttpRequest, delivery: AlertDelivery, *, status: int = 200) -> HttpResponse:
        is_unsent = delivery.state in (AlertState.FAILED, AlertState.GIVEN_UP)
        attempts = ngettext("%(n)s attempt", "%(n)s attempts", delivery.attempts) % {"n": delivery.attempts}
        context = {
            "title": delivery.get_event_display(),
            "delivery": delivery,
            "rule": delivery.rule,
            "rule_url": reverse("admin:feedback_app_alertrule_change", args=[delivery.rule_id]),
            "state": _state_badge(delivery.state),
            "attempts": attempts,
            "why": why_failed(delivery.failure) if delivery.failure else "",
            "is_due": delivery.state in (AlertState.WAITING, AlertState.FAILED),
            "may_try_again": self.has_keep_permission(request)
            and is_unsent
            and delivery.rule.is_active
            and delivery.event != AlertDelivery.TEST,
        }
        return self.page(request, delivery, context, status=status)
