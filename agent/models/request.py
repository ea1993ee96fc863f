"""Requests of people to be let in, and rules that decide over them."""

from typing import Any, ClassVar, TypeAlias

from django.core.exceptions import ValidationError
from django.core.validators import MaxValueValidator, MinValueValidator
from django.db import models
from django.db.models import Q
from django.utils import timezone
from django.utils.translation import gettext_lazy as _, pgettext_lazy

from agent.domain.requests import MOST_REASON, RequestKind, RuleAction
from agent.domain.states import ApprovalState
from agent.domain.types import ChatAddress, ChatKind
from agent.models.endpoint import NO_CONTROLS
from agent.models.manners import MOST_ANSWERS, line_problems
from agent.models.scope import SCOPE, Scoped
from tools.live_rows import Tracked
from tools.models.tool_config import check_ids, parse_ids

MOST_LEVEL = 1_000


def _words(name: Any, help_text: Any) -> "models.TextField[Any, Any]":
    return models.TextField(name, blank=True, default="", help_text=help_text)


class RequestRule(Scoped):
    """What becomes of requests that fit all that it says; what is empty fits every request."""

    name = models.CharField(
        _("name"), max_length=100, blank=True, default="", validators=[NO_CONTROLS]
    )
    enabled = models.BooleanField(_("enabled"), default=True)
    position = models.PositiveIntegerField(
        _("position"),
        default=100,
        validators=[MaxValueValidator(MOST_ANSWERS)],
        help_text=_(
            "The first rule that fits decides, the lowest position first; before all others, rules "
            "that refuse listed people."
        ),
    )
    kind = models.CharField(
        _("kind"),
        max_length=8,
        choices=RequestKind.choices,
        blank=True,
        default="",
        help_text=_("Empty: all three."),
    )
    words = _words(
        _("words of the request"),
        _(
            "One a line: the request fits if what its sender wrote, or answered to the group's "
            "question, holds one of them. Empty: whatever was written."
        ),
    )
    people = _words(_("people"), _("Ids of who asks or invites, one a line. Empty: everybody."))
    groups = _words(_("groups to join"), _("Ids of groups, one a line. Empty: all."))
    least_level = models.PositiveIntegerField(
        _("least QQ level"),
        null=True,
        blank=True,
        validators=[MinValueValidator(1), MaxValueValidator(MOST_LEVEL)],
        help_text=_("Where the client does not tell the level, the request waits."),
    )
    per_day = models.PositiveIntegerField(
        _("decisions a day"),
        null=True,
        blank=True,
        validators=[MaxValueValidator(MOST_ANSWERS)],
        help_text=_("Further requests wait. Empty: no limit."),
    )
    action = models.CharField(
        _("what becomes of it"), max_length=8, choices=RuleAction.choices, default=RuleAction.WAIT
    )
    reason = models.CharField(
        _("words of the refusal"), max_length=MOST_REASON, blank=True, default=""
    )
    updated_at = models.DateTimeField(_("changed"), auto_now=True)

    tracked = Tracked(
        fields=(
            *("name", "enabled", "position", "kind", "words", "people", "groups", "least_level"),
            *("per_day", "action", "reason", *SCOPE),
        )
    )

    class Meta:
        verbose_name = _("request rule")
        verbose_name_plural = _("request rules")
        ordering = ("position", "id")

    def __str__(self) -> str:
        return self.name or f"#{self.pk}"

    @property
    def listed(self) -> frozenset[str]:
        return frozenset(one.rpartition(":")[2] for one in parse_ids(self.people))

    def clean(self) -> None:
        """Raises :class:`ValidationError` with what is wrong, under the name of its field."""
        problems = self.scope_problems() | {"words": line_problems(self.words)}
        problems |= {name: check_ids(getattr(self, name)) for name in ("people", "groups")}
        if found := {name: lines for name, lines in problems.items() if lines}:
            raise ValidationError(found)


class JoinRequest(models.Model):
    """Somebody asks to be a friend or a member, or invites the account. It is decided once.

    While ``decision`` is not empty, the client is to be told it, or is being told by the process
    ``claimed_by``: the state follows from what the client says.
    """

    Kind: TypeAlias = RequestKind
    State: TypeAlias = ApprovalState

    account = models.CharField(_("account"), max_length=64)
    kind = models.CharField(_("kind"), max_length=8, choices=RequestKind.choices)
    user_id = models.CharField(
        _("person"), max_length=64, help_text=_("Who asks, or who invites the account.")
    )
    group_id = models.CharField(
        pgettext_lazy("chat", "group"), max_length=64, blank=True, default=""
    )
    inviter_id = models.CharField(
        _("invited by"), max_length=64, blank=True, default="", help_text=_("As the client says.")
    )
    level = models.PositiveIntegerField(_("QQ level"), null=True, blank=True)
    comment = models.TextField(_("words of the request"), blank=True, default="")
    state = models.CharField(
        _("state"), max_length=16, choices=ApprovalState.choices, default=ApprovalState.WAITING
    )
    reason = models.TextField(
        _("reason"),
        blank=True,
        default="",
        help_text=_("The words of the refusal, or why it is as it is: the client's, where it had."),
    )
    rule = models.ForeignKey(
        RequestRule,
        models.SET_NULL,
        null=True,
        blank=True,
        related_name="requests",
        verbose_name=_("rule"),
    )
    decided_by = models.CharField(
        _("decided by"),
        max_length=200,
        blank=True,
        default="",
        help_text=_("An owner's id, the name of an admin account, or a rule."),
    )
    decided_at = models.DateTimeField(_("decided"), null=True, blank=True)
    created_at = models.DateTimeField(_("asked"), default=timezone.now)
    flag = models.JSONField(null=True, editable=False)
    """As the client gave it, None where it cannot be answered."""
    key = models.CharField(max_length=64, editable=False)
    decision = models.CharField(
        max_length=8, blank=True, default="", choices=RuleAction.choices, editable=False
    )
    claimed_by = models.CharField(max_length=32, blank=True, default="", editable=False)
    told_at = models.DateTimeField(null=True, editable=False)
    """When owners were told of it."""

    class Meta:
        verbose_name = _("request to be let in")
        verbose_name_plural = _("requests to be let in")
        ordering = ("-id",)
        constraints: ClassVar = [
            models.UniqueConstraint(
                fields=["key"], condition=Q(state="waiting"), name="one_waiting_request"
            )
        ]
        indexes: ClassVar = [
            models.Index(fields=["state", "account"], name="request_state"),
            models.Index(fields=["key"], name="request_key"),
            models.Index(fields=["rule", "decided_at"], name="request_rule"),
        ]

    def __str__(self) -> str:
        return f"#{self.pk} {self.user_id}"

    @property
    def is_open(self) -> bool:
        """Whether it can still be decided."""
        return self.state == ApprovalState.WAITING and not self.decision

    @property
    def chat(self) -> ChatAddress:
        """The chat that it is about."""
        kind: ChatKind = "group" if self.group_id else "private"
        return ChatAddress(self.account, kind, self.group_id or self.user_id)
