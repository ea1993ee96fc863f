"""The rows that configure single tools.: where, by whom and how each may be called.

The other chats that a tool may send to, and for whom, as its row lists them:

::

    group:123456 owners
    private:20002 everyone
    group:777 30003 30004
"""

import re
from collections.abc import Collection
from dataclasses import dataclass

from django.core.validators import MaxValueValidator, MinValueValidator
from django.db import models
from django.db.models import TextChoices, Value
from django.utils.translation import gettext, gettext_lazy as _

from tools.live_rows import LiveKind, LiveModel, Tracked
from tools.text.placeholders import check_mock_template

EVERYONE, OWNERS = "everyone", "owners"
_CHAT = re.compile(r"(?:onebot:)?((?:group|private):[\w.@-]{1,64})", re.ASCII)
_PERSON = re.compile(r"(?:onebot:)?[\w.@-]{1,64}", re.ASCII)


@dataclass(frozen=True, slots=True)
class OtherChat:
    """One chat, as ``kind:peer``, and who may have something sent there; owners always may."""

    key: str
    callers: frozenset[str]

    def is_for(self, user_id: str, *, is_owner: bool) -> bool:
        return is_owner or EVERYONE in self.callers or (bool(user_id) and user_id in self.callers)


def parse_other_chats(text: str) -> tuple[OtherChat, ...]:
    """What ``text`` lists; lines that name no chat, or nobody, are left out."""
    found = []
    for line in text.splitlines():
        chat, *callers = line.replace(",", " ").replace("，", " ").split() or [""]
        if (match := _CHAT.fullmatch(chat)) and callers:
            ids = frozenset(one.rpartition(":")[2] for one in callers)
            found.append(OtherChat(match[1], ids))
    return tuple(found)


def check_other_chats(text: str) -> list[str]:
    """A sentence for each line that cannot be meant."""
    problems = []
    for line in filter(None, map(str.strip, text.splitlines())):
        chat, *callers = line.replace(",", " ").replace("，", " ").split()
        if not _CHAT.fullmatch(chat):
            problems.append(
                gettext("“%(chat)s” is neither group:NUMBER nor private:NUMBER.")
                % {"chat": chat[:64]}
            )
        elif not callers:
            problems.append(
                gettext("For %(chat)s nobody is named: owners, everyone, or ids of people.")
                % {"chat": chat[:64]}
            )
        elif wrong := [one for one in callers if not _PERSON.fullmatch(one)]:
            problems.append(gettext("“%(id)s” is not an id.") % {"id": wrong[0][:64]})
    return problems


_SEPARATORS = re.compile(r"[\s,;，；、]+")
_ID = re.compile(r"[\w.@-]{1,64}(:[\w.@-]{1,64})*", re.ASCII)


def parse_ids(text: str) -> list[str]:
    """The ids of a list that is written with spaces, line breaks or commas of any kind, each once,
    in order."""
    return list(dict.fromkeys(part for part in _SEPARATORS.split(text) if part))


def check_ids(text: str) -> list[str]:
    """A line for each entry that cannot be an id; ``platform:id`` is one as well."""
    return [
        gettext("“%(id)s” is not an id.") % {"id": entry[:64]}
        for entry in parse_ids(text)
        if not _ID.fullmatch(entry)
    ]


def check_descriptions(value: object, parameter_names: Collection[str] | None) -> list[str]:
    """What keeps ``value`` from describing these parameters: it must be an object of texts. None:
    any name is known."""
    if not isinstance(value, dict):
        return [gettext("A JSON object is wanted: the name of each argument and its description.")]
    problems = []
    for name, text in value.items():
        if parameter_names is not None and name not in parameter_names:
            known = ", ".join(parameter_names) or gettext("none")
            problems.append(
                gettext("“%(name)s” is not an argument of this tool. Known: %(names)s.")
                % {"name": name, "names": known}
            )
        elif not isinstance(text, str):
            problems.append(gettext("The description of “%(name)s” is not text.") % {"name": name})
    return problems


class ToolVisibility(TextChoices):
    VISIBLE = "visible", _("visible")
    DEFERRED = "deferred", _("deferred")
    HIDDEN = "hidden", _("hidden")


class ToolScope(TextChoices):
    ALL = "all", _("everywhere")
    GROUP = "group", _("group chats only")
    PRIVATE = "private", _("private chats only")


class AllowedCallers(TextChoices):
    """Who may use a tool. The owners of the bot always may."""

    EVERYONE = "everyone", _("everyone")
    OWNERS = "owners", _("owners of the bot")
    PEOPLE = "people", _("listed people")
    GROUPS = "groups", _("listed groups")
    GROUP_ADMINS = "group_admins", _("owners and admins of the group")


class ApprovalMode(TextChoices):
    OWN = "own", _("as the tool itself says")
    ALWAYS = "always", _("every call")
    NEVER = "never", _("no call")


MOST_CALLS = 10_000
"""Calls per minute that a row can set as a limit."""


class ToolConfig(LiveModel):
    """How one tool behaves: the operator's word over the tool's own declaration."""

    live_kind = LiveKind.TOOLS

    name = models.CharField(_("name"), max_length=128, unique=True, editable=False)
    provider_name = models.CharField(_("provider"), max_length=128, editable=False, default="")
    enabled = models.BooleanField(
        _("enabled"),
        default=True,
        help_text=_("A disabled tool is neither offered to the model nor callable."),
    )
    visibility = models.CharField(
        _("visibility"),
        max_length=16,
        choices=ToolVisibility,
        default=ToolVisibility.VISIBLE,
        help_text=_(
            "A deferred tool is only named to the model, which finds it with tool_search and keeps "
            "it in that chat;"
            " a hidden one is not offered at all, and a model that remembers it cannot call it."
        ),
    )
    pinned = models.BooleanField(
        _("pinned"),
        default=False,
        help_text=_(
            "Always offered to the model in full and never deferred, however many tools there are."
        ),
    )
    scope = models.CharField(
        _("scope"),
        max_length=16,
        choices=ToolScope,
        default=ToolScope.ALL,
        help_text=_("The chats in which the tool is offered and callable."),
    )
    allowed = models.CharField(
        _("who may use it"),
        max_length=16,
        choices=AllowedCallers,
        default=AllowedCallers.EVERYONE,
        help_text=_(
            "Judged by the sender of the message that led to the call. Owners of the bot always "
            "may."
        ),
    )
    allowed_ids = models.TextField(
        _("listed ids"),
        blank=True,
        default="",
        help_text=_("The listed people or groups, separated by commas, spaces or line breaks."),
    )
    other_chats = models.TextField(
        _("other chats"),
        blank=True,
        default="",
        db_default="",
        help_text=_(
            "Of send_message: the other chats of the same account that it may send to, one a "
            "line, each with those for whom: group:123456 owners, or private:20002 everyone, or "
            "group:123456 30003 30004."
        ),
    )
    requires_approval = models.CharField(
        _("needs approval"),
        max_length=16,
        choices=ApprovalMode,
        default=ApprovalMode.OWN,
        help_text=_("Which calls wait until an owner approves them."),
    )
    calls_per_minute_person = models.PositiveIntegerField(
        _("calls per minute and person"),
        default=0,
        validators=[MaxValueValidator(MOST_CALLS)],
        help_text=_("0: no limit."),
    )
    calls_per_minute_chat = models.PositiveIntegerField(
        _("calls per minute and chat"),
        default=0,
        validators=[MaxValueValidator(MOST_CALLS)],
        help_text=_("0: no limit."),
    )
    calls_per_day_chat = models.PositiveIntegerField(
        _("calls per day and chat"),
        null=True,
        blank=True,
        validators=[MaxValueValidator(MOST_CALLS)],
        help_text=_("Counted when a call begins, for the day of the chat's zone. Empty: no limit."),
    )
    mock_enabled = models.BooleanField(
        _("mock"),
        default=False,
        help_text=_("Answer every call with the mock value below instead of running the tool."),
    )
    mock_value = models.TextField(
        _("mock value"),
        blank=True,
        default="",
        help_text=_("{name} stands for that argument of the call; {{ and }} are plain braces."),
    )
    description = models.TextField(
        _("description"),
        blank=True,
        default="",
        help_text=_("What the model is told about the tool. Empty: the tool's own description."),
    )
    parameter_descriptions = models.JSONField(
        _("descriptions of arguments"),
        blank=True,
        default=dict,
        help_text=_(
            'What the model is told about arguments instead of the tool\'s own words: {"name": '
            '"description"}.'
        ),
    )
    timeout_seconds = models.PositiveIntegerField(
        _("time limit (seconds)"),
        default=60,
        validators=[MinValueValidator(1), MaxValueValidator(3600)],
        help_text=_("A call that takes longer is stopped and reported to the model as failed."),
    )
    parameter_names = models.JSONField(
        _("arguments"),
        null=True,
        default=None,
        editable=False,
        help_text=_("What {name} may stand for in the mock value."),
    )
    declaration = models.JSONField(
        _("declaration"),
        default=dict,
        editable=False,
        help_text=_(
            "What the tool says of itself: title, description, schemas, icons and annotation."
        ),
    )
    fingerprint = models.CharField(
        max_length=100, blank=True, default="", db_default=Value(""), editable=False
    )
    """The fingerprint of the current declaration, see :mod:`tools.registry.catalogue`;
    empty when no review is needed."""
    looked_at = models.CharField(
        _("looked at"), max_length=100, blank=True, default="", db_default=Value(""), editable=False
    )
    """The fingerprint of the reviewed declaration; empty: not reviewed."""
    looked_declaration = models.JSONField(null=True, default=None, blank=True, editable=False)
    """The reviewed declaration, to be compared with the current one."""
    created_at = models.DateTimeField(_("first seen"), auto_now_add=True)
    updated_at = models.DateTimeField(_("changed"), auto_now=True)

    tracked = Tracked(
        fields=(
            *("enabled", "visibility", "pinned", "scope", "allowed", "allowed_ids", "looked_at"),
            *(
                "other_chats",
                "requires_approval",
                "calls_per_minute_person",
                "calls_per_minute_chat",
                "calls_per_day_chat",
            ),
            *("mock_enabled", "mock_value", "description", "parameter_descriptions"),
            "timeout_seconds",
        )
    )

    class Meta:
        verbose_name = _("tool config")
        verbose_name_plural = _("tool configs")
        ordering = ("name",)

    def __str__(self) -> str:
        return self.name

    def find_problems(self) -> dict[str, list[str]]:
        return {
            "mock_value": check_mock_template(self.mock_value, self.parameter_names),
            "parameter_descriptions": check_descriptions(
                self.parameter_descriptions, self.parameter_names
            ),
            "allowed_ids": self._id_errors(),
            "other_chats": check_other_chats(self.other_chats),
        }

    def _id_errors(self) -> list[str]:
        if self.allowed in (AllowedCallers.PEOPLE, AllowedCallers.GROUPS) and not parse_ids(
            self.allowed_ids
        ):
            return [
                gettext(
                    "List at least one id: without any, nobody but the owners may use the tool."
                )
            ]
        return check_ids(self.allowed_ids)
