"""The people of a chat, by the names they spoke under."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from agent.domain.types import IncomingMessage
from agent.models import Message
from agent.record.ground import statements
from tools.text.fences import clean_name

#: The newest messages of a chat whose senders are its members, and the newest of one person among
#: which one in the same chat is looked for.
RECENT_IN_CHAT, RECENT_OF_PERSON = 2_000, 200
#: Names of one person among which one that can be shown is looked for.
RECENT_NAMES = 5
#: People that the frame of one message names.
MOST_MENTIONS = 20


def find_members(session_pk: int) -> dict[str, str]:
    """The people who spoke lately in a chat: whom each name means, for
    :func:`agent.domain.answer_parts.split_mentions`.

    Names are those that frames show, the newest of each person; a name that several bear means
    nobody (""). Each number means whom it belongs to, whoever else calls himself so. One indexed
    query over the newest :data:`RECENT_IN_CHAT` messages.
    """
    newest: dict[str, str] = {}
    said = statements.find_speakers.rows(session=session_pk, newest=RECENT_IN_CHAT)
    for direction, reason, sender_id, sender_name in said:
        is_person = direction == Message.Direction.IN and reason != Message.Reason.OWN_MESSAGE
        if is_person and sender_id and not newest.get(sender_id):
            newest[sender_id] = clean_name(sender_name)
    members: dict[str, str] = {}
    for sender_id, name in newest.items():
        if name:
            members[name] = "" if name in members else sender_id
    return members | {sender_id: sender_id for sender_id in newest}


def build_header(
    message: IncomingMessage,
    session_pk: int,
    title: str,
    spoken: Mapping[tuple[int, str], str] = MappingProxyType({}),
    zone: str = "",
) -> dict[str, Any] | None:
    """What ``Message.header`` keeps of a group's message: the group's name, and who is mentioned,
    under the newest name where the client gives none: among those who have ``spoken`` just before,
    by session and sender, or else on record. Of a private one there is nothing to keep but the
    ``zone`` of its time: None where that is the machine's ("")."""
    header: dict[str, Any] = {"zone": zone} if zone else {}
    if message.chat.kind != "group":
        return header or None
    if chat_name := clean_name(title):
        header["chat_name"] = chat_name
    if message.mentions:
        header["mentions"] = [
            {"user_id": one.user_id, "name": clean_name(one.name)}
            if one.name
            else {
                "user_id": one.user_id,
                "name": clean_name(spoken.get((session_pk, one.user_id), ""))
                or _find_name(session_pk, one.user_id),
            }
            for one in message.mentions[:MOST_MENTIONS]
        ]
    return header


def _find_name(session_pk: int, user_id: str) -> str:
    """The newest name that a person spoke under in the chat, "" where he has not lately."""
    said = statements.find_names_of_person.rows(
        session=session_pk, person=user_id, newest=RECENT_OF_PERSON, names=RECENT_NAMES
    )
    return next(filter(None, (clean_name(name) for (name,) in said)), "")
