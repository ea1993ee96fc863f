"""Messages, and the states in which they are still work to do."""

from typing import ClassVar

from django.db import models
from django.db.models import Q
from django.utils.translation import gettext_lazy as _

from agent.models.claimed import claim_number, place
from agent.models.session import ChatSession


class Message(models.Model):
    """One message that came in or went out, with its decision or its outcome."""

    class Direction(models.TextChoices):
        IN = "in", _("in")
        OUT = "out", _("out")

    class State(models.TextChoices):
        # Of an incoming message:
        RECORDED = "recorded", _("recorded")
        WAITING = "waiting", _("waiting")
        RUNNING = "running", _("running")
        ANSWERED = "answered", _("answered")
        SILENT = "silent", _("silent")
        EXPIRED = "expired", _("expired")
        # Of an outgoing message:
        PENDING = "pending", _("pending")
        SENT = "sent", _("sent")
        DELIVERED = "delivered", _("delivered")
        UNKNOWN = "unknown", _("unknown")
        # Of both:
        FAILED = "failed", _("failed")

    class Reason(models.TextChoices):
        """Why an incoming message is answered, or why it is not."""

        PRIVATE = "private", _("private message")
        MENTION = "mention", _("the bot was mentioned")
        WAKE_WORD = "wake_word", _("a wake word was said")
        QUOTE = "quote", _("the bot's own message was quoted")
        DECISION = "decision", _("a word on a call that waits for approval")
        LATER_RESULT = "later_result", _("the later result of a tool call")
        NOT_ADDRESSED = "not_addressed", _("not addressed to the bot")
        GROUPS_OFF = "groups_off", _("answers in groups are switched off")
        OWN_MESSAGE = "own_message", _("said by the bot's own account")
        OTHER_BOT = "other_bot", _("said by another bot connected here")
        SYSTEM_NOTICE = "system_notice", _("a system notice of the group")
        EMPTY = "empty", _("an empty message")
        TOO_OLD = "too_old", _("too old when it arrived")
        BLOCKED = "blocked", _("this person or group is never answered")
        NOT_LISTED = "not_listed", _("not among those who are answered")
        PERSON_LIMIT = "person_limit", _("this person was answered as often as is allowed")
        CHAT_LIMIT = "chat_limit", _("this chat was answered as often as is allowed")
        TOKEN_LIMIT = "token_limit", _("the tokens of the day are used up")
        LOOP = "loop", _("too many exchanges in a row, as between two bots")
        OWNER_NOTE = "owner_note", _("a note to the owner")
        QUEUE_FULL = "queue_full", _("too many messages were waiting in this chat")

    session = models.ForeignKey(
        ChatSession, models.CASCADE, related_name="messages", verbose_name=_("chat session"), db_index=False
    )
    direction = models.CharField(_("direction"), max_length=8, choices=Direction.choices)
    state = models.CharField(_("state"), max_length=16, choices=State.choices)
    reason = models.CharField(_("reason"), max_length=32, choices=Reason.choices, blank=True, default="")
    detail = models.TextField(_("detail"), blank=True, default="", help_text=_("What went wrong, in words."))
    sender_id = models.CharField(_("sender"), max_length=64, blank=True, default="")
    sender_name = models.CharField(_("sender's name"), max_length=200, blank=True, default="")
    sender_role = models.CharField(_("sender's role"), max_length=16, blank=True, default="")
    message_id = models.CharField(
        _("message id"), max_length=128, blank=True, default="", help_text=_("The id the client gave it.")
    )
    text = models.TextField(_("text"), blank=True, default="")
    media_text = models.TextField(
        _("seen and heard"),
        blank=True,
        default="",
        help_text=_("What was read in its pictures, voice and files, as the model is shown it after the text."),
    )
    temp_group_id = models.CharField(
        _("through group"),
        max_length=64,
        blank=True,
        default="",
        help_text=_("The group a temporary private session goes through."),
    )
    event_key = models.CharField(max_length=160, null=True, editable=False)  # noqa: DJ001 - NULL is "cannot be told apart"
    echo = models.CharField(_("echo"), max_length=64, null=True, unique=True, editable=False)  # noqa: DJ001 - as above
    run = models.ForeignKey(
        "Run", models.SET_NULL, null=True, blank=True, related_name="messages", verbose_name=_("run"), db_index=False
    )
    tool_call = models.ForeignKey(
        "ToolCall", models.SET_NULL, null=True, blank=True, related_name="messages", verbose_name=_("tool call")
    )
    in_history = models.BooleanField(
        _("in history"), default=False, help_text=_("Part of the conversation that later model calls are shown.")
    )
    claimed_by = models.CharField(max_length=32, blank=True, default="", editable=False)
    claim_number = claim_number()
    place = place()
    happened_at = models.DateTimeField(_("sent at"), null=True, blank=True, help_text=_("The client's time."))
    created_at = models.DateTimeField(_("recorded at"))
    recalled_at = models.DateTimeField(
        _("recalled"), null=True, blank=True, help_text=_("When the client reported that the message was taken back.")
    )
    settled_at = models.DateTimeField(_("settled at"), null=True, blank=True)
    # Large values last: SQLite walks over them to reach any column behind.
    segments = models.JSONField(_("segments"), default=list, blank=True)
    raw = models.JSONField(_("event"), null=True, blank=True, help_text=_("The event as the client sent it."))

    class Meta:
        verbose_name = _("message")
        verbose_name_plural = _("messages")
        ordering = ("-id",)
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["session", "event_key"], name="one_row_per_event"),
        ]
        indexes: ClassVar = [
            models.Index(fields=["session", "-id"], name="message_session"),
            models.Index(fields=["session", "-run", "-id"], name="message_history", condition=Q(in_history=True)),
            models.Index(fields=["run", "id"], name="message_run"),
            models.Index(fields=["state", "-id"], name="message_state"),
            models.Index(fields=["reason", "-id"], name="message_reason"),
            models.Index(fields=["sender_id", "-id"], name="message_sender"),
            models.Index(fields=["message_id"], name="message_client_id"),
        ]

    def __str__(self) -> str:
        return f"#{self.pk} {self.text[:40]}"


#: States of an incoming message that is still to be worked on.
UNSETTLED = Q(direction=Message.Direction.IN, state__in=(Message.State.WAITING, Message.State.RUNNING))
