"""docs/settings.md names every variable that the settings read, and no other."""

import re

from django.conf import settings


def test_the_table_is_whole():
    read = set(re.findall(r"env\.\w+\(\s*\"([A-Z_]+)\"", (settings.BASE_DIR / "config/settings.py").read_text("utf-8")))
    table = (settings.BASE_DIR / "docs/settings.md").read_text("utf-8").partition("Not read by the product")[0]
    assert read == set(re.findall(r"^\| `([A-Z_]+)` \|", table, re.MULTILINE))
