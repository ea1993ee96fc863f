"""Erasing the events of clients in which a person stands."""

from collections.abc import Sequence

from agent.privacy.person import Person, mentions_person
from agent.privacy.phases import BATCH, ErasureBatch
from onebot.models import ClientEvent


def erase_events(person: Person, chats: Sequence[int], after: int) -> ErasureBatch:
    """A phase of :mod:`agent.privacy.erasing`: notices and requests, such as of who joined."""
    rows = ClientEvent.objects.filter(pk__gt=after).order_by("pk")
    pks = list(rows.values_list("pk", flat=True)[:BATCH])
    found = ClientEvent.objects.filter(mentions_person(person, "raw"), pk__in=pks)
    count, _ = ClientEvent.objects.filter(pk__in=list(found.values_list("pk", flat=True))).delete()
    return ErasureBatch({"events": count}, pks[-1] if len(pks) == BATCH else None)
