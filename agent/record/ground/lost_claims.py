"""Which claims on runs do not hold any more, because another process has them."""

from collections.abc import Collection
from functools import cache

from django.db import connection

from agent.domain.claims import Claim
from agent.models import Run


def find_lost_claims(claims: Collection[Claim]) -> set[Claim]:
    """Those of ``claims`` that hold no more. The rows of the runs stay locked until the transaction
    ends."""
    if not claims:
        return set()
    with connection.cursor() as cursor:
        cursor.execute(_statement(len(claims)), [claim.run_pk for claim in claims])
        held = {Claim(*row) for row in cursor.fetchall()}
    return set(claims) - held


@cache
def _statement(count: int) -> str:
    """By key, so that two processes never wait for each other's locks in a circle."""
    table, places = connection.ops.quote_name(Run._meta.db_table), ", ".join(["%s"] * count)
    lock = " FOR NO KEY UPDATE" if connection.features.has_select_for_no_key_update else ""
    return f"SELECT id, claim_number, place FROM {table} WHERE id IN ({places}) ORDER BY id{lock}"  # noqa: S608
