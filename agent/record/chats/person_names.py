"""What people are called: the newest name of each that is not empty."""

from collections.abc import Iterable

from django.db.models import Q

from agent.models import Message
from agent.record.ground.statements import select_all

#: Newest messages of each person that are looked at.
MOST_LOOKED_AT = 200
#: Of these the newest that has a name.
_NAMED = """SELECT * FROM (SELECT sender_id, sender_name FROM ({}) AS newest
    WHERE sender_name <> '' ORDER BY id DESC LIMIT 1) AS named"""


def find_names(people: Iterable[str], within: Q) -> dict[str, str]:
    """By id, of messages ``within``; without those who have no name there. One query, in which each
    is looked for by index."""
    said = Message.objects.filter(within, direction=Message.Direction.IN).order_by("-pk")
    names = said.values_list("id", "sender_id", "sender_name")
    wanted = sorted({one for one in people if one})
    rows = select_all((names.filter(sender_id=one)[:MOST_LOOKED_AT] for one in wanted), _NAMED)
    return dict(rows)
