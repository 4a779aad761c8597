"""The interface is whole in every language: a text without a translation fails here, and so does a stale catalogue."""

from __future__ import annotations

import ast
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import polib
import pytest
import unfold
from django.conf import settings
from django.utils.translation import gettext, ngettext, override
from django.utils.translation.template import templatize

from tests import absent

ROOT = settings.BASE_DIR
LOCALE = ROOT / "locale"
UNFOLD = Path(unfold.__file__).parent
SOURCES = ("config", "sessions_app", "cases_app", "feedback_app", "templates")
FORMS = {"zh_Hans": 1, "ru": 4}
CODES = {"zh_Hans": "zh-hans", "ru": "ru"}

PLACEHOLDERS = re.compile(r"%\(\w+\)[sd]|%%|\{\w*\}|<[a-z/][^>]*>|`\w+`|\bhttps?://\S+")

every_language = pytest.mark.parametrize("language", sorted(FORMS))


def catalogue(language: str, folder: Path = LOCALE) -> polib.POFile:
    return polib.pofile(str(folder / language / "LC_MESSAGES" / "django.po"))


def texts(entry: polib.POEntry) -> list[str]:
    return list(entry.msgstr_plural.values()) if entry.msgid_plural else [entry.msgstr]


def keys(entries: polib.POFile | polib.MOFile) -> set[tuple[str, str, str]]:
    return {(entry.msgctxt or "", entry.msgid, entry.msgid_plural or "") for entry in entries}


@every_language
def test_every_text_is_translated(language):
    entries = catalogue(language)
    assert [entry.msgid for entry in entries if not all(texts(entry))] == []
    assert [entry.msgid for entry in entries if entry.fuzzy or entry.obsolete] == []
    assert [entry.msgid for entry in entries if entry.msgid_plural and len(texts(entry)) != FORMS[language]] == []


@every_language
def test_placeholders_and_marks_are_kept(language):
    broken = [
        (entry.msgid, text)
        for entry in catalogue(language)
        for text in texts(entry)
        if sorted(PLACEHOLDERS.findall(text)) != sorted(PLACEHOLDERS.findall(entry.msgid))
    ]
    assert broken == []


@pytest.mark.parametrize("path", sorted(LOCALE.rglob("*.po")), ids=lambda path: str(path.relative_to(LOCALE)))
def test_the_compiled_catalogue_is_what_the_text_compiles_to(path):
    source, compiled = polib.pofile(str(path)), polib.mofile(str(path.with_suffix(".mo")))
    assert keys(compiled) == keys(source)
    wanted = {(entry.msgctxt, entry.msgid): texts(entry) for entry in source}
    assert {(entry.msgctxt, entry.msgid): texts(entry) for entry in compiled} == wanted
    assert compiled.metadata["Plural-Forms"] == source.metadata["Plural-Forms"]


def test_the_catalogues_hold_every_text_of_the_source_and_nothing_else(tmp_path):
    if not shutil.which("xgettext"):
        absent("xgettext is absent: apt-get install gettext")
    for name in (*SOURCES, "locale"):
        shutil.copytree(ROOT / name, tmp_path / name, ignore=shutil.ignore_patterns("__pycache__", "*.mo"))
    # Without settings: with them it would write into our own catalogues.
    environment = {name: value for name, value in os.environ.items() if name != "DJANGO_SETTINGS_MODULE"}
    command = [sys.executable, "-m", "django", "makemessages", "--all", "--no-location", "--no-obsolete"]
    subprocess.run(command, cwd=tmp_path, env=environment, check=True, capture_output=True)
    for language in FORMS:
        assert keys(catalogue(language)) == keys(catalogue(language, tmp_path / "locale")), language


# -- what libraries show ---------------------------------------------------------------------------------------------

SHOWN_NOWHERE = {
    "Found %(counter)s result in %(time)s seconds",  # the command search is off
}


def texts_of_unfold() -> Iterator[tuple[str, str | None]]:
    """Singular and plural of whatever unfold itself has translated; its integrations with other packages left out."""
    for folder in (UNFOLD, UNFOLD / "contrib" / "filters"):
        for path in (folder / "templates").rglob("*.html"):
            yield from _texts_in(templatize(path.read_text("utf-8")))
        for path in folder.glob("*.py"):
            yield from _texts_in(path.read_text("utf-8"))


def _texts_in(code: str) -> Iterator[tuple[str, str | None]]:
    for name, arguments in re.findall(r"\b(n?gettext(?:_lazy)?|_)\(((?:\s*u?(?:\"[^\"\n]*\"|'[^'\n]*'),?)+)", code):
        given = ast.literal_eval(f"({arguments},)" if not arguments.rstrip().endswith(",") else f"({arguments})")
        yield given[0], given[1] if name.startswith("n") and len(given) > 1 else None


@every_language
def test_the_admin_frame_speaks_the_language(language):
    found = set(texts_of_unfold())
    assert ("Type to search", None) in found  # a template's text
    assert ("Select action to run", None) in found
    with override(CODES[language]):
        missing = {
            one
            for one, many in found
            if one.strip() not in SHOWN_NOWHERE and (ngettext(one, many, 5) if many else gettext(one)) in (one, many)
        }
    assert missing == set()
