"""Acts of the accounts, and the ranks of people in groups as clients tell them.

Rules: https://github.com/botuniverse/onebot-11/blob/master/api/public.md (get_group_member_info).
What is remembered belongs to one connection, and ends with the notice that changes it.
"""

import time
from collections import OrderedDict
from collections.abc import Mapping
from typing import NamedTuple, cast

from agent.domain.client_actions import (
    ACT_SECONDS,
    ASK_SECONDS,
    RANKS,
    ActionOutcome,
    GroupMember,
    GroupRole,
)
from agent.domain.events import ChatNotice, EventKind
from agent.domain.states import AWAY
from agent.domain.types import ChatAddress
from agent.run.message_sender import new_echo
from onebot.connections.client import OneBotClient
from onebot.protocol.actions import NotConnected, OneBotError
from onebot.protocol.segments import id_number, parse_id, value_text

#: Groups, and people of each, of whom something is remembered.
MOST_GROUPS, MOST_MEMBERS = 500, 500
#: How long a rank is believed, and that a client did not tell it, in seconds.
BELIEVED, UNTOLD = 600.0, 30.0
NAME_LIMIT = 100
UNSUPPORTED = 1404
#: Notices, and actions of our own, after which something else is known of people in a group.
CHANGES = (EventKind.ADMIN, EventKind.JOIN, EventKind.LEAVE, EventKind.CARD, EventKind.TITLE)
CHANGING = frozenset({"set_group_card", "set_group_special_title", "set_group_kick"})


class _Known(NamedTuple):
    member: GroupMember | None
    until: float


class OneBotActions:
    """The :class:`agent.domain.client_actions.ClientActions` of this process; one event loop."""

    def __init__(self, client: OneBotClient) -> None:
        self._client = client
        self._groups: OrderedDict[tuple[str, str], dict[str, _Known]] = OrderedDict()

    async def perform(
        self,
        chat: ChatAddress,
        action: str,
        params: Mapping[str, object],
        seconds: float = ACT_SECONDS,
        instead: tuple[str, Mapping[str, object]] | None = None,
    ) -> ActionOutcome:
        try:
            outcome = await self._call(chat.account, action, params, seconds)
        finally:  # also one that was cut off may have been carried out
            if action in CHANGING:
                self._groups.pop((chat.account, chat.peer_id), None)
        if outcome.is_unsupported and instead is not None:
            return await self._call(chat.account, *instead, seconds)
        return outcome

    async def find_member(self, chat: ChatAddress, user_id: str) -> GroupMember | None:
        key = chat.account, chat.peer_id
        group = self._groups.setdefault(key, {})
        self._groups.move_to_end(key)
        if len(self._groups) > MOST_GROUPS:
            self._groups.popitem(last=False)
        known = group.get(user_id)
        if known is None or known.until <= time.monotonic():
            params = {"group_id": chat.peer_id, "user_id": user_id, "no_cache": True}
            outcome = await self._call(chat.account, "get_group_member_info", params, ASK_SECONDS)
            member = _parse_member(outcome, user_id)
            known = _Known(member, time.monotonic() + (BELIEVED if member else UNTOLD))
            is_here = self._client.unsupported(chat.account) is not None
            if is_here and self._groups.get(key) is group:  # and no notice has come meanwhile
                if len(group) >= MOST_MEMBERS:
                    group.clear()
                group[user_id] = known
        return known.member

    def connected(self, account: str) -> None:
        """A client has connected: it may know better."""
        for key in [key for key in self._groups if key[0] == account]:
            del self._groups[key]

    def follow(self, notice: ChatNotice, chat: ChatAddress) -> None:
        """A client reports a notice of ``chat``."""
        if notice.kind in CHANGES:
            self._groups.pop((chat.account, chat.peer_id), None)

    async def _call(
        self, account: str, action: str, params: Mapping[str, object], seconds: float
    ) -> ActionOutcome:
        unsupported = self._client.unsupported(account)
        if unsupported and action in unsupported:
            return ActionOutcome(is_unsupported=True, retcode=UNSUPPORTED)
        try:
            response = await self._client.call(
                account, action, _numbered(params), new_echo(), seconds
            )
        except OneBotError as error:
            words = AWAY if isinstance(error, NotConnected) else str(error)
            return ActionOutcome(is_unknown=error.may_have_arrived, words=words)
        if response.is_unsupported and unsupported is not None:
            unsupported.add(action)
        return ActionOutcome(
            response.is_success,
            response.is_uncertain,
            response.is_unsupported,
            response.retcode,
            response.data,
            response.error_text,
        )


def _numbered(params: Mapping[str, object]) -> dict[str, object]:
    """``params`` with their ids as clients read them."""
    return {
        name: id_number(value, is_message=name == "message_id")
        if isinstance(value, str) and name in ("group_id", "user_id", "message_id")
        else value
        for name, value in params.items()
    }


def _parse_member(outcome: ActionOutcome, user_id: str) -> GroupMember | None:
    data = outcome.data if outcome.is_success else None
    if not isinstance(data, dict) or parse_id(data.get("user_id")) not in ("", user_id):
        return None
    role = value_text(data.get("role"))
    if role not in RANKS or not role:
        return None
    card, nickname, title = (
        value_text(data.get(name)).strip()[:NAME_LIMIT] for name in ("card", "nickname", "title")
    )
    return GroupMember(user_id, cast("GroupRole", role), card or nickname, card, title)
