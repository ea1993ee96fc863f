"""Which claims on runs do not hold any more, because another process has them."""

from collections.abc import Collection

from agent.domain.states import Claim
from agent.record.ground import statements


def find_lost_claims(claims: Collection[Claim]) -> set[Claim]:
    """Those of ``claims`` that hold no more. The rows of the runs stay locked until the transaction
    ends."""
    if not claims:
        return set()
    rows = statements.lock_runs.rows(runs=[claim.run_pk for claim in claims])
    return set(claims) - {Claim(*row) for row in rows}
