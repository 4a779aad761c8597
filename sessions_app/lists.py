"""The lists of the admin: what unfold works out anew for every row is worked out once for all of them."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlsplit

from django.contrib.admin.templatetags.admin_urls import add_preserved_filters
from django.contrib.admin.utils import quote
from django.urls import reverse
from django.utils.functional import cached_property
from unfold.views import ChangeList


def admin_url(model_admin: Any, view: str, *args: object) -> str:
    """The address of a view of an admin, such as its `changelist`."""
    opts = model_admin.opts
    name = f"admin:{opts.app_label}_{opts.model_name}_{view}"
    return reverse(name, args=args, current_app=model_admin.admin_site.name)


class DeskChangeList(ChangeList):
    """A list whose rows the tag `desk_rows` draws: its columns are methods of its admin, or fields of its model."""

    result_list: Any
    preserved_filters: Any

    @cached_property
    def urls(self) -> list[str]:
        """The page of each row, which remembers how the list was filtered."""
        pages = [admin_url(self.model_admin, "change", quote(row.pk)) for row in self.result_list]
        if not pages:
            return []
        first = add_preserved_filters({"preserved_filters": self.preserved_filters, "opts": self.opts}, pages[0])
        kept = urlsplit(first).query
        return [f"{page}?{kept}" if kept else page for page in pages]
