"""Which chats a user of the admin may see and steer.

What he may do there is said by Django's permissions; where he may do it, here. Every page, search,
chart, export and live view that shows anything of a chat asks :func:`find_access`.
"""

from dataclasses import dataclass
from functools import reduce
from operator import or_
from typing import Any, Protocol

from django.db.models import Q, QuerySet

from agent.domain.types import playground_account
from agent.models import ChatGrant, ChatSession

EVERY_CHAT, OWN_PLAYGROUND = "agent.view_every_chat", "agent.use_playground"


class KeyedChat(Protocol):
    """A chat as its row holds it, or its address."""

    account: str

    @property
    def key(self) -> str:
        """``group:<id>`` or ``private:<id>``."""
        ...


@dataclass(frozen=True, slots=True)
class ChatAccess:
    """The chats that a user may reach: every one, or those of some accounts and some single
    ones."""

    is_everything: bool = False
    accounts: frozenset[str] = frozenset()
    chats: frozenset[tuple[str, str]] = frozenset()
    """Account and key of single chats."""

    def covers(self, chat: KeyedChat) -> bool:
        """Whether ``chat`` may be reached."""
        return (
            self.is_everything
            or chat.account in self.accounts
            or (chat.account, chat.key) in self.chats
        )

    def sessions(self) -> QuerySet[ChatSession]:
        """The sessions of the chats that may be reached, in no order."""
        return ChatSession.objects.filter(self.condition()).order_by()

    def condition(self, prefix: str = "") -> Q:
        """Of rows of chats that may be reached; ``prefix`` leads to the chat session, such as
        ``session__``. Rows without a chat are reached by those alone who may see every chat."""
        if self.is_everything:
            return Q()
        if prefix:  # by the keys: a join would have SQLite walk through every row in order
            return Q(**{f"{prefix.removesuffix('__')}__in": self.sessions().values("pk")})
        parts = [Q(account__in=sorted(self.accounts))] if self.accounts else []
        for account, key in sorted(self.chats):
            kind, _colon, peer_id = key.partition(":")
            parts.append(Q(account=account, kind=kind, peer_id=peer_id))
        return reduce(or_, parts) if parts else Q(pk__in=[])

    def run_condition(self, prefix: str = "") -> Q:
        """Of runs in such chats, and of those that ask a message of theirs again; ``prefix`` leads
        to the run."""
        if self.is_everything:
            return Q()
        asked_again = self.condition(f"{prefix}trial_of__session__")
        return self.condition(f"{prefix}session__") | asked_again

    def named_chat_condition(self, account: str, chat: str) -> Q:
        """Of rows that name an account and the key of a chat in the fields ``account`` and
        ``chat``, and have no session."""
        if self.is_everything:
            return Q()
        own = [Q(**{account: one, chat: key}) for one, key in sorted(self.chats)]
        return reduce(or_, own, self.account_condition(account))

    def account_condition(self, field: str) -> Q:
        """Of rows of accounts that may be reached as a whole; ``field`` holds the account."""
        return Q() if self.is_everything else Q(**{f"{field}__in": sorted(self.accounts)})


EVERYTHING, NOTHING = ChatAccess(is_everything=True), ChatAccess()


def find_access(user: Any) -> ChatAccess:
    """The chats that ``user`` may reach; those of the own playground are among them. At most one
    query, once for each object of a user, of which a request has one."""
    if not getattr(user, "is_active", False) or not user.is_staff:
        return NOTHING
    found: ChatAccess | None = getattr(user, "_chat_access", None)
    if found is None:
        found = EVERYTHING if user.has_perm(EVERY_CHAT) else _load_grants(user)
        user._chat_access = found
    return found


def _load_grants(user: Any) -> ChatAccess:
    grants = list(ChatGrant.objects.filter(user=user.pk).values_list("account", "chat"))
    own = {playground_account(user.pk)} if user.has_perm(OWN_PLAYGROUND) else set()
    return ChatAccess(
        accounts=frozenset(account for account, chat in grants if not chat) | own,
        chats=frozenset((account, chat) for account, chat in grants if chat),
    )
