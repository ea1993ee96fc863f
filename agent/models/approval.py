"""Approvals: an owner's word that a tool call waits for."""

from typing import ClassVar, TypeAlias

from django.db import models
from django.db.models import Q
from django.utils.translation import gettext_lazy as _

from agent.domain.states import ApprovalState
from agent.models.session import ChatSession
from agent.models.tool_call import ToolCall


class Approval(models.Model):
    """One question to the owners: may this call be made, with these arguments?

    It is decided once, in the chat or in the admin, or expires, which refuses the call.
    """

    State: TypeAlias = ApprovalState

    call = models.OneToOneField(
        ToolCall, models.CASCADE, related_name="approval", verbose_name=_("tool call")
    )
    session = models.ForeignKey(
        ChatSession, models.CASCADE, related_name="approvals", verbose_name=_("chat session")
    )
    code = models.CharField(
        _("code"), max_length=16, help_text=_("What owners name the question by in the chat.")
    )
    state = models.CharField(
        _("state"), max_length=16, choices=State.choices, default=State.WAITING
    )
    decided_by = models.CharField(
        _("decided by"),
        max_length=200,
        blank=True,
        default="",
        help_text=_("An owner's id, or the name of an admin account."),
    )
    created_at = models.DateTimeField(_("asked"))
    expires_at = models.DateTimeField(_("expires"))
    decided_at = models.DateTimeField(_("decided"), null=True, blank=True)
    arguments = models.JSONField(
        _("arguments"), default=dict, help_text=_("As the model gave them, checked.")
    )
    changed_arguments = models.JSONField(
        _("changed arguments"),
        null=True,
        blank=True,
        help_text=_("What the owner made of the arguments, if anything."),
    )

    class Meta:
        verbose_name = _("approval")
        verbose_name_plural = _("approvals")
        ordering = ("-id",)
        constraints: ClassVar = [
            models.UniqueConstraint(
                fields=["code"], condition=Q(state="waiting"), name="one_waiting_approval_per_code"
            ),
        ]
        indexes: ClassVar = [models.Index(fields=["state", "expires_at"], name="approval_state")]

    def __str__(self) -> str:
        return f"#{self.pk} {self.code}"
