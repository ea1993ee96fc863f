"""One person, as the record knows people, and where it holds something of that person."""

import re
from dataclasses import dataclass
from functools import reduce
from operator import or_
from typing import Any

from django.db.models import Field, Q, TextField, Value
from django.db.models.functions import Cast
from django.db.models.lookups import Contains, Regex

from agent.models import ChatSession, Message
from agent.models.operator import hash_person

#: Chats of one person that are looked through.
MOST_CHATS = 10_000


@dataclass(frozen=True, slots=True)
class Person:
    """A person on one platform, by the id that clients give."""

    person_id: str
    platform: str = "onebot"

    @property
    def hash(self) -> str:
        """What a receipt holds instead of the id."""
        return hash_person(self.platform, self.person_id)


def find_chats(person: Person) -> list[int]:
    """The chats in which the person said something, and the private ones with the person."""
    said = Message.objects.filter(sender_id=person.person_id, session__platform=person.platform)
    private = ChatSession.objects.filter(
        platform=person.platform, kind=ChatSession.Kind.PRIVATE, peer_id=person.person_id
    )
    found = set(said.order_by().values_list("session_id", flat=True).distinct()[:MOST_CHATS])
    return sorted(found | set(private.values_list("pk", flat=True)))


def mentions_person(person: Person, *columns: str) -> Q:
    """Of rows in one of whose ``columns``, text or JSON, the person's id stands, and is no part of
    another number."""
    field: Field[Any, Any] = TextField()
    # JSON writes signs beyond ASCII as such escapes; their digits are none of the number.
    alone = rf"(^|[^0-9]|\\u[0-9a-f]{{4}}){re.escape(person.person_id)}([^0-9]|$)"
    return reduce(
        or_,
        (
            Q(Contains(text, Value(person.person_id))) & Q(Regex(text, Value(alone)))
            for text in (Cast(name, field) for name in columns)
        ),
    )
