"""What counts in one chat and which row says it, on the chat's page."""

from typing import Any, cast

from django.db.models import Q
from django.http import HttpRequest
from django.urls import reverse
from django.utils import timezone
from django.utils.http import urlencode

from agent.domain.types import ChatAddress, ChatKind
from agent.models import ChatSession, Manners
from agent.pages.manners import ShownField, list_counting
from agent.record.settings.chat_manners import is_row_of_chat
from agent.record.settings.manners import ONEBOT, MannersTable, load_manners_table


def session_address(session: ChatSession) -> ChatAddress:
    kind = cast("ChatKind", session.kind)
    return ChatAddress(session.account, kind, session.peer_id, session.platform)


def describe_manners(session: ChatSession, request: HttpRequest) -> dict[str, Any]:
    """For the page of a chat: all that counts there with the rows that say it, what silences it,
    and where a rule for this chat alone is written."""
    if not request.user.has_perm("agent.view_manners") or session.platform != ONEBOT:
        return {}
    chat, table = session_address(session), load_manners_table()
    rows, manners = list(table.matching(chat)), table.find(chat)
    said = list(list_counting(manners, rows))
    return {
        "counting": sorted(said, key=_is_from_program),
        "rule_count": len(rows),
        "silencing": [row for row in rows if row.is_silencing],
        "own_rule_url": _own_rule_url(chat, rows, request),
    }


def _is_from_program(statement: ShownField) -> bool:
    return statement.row is None


def _own_rule_url(chat: ChatAddress, rows: list[Manners], request: HttpRequest) -> str:
    """The row for this chat alone, or a new one that is filled in so far."""
    own = next((row for row in rows if is_row_of_chat(row, chat)), None)
    if own is not None:
        return reverse("admin:agent_manners_change", args=(own.pk,))
    if not request.user.has_perm("agent.add_manners"):
        return ""
    given = {"account": chat.account, "chat_kind": chat.kind, "chats": chat.key}
    given["name"] = f"{chat.key} ({chat.account})"
    return f"{reverse('admin:agent_manners_add')}?{urlencode(given)}"


def describe_pause(session: ChatSession) -> dict[str, Any]:
    """Why the account cannot speak in the chat, as a page shows it."""
    return {"is_paused": has_pause(session), "pause": session.get_pause_reason_display()}


def has_pause(session: ChatSession) -> bool:
    until = session.paused_until
    return bool(session.pause_reason) and (until is None or until > timezone.now())


def silenced_condition(table: MannersTable) -> Q:
    """Of the chats that a row silences; of none where no row silences any."""
    found = Q(pk__in=[])
    for row in (row for row in table.rows if row.is_silencing):
        where = Q(platform=ONEBOT)
        if row.account:
            where &= Q(account=row.account)
        if row.chat_kind:
            where &= Q(kind=row.chat_kind)
        if row.chat_keys:
            listed: dict[str, list[str]] = {}
            for kind, _colon, peer in (key.partition(":") for key in row.chat_keys):
                listed.setdefault(kind, []).append(peer)
            chats = Q(pk__in=[])
            for kind, peers in listed.items():
                chats |= Q(kind=kind, peer_id__in=peers)
            where &= chats
        found |= where
    return found
