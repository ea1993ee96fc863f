"""Pictures that tools gave back."""

from typing import ClassVar

from django.db import models
from django.utils.translation import gettext_lazy as _

from agent.models.media import KeptFile
from agent.models.session import ChatSession
from agent.models.tool_call import ToolCall


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
