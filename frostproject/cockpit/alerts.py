"""What an operator should look at now: in words, with what to do and where."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from django.urls import reverse

from agent.access.chat_access import ChatAccess, find_access

BAD, NOTABLE = "bad", "notable"
#: Percent of what may be spent from which on it is told of.
NEARLY = 80
#: Own chats, those with the newest messages, whose sums are looked at.
MOST_OWN = 300


@dataclass(frozen=True, slots=True)
class Alert:
    """One thing that needs somebody. ``advice`` says what to do, ``url`` leads to where it is done
    ("" for nowhere); where it is to be done several times, ``others`` is another way there."""

    kind: str
    text: str
    advice: str = ""
    url: str = ""
    level: str = NOTABLE
    #: A text and its address.
    others: tuple[str, str] = ("", "")


@dataclass(frozen=True, slots=True)
class Viewer:
    """Who looks, and which chats are within reach."""

    user: Any
    access: ChatAccess

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


def sort_alerts(alerts: Iterator[Alert]) -> list[Alert]:
    """The worst first; else in their order."""
    return sorted(alerts, key=lambda alert: alert.level != BAD)
