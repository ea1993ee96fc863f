"""The sets of tools that models were offered, each on record once."""

import hashlib
from collections.abc import Sequence
from functools import partial
from typing import Any

from django.db import transaction

from agent.llm.requests.base import encode_json
from agent.models import ToolOffer
from agent.record.ground import statements

MOST_KEPT = 512
"""Sets whose row is remembered."""
Definitions = tuple[dict[str, Any], ...]


class OfferCache:
    """Tool definitions to the row that holds them. Used by whatever thread writes.

    Definitions are shared and never changed (:class:`tools.registry.registry.DefinitionCache`),
    so a set is known by the identities of its members and costs no statement. What is remembered
    was committed.
    """

    def __init__(self) -> None:
        self._known: dict[tuple[int, ...], tuple[Definitions, int]] = {}
        """By the ids of the definitions, which are kept too, so that no other takes over an id."""

    def find(self, definitions: Sequence[dict[str, Any]]) -> int | None:
        """The key of the row of a set, which is made where there is none; None for the empty
        set."""
        if not definitions:
            return None
        ids = tuple(map(id, definitions))
        if known := self._known.get(ids):
            return known[1]
        pk = _find_or_add(definitions)
        transaction.on_commit(partial(self._remember, ids, (tuple(definitions), pk)), robust=True)
        return pk

    def forget(self) -> None:
        """Trust nothing remembered: a transaction was not committed."""
        self._known.clear()

    def _remember(self, ids: tuple[int, ...], known: tuple[Definitions, int]) -> None:
        if len(self._known) >= MOST_KEPT:
            self._known.clear()
        self._known[ids] = known


tool_offers = OfferCache()


def exact_text(value: Any) -> str:
    """``value`` as JSON text: PostgreSQL would not keep the order of an object's keys."""
    return encode_json(value).decode()


def _find_or_add(definitions: Sequence[dict[str, Any]]) -> int:
    """Another process may add the same set at the same time: then both have its row."""
    texts = [exact_text(definition) for definition in definitions]
    digest = hashlib.sha256("\n".join(texts).encode()).hexdigest()
    found = statements.find_offer.rows(digest=digest)
    if not found:
        offer = ToolOffer(digest=digest, definitions=texts)
        ToolOffer.objects.bulk_create([offer], ignore_conflicts=True)
        found = statements.find_offer.rows(digest=digest)
    return int(found[0][0])
