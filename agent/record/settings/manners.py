"""The rows of manners, as the transactions of one process see them."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any

from agent.domain.manners import ChatManners, environment_manners, parse_quiet_hours
from agent.domain.types import ChatAddress
from agent.models import Manners as MannersRow
from agent.models.manners import LISTS, NONE, SAID
from agent.models.scope import Scoped, rank_row
from tools.models.tool_config import parse_ids

#: Chats whose manners are remembered; beyond that all are put together again.
REMEMBERED = 10_000
#: The platform whose chats have manners; in a terminal everything is answered.
ONEBOT = "onebot"
_ID_LISTS = frozenset(LISTS)
#: Lists that add up: what one row says is no way around another.
ADDED_UP = frozenset({"listed_people", "denied_people"})
_LINES = frozenset({"wake_names", "wake_prefixes"})
_WORDS = frozenset({"wake_pattern", "command_prefix", "reaction"})


@dataclass(frozen=True, slots=True)
class MannersTable:
    """The rows that are switched on, the most particular first."""

    rows: tuple[MannersRow, ...] = ()
    base: Callable[[], ChatManners] = environment_manners
    _known: dict[ChatAddress, ChatManners] = field(default_factory=dict, compare=False)

    def find(self, chat: ChatAddress) -> ChatManners:
        """What counts in ``chat``. May be called in any thread."""
        if (found := self._known.get(chat)) is None:
            found = combine_rows(self.base(), self.matching(chat))
            if len(self._known) >= REMEMBERED:
                self._known.clear()
            self._known[chat] = found
        return found

    def matching(self, chat: ChatAddress) -> Iterator[MannersRow]:
        """The rows for ``chat``, the most particular first."""
        return (row for row in self.rows if is_for(row, chat))


def load_manners_table(base: Callable[[], ChatManners] = environment_manners) -> MannersTable:
    rows = MannersRow.objects.filter(enabled=True).order_by("pk")
    return MannersTable(tuple(sorted(rows, key=rank_row)), base)


def is_for(row: Scoped, chat: ChatAddress) -> bool:
    """Whether ``row`` says something of ``chat``."""
    return (
        chat.platform == ONEBOT
        and row.account in ("", chat.account)
        and row.chat_kind in ("", chat.kind)
        and (not row.chats or chat.key in row.chat_keys)
    )


def combine_rows(base: ChatManners, rows: Iterable[MannersRow]) -> ChatManners:
    """``base`` with what ``rows`` say, of which the first counts; but silences and some lists add
    up."""
    said: dict[str, Any] = {}
    said_by: dict[str, str] = {}
    silencing = list[MannersRow]()
    for row in rows:
        if row.silenced:
            silencing.append(row)
        if row.only_person and "only_person" not in said:
            said |= {"only_person": row.only_person, "only_until": row.only_until}
            said_by["only_person"] = row.name
        for name, value in said_values(row):
            if name not in said:
                said[name], said_by[name] = value, row.name
            elif name in ADDED_UP:
                said[name] |= value
    if silencing:
        longest = max(silencing, key=_silence_end)
        said |= {"silenced_by": longest.name, "silenced_until": longest.silenced_until}
    if not (said_by or silencing):
        return base
    return replace(base, **said, said_by=said_by)


def _silence_end(row: MannersRow) -> datetime:
    return row.silenced_until or datetime.max.replace(tzinfo=UTC)


def said_values(row: MannersRow) -> Iterator[tuple[str, Any]]:
    """The fields of ``row`` that are not empty, as the manners have them."""
    for name in SAID:
        value = row.endpoint_id if name == "endpoint" else getattr(row, name)
        if value is None or value == "":
            continue
        yield name, _parsed(name, value)


def _parsed(name: str, value: Any) -> Any:
    if name in _ID_LISTS:
        return frozenset(one.rpartition(":")[2] for one in parse_ids(value))
    if name in _LINES:
        lines = (line.strip() for line in value.splitlines())
        return tuple(dict.fromkeys(line for line in lines if line and line != NONE))
    if name in _WORDS:
        return "" if value.strip() == NONE else value.strip()
    if name == "quiet_hours":
        return parse_quiet_hours(value)
    return value
