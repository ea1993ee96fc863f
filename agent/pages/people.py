"""People, found by id or by a name under which they wrote, within reach of who asks."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from django.db.models import Q, QuerySet

from agent.access import ChatAccess
from agent.models import Message
from tools.admin.filters import window_floor

#: People that one search lists, and newest messages of one person that are looked at.
MOST_PEOPLE, MOST_MESSAGES = 50, 5_000
#: Newest messages of all people that one search reads.
MOST_READ = 10_000
#: Names and chats of a person that are shown.
MOST_NAMES, MOST_CHATS = 10, 50


@dataclass(slots=True)
class FoundPerson:
    """Somebody who wrote. ``names`` are those of the newest messages, the newest first."""

    person_id: str
    names: list[str] = field(default_factory=list)
    last_seen: datetime | None = None
    messages: int = 0
    """Among the newest; :data:`MOST_MESSAGES` may stand for more."""


def find_people(term: str, access: ChatAccess) -> list[FoundPerson]:
    """Those whose id is ``term``, or in whose name it stands, among the newest messages; without a
    term those who wrote last."""
    people = _newest_people(term, access)
    columns = ("sender_id", "sender_name", "created_at")
    asked = [pk for one in people for pk in (one.last, one.named) if pk]
    newest = Message.objects.only(*columns).in_bulk(asked)
    listed = [_listed(newest, one) for one in people]
    if term and term not in {one.person_id for one in listed}:
        old = load_person(term, access)  # who wrote long ago
        return [old, *listed] if old else listed
    return listed


@dataclass(slots=True)
class _Wrote:
    """The last message of somebody, the last one with a name (0: none), and how many there are."""

    last: int
    named: int = 0
    count: int = 0


def _newest_people(term: str, access: ChatAccess) -> list[_Wrote]:
    """Those who wrote last. Counted here: grouped by people, SQLite would walk through the messages
    of all times."""
    rows = Message.objects.filter(
        access.condition("session__"),
        direction=Message.Direction.IN,
        pk__gte=window_floor(Message.objects.order_by("-pk")),
    ).exclude(sender_id="")
    if term:
        rows = rows.filter(Q(sender_id=term) | Q(sender_name__icontains=term))
    columns = ("pk", "sender_id", "sender_name")
    found: dict[str, _Wrote] = {}
    for pk, person, name in rows.order_by("-pk").values_list(*columns)[:MOST_READ]:
        wrote = found.setdefault(person, _Wrote(pk))
        wrote.count += 1
        if name and not wrote.named:
            wrote.named = pk
    return list(found.values())[:MOST_PEOPLE]


def _listed(newest: dict[int, Message], wrote: _Wrote) -> FoundPerson:
    last = newest[wrote.last]
    names = [newest[wrote.named].sender_name] if wrote.named else []
    return FoundPerson(last.sender_id, names, last.created_at, wrote.count)


def load_person(person_id: str, access: ChatAccess) -> FoundPerson | None:
    """What the newest messages within ``access`` say of a person; None for nobody."""
    newest = _messages(person_id, access).values_list("sender_name", "created_at")
    rows = list(newest[:MOST_MESSAGES])
    if not rows:
        return None
    names = dict.fromkeys(name for name, _at in rows if name)
    return FoundPerson(person_id, list(names)[:MOST_NAMES], rows[0][1], len(rows))


def list_chats(person_id: str, access: ChatAccess) -> Iterable[Any]:
    """The chats in which the person wrote, the newest first: ``session`` and ``count``, among the
    newest messages."""
    newest = _messages(person_id, access).values_list("session_id", flat=True)
    counts = Counter(newest[:MOST_MESSAGES])  # which knows the order in which it met them
    return [{"session": pk, "count": count} for pk, count in counts.items()][:MOST_CHATS]


def _messages(person_id: str, access: ChatAccess) -> "QuerySet[Message]":
    return Message.objects.filter(
        access.condition("session__"), sender_id=person_id, direction=Message.Direction.IN
    ).order_by("-pk")
