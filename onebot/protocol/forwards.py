"""Forwarded messages, one level at a time, in every client's dialect. Pure.

``get_forward_msg`` answers with ``messages`` (NapCat, LLBot, go-cqhttp) or ``message``
(the standard, Lagrange); each item has its content in ``message``, ``content`` or
``data.content``, and its sender in ``sender`` or ``data``. Forwards inside come with
their content (NapCat) or with an id to ask for.
"""

from collections.abc import Sequence
from typing import Any

from agent.domain.types import ChatAddress, ForwardContent, ForwardedMessage
from onebot.protocol.events import parse_time
from onebot.protocol.media_refs import NODES
from onebot.protocol.segments import Segment, parse_told, quoted_id, render_text
from onebot.protocol.values import parse_id, value_text

FORWARD_TYPES = ("forward", "node")
#: What stands for a forward among other words.
FORWARD_MARKER: Segment = {"type": "text", "data": {"text": "[聊天记录]"}}
#: Characters of a sender's name.
NAME_LIMIT = 200


def find_forwards(segments: Sequence[Segment]) -> list[tuple[Any, str]]:
    """What is forwarded in ``segments``, in order: its content, or None and the id to ask for it
    by."""
    found = list[tuple[Any, str]]()
    for segment in segments:
        if segment["type"] == "node":
            found.append(([segment], ""))
        elif segment["type"] == "forward":
            found.append((segment["data"].get("content"), value_text(segment["data"].get("id"))))
    return found


def parse_forwarded_messages(value: object, account: str) -> ForwardContent:
    """The messages of a forward, :data:`onebot.protocol.media_refs.NODES` at most: an answer of a
    client, or content it sent along."""
    if isinstance(value, dict):
        value = value.get("messages") or value.get("message") or value.get("content")
    nodes = [node for node in value if isinstance(node, dict)] if isinstance(value, list) else []
    return ForwardContent([parse_told_message(node, account) for node in nodes[:NODES]], len(nodes))


def belongs_to_chat(chat: ChatAddress, answer: dict[str, Any]) -> bool:
    """Whether the answer to ``get_msg`` says that the message is of ``chat``. One that says nothing
    of it does not, as the standard's of groups."""
    if answer.get("message_type") != chat.kind or is_of_another_chat(chat, answer):
        return False
    sender = _object(answer.get("sender"))
    peers = (
        [answer.get("group_id")]
        if chat.kind == "group"
        else [answer.get("user_id"), sender.get("user_id"), answer.get("target_id")]
    )
    return chat.peer_id in map(parse_id, peers)


def is_of_another_chat(chat: ChatAddress, answer: dict[str, Any]) -> bool:
    """Whether the answer to ``get_msg`` says that the message is of another chat than ``chat``. The
    standard's says nothing of groups, and whom the account's own words in private were for only
    some say (``target_id``)."""
    if answer.get("message_type") not in (chat.kind, None):
        return True
    group_id = parse_id(answer.get("group_id"))
    if chat.kind == "group":
        return group_id not in ("", "0", chat.peer_id)
    sender = _object(answer.get("sender"))
    people = {parse_id(answer.get("user_id")), parse_id(sender.get("user_id"))}
    people.add(parse_id(answer.get("target_id")))
    return group_id not in ("", "0") or not people <= {"", "0", chat.peer_id, chat.account}


def parse_told_message(node: dict[str, Any], account: str) -> ForwardedMessage:
    """One message of a forward, or the answer to ``get_msg``."""
    data = _object(node.get("data")) if node.get("type") == "node" else {}
    sender = _object(node.get("sender"))
    segments = parse_told(node.get("message") or node.get("content") or data.get("content"))
    ids = (sender.get("user_id"), node.get("user_id"), data.get("user_id"), data.get("uin"))
    names = (sender.get("card"), sender.get("nickname"), data.get("nickname"), data.get("name"))
    return ForwardedMessage(
        text=render_text(
            [
                FORWARD_MARKER if segment["type"] in FORWARD_TYPES else segment
                for segment in segments
            ],
            account,
        ),
        segments=segments,
        sender_id=next(filter(None, map(parse_id, ids)), ""),
        sender_name=next(filter(None, map(value_text, names)), "")[:NAME_LIMIT],
        happened_at=parse_time(node.get("time") or data.get("time")),
        quoted_id=quoted_id(segments),
    )


def _object(value: object) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}
