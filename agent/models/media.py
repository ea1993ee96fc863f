"""The media of messages: our own copies, the text read from them, and the outcome of each."""

from typing import ClassVar

from django.db import models
from django.utils.translation import gettext_lazy as _

from agent.models.message import Message
from agent.models.session import ChatSession
from agent.models.tool_call import ToolCall


class KeptFile(models.Model):
    """Our own copy of something a message held, on disk under the hash of its content.

    The same content is stored once, for all senders. The row is deleted with the copy.
    """

    sha256 = models.CharField(_("content hash"), max_length=64, unique=True)
    mime = models.CharField(
        _("type"), max_length=64, blank=True, default="", help_text=_("By its content.")
    )
    size = models.PositiveBigIntegerField(_("bytes"), default=0)
    created_at = models.DateTimeField(_("kept since"))
    last_used_at = models.DateTimeField(_("last used"))

    class Meta:
        verbose_name = _("kept file")
        verbose_name_plural = _("kept files")
        ordering = ("-id",)
        indexes: ClassVar = [
            models.Index(fields=["last_used_at"], name="kept_last_used"),
            models.Index(fields=["mime", "-id"], name="kept_mime"),
        ]

    def __str__(self) -> str:
        return f"{self.mime} {self.sha256[:12]}"


class Description(models.Model):
    """What a model read in one file, or in several that were shown to it together, for one kind of
    question.

    Asked the same of the same content, the same model is not asked again.
    """

    content = models.CharField(
        _("content"),
        max_length=64,
        help_text=_("The content hash of the file, or the hash of those of several, in order."),
    )
    prompt_kind = models.CharField(
        _("prompt"),
        max_length=64,
        help_text=_(
            "What was asked: “default” or the hash of the words beside a picture; "
            "“voice” and “file” for those."
        ),
    )
    model = models.CharField(_("model"), max_length=200)
    files = models.PositiveIntegerField(_("files"), default=1)
    text = models.TextField(_("description"))
    input_tokens = models.PositiveIntegerField(_("input tokens"), default=0)
    output_tokens = models.PositiveIntegerField(_("output tokens"), default=0)
    created_at = models.DateTimeField(_("described at"))

    class Meta:
        verbose_name = _("description")
        verbose_name_plural = _("descriptions")
        ordering = ("-id",)
        constraints: ClassVar = [
            models.UniqueConstraint(
                fields=["content", "prompt_kind", "model"], name="one_description_per_question"
            ),
        ]

    def __str__(self) -> str:
        return f"#{self.pk} {self.text[:40]}"


class MessageMedia(models.Model):
    """One picture, voice, video or file of a message, and the outcome of fetching it."""

    class MediaKind(models.TextChoices):
        IMAGE = "image", _("picture")
        RECORD = "record", _("voice")
        VIDEO = "video", _("video")
        FILE = "file", _("file")

    class Origin(models.TextChoices):
        MESSAGE = "message", _("in the message")
        QUOTED = "quoted", _("in the quoted message")
        FORWARDED = "forwarded", _("in a forwarded message")

    message = models.ForeignKey(
        Message, models.CASCADE, related_name="media", verbose_name=_("message"), db_index=False
    )
    position = models.PositiveIntegerField(_("position"), default=0)
    kind = models.CharField(_("kind"), max_length=16, choices=MediaKind.choices)
    origin = models.CharField(
        _("origin"), max_length=16, choices=Origin.choices, default=Origin.MESSAGE
    )
    name = models.CharField(_("name"), max_length=200, blank=True, default="")
    reason = models.TextField(
        _("reason"), blank=True, default="", help_text=_("Why it could not be had.")
    )
    kept = models.ForeignKey(
        KeptFile,
        models.SET_NULL,
        null=True,
        blank=True,
        related_name="uses",
        verbose_name=_("our copy"),
    )
    description = models.ForeignKey(
        Description,
        models.SET_NULL,
        null=True,
        blank=True,
        related_name="uses",
        verbose_name=_("description"),
    )
    created_at = models.DateTimeField(_("recorded at"))

    class Meta:
        verbose_name = _("medium of a message")
        verbose_name_plural = _("media of messages")
        ordering = ("message", "position")
        indexes: ClassVar = [models.Index(fields=["message", "position"], name="media_message")]

    def __str__(self) -> str:
        return f"#{self.pk} {self.kind}"


class MediaFile(models.Model):
    """A file that may be sent. It lies in the media folder and has no row: this gives it
    permissions and a history."""

    path = models.CharField(_("path"), max_length=1024, primary_key=True)

    class Meta:
        managed = False
        verbose_name = _("media file")
        verbose_name_plural = _("media files")
        default_permissions: ClassVar = ("add", "delete", "view")

    def __str__(self) -> str:
        return self.path


class ResultPicture(models.Model):
    """Our own copy of a picture in a tool's result, which a later call may name as
    ``tool_result:<name>:<position>``."""

    session = models.ForeignKey(
        ChatSession,
        models.CASCADE,
        related_name="+",
        verbose_name=_("chat session"),
        db_index=False,
    )
    call = models.ForeignKey(
        ToolCall, models.CASCADE, related_name="pictures", verbose_name=_("tool call")
    )
    name = models.CharField(
        _("call id"), max_length=128, help_text=_("The id by which the model knows the call.")
    )
    position = models.PositiveIntegerField(_("position"))
    kept = models.ForeignKey(
        KeptFile, models.CASCADE, related_name="results", verbose_name=_("our copy")
    )
    created_at = models.DateTimeField(_("recorded at"))

    class Meta:
        verbose_name = _("picture of a tool's result")
        verbose_name_plural = _("pictures of tools' results")
        ordering = ("-id",)
        indexes: ClassVar = [
            models.Index(fields=["session", "name", "-id"], name="result_picture_name")
        ]

    def __str__(self) -> str:
        return f"tool_result:{self.name}:{self.position}"
