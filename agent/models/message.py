"""Messages, and the states in which they are still work to do."""

from typing import ClassVar, TypeAlias

from django.db import models
from django.db.models import Q
from django.utils.translation import gettext_lazy as _

from agent.domain.states import MessageDirection, MessageReason, MessageState
from agent.models.process import claim_number_field, place_field
from agent.models.session import ChatSession


class Message(models.Model):
    """One message that came in or went out, with its decision or its outcome."""

    Direction: TypeAlias = MessageDirection

    State: TypeAlias = MessageState

    Reason: TypeAlias = MessageReason

    session = models.ForeignKey(
        ChatSession,
        models.CASCADE,
        related_name="messages",
        verbose_name=_("chat session"),
        db_index=False,
    )
    direction = models.CharField(_("direction"), max_length=8, choices=Direction.choices)
    state = models.CharField(_("state"), max_length=16, choices=State.choices)
    reason = models.CharField(
        _("reason"), max_length=32, choices=Reason.choices, blank=True, default=""
    )
    detail = models.TextField(
        _("detail"), blank=True, default="", help_text=_("What went wrong, in words.")
    )
    sender_id = models.CharField(_("sender"), max_length=64, blank=True, default="")
    sender_name = models.CharField(_("sender's name"), max_length=200, blank=True, default="")
    sender_role = models.CharField(_("sender's role"), max_length=16, blank=True, default="")
    message_id = models.CharField(
        _("message id"),
        max_length=128,
        blank=True,
        default="",
        help_text=_("The id the client gave it."),
    )
    text = models.TextField(_("text"), blank=True, default="")
    media_text = models.TextField(
        _("seen and heard"),
        blank=True,
        default="",
        help_text=_(
            "What was read in its pictures, voice and files, "
            "as the model is shown it after the text."
        ),
    )
    temp_group_id = models.CharField(
        _("through group"),
        max_length=64,
        blank=True,
        default="",
        help_text=_("The group a temporary private session goes through."),
    )
    event_key = models.CharField(max_length=160, null=True, editable=False)  # noqa: DJ001
    echo = models.CharField(_("echo"), max_length=64, null=True, unique=True, editable=False)  # noqa: DJ001
    run = models.ForeignKey(
        "Run",
        models.SET_NULL,
        null=True,
        blank=True,
        related_name="messages",
        verbose_name=_("run"),
        db_index=False,
    )
    tool_call = models.ForeignKey(
        "ToolCall",
        models.SET_NULL,
        null=True,
        blank=True,
        related_name="messages",
        verbose_name=_("tool call"),
    )
    in_history = models.BooleanField(
        _("in history"),
        default=False,
        help_text=_("Part of the conversation that later model calls are shown."),
    )
    claimed_by = models.CharField(max_length=32, blank=True, default="", editable=False)
    claim_number = claim_number_field()
    place = place_field()
    happened_at = models.DateTimeField(
        _("sent at"), null=True, blank=True, help_text=_("The client's time.")
    )
    created_at = models.DateTimeField(_("recorded at"))
    recalled_at = models.DateTimeField(
        _("recalled"),
        null=True,
        blank=True,
        help_text=_("When the client reported that the message was taken back."),
    )
    settled_at = models.DateTimeField(_("settled at"), null=True, blank=True)
    # Large values last: SQLite walks over them to reach any column behind.
    segments = models.JSONField(_("segments"), default=list, blank=True)
    raw = models.JSONField(
        _("event"), null=True, blank=True, help_text=_("The event as the client sent it.")
    )
    # Those that came later stand behind the large values; they may be null, for SQLite copies a
    # whole table to add others.
    quoted_id = models.CharField(_("quotes"), max_length=128, null=True, blank=True)  # noqa: DJ001
    """The client's id of the message that it quotes."""
    merged_into = models.ForeignKey(
        "self",
        models.SET_NULL,
        null=True,
        blank=True,
        related_name="merged",
        verbose_name=_("answered with"),
        db_index=False,
        help_text=_("The later message of the same person that it is answered together with."),
    )
    part = models.PositiveSmallIntegerField(_("part"), null=True, blank=True)
    """Of an answer in several messages: the number of this one, from 1; 0 for a merged forward."""
    header = models.JSONField(_("said of it"), null=True, blank=True)
    """What the frame before its words says besides sender, chat, id and time: ``chat_name``, and
    ``mentions`` (a list of ``user_id`` and ``name``), and the ``zone`` of its time, where that is
    not the machine's. Kept, so that it is the same in every request."""
    context_text = models.TextField(  # noqa: DJ001
        _("quoted and forwarded"),
        null=True,
        blank=True,
        help_text=_(
            "The words of the messages that it quotes and forwards, as the model is shown them "
            "after its own."
        ),
    )
    author = models.CharField(_("written by"), max_length=150, null=True, blank=True)  # noqa: DJ001
    """The operator who wrote it by hand, or had it sent again; None for what the bot says."""
    resent_from = models.ForeignKey(
        "self",
        models.SET_NULL,
        null=True,
        blank=True,
        related_name="resent",
        verbose_name=_("sent again"),
        db_index=False,
        help_text=_("The message that could not be sent before."),
    )

    class Meta:
        verbose_name = _("message")
        verbose_name_plural = _("messages")
        ordering = ("-id",)
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["session", "event_key"], name="one_row_per_event"),
        ]
        indexes: ClassVar = [
            models.Index(fields=["session", "-id"], name="message_session"),
            models.Index(
                fields=["session", "-run", "-id"],
                name="message_history",
                condition=Q(in_history=True),
            ),
            models.Index(fields=["run", "id"], name="message_run"),
            models.Index(fields=["state", "-id"], name="message_state"),
            models.Index(fields=["reason", "-id"], name="message_reason"),
            models.Index(fields=["sender_id", "-id"], name="message_sender"),
            models.Index(fields=["message_id"], name="message_client_id"),
            models.Index(
                fields=["merged_into"],
                name="message_merged",
                condition=Q(merged_into__isnull=False),
            ),
            models.Index(
                fields=["session", "id"],
                name="message_context",
                condition=Q(context_text__isnull=False),
            ),
            models.Index(
                fields=["session", "quoted_id"],
                name="message_quoted",
                condition=Q(quoted_id__isnull=False),
            ),
            models.Index(
                fields=["resent_from"],
                name="message_resent",
                condition=Q(resent_from__isnull=False),
            ),
        ]

    def __str__(self) -> str:
        return f"#{self.pk} {self.text[:40]}"


#: What operators wrote, as the bot. Its run is the one that began last, and did not make it: that
#: is its place in the history.
BY_HAND = Q(author__isnull=False, resent_from__isnull=True)
#: States of an incoming message that is still to be worked on.
UNSETTLED = Q(
    direction=Message.Direction.IN, state__in=(Message.State.WAITING, Message.State.RUNNING)
)
