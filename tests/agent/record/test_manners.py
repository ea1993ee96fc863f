"""Which rows of manners count in a chat, and what they say together."""

from datetime import time
from typing import Any

import pytest
from django.db import transaction

from agent.domain.manners import QuietSpan
from agent.domain.types import ChatAddress
from agent.models import Manners, ModelEndpoint
from agent.record.settings.manners import load_manners_table
from tests.agent.talk import GROUP, PRIVATE, arrival, arrivals, message, reasons

pytestmark = pytest.mark.django_db


def row(name: str, **fields: Any) -> Manners:
    made = Manners(name=name, **fields)
    made.full_clean()
    made.save()
    return made


def found(chat: ChatAddress = GROUP):
    return load_manners_table().find(chat)


def test_the_most_particular_row_counts_whatever_their_order():
    row("all", part_chars=101, forward_above=1, merge_seconds=1, ambient_messages=1)
    row("two chats", chats="group:30001 group:2", part_chars=105)
    row("account", account="10001", part_chars=103, forward_above=3, merge_seconds=3)
    row("one chat", chats="group:30001", part_chars=106)
    row("kind", chat_kind="group", part_chars=102, forward_above=2)
    row("both", account="10001", chat_kind="group", part_chars=104, forward_above=4)
    manners = found()
    said = (manners.part_chars, manners.forward_above, manners.merge_seconds)
    assert (*said, manners.ambient_messages) == (106, 4, 3, 1)
    assert manners.said_by["part_chars"] == "one chat"
    assert manners.said_by["forward_above"] == "both"
    assert manners.said_by["merge_seconds"] == "account"


def test_of_two_rows_that_are_alike_the_older_counts():
    row("b", chats="group:30001", wake_always=True)
    row("a", chats="group:30001", wake_always=False)
    assert (found().wake_always, found().said_by["wake_always"]) == (True, "b")


def test_silence_and_denial_of_all_rows_add_up():
    row("here", chats="group:30001", silenced=False, denied_people="1")
    row("house", silenced=True, denied_people="2, onebot:3")
    manners = found()
    assert manners.silenced_by == "house"
    assert manners.denied_people == {"1", "2", "3"}


def test_rows_that_are_off_or_for_other_chats_say_nothing():
    row("off", enabled=False, silenced=True)
    row("other account", account="10002", silenced=True)
    row("other chat", chats="group:300010", silenced=True)
    row("other kind", chat_kind="private", silenced=True)
    assert found().silenced_by == ""
    assert found(PRIVATE).silenced_by == "other kind"


def test_a_dash_means_none_where_empty_leaves_it_to_others(settings):
    settings.BOT_NAME, settings.BOT_ALIASES = "Frost", ()
    row("house", wake_prefixes="#", wake_pattern="x", command_prefix="!", reaction="424")
    assert found().wake_names == ("Frost",)
    none = dict.fromkeys(("wake_names", "wake_prefixes", "wake_pattern", "command_prefix"), "-")
    row("here", chats="group:30001", reaction="-", **none)
    manners = found()
    assert (manners.wake_names, manners.wake_prefixes) == ((), ())
    assert (manners.wake_pattern, manners.command_prefix, manners.reaction) == ("", "", "")


def test_a_zero_and_a_no_are_said_and_not_empty():
    row("house", sends_per_minute=5, forward_above=9, wake_mention=True, wake_chance=50)
    row("here", chats="group:30001", sends_per_minute=0, forward_above=0, wake_chance=0)
    row("here too", chats="group:30001", wake_mention=False)
    manners = found()
    assert (manners.sends_per_minute, manners.forward_above, manners.wake_chance) == (0, 0, 0)
    assert manners.wake_mention is False


def test_everything_that_a_row_says_is_read():
    endpoint = ModelEndpoint.objects.create(name="Deep")
    row("r", quiet_hours="23:00-07:30", endpoint=endpoint, wake_names="小霜\n 霜霜 ", mention=False)
    manners = found()
    assert manners.quiet_hours == (QuietSpan(time(23), time(7, 30)),)
    assert (manners.endpoint, manners.wake_names) == (endpoint.pk, ("小霜", "霜霜"))
    assert (manners.mention, manners.quote) == (False, None)


def test_in_a_terminal_no_row_counts():
    row("house", silenced=True)
    assert found(ChatAddress("", "private", "local", "terminal")).silenced_by == ""


def test_a_row_that_was_rolled_back_is_not_obeyed_though_its_version_comes_again():
    store = arrivals()
    with transaction.atomic():
        Manners.objects.create(name="never", wake_names="Frost")
        woken = store.accept_messages([arrival(message("Frost?", GROUP))])
        assert reasons(woken) == ["wake_word"]
        transaction.set_rollback(True)
    store.forget()
    store._run_starter.live.forget()
    Manners.objects.create(name="instead", wake_names="Snow")  # with the number of the other
    later = [arrival(message(words, GROUP)) for words in ("Frost?", "Snow?")]
    assert reasons(store.accept_messages(later)) == ["not_addressed", "wake_word"]
