"""From a message event to the agent's own message types. Pure."""

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
