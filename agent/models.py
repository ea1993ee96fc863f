"""The record: what was said, why it was answered or not, and what came of it.

The record is also the inbox. A message is committed with its decision before
anything else happens to it, and a message in state ``waiting`` or ``running``
is work that a restarted server takes up again.
"""

from typing import ClassVar

from django.db import models
from django.db.models import Q
from django.utils.translation import gettext_lazy as _


class ServerProcess(models.Model):
    """A running server process; work claimed by one that is gone is taken over by another."""

    id = models.CharField(primary_key=True, max_length=32)
    host = models.CharField(_("host"), max_length=200)
    pid = models.IntegerField(_("process id"))
    started_at = models.DateTimeField(_("started"), auto_now_add=True)
    last_seen_at = models.DateTimeField(_("last seen"))

    class Meta:
        verbose_name = _("server process")
        verbose_name_plural = _("server processes")

    def __str__(self) -> str:
        return f"{self.host}/{self.pid}"


class ChatSession(models.Model):
    """One group or one private peer of one account. Two accounts never share a session."""

    class Kind(models.TextChoices):
        GROUP = "group", _("group")
        PRIVATE = "private", _("private")

    platform = models.CharField(_("platform"), max_length=32, default="onebot")
    account = models.CharField(_("account"), max_length=64)
    kind = models.CharField(_("kind"), max_length=16, choices=Kind.choices)
    peer_id = models.CharField(_("peer"), max_length=64, help_text=_("The group's or the person's id."))
    title = models.CharField(_("title"), max_length=200, blank=True, default="")
    created_at = models.DateTimeField(_("first message"), auto_now_add=True)
    last_message_at = models.DateTimeField(_("last message"))

    class Meta:
        verbose_name = _("chat session")
        verbose_name_plural = _("chat sessions")
        ordering = ("-last_message_at", "-id")
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["platform", "account", "kind", "peer_id"], name="one_session_per_chat"),
        ]
        indexes: ClassVar = [
            models.Index(fields=["-last_message_at", "-id"], name="session_recent"),
            models.Index(fields=["peer_id"], name="session_peer"),
        ]

    def __str__(self) -> str:
        return f"{self.title} ({self.key})" if self.title else self.key

    @property
    def key(self) -> str:
        return f"{self.kind}:{self.peer_id}"

    @property
    def address(self) -> str:
        """``platform_id:message_type:session_id``, as ``send_message`` names a session."""
        return f"{self.platform}:{self.key}"


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
        NOT_ADDRESSED = "not_addressed", _("not addressed to the bot")
        GROUPS_OFF = "groups_off", _("answers in groups are switched off")
        OWN_MESSAGE = "own_message", _("said by the bot's own account")
        OTHER_BOT = "other_bot", _("said by another bot connected here")
        SYSTEM_NOTICE = "system_notice", _("a system notice of the group")
        EMPTY = "empty", _("an empty message")
        TOO_OLD = "too_old", _("too old when it arrived")
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
    happened_at = models.DateTimeField(_("sent at"), null=True, blank=True, help_text=_("The client's time."))
    created_at = models.DateTimeField(_("recorded at"))
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


class Run(models.Model):
    """Everything done for one message, from the first model call to the final answer."""

    class Origin(models.TextChoices):
        CHAT = "chat", _("chat")
        TERMINAL = "terminal", _("terminal")
        HTTP = "http", _("HTTP")

    class State(models.TextChoices):
        RUNNING = "running", _("running")
        FINISHED = "finished", _("finished")
        FAILED = "failed", _("failed")
        INTERRUPTED = "interrupted", _("interrupted")

    session = models.ForeignKey(
        ChatSession, models.CASCADE, null=True, blank=True, related_name="runs", verbose_name=_("chat session"), db_index=False
    )
    message = models.ForeignKey(
        Message, models.CASCADE, null=True, blank=True, related_name="runs", verbose_name=_("message answered")
    )
    claimed_by = models.CharField(max_length=32, blank=True, default="", editable=False)
    origin = models.CharField(_("origin"), max_length=16, choices=Origin.choices, default=Origin.CHAT)
    state = models.CharField(_("state"), max_length=16, choices=State.choices, default=State.RUNNING)
    model = models.CharField(_("model"), max_length=200, blank=True, default="")
    final_text = models.TextField(_("final answer"), blank=True, default="")
    error = models.TextField(_("error"), blank=True, default="")
    notes = models.JSONField(_("notes"), default=list, blank=True, help_text=_("What was left out or limited, and why."))
    model_calls = models.PositiveIntegerField(_("model calls"), default=0)
    input_tokens = models.PositiveIntegerField(_("input tokens"), default=0)
    output_tokens = models.PositiveIntegerField(_("output tokens"), default=0)
    started_at = models.DateTimeField(_("started"))
    finished_at = models.DateTimeField(_("finished at"), null=True, blank=True)

    class Meta:
        verbose_name = _("run")
        verbose_name_plural = _("runs")
        ordering = ("-id",)
        indexes: ClassVar = [
            models.Index(fields=["session", "-id"], name="run_session"),
            models.Index(fields=["state", "-id"], name="run_state"),
            models.Index(fields=["origin", "-id"], name="run_origin"),
        ]

    def __str__(self) -> str:
        return f"#{self.pk}"


class Step(models.Model):
    """One model call of a run.

    ``request`` holds the messages that were added since the step before, so that
    the requests of a run, one after the other, are exactly what the model was sent.
    """

    run = models.ForeignKey(Run, models.CASCADE, related_name="steps", verbose_name=_("run"), db_index=False)
    number = models.PositiveIntegerField(_("number"))
    finish_reason = models.CharField(_("finish reason"), max_length=64, blank=True, default="")
    error = models.TextField(_("error"), blank=True, default="")
    input_tokens = models.PositiveIntegerField(_("input tokens"), default=0)
    output_tokens = models.PositiveIntegerField(_("output tokens"), default=0)
    latency_ms = models.PositiveIntegerField(_("latency (ms)"), default=0)
    created_at = models.DateTimeField(_("recorded at"))
    # Large values last: SQLite walks over them to reach any column behind.
    request = models.JSONField(_("sent to the model"), default=list)
    tools = models.JSONField(_("tools offered"), default=list, blank=True)
    response = models.JSONField(_("the model's answer"), null=True, blank=True)

    class Meta:
        verbose_name = _("step")
        verbose_name_plural = _("steps")
        ordering = ("run", "number")
        constraints: ClassVar = [models.UniqueConstraint(fields=["run", "number"], name="one_step_per_number")]

    def __str__(self) -> str:
        return f"{self.run_id}.{self.number}"


class ToolCall(models.Model):
    """One call of a tool: what it was given, who asked, and what came back."""

    class State(models.TextChoices):
        WAITING = "waiting", _("waiting")
        RUNNING = "running", _("running")
        SUCCEEDED = "succeeded", _("succeeded")
        FAILED = "failed", _("failed")
        UNKNOWN = "unknown", _("unknown")

    run = models.ForeignKey(Run, models.CASCADE, related_name="tool_calls", verbose_name=_("run"))
    step = models.ForeignKey(Step, models.CASCADE, related_name="tool_calls", verbose_name=_("step"), db_index=False)
    position = models.PositiveIntegerField(_("position"), default=0)
    call_id = models.CharField(_("call id"), max_length=128)
    tool_name = models.CharField(_("tool"), max_length=128)
    provider_name = models.CharField(_("provider"), max_length=128, blank=True, default="")
    requested_by = models.CharField(
        _("requested by"), max_length=64, blank=True, default="", help_text=_("The sender of the message that led to the call.")
    )
    arguments = models.JSONField(_("arguments"), default=dict, blank=True)
    state = models.CharField(_("state"), max_length=16, choices=State.choices, default=State.WAITING)
    mocked = models.BooleanField(_("mock"), default=False)
    result = models.TextField(_("result"), blank=True, default="", help_text=_("What the model was told."))
    structured_content = models.JSONField(_("structured result"), null=True, blank=True)
    error = models.TextField(_("error"), blank=True, default="")
    duration_ms = models.PositiveIntegerField(_("duration (ms)"), null=True, blank=True)
    created_at = models.DateTimeField(_("recorded at"))

    class Meta:
        verbose_name = _("tool call")
        verbose_name_plural = _("tool calls")
        ordering = ("-id",)
        constraints: ClassVar = [models.UniqueConstraint(fields=["step", "position"], name="one_call_per_position")]
        indexes: ClassVar = [
            models.Index(fields=["tool_name", "-id"], name="call_tool"),
            models.Index(fields=["state", "-id"], name="call_state"),
        ]

    def __str__(self) -> str:
        return f"#{self.pk} {self.tool_name}"
