"""Every page, button and action of the admin × every role, generated, against the table in `permissions.txt`.

A new page or action fails here until somebody has looked at who may reach it:

    UPDATE_PERMISSIONS=1 python -m pytest tests/config/test_permission_matrix.py    # then read the diff

Cells of pages: what GET and POST (of nothing) answer. `login` leads to the login. Of buttons and actions: yes or no.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from django.contrib import admin
from django.db import transaction
from django.test import Client
from django.urls import NoReverseMatch, URLPattern, URLResolver, get_resolver, reverse

from cases_app.admin.buttons import BUTTONS as CASE_BUTTONS
from cases_app.models import BulkJob, BulkPart, CaseLibrary, JobState
from feedback_app.admin.buttons import BUTTONS as TRIAGE_BUTTONS
from feedback_app.models import AlertRule, BadCaseReview, SecondReview
from feedback_app.services.alerts import Occurrence, owe
from sessions_app.services.keys import create_key
from tests.conftest import LOGIN_BACKEND
from tests.factories import CaseFactory, FeedbackEventFactory, InvocationFactory, TriageFactory, UserFactory

pytestmark = pytest.mark.django_db

TABLE = Path(__file__).with_name("permissions.txt")
ROLES = ("anonymous", "staff", "Operator", "Reviewer", "Lead")
BUTTONS: dict[type[Any], Any] = {CaseLibrary: CASE_BUTTONS, BadCaseReview: TRIAGE_BUTTONS}
OUTSIDE_THE_ADMIN = ("metrics",)
FIXED = {"form": "csv", "app_label": "cases_app"}


@pytest.fixture
def people():
    """Of each role one; "staff" may sign in and nothing else."""
    roles = {role: role if role not in ("anonymous", "staff") else None for role in ROLES}
    return {
        role: None if role == "anonymous" else UserFactory(username=role, is_staff=True, role=group)
        for role, group in roles.items()
    }


@pytest.fixture
def objects(people):
    """Model → the key of one of its rows, so that each page has something to show."""
    FeedbackEventFactory()
    InvocationFactory()
    CaseFactory()
    TriageFactory()
    SecondReview.objects.create(review=TriageFactory(), first_mode="HALLUCINATION")
    create_key(name="one", scopes=["read"])
    rule = AlertRule.objects.create(name="one", kind="queue_overdue", threshold=1, channel="webhook")
    owe(rule, rule.kind, [Occurrence("one", {})])
    job = BulkJob.objects.create(action="case.retire", actor=people["Lead"], state=JobState.PREVIEW, total=1)
    BulkPart.objects.create(job=job, items=["x"], size=1)
    return {model: row.pk for model in admin.site._registry if (row := model._default_manager.first()) is not None}


def names(patterns: Any) -> Iterator[tuple[str, list[str]]]:
    """The admin's views by name, with the names of their arguments."""
    for pattern in patterns:
        if isinstance(pattern, URLResolver):
            yield from names(pattern.url_patterns)
        elif isinstance(pattern, URLPattern) and pattern.name:
            yield pattern.name, re.findall(r"<(?:\w+:)?(\w+)>", str(pattern.pattern))


def admin_views() -> dict[str, list[str]]:
    (resolver,) = [one for one in get_resolver().url_patterns if getattr(one, "namespace", None) == "admin"]
    return dict(names(resolver.url_patterns))


def address(name: str, arguments: list[str], objects: dict[type[Any], Any]) -> str:
    owner = next(
        (model for model in objects if name.startswith(f"{model._meta.app_label}_{model._meta.model_name}_")), None
    )
    values = [FIXED.get(argument, objects.get(owner, 1)) for argument in arguments]
    try:
        return reverse(f"admin:{name}", args=values)
    except NoReverseMatch:
        return reverse(f"admin:{name}", args=[str(value) for value in values])


def answer(person: Any, method: str, url: str) -> str:
    client = Client(raise_request_exception=False, headers={"accept-language": "en"})
    if person is not None:
        client.force_login(person, backend=LOGIN_BACKEND)
    with transaction.atomic():
        response = getattr(client, method)(url)
        if response.streaming:
            b"".join(response)
        transaction.set_rollback(True)
    assert response.status_code < 500, (url, method, person)
    if response.status_code == 302:
        return "login" if "/login/" in response["Location"] else "302"
    return str(response.status_code)


def page_lines(people: dict[str, Any], objects: dict[type[Any], Any]) -> Iterator[str]:
    pages = {name: address(name, arguments, objects) for name, arguments in admin_views().items()}
    pages |= {name: reverse(name) for name in OUTSIDE_THE_ADMIN}
    for name, url in sorted(pages.items()):
        cells = [f"{answer(person, 'get', url)}/{answer(person, 'post', url)}" for person in people.values()]
        yield line(name, cells)


def deed_lines(people: dict[str, Any], rf: Any) -> Iterator[str]:
    for model, model_admin in sorted(admin.site._registry.items(), key=lambda pair: pair[0]._meta.label_lower):
        requests = []
        for person in people.values():
            request = rf.get("/admin/")
            request.user = person
            requests.append(request)
        # An action is offered and taken by `get_actions` alone; a button asks its own permission again.
        offered = [set(model_admin.get_actions(request)) if request.user else set() for request in requests]
        for action in sorted(set().union(*offered)):
            yield line(f"{model._meta.label_lower} action {action}", [yes(action in some) for some in offered])
        for name, button in sorted(BUTTONS.get(model, {}).items()):
            may = f"has_{button.permission}_permission"
            cells = [yes(bool(request.user) and getattr(model_admin, may)(request)) for request in requests]
            yield line(f"{model._meta.label_lower} button {name}", cells)


def yes(is_allowed: bool) -> str:
    return "yes" if is_allowed else "no"


def line(name: str, cells: list[str]) -> str:
    return f"{name:<58}" + "".join(f"{cell:<13}" for cell in cells).rstrip()


def test_everybody_reaches_what_the_table_says_and_nothing_else(people, objects, rf):
    lines = [line("", list(ROLES)), *page_lines(people, objects), "", *deed_lines(people, rf)]
    if os.environ.get("UPDATE_PERMISSIONS"):
        TABLE.write_text("\n".join(lines) + "\n", "utf-8")
    assert lines == TABLE.read_text("utf-8").splitlines()


def test_every_model_of_the_admin_has_a_row_to_look_at(objects):
    """Else its page would be tried with nothing on it."""
    without = {model._meta.label_lower for model in admin.site._registry} - {
        model._meta.label_lower for model in objects
    }
    assert without <= {"feedback_app.weeklyreport", "feedback_app.erasure"}


def test_the_anonymous_reach_the_login_and_nothing_else():
    cells = [
        (row[:58].strip(), row[58:].split()[0])
        for row in TABLE.read_text("utf-8").splitlines()[1:]
        if row and " action " not in row and " button " not in row
    ]
    assert len(cells) > 40
    assert {name for name, cell in cells if cell != "login/login"} <= {"login", "logout", "jsi18n"}
