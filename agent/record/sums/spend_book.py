"""The sums of one process: written in order, and read together with how far they were written."""

from collections.abc import Sequence
from functools import partial
from typing import NamedTuple

from django.db import transaction

from agent.llm.spending import Spend
from agent.record.sums.spendings import (
    DatedSpend,
    SpentAmount,
    SumRange,
    add_spending,
    load_spent,
)


class Posting(NamedTuple):
    """What a call cost, to be added. ``number`` grows from one posting of a process to the next;
    0: nobody asks for it."""

    day: str
    spend: Spend
    number: int = 0


class SpentAnswer(NamedTuple):
    """A sum on record. It holds the postings of this process up to ``number``, and no later one."""

    spent: SpentAmount
    number: int


class SpendBook:
    """Adds what calls of this process cost, and answers what was spent. Used by the database thread
    only."""

    def __init__(self) -> None:
        self._number = 0

    def post(self, items: Sequence[Posting | SumRange]) -> list[SpentAnswer | None]:
        """Add all postings; then the answers to what is asked."""
        postings = [item for item in items if isinstance(item, Posting)]
        number = max([self._number, *(posting.number for posting in postings)])
        if postings:
            add_spending([DatedSpend(posting.day, posting.spend) for posting in postings])
        if number > self._number:
            transaction.on_commit(partial(self._learn, number), robust=True)
        return [
            SpentAnswer(load_spent(item), number) if isinstance(item, SumRange) else None
            for item in items
        ]

    def _learn(self, number: int) -> None:
        self._number = number
