"""The load: people who write in old chats and in new ones all the time, each message with its
mark."""

import asyncio
import random
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from chaos.client import Account
from chaos.marks import STORIES, Mark

#: Chats of one account that people still write in.
OPEN_CHATS = 6
_FIRST_PEER = 50_000_000
_PEERS_EACH = 1_000_000
_FIRST_PERSON = 20_000_000
#: Chats of each account beside the others, by what is special about them.
SPECIAL = (("merge", "group"), ("merge", "private"), ("budget", "private"))
_SPECIAL_PEERS = 900_000
#: What comes at once of one person where messages are merged; seconds between two of them.
BURST, BURST_SECONDS = 3, 0.02


@dataclass(frozen=True, slots=True)
class Load:
    """``rate``: messages a second over all accounts. ``stories``: how often each is told, relative
    to the others.

    ``new_chats``: the share of messages that open a chat.
    """

    rate: float = 6.0
    stories: Mapping[str, float] | None = None
    new_chats: float = 0.25
    special: float = 0.1
    """The share of messages, or bursts of them, in the chats that are special."""


class Saying(NamedTuple):
    pause: float
    mark: Mark
    person: int


def sayings(seed: str, number: int, accounts: int, load: Load) -> Iterator[Saying]:
    """What the account with this ``number`` tells, without an end; no two accounts share a chat."""
    chance = random.Random(f"{seed}/load/{number}")
    stories = load.stories or dict.fromkeys(STORIES, 1.0)
    lengths: dict[tuple[str, int], int] = {}
    lengths_there: Counter[tuple[str, int]] = Counter()
    peers = iter(
        range(_FIRST_PEER + number * _PEERS_EACH, _FIRST_PEER + (number + 1) * _PEERS_EACH)
    )
    while True:
        pause = chance.expovariate(load.rate / accounts)
        if chance.random() < load.special:
            yield from _special_sayings(chance, number, pause, lengths_there)
            continue
        if not lengths or chance.random() < load.new_chats:
            chat = (chance.choice(("group", "private")), next(peers))
        else:
            chat = chance.choice(list(lengths)[-OPEN_CHATS:])
        lengths[chat] = lengths.get(chat, 0) + 1
        (story,) = chance.choices(list(stories), list(stories.values()))
        yield Saying(
            pause, Mark(*chat, lengths[chat], story), _FIRST_PERSON + chance.randrange(1000)
        )


def special_peer(number: int, index: int) -> int:
    """The peer of the special chat at ``index`` of the account with this ``number``."""
    return _FIRST_PEER + number * _PEERS_EACH + _SPECIAL_PEERS + index


def _special_sayings(
    chance: random.Random, number: int, pause: float, lengths: Counter[tuple[str, int]]
) -> Iterator[Saying]:
    index = chance.randrange(len(SPECIAL))
    story, kind = SPECIAL[index]
    chat, person = (kind, special_peer(number, index)), _FIRST_PERSON + chance.randrange(1000)
    for _ in range(BURST if story == "merge" else 1):
        lengths[chat] += 1
        yield Saying(pause, Mark(*chat, lengths[chat], story), person)
        pause = BURST_SECONDS


class Crowd:
    """Tells the load through ``accounts`` until it is stopped."""

    def __init__(self, seed: str, load: Load, accounts: list[Account]) -> None:
        self._tasks = [
            asyncio.create_task(self._tell(account, sayings(seed, number, len(accounts), load)))
            for number, account in enumerate(accounts)
        ]

    async def stop(self) -> None:
        for task in self._tasks:
            task.cancel()
        outcomes = await asyncio.gather(*self._tasks, return_exceptions=True)
        for outcome in outcomes:
            if isinstance(outcome, Exception):
                raise outcome

    @staticmethod
    async def _tell(account: Account, told: Iterator[Saying]) -> None:
        for saying in told:
            await asyncio.sleep(saying.pause)
            await account.say(saying.mark, saying.person)
