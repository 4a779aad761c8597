"""The buttons on the page of a case: each calls one service."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from django.contrib.auth.models import AbstractBaseUser
from django.utils.translation import gettext_lazy as _

from cases_app.admin.forms import CaseForm
from cases_app.models import CaseLibrary
from cases_app.services import enrichment
from sessions_app.pages import Button


class Press(NamedTuple):
    """A button that somebody pressed. `form` is None where the page has no fields for that person."""

    case: CaseLibrary
    user: AbstractBaseUser
    form: CaseForm | None
    reason: str

    @property
    def text(self) -> dict[str, Any]:
        """The content, and the version it was written over."""
        return {"content": self.form.content, "version": self.form.cleaned_data["version"]} if self.form else {}


def _save(press: Press) -> CaseLibrary:
    return enrichment.enrich_case(case_id=press.case.pk, reviewer=press.user, **press.text)


def _save_and_publish(press: Press) -> CaseLibrary:
    return enrichment.enrich_and_publish_case(case_id=press.case.pk, reviewer=press.user, **press.text)


def _publish(press: Press) -> CaseLibrary:
    return enrichment.publish_case(case_id=press.case.pk, reviewer=press.user)


def _unpublish(press: Press) -> CaseLibrary:
    return enrichment.unpublish_case(case_id=press.case.pk, reviewer=press.user, reason=press.reason)


def _retire(press: Press) -> CaseLibrary:
    return enrichment.retire_case(case_id=press.case.pk, reviewer=press.user, reason=press.reason)


def _restore(press: Press) -> CaseLibrary:
    return enrichment.restore_case(case_id=press.case.pk, reviewer=press.user, reason=press.reason)


PUBLISHED = _("The case is published: agents find it from now on.")
BUTTONS: Mapping[str, Button] = {
    "save": Button(_save, "enrich", _("The case is saved."), needs_fields=True),
    "save_and_publish": Button(_save_and_publish, "publish", PUBLISHED, needs_fields=True),
    "publish": Button(_publish, "publish", PUBLISHED),
    "unpublish": Button(_unpublish, "publish", _("Agents no longer find this case.")),
    "retire": Button(_retire, "publish", _("The case is retired.")),
    "restore": Button(_restore, "publish", _("The case is back in the library.")),
}
