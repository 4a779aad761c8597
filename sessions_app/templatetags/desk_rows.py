"""The rows of a list in the admin. They look as unfold draws them, which draws the heads again for each row."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

from django import template
from django.contrib.admin.utils import lookup_field
from django.utils.html import conditional_escape, format_html
from django.utils.safestring import SafeString, mark_safe
from django.utils.translation import gettext as _
from unfold.templatetags import unfold_list
from unfold.utils import display_for_field, display_for_value

from sessions_app.lists import DeskChangeList

register = template.Library()

CHECKBOX = "action_checkbox"
_KEY = "key-of-the-row"


@register.inclusion_tag("admin/change_list_results.html", takes_context=True)
def desk_rows(context: Any, cl: Any) -> dict[str, Any]:
    """Heads and rows of a list, for unfold's template; a list that is no DeskChangeList is drawn by unfold itself."""
    if not isinstance(cl, DeskChangeList) or cl.is_popup or cl.formset:
        drawn: dict[str, Any] = unfold_list.result_list(context, cl)
        return drawn
    heads = list(unfold_list.result_headers(cl))
    return {
        "cl": cl,
        "result_headers": heads,
        "num_sorted_fields": sum(1 for head in heads if head["sortable"] and head["sorted"]),
        "results": list(_rows(cl, [head["text"] for head in heads])),
        "actions_row": context.get("actions_row"),
    }


def _rows(cl: DeskChangeList, heads: list[Any]) -> Iterator[Any]:
    """A row at a time, its cells in one piece of HTML."""
    links = cl.list_display_links or ()
    columns = [
        (_reader(cl, name), name in links, *_tags(name, head, is_link=name in links, is_first=at == 0))
        for at, (name, head) in enumerate(zip(cl.list_display, heads, strict=True))
    ]
    link = f'<a href="{{}}" class="{" ".join(unfold_list.LINK_CLASSES)}">{{}}</a>'
    for row, url in zip(cl.result_list, cl.urls, strict=True):
        cells: list[str] = []
        for read, is_link, start, end in columns:
            shown = read(row)
            cells += (start, format_html(link, url, shown) if is_link else conditional_escape(shown), end)
        yield unfold_list.UnfoldResultList(row, None, (mark_safe("".join(cells)),))


def _tags(name: str, head: object, *, is_link: bool, is_first: bool) -> tuple[SafeString, SafeString]:
    """What stands before and behind what a cell of this column shows."""
    classes = (
        unfold_list.CHECKBOX_CLASSES if name == CHECKBOX else (f"field-{name.strip('_')}", *unfold_list.ROW_CLASSES)
    )
    tag, label = ("th" if is_link else "td"), (_("Select record") if is_first and not is_link else head)
    start = format_html('<{} class="{}" data-label="{}">', tag, " ".join(classes), label)
    return start, format_html("</{}>", tag)


def _reader(cl: DeskChangeList, name: str) -> Callable[[Any], Any]:
    """Row → what a column shows of it."""
    admin: Any = cl.model_admin
    empty = admin.get_empty_value_display()
    if name == CHECKBOX:
        before, behind = admin.action_checkbox(SimpleNamespace(pk=_KEY)).split(_KEY)
        return lambda row: format_html("{}{}{}", mark_safe(before), row.pk, mark_safe(behind))
    method = getattr(admin, name, None)
    if method is None or name == "__str__":

        def of_field(row: Any) -> Any:
            field, _attribute, value = lookup_field(name, row, admin)
            return display_for_field(value, field, empty) if field else display_for_value(value, empty)

        return of_field
    is_boolean = getattr(method, "boolean", False)
    return lambda row: display_for_value(method(row), empty, is_boolean)
