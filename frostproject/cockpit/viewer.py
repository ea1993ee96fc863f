"""Who looks at the overview, and what of it is within reach."""

import itertools
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date, timedelta
from functools import cached_property
from typing import TYPE_CHECKING, Any

from django.urls import reverse

from agent.access.chat_access import ChatAccess, find_access
from agent.domain import types
from agent.domain.budgets import BudgetTerms
from agent.models import ActivitySum, Manners
from agent.models.activity import WHOLE_DAY
from agent.record.sums import past
from agent.record.sums.activity import TIME_COLUMNS
from agent.record.sums.budgets import load_budgets
from onebot.models import Bot
from tools.live_rows import ConfigVersion, LiveKind
from tools.local_time import counted_since, current_day, today

if TYPE_CHECKING:
    from django.db.models import QuerySet

#: Own chats, those with the newest messages, whose sums are looked at; accounts, of which each is
#: told of by itself; and rows of manners that silence.
MOST_OWN, MOST_BOTS, MOST_SILENCING = 300, 200, 1_000
#: Days that are shown, today among them, and what of them.
DAYS = 30
COUNTS = (
    *("received", "addressed", "answered", "failed", "sent", "unsent", "unknown"),
    *("runs", "failed_runs", "tool_calls", "failed_calls", *TIME_COLUMNS),
)


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

    @cached_property
    def known(self) -> dict[Any, Any]:
        """What this process remembers of all chats together, see :func:`sum_hours`."""
        if not self.access.is_everything:
            return {}
        return past.of_activity.as_of(ConfigVersion.current(LiveKind.PAST_SUMS))

    @property
    def activity(self) -> "QuerySet[ActivitySum]":
        """The sums of the chats within reach."""
        return ActivitySum.objects.filter(self.access.condition("session__")).order_by()

    @cached_property
    def sums(self) -> Mapping[past.Hour, Mapping[str, int]]:
        """What happened on each day shown, and in each hour of today and of the day before."""
        hours, now = itertools.product({current_day(), counted_since(24)[0]}, range(24)), today()
        asked = [(one, WHOLE_DAY) for one in days_shown(now)]
        asked += [one for one in hours if one <= counted_since(0)]
        return past.sum_hours(self.activity, sorted(asked), COUNTS, self.known)

    @cached_property
    def silencing(self) -> list[Manners]:
        """The rows of manners that silence now."""
        rows = Manners.objects.filter(enabled=True, silenced=True)[:MOST_SILENCING]
        return [row for row in rows if row.is_silencing]

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


def days_shown(today: date) -> list[str]:
    return [(today - timedelta(days=back)).isoformat() for back in range(DAYS - 1, -1, -1)]


def find_viewer(user: Any) -> Viewer:
    return Viewer(user, find_access(user))


def link(name: str, *arguments: object, query: str = "") -> str:
    """The address of a page of the admin."""
    return reverse(f"admin:{name}", args=arguments) + (f"?{query}" if query else "")
