"""Erasing the events of clients in which a person stands."""

from collections.abc import Sequence

from agent.privacy.person import Person, mentions_person
from agent.privacy.phases import BATCH, ErasureBatch
from onebot.models import ClientEvent
from onebot.protocol.segments import parse_id

#: Ids in events that are not of people, or are not of those whom the event is about.
NO_PEOPLE = frozenset({"group_id", "message_id", "self_id"})


def erase_events(person: Person, chats: Sequence[int], after: int) -> ErasureBatch:
    """A phase of :mod:`agent.privacy.erasing`: notices and requests, such as of who joined."""
    rows = ClientEvent.objects.filter(pk__gt=after).order_by("pk")
    pks = list(rows.values_list("pk", flat=True)[:BATCH])
    found = ClientEvent.objects.filter(mentions_person(person, "raw"), pk__in=pks)
    going = [event.pk for event in found.only("raw") if _names(event.raw, person.person_id)]
    count, _ = ClientEvent.objects.filter(pk__in=going).delete()
    return ErasureBatch({"events": count}, pks[-1] if len(pks) == BATCH else None)


def _names(value: object, person_id: str) -> bool:
    """Whether ``value``, a part of an event, names the person by the id."""
    if isinstance(value, list):
        return any(_names(one, person_id) for one in value)
    if not isinstance(value, dict):
        return False
    return any(
        _names(one, person_id)
        or (
            (key == "qq" or (key.endswith("_id") and key not in NO_PEOPLE))
            and parse_id(one) == person_id
        )
        for key, one in value.items()
    )
