"""Proposals: what the review of the notes would change, for a person to decide."""

from typing import ClassVar

from django.db import models
from django.utils.translation import gettext_lazy as _


class NoteProposal(models.Model):
    """Notes that say the same and could be one, or a note that has not been of use for long.

    Nothing happens until somebody applies it. ``before`` keeps what the notes were.
    """

    class Kind(models.TextChoices):
        MERGE = "merge", _("make one of them")
        RETIRE = "retire", _("delete")

    class State(models.TextChoices):
        WAITING = "waiting", _("waiting")
        APPLIED = "applied", _("applied")
        REJECTED = "rejected", _("rejected")
        STALE = "stale", _("the notes have changed since")

    kind = models.CharField(_("kind"), max_length=16, choices=Kind.choices)
    state = models.CharField(
        _("state"), max_length=16, choices=State.choices, default=State.WAITING
    )
    model = models.CharField(_("model"), max_length=200, blank=True, default="")
    decided_by = models.CharField(_("decided by"), max_length=200, blank=True, default="")
    created_at = models.DateTimeField(_("recorded at"))
    decided_at = models.DateTimeField(_("decided"), null=True, blank=True)
    note_ids = models.JSONField(_("memory notes"), default=list)
    tags = models.JSONField(_("tags"), default=list, blank=True)
    text = models.TextField(
        _("text"),
        blank=True,
        default="",
        help_text=_("Of notes that become one: what it will say."),
    )
    before = models.JSONField(
        _("before"), default=list, help_text=_("The notes as they were when this was proposed.")
    )

    class Meta:
        verbose_name = _("proposal for memory notes")
        verbose_name_plural = _("proposals for memory notes")
        ordering = ("-id",)
        indexes: ClassVar = [models.Index(fields=["state", "-id"], name="proposal_state")]

    def __str__(self) -> str:
        return f"#{self.pk}"
