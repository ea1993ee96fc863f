"""What operators may reach, what they did in chats, and the receipts of what they erased."""

import hashlib
import hmac
from typing import ClassVar, TypeAlias

from django.conf import settings
from django.db import models
from django.utils import timezone
from django.utils.dateparse import parse_datetime
from django.utils.formats import date_format
from django.utils.translation import gettext, gettext_lazy as _

from agent.domain.states import ActKind
from agent.models.message import Message
from agent.models.run import Run
from agent.models.session import ChatSession


class ChatGrant(models.Model):
    """An account, or one chat of it, that a user may see and steer who may not see every chat."""

    user = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        models.CASCADE,
        related_name="chat_grants",
        verbose_name=_("user"),
    )
    account = models.CharField(_("account"), max_length=64)
    chat = models.CharField(
        _("chat"),
        max_length=80,
        blank=True,
        default="",
        help_text=_("group:<id> or private:<id>. Empty: every chat of the account."),
    )

    class Meta:
        verbose_name = _("own chat")
        verbose_name_plural = _("own chats")
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["user", "account", "chat"], name="one_chat_grant")
        ]

    def __str__(self) -> str:
        return f"{self.account} {self.chat}".strip()


class OperatorAct(models.Model):
    """One thing that an operator did in a chat. Written with what it did, in one transaction."""

    Kind: TypeAlias = ActKind

    session = models.ForeignKey(
        ChatSession,
        models.CASCADE,
        null=True,
        blank=True,
        related_name="acts",
        verbose_name=_("chat session"),
        db_index=False,
    )
    kind = models.CharField(_("act"), max_length=16, choices=Kind.choices)
    author = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        models.SET_NULL,
        null=True,
        blank=True,
        related_name="+",
        verbose_name=_("author"),
        db_index=False,
    )
    author_name = models.CharField(_("author"), max_length=150, blank=True, default="")
    at = models.DateTimeField(_("at"))
    message = models.ForeignKey(
        Message,
        models.SET_NULL,
        null=True,
        blank=True,
        related_name="+",
        verbose_name=_("message"),
        db_index=False,
    )
    run = models.ForeignKey(
        Run,
        models.SET_NULL,
        null=True,
        blank=True,
        related_name="+",
        verbose_name=_("run"),
        db_index=False,
    )
    detail = models.TextField(_("detail"), blank=True, default="")

    class Meta:
        verbose_name = _("act of an operator")
        verbose_name_plural = _("acts of operators")
        ordering = ("-id",)
        permissions: ClassVar = [("view_log", _("Can see the log of the server"))]
        indexes: ClassVar = [models.Index(fields=["session", "-id"], name="act_session")]

    def __str__(self) -> str:
        return f"#{self.pk} {self.kind}"

    @property
    def detail_words(self) -> str:
        """``detail`` as a page shows it: of what ends by itself, when."""
        if self.kind not in (ActKind.TAKE_OVER, ActKind.ONLY):
            return self.detail
        person, _space, until = self.detail.rpartition(" ")
        if not until or (end := parse_datetime(until)) is None:
            return self.detail
        at = date_format(timezone.localtime(end), "Y-m-d H:i")
        return f"{person} {gettext('until %(time)s') % {'time': at}}".strip()


def hash_person(platform: str, person_id: str) -> str:
    """What a receipt holds instead of the id of a person."""
    text = f"{platform}:{person_id}".encode()
    return hmac.new(settings.SECRET_KEY.encode(), text, hashlib.sha256).hexdigest()


class ErasureReceipt(models.Model):
    """What went when a person was erased. It holds nothing that the person said."""

    at = models.DateTimeField(_("at"))
    author_name = models.CharField(_("author"), max_length=150, blank=True, default="")
    person_hash = models.CharField(_("person"), max_length=64, db_index=True)
    """HMAC-SHA-256 of platform and id under the secret key, in hexadecimal: who knows the id finds
    the receipt, and nobody else learns it."""
    counts = models.JSONField(_("what went"), default=dict)
    """Rows and files by kind, ``{"messages": 12, ...}``."""
    kept = models.JSONField(_("what stayed"), default=dict, blank=True)
    """What was left, by kind, with its number."""
    progress = models.JSONField(default=dict, blank=True, editable=False)
    """What is needed to go on, the person's id with it; empty once it is finished."""
    finished_at = models.DateTimeField(_("finished at"), null=True, blank=True)

    class Meta:
        verbose_name = _("receipt of an erasure")
        verbose_name_plural = _("receipts of erasures")
        ordering = ("-id",)

    def __str__(self) -> str:
        return f"#{self.pk}"
