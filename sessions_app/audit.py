"""Append-only rows of who did what to an object, why, and from which state to which."""

from collections.abc import Mapping
from typing import Any, ClassVar

from django.conf import settings
from django.db import models
from django.utils.translation import gettext as _gettext
from django.utils.translation import gettext_lazy as _


class Transition(models.Model):
    """One thing done to one object. Concrete tables add the foreign key. Never updated, never deleted by people."""

    LABELS: ClassVar[Mapping[str, Any]] = {}
    """Action → what is said of it afterwards."""

    at = models.DateTimeField(_("at"), auto_now_add=True)
    actor = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        verbose_name=_("by"),
        null=True,  # the system itself, following a user's verdict
        on_delete=models.SET_NULL,
        related_name="+",
    )
    action = models.CharField(_("action"), max_length=32)
    from_state = models.CharField(_("from"), max_length=16)
    to_state = models.CharField(_("to"), max_length=16)
    reason = models.TextField(_("why"), blank=True)

    class Meta:
        abstract = True
        ordering = ["-id"]

    def __str__(self) -> str:
        return f"{self.action}: {self.from_state} → {self.to_state}"

    @property
    def label(self) -> str:
        """What was done, in the reader's language."""
        return str(self.LABELS.get(self.action, self.action))

    @property
    def why(self) -> str:
        """The reason: of a person as they wrote it, of the system in the reader's language."""
        return _gettext(self.reason) if self.reason and self.actor_id is None else self.reason

    def save(self, *args: Any, **kwargs: Any) -> None:
        """Insert only."""
        if self.pk is not None:
            raise TypeError("Transitions are append-only.")
        super().save(*args, **kwargs)
