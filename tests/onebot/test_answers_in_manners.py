"""Whom an account answered by lists on its page, it answers after an upgrade by manners."""

import random
from dataclasses import replace
from importlib import import_module
from itertools import product
from typing import Any

import pytest
from django.apps import apps as now
from django.db import connection
from django.db.migrations.executor import MigrationExecutor
from django.utils import timezone

from agent.domain.answer_triggers import Occasion, decide_trigger
from agent.domain.states import MessageReason, MessageState
from agent.domain.types import ChatAddress, IncomingMessage
from agent.models import Manners
from agent.record.settings.manners import load_manners_table

COPY = import_module("onebot.migrations.0008_answers_in_manners").copy_policies
LIMITS = ("person_per_minute", "person_per_day", "chat_per_minute", "chat_per_day")
OWNER, PEOPLE, GROUPS = "1", ("1", "2", "3"), ("71", "72")
NOW = timezone.now()


class Before:
    """The apps with bots as they were before the migration."""

    def __init__(self) -> None:
        loader = MigrationExecutor(connection).loader
        state = loader.project_state([("onebot", "0007_introductions")])
        self.bots = state.apps.get_model("onebot.Bot")

    def get_model(self, name: str) -> Any:
        return self.bots if name == "onebot.Bot" else now.get_model(name)


def refused_before(bot: Any, message: IncomingMessage) -> str:
    """Why the account did not answer, by the rule of that time; "" where it did."""
    group = message.chat.peer_id if message.chat.kind == "group" else ""
    listed, blocked = bot.listed_people.split(), bot.blocked_people.split()
    if group in bot.blocked_groups.split():
        return "blocked"
    if message.sender_id == OWNER:
        return ""
    if message.sender_id in blocked:
        return "blocked"
    is_listed = message.sender_id in listed or group in bot.listed_groups.split()
    is_friend = bot.answered == "friends" and message.is_friend and not group
    return "" if bot.answered in ("", "everybody") or is_listed or is_friend else "not_listed"


def some(chosen: random.Random, ids: tuple[str, ...]) -> str:
    return "\n".join(one for one in ids if chosen.random() < 0.4)


def make_rows(before: Before, chosen: random.Random) -> Any:
    """A bot with a policy, and a row of manners of before."""
    Manners.objects.all().delete()
    before.bots.objects.all().delete()
    if chosen.random() < 0.6:
        said = {"allowed_people": some(chosen, PEOPLE), "denied_people": some(chosen, PEOPLE)}
        chats = chosen.choice(["", "group:71"])
        Manners.objects.create(name="10001", account="10001", chats=chats, **said)
    lists = {
        "listed_people": some(chosen, PEOPLE),
        "blocked_people": some(chosen, PEOPLE),
        "listed_groups": some(chosen, GROUPS),
        "blocked_groups": some(chosen, GROUPS),
    }
    limits = {name: chosen.choice([None, 0, 7]) for name in LIMITS}
    answered = chosen.choice(["", "everybody", "friends", "listed"])
    return before.bots.objects.create(self_id="10001", answered=answered, **lists, **limits)


def occasions() -> list[tuple[IncomingMessage, Occasion]]:
    found = []
    chats = [ChatAddress("10001", "group", group) for group in (*GROUPS, "73")]
    for person, is_friend, is_order, operator in product(
        PEOPLE, (True, False), (True, False), ("", "ann")
    ):
        for chat in (*chats, ChatAddress("10001", "private", person)):
            said = IncomingMessage(
                chat, person, "Ann", "hi", [], mentions_bot=True, is_friend=is_friend
            )
            is_owner = person == OWNER
            case = Occasion(NOW, is_command=is_order, is_owner=is_owner, taken_over_by=operator)
            found.append((said, case))
    return found


@pytest.mark.django_db
@pytest.mark.parametrize("seed", range(25))
def test_the_same_people_are_answered_as_before_and_for_the_same_reason(settings, seed):
    settings.CHAT_ANSWERS_PER_DAY = 9
    bot = make_rows(before := Before(), random.Random(seed))
    old = load_manners_table()
    COPY(before, None)
    new = load_manners_table()
    for said, occasion in occasions():
        then, manners = old.find(said.chat), new.find(said.chat)
        first, found = (decide_trigger(said, one, occasion) for one in (then, manners))
        if first.is_to_be_answered and (refusal := refused_before(bot, said)):
            silent = MessageState.SILENT
            first = replace(first, state=silent, reason=MessageReason(refusal))
        assert found.state == first.state
        if found.reason != first.reason:  # two reasons against it: that one counts
            assert said.sender_id in bot.blocked_people.split()
            assert (found.reason, first.reason in ("not_listed", "taken_over")) == ("blocked", True)
        own = [getattr(bot, name) for name in LIMITS]
        usual = [getattr(then, name) for name in LIMITS]
        expected = [its if mine is None else mine for mine, its in zip(own, usual, strict=True)]
        assert [getattr(manners, name) for name in LIMITS] == expected


@pytest.mark.django_db
def test_rows_that_are_there_stay_as_they_are(settings):
    before = Before()
    kept = Manners.objects.create(name="10001", account="10001", denied_people="5")
    before.bots.objects.create(self_id="10001", blocked_people="6", blocked_groups="onebot:71")
    before.bots.objects.create(self_id="10002")
    COPY(before, None)
    assert Manners.objects.values().get(pk=kept.pk)["updated_at"] == kept.updated_at
    made = Manners.objects.exclude(pk=kept.pk).order_by("pk")
    assert list(made.values_list("name", "account", "chats", "answered", "denied_people")) == [
        ("10001 2", "10001", "", "", "6"),
        ("groups never answered (10001)", "10001", "group:71", "nobody", ""),
    ]
