"""What happened in chats, as lines on record: each once, however often it is reported."""

from collections.abc import Sequence
from datetime import datetime
from hashlib import blake2b
from typing import NamedTuple

from agent.domain.events import ChatNotice, EventKind
from agent.domain.types import ChatAddress
from agent.record.chats.sessions import find_or_create_session
from agent.record.ground import statements

#: What tells one thing from another, in its chat.
_FACTS = (
    *("change", "user_id", "target_id", "operator_id", "message_id", "seconds", "words"),
    "happened_at",
)
#: Seconds in which a message is taken back once: clients tell it twice, and number messages anew.
SAME_RECALL = 3_600


class EventArrival(NamedTuple):
    """An event as it was received. ``title``: of its chat, where that is known; ``is_of_bot``:
    another account of ours has caused it."""

    notice: ChatNotice
    received_at: datetime
    title: str = ""
    is_of_bot: bool = False


def record_events(arrivals: Sequence[EventArrival]) -> list[int]:
    """Put down what was reported: for each new line the key of its chat, which gets its row where
    there is none; 0 for what is on record already, and for what is of no chat."""
    newest = {one.notice.chat: one for one in arrivals}
    chats: dict[ChatAddress | None, int] = {
        chat: find_or_create_session(chat, one.title, one.received_at).pk
        for chat, one in newest.items()
        if chat
    }
    places = [(chats.get(one.notice.chat, 0), _key(one)) for one in arrivals]
    rows: dict[tuple[int, str], dict[str, object]] = {}
    for place, (notice, at, *_) in zip(places, arrivals, strict=True):
        if place[0]:
            facts = {name: getattr(notice, name) for name in _FACTS}
            told = {"session": place[0], "key": place[1], "kind": notice.kind.value, "at": at}
            rows.setdefault(place, facts | told)
    added = {(chat, key): chat for chat, key in statements.add_events.many(list(rows.values()))}
    return [added.pop(place, 0) for place in places]


def _key(one: EventArrival) -> str:
    """One second of the client's clock tells one thing from the same again."""
    notice = one.notice
    moment = int((notice.happened_at or one.received_at).timestamp())
    facts = [*(getattr(notice, name) for name in _FACTS[:-1]), moment]
    if notice.kind == EventKind.RECALL and notice.message_id:
        facts = [notice.message_id, moment // SAME_RECALL]
    return blake2b(repr((notice.kind.value, facts)).encode(), digest_size=8).hexdigest()
