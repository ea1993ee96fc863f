"""From a message event to the agent's own message types. Pure."""

from typing import Any

from agent.domain.types import ChatAddress, IncomingMessage
from onebot.protocol.events import MessageEvent
from onebot.protocol.media_refs import parse_media_refs
from onebot.protocol.segments import (
    find_mentions,
    mentions_account,
    quoted_id,
    render_text,
    spoken_text,
)
from onebot.protocol.values import parse_id


def to_incoming(event: MessageEvent, self_id: str, *, from_other_bot: bool) -> IncomingMessage:
    """``event``, received by the account ``self_id``, as an :class:`IncomingMessage`."""
    return IncomingMessage(
        chat=ChatAddress(self_id, event.kind, event.peer_id),
        sender_id=event.user_id,
        sender_name=event.anonymous_name or event.sender_name,
        text=render_text(event.segments, self_id),
        segments=event.segments,
        sender_role=event.sender_role if event.kind == "group" else "",
        message_id=event.message_id,
        spoken_text=spoken_text(event.segments),
        mentions=find_mentions(event.segments, self_id) if event.kind == "group" else (),
        mentions_bot=mentions_account(event.segments, self_id),
        quoted_id=quoted_id(event.segments),
        media=tuple(parse_media_refs(event.segments, event.message_id)),
        from_own_account=event.is_self,
        from_other_bot=from_other_bot,
        is_notice=event.is_notice,
        is_friend=event.kind == "private" and event.sub_type in ("friend", ""),
        temp_group_id=event.temp_group_id,
        chat_title=event.group_name if event.kind == "group" else event.sender_name,
        happened_at=event.time,
        raw=event.raw,
    )


def recalled_chat(notice: dict[str, Any], self_id: str) -> ChatAddress | None:
    """Where the message of a recall notice stood, as far as the notice says it.

    In a private chat ``user_id`` is who recalled: of the account's own message, where no
    ``target_id`` names the peer, only the kind of chat is known.
    """
    if notice.get("notice_type") == "group_recall":
        group_id = parse_id(notice.get("group_id"))
        return ChatAddress(self_id, "group", group_id) if group_id else None
    people = [parse_id(notice.get(name)) for name in ("user_id", "target_id", "peer_id")]
    return ChatAddress(
        self_id, "private", next((one for one in people if one and one != self_id), "")
    )
