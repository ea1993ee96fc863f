"""People, found by id or by a name under which they wrote, within reach of who asks."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from django.db.models import Count, Max, Q, QuerySet

from agent.access import ChatAccess
from agent.models import Message
from tools.admin.filters import window_floor

#: People that one search lists, and newest messages of one person that are looked at.
MOST_PEOPLE, MOST_MESSAGES = 50, 5_000
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
    rows = Message.objects.filter(
        access.condition("session__"),
        direction=Message.Direction.IN,
        pk__gte=window_floor(Message.objects.order_by("-pk")),
    ).exclude(sender_id="")
    if term:
        rows = rows.filter(Q(sender_id=term) | Q(sender_name__icontains=term))
    found = rows.order_by().values("sender_id").annotate(last=Max("pk"), count=Count("pk"))
    people = list(found.order_by("-last")[:MOST_PEOPLE])
    newest = Message.objects.only("sender_id", "sender_name", "created_at").in_bulk(
        [row["last"] for row in people]
    )
    listed = [_listed(newest[row["last"]], row["count"]) for row in people]
    if term and term not in {one.person_id for one in listed}:
        old = load_person(term, access)  # who wrote long ago
        return [old, *listed] if old else listed
    return listed


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
    """The chats in which the person wrote: ``session``, ``count`` and ``last``, the key of the last
    message."""
    newest = _messages(person_id, access).values("pk")[:MOST_MESSAGES]
    rows = Message.objects.filter(pk__in=newest).order_by()
    counted = rows.values("session").annotate(count=Count("pk"), last=Max("pk"))
    return counted.order_by("-last")[:MOST_CHATS]


def _messages(person_id: str, access: ChatAccess) -> "QuerySet[Message]":
    return Message.objects.filter(
        access.condition("session__"), sender_id=person_id, direction=Message.Direction.IN
    ).order_by("-pk")
