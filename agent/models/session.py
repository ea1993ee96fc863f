"""Chat sessions."""

from typing import ClassVar, TypeAlias

from django.db import models
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from agent.domain.states import PauseReason, SessionKind
from tools.live_rows import Tracked


class ChatSession(models.Model):
    """One group or one private peer of one account. Two accounts never share a session."""

    Kind: TypeAlias = SessionKind

    platform = models.CharField(_("platform"), max_length=32, default="onebot")
    account = models.CharField(_("account"), max_length=64)
    kind = models.CharField(_("kind"), max_length=16, choices=Kind.choices)
    peer_id = models.CharField(
        _("peer"), max_length=64, help_text=_("The group's or the person's id.")
    )
    title = models.CharField(_("title"), max_length=200, blank=True, default="")
    state = models.JSONField(
        _("state"),
        default=dict,
        blank=True,
        help_text=_(
            "What {placeholders} in the persona's prompt stand for in this chat: "
            '{"name": "value"}.'
        ),
    )
    timing_gate = models.BooleanField(
        _("timing gate"),
        null=True,
        blank=True,
        help_text=_(
            "Whether a small model call decides first if and when to answer. "
            "Empty: as the bot's page says."
        ),
    )
    is_continuing = models.BooleanField(default=False, editable=False)
    context_after = models.BigIntegerField(null=True, editable=False)
    """The key of the message after which the model is shown what was said; None: all of it."""
    pause_reason = models.CharField(  # noqa: DJ001
        _("cannot speak"), max_length=16, choices=PauseReason.choices, null=True, editable=False
    )
    """Why the account cannot speak here, as the client said; None where it can."""
    paused_at = models.DateTimeField(_("since"), null=True, editable=False)
    paused_until = models.DateTimeField(_("until"), null=True, editable=False)
    """None: until it is lifted."""
    taken_over_by = models.CharField(  # noqa: DJ001
        _("taken over by"), max_length=150, null=True, editable=False
    )
    """The operator who answers here instead of the bot; None: the bot answers."""
    taken_over_at = models.DateTimeField(_("taken over"), null=True, editable=False)
    taken_over_until = models.DateTimeField(_("taken over until"), null=True, editable=False)
    """None: until somebody hands it back."""
    created_at = models.DateTimeField(_("first message"), auto_now_add=True)
    last_message_at = models.DateTimeField(_("last message"))
    discovered_tools = models.JSONField(default=list, editable=False)

    tracked = Tracked(fields=("timing_gate", "state"))

    class Meta:
        verbose_name = _("chat session")
        verbose_name_plural = _("chat sessions")
        ordering = ("-last_message_at", "-id")
        permissions: ClassVar = [
            ("view_every_chat", _("Can see every chat, not only own ones")),
            ("speak_in_chat", _("Can answer by hand, take over, send again and cancel")),
            ("export_chatsession", _("Can export chats")),
            ("erase_person", _("Can erase a person")),
            ("use_playground", _("Can use the playground")),
        ]
        constraints: ClassVar = [
            models.UniqueConstraint(
                fields=["platform", "account", "kind", "peer_id"], name="one_session_per_chat"
            ),
        ]
        indexes: ClassVar = [
            models.Index(fields=["-last_message_at", "-id"], name="session_recent"),
            models.Index(fields=["peer_id"], name="session_peer"),
            models.Index(
                fields=["taken_over_until"],
                condition=models.Q(taken_over_until__isnull=False),
                name="session_taken_until",
            ),
        ]

    def __str__(self) -> str:
        plain = f"{self.get_kind_display()} {self.peer_id}"
        return f"{self.title} ({plain})" if self.title else plain

    @property
    def is_taken_over(self) -> bool:
        """Whether an operator answers here at this moment, instead of the bot."""
        until = self.taken_over_until
        return self.taken_over_by is not None and (until is None or until > timezone.now())

    @property
    def key(self) -> str:
        return f"{self.kind}:{self.peer_id}"

    @property
    def address(self) -> str:
        """``platform_id:message_type:session_id``, as ``send_message`` names a session."""
        return f"{self.platform}:{self.key}"
