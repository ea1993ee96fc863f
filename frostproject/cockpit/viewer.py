"""Who looks at the overview, and what of it is within reach."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

from django.urls import reverse

from agent.access.chat_access import ChatAccess, find_access
from agent.domain import types
from agent.domain.budgets import BudgetTerms
from agent.record.sums.budgets import load_budgets
from onebot.models import Bot

#: Own chats, those with the newest messages, whose sums are looked at.
MOST_OWN = 300


#: Accounts that are looked at, and of which each is told of by itself.
MOST_BOTS = 200


@dataclass(frozen=True)
class Viewer:
    """Who looks, and which chats are within reach."""

    user: Any
    access: ChatAccess

    @cached_property
    def bots(self) -> list[Bot]:
        """The accounts within reach, and those of single chats within reach; without
        playgrounds. Loaded once."""
        if not self.sees_accounts:
            return []
        rows = Bot.objects.order_by("self_id")
        if not self.access.is_everything:
            own = self.access.accounts | {account for account, _chat in self.access.chats}
            rows = rows.filter(self_id__in=sorted(own))
        return [bot for bot in rows[:MOST_BOTS] if not types.is_playground(bot.self_id)]

    @cached_property
    def budgets(self) -> tuple[BudgetTerms, ...]:
        """Those that are enabled, loaded once."""
        return load_budgets()

    def may(self, permission: str) -> bool:
        return bool(self.user.has_perm(permission))

    def may_see_all(self, permission: str) -> bool:
        """Of what belongs to no chat in particular."""
        return self.access.is_everything and self.may(permission)

    def own_places(self) -> list[str]:
        """The chats within reach as they are written in sums."""
        own = self.access.sessions().order_by("-last_message_at")[:MOST_OWN]
        columns = own.values_list("platform", "account", "kind", "peer_id")
        return [":".join(parts) for parts in columns]

    @property
    def sees_accounts(self) -> bool:
        """Whether accounts are connected: who runs a chat has to know it of his own."""
        return self.may("onebot.view_bot") or not self.access.is_everything

    def page_of_account(self, account: str, pk: int) -> str:
        """The page of a bot, "" where it is not for this user."""
        is_whole = self.access.is_everything or account in self.access.accounts
        return link("onebot_bot_change", pk) if is_whole and self.may("onebot.view_bot") else ""


def find_viewer(user: Any) -> Viewer:
    return Viewer(user, find_access(user))


def link(name: str, *arguments: object, query: str = "") -> str:
    """The address of a page of the admin."""
    return reverse(f"admin:{name}", args=arguments) + (f"?{query}" if query else "")
