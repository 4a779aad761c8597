"""What all tests share: clients, people, seeds that survive a flush. Browser fixtures: `tests/browsing.py`."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from django.apps import apps
from django.contrib.auth.models import Group, Permission
from django.db.models.signals import post_migrate
from django.utils import translation
from rest_framework.test import APIClient

from sessions_app.access import limits
from sessions_app.models import Scope
from sessions_app.services import evaluation, indexing
from sessions_app.services.keys import create_key
from tests.factories import UserFactory

pytest_plugins = ["tests.browsing"]

SHARED_DATA = Path(os.environ.get("SHARED_DATA") or Path(__file__).resolve().parents[2] / "shared" / "data")

LOGIN_BACKEND = "django.contrib.auth.backends.ModelBackend"

OWN_APPS = ("sessions_app", "cases_app", "feedback_app")


@pytest.fixture(scope="session")
def django_db_setup(django_db_setup: None, django_db_blocker: Any) -> Iterator[None]:
    """Bring back what migrations seeded after each flush: tests with real transactions empty every table."""
    own = [model for app in OWN_APPS for model in apps.get_app_config(app).get_models()]
    with django_db_blocker.unblock():
        seeds = {model: rows for model in own if (rows := list(model._default_manager.all()))}
        roles = {role.name: list(role.permissions.values_list("codename", flat=True)) for role in Group.objects.all()}

    def sow(app_config: Any, **_: Any) -> None:
        for model, rows in seeds.items():
            if model._meta.app_label == app_config.label:
                model._default_manager.bulk_create(rows, ignore_conflicts=True)
        if app_config.label == OWN_APPS[-1]:  # by now all permissions are back
            for name, codenames in roles.items():
                role, _created = Group.objects.get_or_create(name=name)
                role.permissions.set(
                    Permission.objects.filter(content_type__app_label__in=OWN_APPS, codename__in=codenames)
                )

    post_migrate.connect(sow, weak=False, dispatch_uid="tests.sow")
    yield
    post_migrate.disconnect(dispatch_uid="tests.sow")


@pytest.fixture(autouse=True)
def _fresh_limits(settings: Any) -> None:
    """Requests of one test do not count against the next."""
    limits.stores(settings.CACHE_URL, settings.DATA_DIR)[1].forget()


@pytest.fixture(autouse=True)
def _english() -> Iterator[None]:
    """What is called without a request speaks English; a request speaks its own `Accept-Language`, else Chinese."""
    with translation.override("en"):
        yield


# -- the API ---------------------------------------------------------------------------------------------------------


@pytest.fixture
def new_key(db: None) -> Callable[..., str]:
    """Make an API key: `new_key("ingest", "read")` returns the secret."""

    def make(*scopes: str, name: str = "tests") -> str:
        return create_key(name=name, scopes=scopes)[1]

    return make


@pytest.fixture
def client_with(new_key: Callable[..., str]) -> Callable[..., APIClient]:
    """An API client with a key of the given scopes: `client_with("feedback")`."""

    def make(*scopes: str) -> APIClient:
        return APIClient(headers={"authorization": f"Bearer {new_key(*scopes)}"})

    return make


@pytest.fixture
def api(client_with: Callable[..., APIClient]) -> APIClient:
    """A client that may record and read."""
    return client_with(Scope.INGEST, Scope.READ)


@pytest.fixture
def anonymous() -> APIClient:
    """A client without a key."""
    return APIClient()


@pytest.fixture
def score_due(db: None) -> Callable[[], int]:
    """Score what is owed now, as the worker's sweep does; returns how many were scored."""
    return evaluation.evaluate_due


@pytest.fixture
def write_terms(db: None) -> Callable[[], None]:
    """Write the search terms that are owed now, as the worker does."""

    def write() -> None:
        indexing.write_due(until=time.monotonic() + 60)

    return write


# -- people ----------------------------------------------------------------------------------------------------------


@pytest.fixture
def reviewer(db: None) -> Any:
    """May triage bad cases, enrich and publish cases."""
    return UserFactory(username="rita", is_staff=True, role="Reviewer")


@pytest.fixture
def other_reviewer(db: None) -> Any:
    """A second reviewer, for what two people do at once."""
    return UserFactory(username="otto", is_staff=True, role="Reviewer")


@pytest.fixture
def lead(db: None) -> Any:
    """May also release what others claimed, reopen, keep the fault categories."""
    return UserFactory(username="lena", is_staff=True, role="Lead")


@pytest.fixture
def operator(db: None) -> Any:
    """May see the work, keep the API keys and have sessions scored again."""
    return UserFactory(username="olga", is_staff=True, role="Operator")


@pytest.fixture
def admin_user(db: None) -> Any:
    """May everything."""
    return UserFactory(username="admin", is_staff=True, is_superuser=True)


@pytest.fixture
def sign_in(client: Any, db: None) -> Callable[[str], Any]:
    """Sign Django's test client in as somebody new of a role; gives the person, None for "anonymous"."""

    def enter(role: str) -> Any:
        if role == "anonymous":
            return None
        options = {"is_staff": role != "nobody", "is_superuser": role == "superuser"}
        person = UserFactory(username=role, role=role if role in ("Operator", "Reviewer", "Lead") else None, **options)
        client.force_login(person, backend=LOGIN_BACKEND)
        return person

    return enter


@pytest.fixture
def as_reviewer(client: Any, reviewer: Any) -> Any:
    """The reviewer, signed in with Django's test client."""
    client.force_login(reviewer, backend=LOGIN_BACKEND)
    return reviewer


@pytest.fixture
def as_lead(client: Any, lead: Any) -> Any:
    """The lead, signed in with Django's test client."""
    client.force_login(lead, backend=LOGIN_BACKEND)
    return lead


# -- data ------------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """The folder of real agent runs, beside the repository."""
    if not SHARED_DATA.is_dir():
        pytest.skip(f"no real runs at {SHARED_DATA}; SHARED_DATA names another folder")
    return SHARED_DATA


@pytest.fixture(scope="session")
def dbot_sessions() -> list[dict[str, Any]]:
    """The 22 recorded sessions of `dbot_sessions.jsonl`, in the wire form of a batch."""
    path = SHARED_DATA / "dbot_sessions.jsonl"
    if not path.is_file():
        pytest.skip(f"{path} is absent; SHARED_DATA names the folder that holds it.")
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()]
