"""The keywords that migrations give the taxonomy."""

from importlib import import_module

import pytest
from django.apps import apps

from cases_app.models import FaultCategory

pytestmark = pytest.mark.django_db

SEEDED = import_module("cases_app.migrations.0002_seed_fault_categories").CATEGORIES
BETTER = import_module("cases_app.migrations.0004_more_keywords")


def test_every_category_but_general_has_keywords_in_three_languages():
    for category in FaultCategory.objects.exclude(pk="GENERAL"):
        text = "".join(category.keywords)
        assert any("a" <= letter <= "z" for letter in text), category.code
        assert any("\u4e00" <= letter <= "\u9fff" for letter in text), category.code
        assert any("а" <= letter <= "я" for letter in text), category.code
        assert len(set(category.keywords)) == len(category.keywords), category.code
    assert FaultCategory.objects.get(pk="GENERAL").keywords == []


def test_what_a_lead_wrote_stays():
    own, seeded = FaultCategory.objects.filter(pk__in=["CACHE", "CPU_HIGH"]).order_by("pk")
    assert (own.code, seeded.code) == ("CACHE", "CPU_HIGH")
    FaultCategory.objects.filter(pk="CACHE").update(keywords=["redis", "our own word"])
    FaultCategory.objects.filter(pk="CPU_HIGH").update(keywords=SEEDED["CPU_HIGH"][-1])
    BETTER.extend(apps, None)
    own.refresh_from_db()
    seeded.refresh_from_db()
    assert own.keywords == ["redis", "our own word"]
    assert seeded.keywords == BETTER.KEYWORDS["CPU_HIGH"]


def test_a_category_that_was_added_is_let_alone():
    FaultCategory.objects.create(code="GPU", name="GPU", keywords=["gpu"])
    BETTER.extend(apps, None)
    assert FaultCategory.objects.get(pk="GPU").keywords == ["gpu"]
