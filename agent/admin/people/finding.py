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
    newest = Message.objects.only("sender_id", "sender_name", "created_at").in_bulk(
        [last for last, _count in people]
    )
    listed = [_listed(newest[last], count) for last, count in people]
    if term and term not in {one.person_id for one in listed}:
        old = load_person(term, access)  # who wrote long ago
        return [old, *listed] if old else listed
    return listed


def _newest_people(term: str, access: ChatAccess) -> list[tuple[int, int]]:
    """The last message of each, and how many were looked at. Counted here: grouped by people,
    SQLite would walk through the messages of all times."""
    rows = Message.objects.filter(
        access.condition("session__"),
        direction=Message.Direction.IN,
        pk__gte=window_floor(Message.objects.order_by("-pk")),
    ).exclude(sender_id="")
    if term:
        rows = rows.filter(Q(sender_id=term) | Q(sender_name__icontains=term))
    found: dict[str, tuple[int, int]] = {}
    for pk, person in rows.order_by("-pk").values_list("pk", "sender_id")[:MOST_READ]:
        last, count = found.get(person, (pk, 0))
        found[person] = last, count + 1
    return list(found.values())[:MOST_PEOPLE]


def _listed(newest: Message, count: int) -> FoundPerson:
    names = [newest.sender_name] if newest.sender_name else []
    return FoundPerson(newest.sender_id, names, newest.created_at, count)


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
