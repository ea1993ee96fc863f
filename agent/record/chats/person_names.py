"""What people are called: the newest name of each that is not empty."""

from collections.abc import Iterable

from django.db import connection
from django.db.models import Q

from agent.models import Message

#: Newest messages of each person that are looked at.
MOST_LOOKED_AT = 200
#: People that one query asks for: SQLite puts no more than 500 together.
ASKED_AT_ONCE = 200
#: The name in the newest of some messages that has one.
_NAMED = """SELECT * FROM (SELECT sender_id, sender_name FROM ({}) AS newest
    WHERE sender_name <> '' ORDER BY id DESC LIMIT 1) AS named"""


def find_names(people: Iterable[str], within: Q) -> dict[str, str]:
    """By id, of messages ``within``; without those who have no name there. One query, in which each
    is looked for by index."""
    said = Message.objects.filter(within, direction=Message.Direction.IN).order_by("-pk")
    wanted, found = sorted({one for one in people if one}), dict[str, str]()
    for first in range(0, len(wanted), ASKED_AT_ONCE):
        queries = [
            said.filter(sender_id=person)
            .values_list("id", "sender_id", "sender_name")[:MOST_LOOKED_AT]
            .query.sql_with_params()
            for person in wanted[first : first + ASKED_AT_ONCE]
        ]
        sql = " UNION ALL ".join(_NAMED.format(one) for one, _parameters in queries)
        with connection.cursor() as cursor:
            cursor.execute(sql, [one for _sql, parameters in queries for one in parameters])
            found |= dict(cursor.fetchall())
    return found
