"""Digests: what a model wrote about a range of a chat's conversation."""

from typing import ClassVar

from django.db import models
from django.utils.translation import gettext_lazy as _

from agent.models.session import ChatSession


class Digest(models.Model):
    """One reading of the exchanges of the runs ``first_run`` to ``last_run``, ends included.

    The newest one of a kind says how far a chat was read; a reading that failed has no
    row. The messages themselves stay as they are.
    """

    class DigestKind(models.TextChoices):
        SUMMARY = "summary", _("summary")
        EXTRACTION = "extraction", _("notes taken")

    session = models.ForeignKey(
        ChatSession,
        models.CASCADE,
        related_name="digests",
        verbose_name=_("chat session"),
        db_index=False,
    )
    kind = models.CharField(_("kind"), max_length=16, choices=DigestKind.choices)
    first_run = models.PositiveBigIntegerField(_("first run"))
    last_run = models.PositiveBigIntegerField(_("last run"))
    message_count = models.PositiveIntegerField(_("messages"), default=0)
    note_count = models.PositiveIntegerField(_("memory notes"), default=0)
    model = models.CharField(_("model"), max_length=200, blank=True, default="")
    input_tokens = models.PositiveIntegerField(_("input tokens"), default=0)
    output_tokens = models.PositiveIntegerField(_("output tokens"), default=0)
    created_at = models.DateTimeField(_("recorded at"))
    text = models.TextField(
        _("text"),
        blank=True,
        default="",
        help_text=_("Of a summary: what the model is told of everything up to here."),
    )

    class Meta:
        verbose_name = _("digest")
        verbose_name_plural = _("digests")
        ordering = ("-id",)
        constraints: ClassVar = [
            models.UniqueConstraint(
                fields=["session", "kind", "last_run"], name="one_digest_per_range"
            ),
        ]
        indexes: ClassVar = [models.Index(fields=["kind", "-id"], name="digest_kind")]

    def __str__(self) -> str:
        return f"#{self.pk} {self.session_id}"
