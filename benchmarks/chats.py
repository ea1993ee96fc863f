"""The chats that the clients play; seeding and load agree on them through this file."""

import time
from dataclasses import dataclass
from typing import Any

from benchmarks.marks import directives

FIRST_ACCOUNT = 900_001
CONNECTIONS = 4
_GOLDEN = 0.6180339887  # spreads groups and private chats evenly among any run of numbers


@dataclass(frozen=True, slots=True)
class Chat:
    """One group or one private peer of the account behind ``connection``."""

    connection: int
    is_group: bool
    peer_id: int
    user_id: int

    @property
    def account(self) -> int:
        return FIRST_ACCOUNT + self.connection

    @property
    def kind(self) -> str:
        return "group" if self.is_group else "private"


def chats(count: int, first: int = 0) -> list[Chat]:
    """``count`` chats, half of them groups; ranges that do not overlap share none."""
    return [_chat(number) for number in range(first, first + count)]


def _chat(number: int) -> Chat:
    is_group = number * _GOLDEN % 1 < 0.5
    user = (30_000_000 if is_group else 10_000_000) + number
    return Chat(number % CONNECTIONS, is_group, 20_000_000 + number if is_group else user, user)


def message_event(chat: Chat, message_id: int, nonce: str, script: str) -> dict[str, Any]:
    """A OneBot v11 message event that asks the bot; a group's mentions it."""
    text = directives(nonce, script) + " hello, what is the weather like today?"
    return {
        "time": int(time.time()),
        "self_id": chat.account,
        "post_type": "message",
        "message_type": chat.kind,
        "sub_type": "normal" if chat.is_group else "friend",
        "message_id": message_id,
        "user_id": chat.user_id,
        "message": _segments(chat, text),
        "raw_message": f"[CQ:at,qq={chat.account}] {text}" if chat.is_group else text,
        "font": 0,
        **_sender(chat),
    }


def _segments(chat: Chat, text: str) -> list[dict[str, Any]]:
    if not chat.is_group:
        return [{"type": "text", "data": {"text": text}}]
    return [
        {"type": "at", "data": {"qq": str(chat.account)}},
        {"type": "text", "data": {"text": f" {text}"}},
    ]


def _sender(chat: Chat) -> dict[str, Any]:
    sender = {
        "user_id": chat.user_id,
        "nickname": f"user{chat.user_id}",
        "sex": "unknown",
        "age": 0,
    }
    if not chat.is_group:
        return {"sender": sender}
    member = {"card": "", "area": "", "level": "1", "role": "member", "title": ""}
    return {"sender": sender | member, "group_id": chat.peer_id, "anonymous": None}
