"""What is taken back of runs, step by step."""

from typing import ClassVar

from django.db import models
from django.db.models import Q
from django.utils.translation import gettext_lazy as _

from agent.domain.undo import UndoKind, UndoState
from agent.models.message import Message
from agent.models.run import Run
from agent.models.tool_call import ToolCall


class UndoStep(models.Model):
    """One message or call that is taken back, once: it is ``running`` before that is tried, and
    one whose outcome nobody knows is not tried again."""

    run = models.ForeignKey(Run, models.CASCADE, related_name="undo_steps", verbose_name=_("run"))
    kind = models.CharField(_("kind"), max_length=8, choices=UndoKind.choices)
    message = models.ForeignKey(
        Message, models.CASCADE, null=True, related_name="undo_steps", verbose_name=_("message")
    )
    tool_call = models.ForeignKey(
        ToolCall, models.CASCADE, null=True, related_name="undo_steps", verbose_name=_("tool call")
    )
    state = models.CharField(
        _("state"), max_length=16, choices=UndoState.choices, default=UndoState.WAITING
    )
    words = models.TextField(_("words"), blank=True, default="")
    author = models.CharField(_("author"), max_length=200, blank=True, default="")
    """A person's id, or the name of an operator."""
    command = models.BigIntegerField(null=True, editable=False)
    """The key of the message that ordered it; None for an operator's button."""
    claimed_by = models.CharField(max_length=32, blank=True, default="", editable=False)
    created_at = models.DateTimeField(_("recorded at"))
    settled_at = models.DateTimeField(_("settled at"), null=True)

    class Meta:
        verbose_name = _("undone step")
        verbose_name_plural = _("undone steps")
        ordering = ("id",)
        constraints: ClassVar = [
            models.UniqueConstraint(
                fields=["message"], condition=Q(message__isnull=False), name="undo_message_once"
            ),
            models.UniqueConstraint(
                fields=["tool_call", "kind"],
                condition=Q(tool_call__isnull=False),
                name="undo_call_once",
            ),
        ]
        indexes: ClassVar = [
            models.Index(
                fields=["id"], name="undo_open", condition=Q(state__in=("waiting", "running"))
            ),
            models.Index(
                fields=["command"], name="undo_command", condition=Q(command__isnull=False)
            ),
        ]

    def __str__(self) -> str:
        return f"#{self.pk} {self.kind}"
