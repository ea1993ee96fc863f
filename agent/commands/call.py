"""One command of a chat, with what it may look at and change."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from datetime import datetime

from django.utils import timezone
from django.utils.translation import get_language, gettext, gettext_noop as _

from agent.domain.client_actions import ClientActions
from agent.domain.commands import MEMBER_COMMANDS, Command, CommandAudience, CommandName
from agent.domain.manners import ChatManners, MemberCommands
from agent.domain.persona import PersonaSettings
from agent.domain.types import AccountSettings, ChatAddress, IncomingMessage, Outbox
from agent.record.settings.manners import load_manners_table
from agent.record.sums.quotas import AnswerQuotas
from tools.registry.policy import GROUP_ADMIN_ROLES
from tools.registry.registry import ToolRegistry


@dataclass(frozen=True, slots=True)
class CommandServices:
    """What commands work with besides the rows of the agent."""

    quotas: AnswerQuotas
    outbox: Outbox
    name_model: Callable[[PersonaSettings], str]
    """The model that a persona is answered by first."""
    registry: ToolRegistry = field(default_factory=ToolRegistry)
    actions: ClientActions | None = None


@dataclass(frozen=True, slots=True)
class CommandCall:
    """Who gives which command where."""

    command: Command
    message: IncomingMessage
    message_pk: int
    session_pk: int
    persona: PersonaSettings
    manners: ChatManners
    account: AccountSettings
    services: CommandServices
    has_stopped: bool = False
    """Of ``stop``: whether an answer was stopped."""
    told: str = ""
    """Of ``undo``: what is said besides what came of it, or why nothing was tried."""
    acted: str = ""
    """Of one of :data:`agent.domain.commands.MEMBER_COMMANDS`: what came of it; "" where it was not
    written as it should be."""

    @property
    def chat(self) -> ChatAddress:
        return self.message.chat

    @property
    def is_owner(self) -> bool:
        return self.message.sender_id in self.account.owners

    @property
    def is_manager(self) -> bool:
        """Whether the sender decides for the whole chat."""
        leads = self.account.believes_senders and self.message.sender_role in GROUP_ADMIN_ROLES
        return self.chat.kind == "private" or leads or self.is_owner

    @property
    def leads_members(self) -> bool:
        """Whether the sender decides over the members of this group by commands."""
        is_on = self.manners.member_commands == MemberCommands.ADMINS
        return is_on and self.chat.kind == "group" and self.is_manager

    def may_give(self, name: CommandName) -> bool:
        """Whether the sender may give this command here."""
        if name in MEMBER_COMMANDS and not self.leads_members:
            return False
        match name.audience:
            case CommandAudience.OWNERS:
                return self.is_owner
            case CommandAudience.MANAGERS:
                return self.is_manager
            case _:
                return True

    @property
    def author(self) -> str:
        """Who made a change, as its history says it."""
        return f"owner {self.message.sender_id} in {self.chat.key}"

    def load_manners(self) -> ChatManners:
        """What counts in the chat now, with what this transaction has changed."""
        return load_manners_table().find(self.chat)


#: What stands behind the name, and what the command does.
_USAGE = {
    CommandName.HELP: ("", _("this list")),
    CommandName.RESET: ("", _("a fresh start; nothing is deleted")),
    CommandName.STOP: ("", _("stop the answer under way")),
    CommandName.UNDO: ("", _("take the last answer back, or the quoted one")),
    CommandName.STATUS: ("", _("who answers here, and what is left for you")),
    CommandName.WHY: ("", _("quoting a message: why I answered it, or did not")),
    CommandName.ON: ("", _("speak in this chat again")),
    CommandName.OFF: (_("[30m]"), _("be silent in this chat, for some time or until told again")),
    CommandName.ONLY: (
        _("[ID or @] [1h]"),
        _("answer only this person here, or you, for an hour or another time"),
    ),
    CommandName.ALLOW: (_("ID or @"), _("answer these people here")),
    CommandName.DENY: (_("ID or @"), _("do not answer these people here")),
    CommandName.PERSONA: (_("[name]"), _("show or choose who answers here")),
    CommandName.MODEL: (_("[name]"), _("show or choose the model that is asked first here")),
    CommandName.REMIND: (
        _("TIME [@] TEXT"),
        _("say it here at that time, such as 10m or mon 9:00"),
    ),
    CommandName.REMINDERS: ("", _("your reminders here, with their numbers")),
    CommandName.UNREMIND: (_("NUMBER"), _("cancel a reminder")),
    CommandName.MUTE: (_("ID or @ 10m"), _("mute a member of this group")),
    CommandName.UNMUTE: (_("ID or @"), _("let a member speak again")),
    CommandName.KICK: (_("ID or @"), _("remove a member from this group")),
    CommandName.BUDGET: (_("[tokens]"), _("show what is spent, or bound the tokens a day here")),
}


def describe_command(name: CommandName, prefix: str) -> str:
    """``/deny ID or @: do not answer these people here``."""
    does = gettext(_USAGE[name][1])
    return gettext("%(command)s: %(does)s") % {"command": _written(name, prefix), "does": does}


def tell_usage(name: CommandName, prefix: str) -> str:
    """How a command is written, for somebody who wrote it in another way."""
    return gettext("It is written like this: %(command)s") % {"command": _written(name, prefix)}


def tell_end(end: datetime | None) -> str:
    """When something ends by itself; "" for what does not."""
    if end is None:
        return ""
    at = timezone.localtime(end).strftime("%m-%d %H:%M")
    return gettext("It ends by itself at %(time)s.") % {"time": at}


def name_command(name: CommandName, prefix: str) -> str:
    """A command without what may stand behind it: ``/on``."""
    is_chinese = (get_language() or "").startswith("zh")
    return f"{prefix}{name.chinese if is_chinese else name.english}"


def _written(name: CommandName, prefix: str) -> str:
    arguments = _USAGE[name][0]
    return f"{name_command(name, prefix)} {gettext(arguments) if arguments else ''}".rstrip()


def join_words(words: Iterable[str]) -> str:
    """A list as one reads it in the present language."""
    return gettext(", ").join(words)
