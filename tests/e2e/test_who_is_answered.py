"""Who is answered; and that every other message is on record with the reason."""

import sqlite3
import time
from contextlib import closing

import pytest

from tests.cast import fresh_id
from tests.e2e.chat import client, tell, verdict, words
from tests.fake_onebot import MISSING, at, ok, spoken, text

ME = 1_000_000_007


def quote(message_id: int | str) -> dict:
    return {"type": "reply", "data": {"id": str(message_id)}}


# --- Mentions -------------------------------------------------------------------


@pytest.mark.parametrize(
    ("message", "said"),
    [
        ([at(ME), text(" hi")], "hi"),
        ([{"type": "at", "data": {"qq": float(ME)}}, text(" hi")], "hi"),
        ([at(20002), at(ME), text(" hi")], "[@20002] hi"),
        (f"so [CQ:at,qq={ME},name=bot]&#91;hi&#93;", "so [hi]"),
        ([at(ME)], ""),
    ],
)
async def test_a_mention_in_any_form_is_answered(live, model, message, said):
    """Checklist 49, 51."""
    model.script(["yes?"])
    group = fresh_id()
    async with client(live, ME) as bot:
        await tell(bot, message, user=fresh_id(), group=group)
        assert spoken(await bot.next_action()) == " yes?"
        assert await verdict(live, group) == ("answered", "mention")
    assert words(model.requests[0]) == said


@pytest.mark.parametrize(
    "message",
    [
        [text(f"@{ME} hi all")],
        [at("all"), at(f"{ME}1"), text(" hi")],
        f"&#91;CQ:at,qq={ME}&#93; hi",
        [quote(-33), at(40004), text(" yes")],
    ],
)
async def test_a_group_message_for_others_is_recorded_and_not_answered(live, model, message):
    """Checklist 52, 53, 54."""
    group = fresh_id()
    async with client(live, ME) as bot:
        await tell(bot, message, user=fresh_id(), group=group)
        assert await verdict(live, group) == ("recorded", "not_addressed")
        await bot.no_action(group=group)


# --- Wake words and quotes ------------------------------------------------------


@pytest.mark.parametrize("said", ["hey FROSTY!", "小霜在吗"])
async def test_a_wake_word_in_any_case_is_answered(contrary, model, said):
    model.script(["here"])
    group = fresh_id()
    async with client(contrary) as bot:
        await tell(bot, said, user=fresh_id(), group=group)
        assert spoken(await bot.next_action()) == "here"
        assert await verdict(contrary, group) == ("answered", "wake_word")


@pytest.mark.parametrize("said", ["frost", "[CQ:at,qq=5,name=Frosty]"])
async def test_what_holds_no_wake_word_is_not_answered(contrary, model, said):
    group = fresh_id()
    async with client(contrary) as bot:
        await tell(bot, said, user=fresh_id(), group=group)
        assert await verdict(contrary, group) == ("recorded", "not_addressed")
        await bot.no_action(group=group)


async def test_a_quote_of_the_bots_own_message_is_answered(live, model):
    """Checklist 54."""
    model.script(["first", "second"])
    group = fresh_id()
    async with client(live) as bot:
        bot.answer_with(lambda _action: ok({"message_id": -group}))
        await bot.say_group(group, fresh_id(), "hi")
        await bot.next_action()
        await live.row(
            "SELECT id FROM agent_message WHERE message_id = ? AND state = 'delivered'", str(-group)
        )
        await tell(bot, [quote(-group), text("and then?")], user=fresh_id(), group=group)
        assert spoken(await bot.next_action()) == " second"
        assert await verdict(live, group) == ("answered", "quote")


async def test_a_quote_of_what_the_account_said_by_another_hand_is_answered(live, model):
    model.script(["yes, I said so"])
    account, group, message_id = fresh_id(), fresh_id(), fresh_id()
    async with client(live, account) as bot:
        await tell(bot, "by hand", user=account, group=group, message_id=message_id)
        assert await verdict(live, group) == ("recorded", "own_message")
        await tell(bot, [quote(message_id), text("really?")], user=fresh_id(), group=group)
        assert spoken(await bot.next_action()) == " yes, I said so"


async def test_a_quote_that_is_stored_together_with_what_it_quotes_is_answered(live, model):
    """While the database is busy messages gather, and the next commit takes them all."""
    model.answer_with(lambda _request: "yes, I said so")
    account, group, message_id = fresh_id(), fresh_id(), fresh_id()
    async with client(live, account) as bot:
        with closing(
            sqlite3.connect(live.data_dir / "frostagent.sqlite3", isolation_level=None)
        ) as other:
            other.execute("BEGIN IMMEDIATE")
            await tell(bot, "something to wait behind", user=fresh_id(), group=fresh_id())
            await tell(bot, "by hand", user=account, group=group, message_id=message_id)
            await tell(bot, [quote(message_id), text("really?")], user=fresh_id(), group=group)
            await bot.heartbeat()
            other.execute("ROLLBACK")
        assert spoken(await bot.next_action()) == " yes, I said so"
        assert await verdict(live, group) == ("answered", "quote")


async def test_a_quote_of_the_bots_message_in_another_chat_is_not_meant(live, model):
    model.script(["here"])
    group, other = fresh_id(), fresh_id()
    async with client(live) as bot:
        bot.answer_with(lambda _action: ok({"message_id": 77}))
        await bot.say_group(group, fresh_id(), "hi")
        await bot.next_action()
        await tell(bot, [quote(77), text("?")], user=fresh_id(), group=other)
        assert await verdict(live, other) == ("recorded", "not_addressed")


async def test_groups_are_recorded_and_never_answered_where_that_is_switched_off(
    start_server, model
):
    server = start_server(GROUP_REPLY_ON_MENTION="false", BOT_NAME="Frosty")
    group = fresh_id()
    model.script(["in private, yes"])
    async with client(server) as bot:
        await bot.say_group(group, fresh_id(), "Frosty, hi")
        assert await verdict(server, group) == ("recorded", "groups_off")
        await bot.say_private(fresh_id(), "hi")
        assert spoken(await bot.next_action()) == "in private, yes"


# --- Never answered -------------------------------------------------------------


@pytest.mark.parametrize("post_type", ["message", "message_sent"])
async def test_the_accounts_own_messages_are_recorded_and_not_answered(live, model, post_type):
    """Checklist 70."""
    account, group, user = fresh_id(), fresh_id(), fresh_id()
    async with client(live, account) as bot:
        await tell(
            bot, [at(account), text("by me")], user=account, group=group, post_type=post_type
        )
        await tell(bot, "by me", user=account, post_type=post_type, target_id=user)
        assert await verdict(live, group) == ("recorded", "own_message")
        assert await verdict(live, user) == ("recorded", "own_message")
        await bot.no_action(group=group)


async def test_two_connected_bots_do_not_talk_to_each_other_for_ever(live, model):
    """Checklist 70."""
    model.answer_with(lambda request: f"you said: {words(request)}")
    group, first, second = fresh_id(), fresh_id(), fresh_id()
    async with client(live, first) as one, client(live, second) as two:
        await live.row("SELECT id FROM onebot_bot WHERE self_id = ? AND online", str(second))
        await one.say_group(group, fresh_id(), "hi")
        answer = spoken(await one.next_action())
        await two.say_group(group, first, answer)
        await two.say_private(first, "and in private?")
        assert await verdict(live, first) == ("recorded", "other_bot")
        await two.no_action(group=group)
        await two.no_action(user=fresh_id())
    assert len(model.requests) == 1


@pytest.mark.parametrize("message", [[], MISSING, [text("  \n ")]])
async def test_an_empty_message_is_recorded_and_not_answered(live, model, message):
    """Checklist 58."""
    user = fresh_id()
    async with client(live) as bot:
        await tell(bot, message, user=user)
        assert await verdict(live, user) == ("recorded", "empty")
        await bot.no_action(user=user)


async def test_a_message_that_comes_too_late_is_kept_and_not_answered(live, model):
    """Checklist 69."""
    user = fresh_id()
    async with client(live) as bot:
        await bot.say_private(user, "hi", time=int(time.time()) - 301)
        assert await verdict(live, user) == ("expired", "too_old")
        await bot.no_action(user=user)


@pytest.mark.parametrize("moment", [lambda: time.time() - 240, lambda: time.time() * 1000])
async def test_a_message_of_these_minutes_is_answered_whatever_its_clock(live, model, moment):
    model.script(["in time"])
    async with client(live) as bot:
        await bot.say_private(fresh_id(), "hi", time=int(moment()))
        assert spoken(await bot.next_action()) == "in time"


async def test_a_system_notice_of_a_group_is_not_answered(live, model):
    """Checklist 71."""
    group = fresh_id()
    async with client(live) as bot:
        await bot.say_group(group, fresh_id(), "a file was added", sub_type="notice")
        assert await verdict(live, group) == ("recorded", "system_notice")
        await bot.no_action(group=group)


# --- People of every kind -------------------------------------------------------

ANONYMOUS = 80_000_000


@pytest.mark.parametrize(
    ("user", "overrides"),
    [
        (20002, {"sub_type": "group"}),
        (
            ANONYMOUS,
            {"sub_type": "anonymous", "anonymous": {"id": 1, "name": "Big Duck", "flag": "f"}},
        ),
    ],
)
async def test_members_of_every_kind_are_answered(live, model, user, overrides):
    """Checklist 71, 72."""
    model.script(["hello"])
    group = fresh_id()
    async with client(live) as bot:
        await bot.say_group(group, user, "hi", **overrides)
        action = await bot.next_action()
    assert action["params"]["group_id"] == group
    assert spoken(action).strip() == "hello"


@pytest.mark.parametrize(
    ("dialect", "overrides", "through"),
    [
        ("NapCat", {"group_id": 30003, "temp_source": 0}, 30003),
        ("LLBot, go-cqhttp", {"sender": {"nickname": "Ann", "group_id": 30003}}, 30003),
        ("Lagrange", {}, None),
    ],
)
async def test_a_temporary_session_is_private_and_answered_through_its_group(
    live, model, dialect, overrides, through
):
    """Checklist 71."""
    model.script(["psst"])
    user = fresh_id()
    async with client(live) as bot:
        await bot.say_private(user, "hi", sub_type="group", **overrides)
        action = await bot.next_action()
        assert await verdict(live, user) == ("answered", "private")
    assert action["action"] == "send_private_msg"
    assert (action["params"]["user_id"], action["params"].get("group_id")) == (user, through)
    assert action["params"]["message"] == [text("psst")]


async def test_a_friend_with_a_stray_group_is_answered_as_a_friend(live, model):
    """Checklist 71."""
    model.script(["hi"])
    async with client(live) as bot:
        await bot.say_private(fresh_id(), "hi", sub_type="friend", group_id=30003)
        assert "group_id" not in (await bot.next_action())["params"]
