"""The bot accounts that OneBot clients have connected for."""

from typing import Any, ClassVar

from django.core.exceptions import ValidationError
from django.core.validators import MaxValueValidator
from django.db import models, transaction
from django.utils.translation import gettext_lazy as _

from agent.models.manners import MOST_ANSWERS
from tools.live_rows import ConfigVersion, LiveKind, Tracked
from tools.models.tool_config import check_ids, parse_ids
from tools.secrets.masked import mask_value


class AudienceChoice(models.TextChoices):
    """Whose messages something is done for: the words of
    :data:`agent.domain.types.MediaAudience`."""

    OFF = "off", _("nobody's")
    ON = "on", _("everybody's")
    OWNERS = "owners", _("the owners'")


class Bot(models.Model):
    """One account (``self_id``) and what is known of its connection.

    Chat sessions store the account's id as text and not a key to this row: the
    record outlives the row.
    """

    self_id = models.CharField(_("account"), max_length=64, unique=True)
    second_name = models.CharField(
        _("second name"),
        max_length=64,
        blank=True,
        default="",
        db_default="",
        editable=False,
        help_text=_("What the client calls the account when it dials in, if that is not its id."),
    )
    online = models.BooleanField(_("connected"), default=False, db_index=True)
    account_online = models.BooleanField(
        _("account online"),
        null=True,
        default=None,
        help_text=_("What the client's heartbeat says of the QQ account behind it."),
    )
    roles = models.CharField(_("roles"), max_length=64, blank=True, default="")
    implementation = models.CharField(
        _("client"),
        max_length=200,
        blank=True,
        default="",
        help_text=_("The User-Agent the client introduced itself with."),
    )
    nickname = models.CharField(
        _("nickname"),
        max_length=100,
        blank=True,
        default="",
        db_default="",
        help_text=_("What the client says its account is called."),
    )
    client_name = models.CharField(
        max_length=200, blank=True, default="", db_default="", editable=False
    )
    """What the client says it is called, with its version; "" where it did not say."""
    connected_at = models.DateTimeField(_("connected since"), null=True, blank=True)
    disconnected_at = models.DateTimeField(_("disconnected at"), null=True, blank=True)
    last_heartbeat_at = models.DateTimeField(_("last heartbeat"), null=True, blank=True)
    silent_at = models.DateTimeField(
        _("closed for silence"),
        null=True,
        blank=True,
        help_text=_(
            "When a connection was closed because nothing came over it for three intervals of its "
            "heartbeats."
        ),
    )
    cannot_speak_since = models.DateTimeField(
        _("cannot speak since"),
        null=True,
        blank=True,
        help_text=_(
            "The first of five sends or more in a row that failed or of which nobody knows, while "
            "events came. A message that arrives ends it."
        ),
    )
    channel = models.CharField(
        _("process channel"),
        max_length=200,
        blank=True,
        default="",
        help_text=_("The channel of the server process that holds the account's API socket."),
    )

    process = models.CharField(max_length=32, blank=True, default="", editable=False)
    hear_voice = models.CharField(
        _("voice messages"),
        max_length=8,
        choices=AudienceChoice.choices,
        default=AudienceChoice.ON,
        help_text=_(
            "Whose voice messages the model is given in words. They go to the model of "
            "TRANSCRIBE_MODEL_NAME; without one"
            " none are heard."
        ),
    )
    read_files = models.CharField(
        _("files"),
        max_length=8,
        choices=AudienceChoice.choices,
        default=AudienceChoice.ON,
        help_text=_(
            "Whose files the model is given the beginning of: text, Markdown, CSV, JSON, source "
            "code, PDF and DOCX."
        ),
    )
    timing_gate = models.BooleanField(
        _("timing gate"),
        default=False,
        help_text=_(
            "A small model call decides first if and when to answer, in chats whose page does not "
            "say otherwise."
            " It costs one more model call a message."
        ),
    )
    media_by_url = models.BooleanField(
        _("media by URL"),
        default=False,
        db_default=False,
        help_text=_(
            "The client is given the URLs of pictures, voice, videos and files, and loads them "
            "itself, from its own network."
            " Otherwise they are loaded here, from public addresses only, and sent as Base64."
        ),
    )
    all_for_me = models.BooleanField(
        _("every group message is for it"),
        default=False,
        db_default=False,
        help_text=_(
            "Every message that arrives from a group counts as a mention of the bot. For official "
            "bots, whose bridges take mentions off. Anybody's words in a group are answered then."
        ),
    )
    token_hash = models.CharField(
        max_length=100, blank=True, default="", db_default="", editable=False
    )
    """Of the account's own token, see :mod:`onebot.connections.handshake`; "": the common one
    counts."""
    owners = models.TextField(
        _("owners"),
        blank=True,
        default="",
        help_text=_(
            "Ids of the people this bot belongs to, separated by commas, spaces or line breaks. "
            "They may use every tool."
        ),
    )
    sends_per_minute = models.PositiveIntegerField(
        _("messages sent a minute"),
        null=True,
        blank=True,
        validators=[MaxValueValidator(MOST_ANSWERS)],
        help_text=_(
            "Of this account, in all chats; more wait for their turn. 0: no limit. Empty: three "
            "times as many as answers in one chat."
        ),
    )

    tracked = Tracked(
        fields=(
            *("owners", "hear_voice", "read_files", "timing_gate", "media_by_url"),
            *("sends_per_minute", "all_for_me"),
        ),
        masked={"token_hash": (_("access token"), mask_value)},
    )

    class Meta:
        verbose_name = _("bot")
        verbose_name_plural = _("bots")
        ordering = ("self_id",)

    def __str__(self) -> str:
        return self.self_id

    def save(self, **options: Any) -> None:
        """What the operator changes here is obeyed from the next message on, in every process."""
        with transaction.atomic(using=options.get("using")):
            super().save(**options)
            ConfigVersion.bump(LiveKind.ACCOUNTS)

    def clean(self) -> None:
        if wrong := check_ids(self.owners):
            raise ValidationError({"owners": wrong})

    @property
    def owner_ids(self) -> frozenset[str]:
        return frozenset(parse_ids(self.owners))


class ClientEvent(models.Model):
    """A notice, a request, or an event this server has no use for, kept as the client sent it; and
    that heartbeats stopped, which no client says."""

    self_id = models.CharField(_("account"), max_length=64)
    post_type = models.CharField(_("post type"), max_length=64, blank=True, default="")
    detail_type = models.CharField(_("type"), max_length=64, blank=True, default="")
    sub_type = models.CharField(_("sub type"), max_length=64, blank=True, default="")
    created_at = models.DateTimeField(_("recorded at"))
    raw = models.JSONField(_("event"))

    class Meta:
        verbose_name = _("client event")
        verbose_name_plural = _("client events")
        ordering = ("-id",)
        indexes: ClassVar = [models.Index(fields=["self_id", "detail_type"], name="event_account")]

    def __str__(self) -> str:
        return "/".join(filter(None, (self.post_type, self.detail_type, self.sub_type)))
