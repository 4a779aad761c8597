"""Append-only rows of who did what to an object, why, and from which state to which."""

from typing import Any

from django.conf import settings
from django.db import models
from django.utils.translation import gettext_lazy as _


class Transition(models.Model):
    """One thing done to one object. Concrete tables add the foreign key. Never updated, never deleted by people."""

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

    def save(self, *args: Any, **kwargs: Any) -> None:
        """Insert only."""
        if self.pk is not None:
            raise TypeError("Transitions are append-only.")
        super().save(*args, **kwargs)
