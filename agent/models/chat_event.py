"""What happened in chats besides messages, as the lines of their pages."""

from typing import ClassVar

from django.db import models
from django.utils.translation import gettext_lazy as _

from agent.domain.events import WORDS_CHARS, EventKind
from agent.models.session import ChatSession


class ChatEvent(models.Model):
    """One line: a :class:`agent.domain.events.ChatNotice` on record."""

    session = models.ForeignKey(
        ChatSession,
        models.CASCADE,
        related_name="events",
        verbose_name=_("chat session"),
        db_index=False,
    )
    key = models.CharField(max_length=16)
    """Equal of one thing that was reported twice."""
    kind = models.CharField(_("kind"), max_length=16, choices=EventKind.choices)
    change = models.CharField(max_length=16, blank=True, default="")
    user_id = models.CharField(max_length=64, blank=True, default="")
    target_id = models.CharField(max_length=64, blank=True, default="")
    operator_id = models.CharField(max_length=64, blank=True, default="")
    message_id = models.CharField(max_length=128, blank=True, default="")
    seconds = models.IntegerField(null=True)
    words = models.CharField(max_length=WORDS_CHARS, blank=True, default="")
    happened_at = models.DateTimeField(null=True)
    at = models.DateTimeField(_("recorded at"))

    class Meta:
        verbose_name = _("event in a chat")
        verbose_name_plural = _("events in chats")
        ordering = ("-id",)
        default_permissions = ()
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["session", "key"], name="one_line_per_event")
        ]
        indexes: ClassVar = [models.Index(fields=["session", "at"], name="event_session")]

    def __str__(self) -> str:
        return f"#{self.pk} {self.kind}"
