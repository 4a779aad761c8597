"""What the worker and beat load: memory they hold for as long as they live, on the smallest machine too."""

import subprocess
import sys

import pytest
from django.conf import settings

LOAD = """
import sys
from config.celery import app
app.loader.init_worker()
app.finalize()
print(*sys.modules)
"""


@pytest.fixture(scope="module")
def modules():
    done = subprocess.run(
        [sys.executable, "-c", LOAD], cwd=settings.BASE_DIR, capture_output=True, text=True, check=True, timeout=60
    )
    return set(done.stdout.split())


def test_the_worker_knows_its_tasks(modules):
    assert {"sessions_app.tasks", "sessions_app.models", "feedback_app.models"} <= modules


@pytest.mark.parametrize(
    "name",
    [
        pytest.param("config.urls", id="routes"),
        pytest.param("sessions_app.admin", id="admin"),
        pytest.param("sessions_app.api.views", id="api"),
        pytest.param("rest_framework.views", id="rest-framework"),
        pytest.param("drf_spectacular.openapi", id="api-docs"),
        pytest.param("opentelemetry.proto", id="trace-protocol"),
    ],
)
def test_the_worker_carries_nothing_of_the_web(modules, name):
    assert not {module for module in modules if module == name or module.startswith(f"{name}.")}
