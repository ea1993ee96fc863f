"""What pages follow is looked at while somebody does, and by one task."""

import asyncio
from typing import Any

from django.db import OperationalError

from frostproject.live import feed as module
from frostproject.live.feed import MOST_LOOKS, Topic, Watchers, shortest_rest
from tests.environment import PATIENCE

CHAT = Topic("session", 1)


class Source:
    """A topic's digest, set by the test."""

    def __init__(self) -> None:
        self.value, self.looks, self.fails = 0, 0, False
        self.looked = asyncio.Event()

    async def look(self, topic: Topic) -> object:
        self.looks += 1
        self.looked.set()
        if self.fails:
            raise OperationalError("the database is away")
        return self.value

    async def next_look(self) -> None:
        self.looked.clear()
        await asyncio.wait_for(self.looked.wait(), PATIENCE)


async def test_followers_hear_of_a_change_once():
    source, told = Source(), asyncio.Queue[Topic]()
    watchers = Watchers(source.look)
    watchers.follow(CHAT, told.put_nowait)
    await source.next_look()
    source.value = 1
    watchers.nudge()
    assert await asyncio.wait_for(told.get(), PATIENCE) == CHAT
    watchers.nudge()
    await source.next_look()
    await asyncio.sleep(0)
    assert told.empty()
    watchers.unfollow(CHAT, told.put_nowait)


async def test_many_followers_cost_one_look_and_none_when_the_last_has_gone():
    source, heard = Source(), list[Any]()
    watchers = Watchers(source.look, heard.append)
    watchers.follow(CHAT, first := (lambda topic: None))
    watchers.follow(CHAT, second := (lambda topic: None))
    await source.next_look()
    assert source.looks == 1
    watchers.unfollow(CHAT, first)
    assert watchers.topics == {CHAT}
    watchers.unfollow(CHAT, second)
    assert (watchers.topics, heard) == (frozenset(), [True, False])


async def test_a_change_is_seen_without_a_nudge_too():
    source, told = Source(), asyncio.Queue[Topic]()
    watchers = Watchers(source.look)
    watchers.follow(CHAT, told.put_nowait)
    await source.next_look()
    source.value = 1
    assert await asyncio.wait_for(told.get(), PATIENCE) == CHAT
    watchers.unfollow(CHAT, told.put_nowait)


async def test_an_outage_is_survived_and_what_changed_meanwhile_is_told(monkeypatch):
    monkeypatch.setattr(module, "LOOK_SECONDS", 0.3)
    source, told = Source(), asyncio.Queue[Topic]()
    watchers = Watchers(source.look)
    watchers.follow(CHAT, told.put_nowait)
    await source.next_look()
    source.fails, source.value = True, 1
    await source.next_look()
    source.fails = False
    assert await asyncio.wait_for(told.get(), PATIENCE) == CHAT
    watchers.unfollow(CHAT, told.put_nowait)


def test_many_topics_are_looked_at_no_more_often_together_than_a_process_can_bear():
    assert shortest_rest(CHAT, 0.001, 1) == CHAT.seconds
    for watched in (100, 240, 4_000):
        assert watched / shortest_rest(CHAT, 0.001, watched) <= MOST_LOOKS
    assert shortest_rest(CHAT, 2.0, 1) > 2.0
