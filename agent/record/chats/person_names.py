"""What people are called: the newest name of each that is not empty."""

from collections.abc import Iterable

from django.db.models import Q

from agent.models import Message

#: Newest messages of each person that are looked at.
MOST_LOOKED_AT = 200


def find_names(people: Iterable[str], within: Q) -> dict[str, str]:
    """By id, of messages ``within``; without those who have no name there. One short query for
    each."""
    said = Message.objects.filter(within, direction=Message.Direction.IN)
    found: dict[str, str] = {}
    for person in {one for one in people if one}:
        names = said.filter(sender_id=person).order_by("-pk").values_list("sender_name", flat=True)
        if name := next(filter(None, names[:MOST_LOOKED_AT]), ""):
            found[person] = name
    return found
