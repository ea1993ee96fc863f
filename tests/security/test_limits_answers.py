"""Nobody spends the owner's money without bound: how often one is answered, and what is said to him
then."""

import asyncio
import sqlite3
from collections.abc import AsyncIterator, Iterator

import pytest

from tests.cast import fresh_id
from tests.conftest import scripted_env
from tests.e2e.chat import client, tell
from tests.fake_onebot import FakeOneBot, at, spoken, text
from tests.live_server import LiveServer
from tests.scripted_model import ScriptedModel
from tests.security.limits import DEFAULTS, answered, fill, heard, override, page, reasons, settled

MINUTE_NOTICE = "请一分钟后再找我"


@pytest.fixture(scope="module")
def server(model_server: ScriptedModel) -> Iterator[LiveServer]:
    with LiveServer(scripted_env(model_server) | DEFAULTS) as running:
        yield running


@pytest.fixture
async def bot(server: LiveServer, model: ScriptedModel) -> AsyncIterator[FakeOneBot]:
    model.answer_with(lambda request: "fine")
    async with client(server) as connected:
        yield connected


async def test_a_stranger_who_floods_in_private_gets_few_answers_and_one_notice(server, model, bot):
    stranger = fresh_id()
    for number in range(380):
        await bot.say_private(stranger, f"你好 {number}")
    rows = await settled(server, stranger, 380)
    assert (answered(rows), reasons(rows)) == (12, {"person_limit": 368})
    assert all(row["state"] == "silent" for row in rows if row["reason"] == "person_limit")
    said = await heard(bot)
    assert said.count("fine") == 12
    assert len(said) == 13


async def goes_on(bot: FakeOneBot, group: int, other: int) -> None:
    """Another bot answers each answer, until none comes."""
    for number in range(10):
        await bot.say_group(group, other, [at(bot.self_id), text(f"round {number}")])
        assert spoken(await bot.next_action()).endswith("fine")
    await bot.say_group(group, other, [at(bot.self_id), text("and on")])


async def test_a_bot_that_answers_each_answer_in_a_group_is_heard_ten_times_then_no_more(
    server, model, bot
):
    other, group = fresh_id(), fresh_id()
    await goes_on(bot, group, other)
    await settled(server, group, 11)
    for _ in range(19):
        await bot.say_group(group, other, [at(bot.self_id), text("once more")])
    rows = await settled(server, group, 30)
    assert answered(rows) == 10
    assert reasons(rows) == {"loop": 20}
    assert await heard(bot) == []
    assert server.log.count(f"silence towards {other}") == 1


async def test_others_in_the_group_are_answered_while_a_loop_is_silenced(server, model, bot):
    other, group = fresh_id(), fresh_id()
    await goes_on(bot, group, other)
    await bot.say_group(group, fresh_id(), [at(bot.self_id), text("hello")])
    assert (await settled(server, group, 12))[-1]["state"] == "answered"


async def test_ten_lines_at_once_are_no_loop(server, model, bot):
    """Whoever waits for no answer answers none."""
    person = fresh_id()
    for number in range(12):
        await bot.say_private(person, f"line {number}")
    assert answered(await settled(server, person, 12)) == 12


async def test_many_senders_who_alternate_in_one_group_are_bounded_by_the_chat(server, model, bot):
    group = fresh_id()
    people = [fresh_id() for _ in range(12)]
    await override(server, bot, sends_per_minute="0")
    for number in range(72):
        await bot.say_group(group, people[number % 12], [at(bot.self_id), text("hi")])
    rows = await settled(server, group, 72)
    assert answered(rows) == 40
    assert reasons(rows) == {"chat_limit": 32}
    said = await heard(bot)
    assert len(said) == 41
    assert sum(MINUTE_NOTICE in words for words in said) == 1


async def test_one_person_in_many_groups_is_bounded_by_himself(server, model, bot):
    person, groups = fresh_id(), [fresh_id() for _ in range(20)]
    for group in groups:
        await bot.say_group(group, person, [at(bot.self_id), text("hi")])
    rows = [row for group in groups for row in await settled(server, group, 1)]
    assert answered(rows) == 12
    assert reasons(rows) == {"person_limit": 8}
    assert sum(MINUTE_NOTICE in words for words in await heard(bot)) == 1


@pytest.mark.parametrize("person", ["9" * 19, "wxid_abc-9", 2**53 + 1])
async def test_an_id_of_any_kind_is_one_person(server, model, bot, person):
    person = f"{person}{fresh_id()}"
    groups = [fresh_id() for _ in range(14)]
    for group in groups:
        await tell(bot, [at(bot.self_id), text("hi")], user=person, group=group)
    rows = [row for group in groups for row in await settled(server, group, 1)]
    assert answered(rows) == 12


async def test_anonymous_people_are_one_person_in_one_group_and_nobody_elsewhere(
    server, model, bot
):
    first, second = fresh_id(), fresh_id()
    for number in range(13):
        anonymous = {"id": number, "name": f"nobody {number}", "flag": "f"}
        await tell(
            bot,
            [at(bot.self_id), text("hi")],
            user=80000000,
            group=first,
            sub_type="anonymous",
            anonymous=anonymous,
        )
    assert answered(await settled(server, first, 13)) == 12  # nobody can tell them apart
    await tell(
        bot, [at(bot.self_id), text("hi")], user=80000000, group=second, sub_type="anonymous"
    )
    assert answered(await settled(server, second, 1)) == 1


async def test_a_temporary_session_counts_for_the_same_person(server, model, bot):
    person, group = fresh_id(), fresh_id()
    for _ in range(6):
        await tell(bot, "hi", user=person, sub_type="group", group_id=group)
        await tell(bot, [at(bot.self_id), text("hi")], user=person, group=group)
    await tell(bot, [at(bot.self_id), text("hi")], user=person, group=fresh_id())
    rows = await settled(server, person, 6) + await settled(server, group, 6)
    assert answered(rows) == 12
    refused = "SELECT 1 FROM agent_message WHERE sender_id = ? AND reason = 'person_limit'"
    await server.row(refused, str(person))


async def test_an_owner_is_answered_as_often_as_he_asks(server, model, bot):
    owner = fresh_id()
    await override(server, bot, owners=str(owner), sends_per_minute="0")
    for _ in range(45):
        await bot.say_private(owner, "hi")
    assert answered(await settled(server, owner, 45)) == 45


async def test_the_bots_page_changes_the_limits_from_the_next_message_on(server, model, bot):
    person = fresh_id()
    await override(server, bot, person_per_minute="2")
    for _ in range(4):
        await bot.say_private(person, "hi")
    assert answered(await settled(server, person, 4)) == 2
    free = ("person_per_minute", "person_per_day", "chat_per_minute", "sends_per_minute")
    await override(server, bot, **dict.fromkeys(free, "0"))
    for _ in range(50):
        await bot.say_private(person, "hi")
    assert answered(await settled(server, person, 54)) == 52


async def test_a_chats_page_outdoes_the_bots(server, model, bot):
    person = fresh_id()
    await override(server, bot, person_per_minute="1")
    await bot.say_private(person, "hi")
    await settled(server, person, 1)
    (row,) = server.rows("SELECT id FROM agent_chatsession WHERE peer_id = ?", str(person))
    await fill(server, f"/admin/agent/chatsession/{row['id']}/change/", person_per_minute="3")
    for _ in range(4):
        await bot.say_private(person, "hi")
    assert answered(await settled(server, person, 5)) == 3


async def test_the_answers_of_a_day_are_counted_over_a_restart(start_server, model):
    model.answer_with(lambda request: "fine")
    server, person = start_server(PERSON_ANSWERS_PER_DAY="3"), fresh_id()
    account = fresh_id()
    async with client(server, account) as bot:
        for _ in range(2):
            await bot.say_private(person, "你好")
        assert answered(await settled(server, person, 2)) == 2
    await asyncio.to_thread(server.restart)
    async with client(server, account) as bot:
        for _ in range(4):
            await bot.say_private(person, "你好")
        rows = await settled(server, person, 6)
        assert answered(rows) == 3
        assert reasons(rows) == {"person_limit": 3}
        assert sum("请明天再来" in words for words in await heard(bot)) == 1


async def test_a_notice_is_on_record_and_no_history(server, model, bot):
    person = fresh_id()
    await override(server, bot, person_per_minute="1")
    for words in ("first", "second", "third"):
        await bot.say_private(person, words)
    await settled(server, person, 3)
    said = server.rows(
        "SELECT m.text, m.state, m.in_history FROM agent_message m JOIN agent_chatsession s "
        "ON s.id = m.session_id "
        "WHERE s.peer_id = ? AND m.direction = 'out' ORDER BY m.id",
        str(person),
    )
    assert [(row["state"], row["in_history"]) for row in said] == [
        ("delivered", 1),
        ("delivered", 0),
    ]
    await override(server, bot, person_per_minute="0")
    await bot.say_private(person, "fourth")
    await settled(server, person, 4)
    (request,) = [one for one in model.received(2) if "fourth" in one.last_text]
    assert "second" not in str(request.messages)
    assert said[1]["text"] not in str(request.messages)


async def test_a_silence_is_on_the_chats_page_and_ends_by_itself(server, model, bot):
    other, group = fresh_id(), fresh_id()
    await goes_on(bot, group, other)
    await settled(server, group, 11)
    (row,) = server.rows("SELECT id FROM agent_chatsession WHERE peer_id = ?", str(group))
    assert f"对 {other} 暂停到" in await page(
        server, f"/admin/agent/chatsession/{row['id']}/change/?panel=chat"
    )
    write(server, "UPDATE agent_tally SET silent_until = 1, recent = '' WHERE silent_until > 0")
    await bot.say_group(group, other, "are you there?")
    assert (await settled(server, group, 12))[-1]["state"] == "answered"


async def test_many_bots_that_answer_each_other_end_at_the_limit_of_the_chat(server, model, bot):
    group, others = fresh_id(), [fresh_id() for _ in range(6)]
    await override(server, bot, sends_per_minute="0")
    for number in range(90):
        await bot.say_group(group, others[number % 6], f"round {number}")
    rows = await settled(server, group, 90)
    assert answered(rows) == 40
    assert len(await heard(bot)) == 41


def write(server: LiveServer, statement: str) -> None:
    """Time passes: what the rows of the running server say is moved into the past."""
    connection = sqlite3.connect(server.data_dir / "frostagent.sqlite3", timeout=10)
    with connection:
        connection.execute(statement)
    connection.close()
