"""Stickers: pictures that the operator has collected for the bot to send."""

from typing import Any, ClassVar

from django.db import models, transaction
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from tools.live_rows import ConfigVersion, LiveKind, Tracked

#: The folder of the stickers, inside the media folder.
FOLDER = "stickers"
#: Characters of a file's path, of what a sticker is described with, and of its tags together.
PATH_LIMIT, WORDS_LIMIT, TAGS_LIMIT = 500, 500, 200


class StickerQuerySet(models.QuerySet["Sticker"]):
    """Removing several at once counts as a change too."""

    def delete(self) -> tuple[int, dict[str, int]]:
        with transaction.atomic(using=self.db):
            ConfigVersion.bump(LiveKind.STICKERS)
            return super().delete()

    delete.queryset_only = True  # type: ignore[attr-defined]  # Django's own mark: not for the manager


class Sticker(models.Model):
    """One file of the stickers' folder, and the words it is chosen by.

    Rows of files that lie there are made by :mod:`agent.stickers.store`; a file that is
    gone keeps its row, with ``is_missing``, for it may come back.
    """

    path = models.CharField(_("file"), max_length=PATH_LIMIT, unique=True, editable=False)
    words = models.CharField(
        _("words"),
        max_length=WORDS_LIMIT,
        blank=True,
        default="",
        help_text=_("What it shows, and when it is fit to be sent."),
    )
    tags = models.CharField(
        _("tags"),
        max_length=TAGS_LIMIT,
        blank=True,
        default="",
        help_text=_("Short words, separated by commas or spaces."),
    )
    enabled = models.BooleanField(_("enabled"), default=True)
    is_missing = models.BooleanField(_("missing"), default=False, editable=False)
    sha256 = models.CharField(_("content hash"), max_length=64, editable=False)
    stamp = models.CharField(max_length=48, editable=False)
    use_count = models.PositiveIntegerField(_("times used"), default=0, editable=False)
    last_used_at = models.DateTimeField(_("last used"), null=True, blank=True, editable=False)
    created_at = models.DateTimeField(_("found at"), default=timezone.now, editable=False)

    objects = StickerQuerySet.as_manager()

    tracked = Tracked(fields=("words", "tags", "enabled"))

    class Meta:
        verbose_name = _("sticker")
        verbose_name_plural = _("stickers")
        ordering = ("-id",)
        indexes: ClassVar = [
            models.Index(fields=["enabled", "is_missing", "-id"], name="sticker_usable")
        ]

    def __str__(self) -> str:
        return self.words or self.path

    def save(self, **options: Any) -> None:
        """What the operator changes here counts from the next message on, in every process."""
        with transaction.atomic(using=options.get("using")):
            super().save(**options)
            ConfigVersion.bump(LiveKind.STICKERS)

    def delete(self, *arguments: Any, **options: Any) -> tuple[int, dict[str, int]]:
        with transaction.atomic():
            ConfigVersion.bump(LiveKind.STICKERS)
            return super().delete(*arguments, **options)
