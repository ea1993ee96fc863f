"""Rows of manners that say different things of the same chats, and which of them counts. Pure."""

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from agent.models import Manners
from agent.record.settings.manners import ADDED_UP, rank_row, said_values


class Contradiction(NamedTuple):
    """``fields`` are those of which ``other`` says something else; ``other_counts``: it is the
    more particular row, and counts where both are for a chat."""

    other: Manners
    fields: list[str]
    other_counts: bool


def find_contradictions(row: Manners, others: Iterable[Manners]) -> Iterator[Contradiction]:
    """What ``others`` say against ``row``, of chats that both are for. Denial and silence add up,
    and contradict nothing."""
    mine = dict(said_values(row))
    for other in others:
        if other.pk == row.pk or not share_chats(row, other):
            continue
        theirs = dict(said_values(other))
        fields = [
            name
            for name in mine
            if name in theirs and name not in ADDED_UP and mine[name] != theirs[name]
        ]
        if fields:
            yield Contradiction(other, fields, rank_row(other) < rank_row(row))


def share_chats(one: Manners, other: Manners) -> bool:
    """Whether there can be a chat that both rows are for."""
    if one.account and other.account and one.account != other.account:
        return False
    if one.chat_kind and other.chat_kind and one.chat_kind != other.chat_kind:
        return False
    mine, theirs = set(one.chat_keys), set(other.chat_keys)
    if mine and theirs:
        return bool(mine & theirs)
    kind = one.chat_kind or other.chat_kind
    listed = mine or theirs
    return not listed or not kind or any(key.startswith(f"{kind}:") for key in listed)
