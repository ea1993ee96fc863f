"""One command of a chat, with what it may look at and change."""

from collections.abc import Callable
from dataclasses import dataclass

from agent.domain.commands import Command, CommandAudience, CommandName
from agent.domain.manners import Manners
from agent.domain.persona import Persona
from agent.domain.types import AccountSettings, ChatAddress, IncomingMessage, Outbox
from agent.record.settings.manners import load_manners_table
from agent.record.sums.quotas import AnswerQuotas
from tools.registry.policy import GROUP_ADMIN_ROLES


@dataclass(frozen=True, slots=True)
class CommandServices:
    """What commands work with besides the rows of the agent."""

    quotas: AnswerQuotas
    outbox: Outbox
    name_model: Callable[[Persona], str]
    """The model that a persona is answered by first."""


@dataclass(frozen=True, slots=True)
class CommandCall:
    """Who gives which command where."""

    command: Command
    message: IncomingMessage
    message_pk: int
    session_pk: int
    persona: Persona
    manners: Manners
    account: AccountSettings
    services: CommandServices
    has_stopped: bool = False
    """Of ``stop``: whether an answer was stopped."""

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

    def may_give(self, name: CommandName) -> bool:
        """Whether the sender may give this command here."""
        match name.audience:
            case CommandAudience.OWNERS:
                return self.is_owner
            case CommandAudience.MANAGERS:
                return self.is_manager
            case _:
                return True

    @property
    def quoted_id(self) -> str:
        """The client's id of the message that it quotes, "" for none."""
        return self.message.quoted_id

    @property
    def author(self) -> str:
        """Who made a change, as its history says it."""
        return f"owner {self.message.sender_id} in {self.chat.key}"

    @property
    def arguments(self) -> str:
        return self.command.arguments

    def load_manners(self) -> Manners:
        """What counts in the chat now, with what this transaction has changed."""
        return load_manners_table().find(self.chat)
