"""The names of groups and members that clients leave out of their messages."""

from tests.cast import fresh_id
from tests.e2e.chat import client
from tests.fake_onebot import MISSING, FakeOneBot, Frame, at, text
from tests.scripted_model import Request


def frame(request: Request) -> str:
    """The line before the words of the user."""
    return request.last_text.partition("\n")[0]


async def ask(bot: FakeOneBot, group: int, *parts: Frame, user: int | None = None) -> None:
    """Say something to the bot in a group, as a client does that does not know its name."""
    message = [at(bot.self_id), *parts]
    await bot.say_group(group, user or fresh_id(), message, mention=False, group_name=MISSING)
    await bot.next_action()


async def test_a_groups_name_is_asked_for_once_and_is_in_the_next_request(live, model):
    model.script(["a", "b", "c"])
    group = fresh_id()
    async with client(live) as bot:
        bot.names["get_group_info"] = {"group_id": group, "group_name": "炉石部落"}
        await ask(bot, group, text("a"))
        row = await live.row(
            "SELECT title FROM agent_chatsession WHERE peer_id = ? AND title != ''", str(group)
        )
        await ask(bot, group, text("b"))
        await ask(bot, group, text("c"))
    assert row["title"] == "炉石部落"
    assert "炉石部落" in frame(model.requests[1])
    assert [one["params"] for one in bot.questions] == [{"group_id": group}]


async def test_a_group_whose_name_is_on_record_is_not_asked_about(live, model):
    model.script(["a", "b"])
    group, account = fresh_id(), fresh_id()
    async with client(live, account) as bot:
        await bot.say_group(group, fresh_id(), "a", group_name="老群")
        await bot.next_action()
    async with client(live, account) as bot:
        await ask(bot, group, text("b"))
        await bot.no_action(group=group)
    assert "老群" in frame(model.requests[1])
    assert bot.questions == []


async def test_the_name_of_a_silent_member_is_asked_for_and_stays_in_later_requests(live, model):
    model.script(["a", "b"])
    group, silent, user = fresh_id(), fresh_id(), fresh_id()
    async with client(live) as bot:
        bot.names["get_group_member_info"] = {"card": "", "nickname": "潜水员"}
        await ask(bot, group, at(silent), text("is who?"), user=user)
        await ask(bot, group, text("and now?"), user=user)
    first, second = model.requests
    assert f'"user_id":"{silent}","name":"潜水员"' in frame(first).replace(": ", ":").replace(
        ", ", ","
    )
    assert first.last_text in [one["content"] for one in second.messages]


async def test_a_client_that_does_not_know_the_member_costs_only_the_name(live, model):
    model.script(["a"])
    group = fresh_id()
    async with client(live) as bot:
        await ask(bot, group, at(fresh_id()), text("is who?"))
        assert [one["action"] for one in bot.questions].count("get_group_member_info") == 1
    assert "is who?" in model.requests[0].last_text
