"""What happened in chats, as lines on record: each once, however often it is reported."""

from collections.abc import Sequence
from datetime import datetime
from hashlib import blake2b

from agent.domain.events import ChatNotice, EventKind
from agent.record.chats.sessions import find_or_create_session
from agent.record.ground import statements

#: What tells one thing from another, in its chat.
_FACTS = (
    *("change", "user_id", "target_id", "operator_id", "message_id", "seconds", "words"),
    "happened_at",
)
#: Seconds in which a message is taken back once: clients tell it twice, and number messages anew.
SAME_RECALL = 3_600


def record_events(reports: Sequence[tuple[ChatNotice, datetime]]) -> list[int]:
    """Put down what was reported and when it came; the key of each line, 0 for what is on record
    already, and for what is of no chat. The chat gets its row where there is none."""
    newest = {notice.chat: at for notice, at in reports}
    sessions = {
        chat: find_or_create_session(chat, "", at).pk for chat, at in newest.items() if chat
    }
    places: list[tuple[int, str] | None] = []
    rows: dict[tuple[int, str], dict[str, object]] = {}
    for notice, at in reports:
        place = (sessions[notice.chat], _key(notice, at)) if notice.chat else None
        if place is None or place in rows:
            places.append(None)
            continue
        places.append(place)
        rows[place] = {
            **{name: getattr(notice, name) for name in _FACTS},
            "session": place[0],
            "key": place[1],
            "kind": notice.kind.value,
            "at": at,
        }
    found = statements.add_events.many(list(rows.values()))
    added = {(session, key): pk for pk, session, key in found}
    return [added.get(place, 0) if place else 0 for place in places]


def _key(notice: ChatNotice, at: datetime) -> str:
    """One second of the client's clock tells one thing from the same again."""
    moment = int((notice.happened_at or at).timestamp())
    facts = [*(getattr(notice, name) for name in _FACTS[:-1]), moment]
    if notice.kind == EventKind.RECALL and notice.message_id:
        facts = [notice.message_id, moment // SAME_RECALL]
    return blake2b(repr((notice.kind.value, facts)).encode(), digest_size=8).hexdigest()
