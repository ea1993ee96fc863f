"""Two processes, one of which dies or sleeps, and accounts that move between them: each message
answered once, in order."""

import asyncio
import json
import os
import signal
from collections.abc import Iterator

import psycopg
import pytest
from channels_redis.core import RedisChannelLayer

from tests.cast import fresh_id
from tests.e2e.brisk import BriskServer, known_to_others
from tests.e2e.chat import client
from tests.e2e.cockpit import Cockpit
from tests.e2e.weather import Sources, sky
from tests.environment import PATIENCE
from tests.fake_onebot import FakeOneBot, spoken
from tests.file_server import FileServer
from tests.scripted_model import Answer, Call, Request, ScriptedModel, calls, held, says, text_of

pytest.importorskip(
    "tests.services", reason="no server wheels for this platform", exc_type=ImportError
)
from tests.services import RedisServer

pytestmark = pytest.mark.slow

AWAY = "away for longer than its lease"
#: Messages that came in of a person, with what became of them and of their runs.
ENDS = (
    "SELECT m.text, m.state, run.state AS run, count(c.id) AS calls FROM agent_message m "
    "LEFT JOIN agent_run run ON run.message_id = m.id LEFT JOIN agent_toolcall c ON c.run_id "
    "= run.id "
    "WHERE m.sender_id = ? AND m.direction = 'in' GROUP BY m.id, run.id ORDER BY m.id"
)
SAID = (
    "SELECT m.text, m.state FROM agent_message m JOIN agent_chatsession s ON s.id = m.session_id "
    "WHERE s.account = ? AND m.direction = 'out' ORDER BY m.id"
)


def question(request: Request) -> str:
    """The words of the message that a request is about."""
    asked = next(message for message in reversed(request.messages) if message["role"] == "user")
    return text_of(asked).rpartition("\n")[2]


def answers(request: Request) -> Answer:
    return says(f"re {question(request)}")


def looks_and_says(request: Request) -> Answer:
    """A tool over HTTP and a message by tool first, the answer then; each when it is let out."""
    if request.messages[-1]["role"] == "tool":
        return held(answers(request))
    wait = {"messages": [{"type": "plain", "text": f"wait {question(request)}"}]}
    return held(calls(Call("http_weather", {"city": "Oslo"}), Call("send_message", wait)))


async def hear(bot: FakeOneBot, count: int, seconds: float = PATIENCE) -> list[str]:
    return [spoken(await bot.next_action(seconds)) for _ in range(count)]


async def ended(server: BriskServer, user: int, count: int) -> list[dict[str, object]]:
    """What became of the messages of ``user``, once so many are answered."""
    query = (
        "SELECT 1 FROM agent_message WHERE sender_id = ? AND state = 'answered' HAVING count(*) = ?"
    )
    await server.row(query, str(user), count)
    return server.rows(ENDS, str(user))


# --- A process that dies -------------------------------------------------------------


async def test_a_chat_with_a_message_before_its_process_is_known_to_be_dead_continues_in_order(
    first, second, model
):
    model.script([held("never heard")])
    model.answer_with(answers)
    account, user, other = fresh_id(), fresh_id(), fresh_id()
    async with client(first, account) as bot:
        await bot.say_private(user, "one")
        await model.wait_for_requests(1)
        await asyncio.to_thread(first.kill)
    async with client(second, account) as bot:
        await bot.say_private(user, "two")
        await bot.say_private(other, "elsewhere")
        assert await hear(bot, 1) == ["re elsewhere"]
        assert await hear(bot, 2) == ["re one", "re two"]
        await bot.say_private(user, "three")
        assert await hear(bot, 1) == ["re three"]
        await bot.no_action(user=user)
    assert [end["text"] for end in await ended(second, user, 4)][:3] == ["one", "two", "three"]


# --- A process that sleeps -----------------------------------------------------------


async def test_a_process_that_was_away_does_nothing_twice_says_so_once_and_serves_on(
    first: BriskServer, second: BriskServer, model: ScriptedModel, file_server: FileServer
):
    cockpit = await asyncio.to_thread(Cockpit, first)
    await asyncio.to_thread(Sources(first, cockpit).set_up_http, sky(file_server))
    cockpit.close()
    model.answer_with(looks_and_says)
    account, early, late, lives = fresh_id(), fresh_id(), fresh_id(), first.log.count(AWAY)
    async with client(first, account) as bot:
        await bot.say_private(late, "b")
        await model.wait_for_requests(1)
        model.release()
        assert await hear(bot, 1) == ["wait b"]
        await model.wait_for_requests(2)
        await bot.say_private(early, "a")
        await model.wait_for_requests(3)
        os.kill(first.pid, signal.SIGSTOP)
        bot.cut()
    try:
        async with client(second, account) as bot:
            await model.wait_for_requests(5)
            model.release(100)
            assert sorted(await hear(bot, 3)) == ["re a", "re b", "wait a"]
            os.kill(first.pid, signal.SIGCONT)
            await first.logged(AWAY)
            await bot.no_action(user=early)
            await bot.no_action(user=late)
            async with client(first, fresh_id()) as other:
                await other.say_private(fresh_id(), "c")
                assert await hear(other, 2) == ["wait c", "re c"]
            assert first.log.count(AWAY) == lives + 1
            await bot.no_action(user=early)
    finally:
        os.kill(first.pid, signal.SIGCONT)
    for user, text in ((early, "a"), (late, "b")):
        end = (await ended(second, user, 3 if user == early else 2))[0]
        assert end == {"text": text, "state": "answered", "run": "finished", "calls": 2}
    assert len(file_server.requests) == 3


async def test_accounts_of_a_process_that_was_away_are_heard_through_it_again(first, second, model):
    model.answer_with(answers)
    account = fresh_id()
    async with client(first, account) as bot:
        await known_to_others(first, account)
        os.kill(first.pid, signal.SIGSTOP)
        try:
            await second.row(
                "SELECT 1 FROM onebot_bot WHERE self_id = ? AND NOT online", str(account)
            )
        finally:
            os.kill(first.pid, signal.SIGCONT)
        await known_to_others(second, account)
        async with client(second, account, role="Event", greet=False) as ears:
            await ears.say_private(fresh_id(), "hi")
            assert await hear(bot, 1) == ["re hi"]


async def test_a_process_that_sleeps_during_a_write_blocks_the_others_no_longer_than_allowed(
    first, second, model
):
    model.script([held("never heard"), "taken over"])
    account, user = fresh_id(), fresh_id()
    async with client(first, account) as bot:
        await bot.say_private(user, "hi")
        await model.wait_for_requests(1)
        with psycopg.connect(first.env["DATABASE_URL"]) as lock:
            lock.execute("SELECT 1 FROM agent_serverprocess WHERE pid = %s FOR UPDATE", [first.pid])
            await first.row(
                "SELECT 1 FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND query LIKE "
                "'%%serverprocess%%'"
            )
            os.kill(first.pid, signal.SIGSTOP)
        bot.cut()
    try:
        async with client(second, account) as bot:
            assert await hear(bot, 1) == ["taken over"]
            os.kill(first.pid, signal.SIGCONT)
            await bot.no_action(user=user)
    finally:
        os.kill(first.pid, signal.SIGCONT)


# --- A channel layer that goes away --------------------------------------------------


@pytest.fixture
def apart(environment) -> Iterator[tuple[BriskServer, BriskServer, RedisServer]]:
    """Two processes with a channel layer of their own, which the test may stop."""
    with RedisServer() as redis:
        servers = [BriskServer(environment | {"REDIS_URL": redis.url}) for _ in range(2)]
        try:
            yield servers[0].start(), servers[1].start(), redis
        finally:
            for server in servers:
                server.remove()


async def test_what_is_to_be_relayed_while_the_layer_is_away_is_said_once_when_it_is_back(
    apart, model
):
    one, two, redis = apart
    model.answer_with(lambda request: held(answers(request)))
    account, users = fresh_id(), [fresh_id() for _ in range(3)]
    async with (
        client(one, account, role="Api", greet=False) as api,
        client(two, account, role="Event") as event,
    ):
        await known_to_others(one, account)
        api.stay_silent()
        await event.say_private(users[0], "on its way")
        model.release()
        action = await api.next_action()
        await asyncio.to_thread(redis.stop)
        await api.answer(action)
        api.answer_again()
        for user in users:
            await event.say_private(user, f"of {user}")
        model.release(100)
        # Sent: the connection to the layer had not yet been seen to be closed, so it may have it.
        begun = "SELECT 1 FROM agent_message WHERE text = ? AND state IN ('pending', 'sent')"
        await two.row(begun, f"re of {users[1]}")
        await asyncio.to_thread(redis.start)
        assert sorted(await hear(api, 3)) == sorted(f"re of {user}" for user in users)
        for user in users:
            count = 2 if user == users[0] else 1
            assert {(end["state"], end["run"]) for end in await ended(two, user, count)} == {
                ("answered", "finished")
            }
        assert {row["state"] for row in two.rows(SAID, str(account))} == {"delivered"}
        await event.say_private(users[0], "afterwards")
        assert await hear(api, 1) == ["re afterwards"]


async def test_what_was_given_up_is_not_said_by_the_process_that_hears_of_it_late(
    environment, first, model
):
    """The channel layer was away, or the process: meanwhile the outcome went on record, and what
    comes next in the chat was said."""
    model.script(["said", "afterwards"])
    account, user = fresh_id(), fresh_id()
    layer = RedisChannelLayer([environment["REDIS_URL"]])
    async with client(first, account) as bot:
        await bot.say_private(user, "hi")
        action = await bot.next_action()
        bots = "SELECT channel FROM onebot_bot WHERE self_id = ? AND channel <> ''"
        mailbox = (await first.row(bots, str(account)))["channel"]
        await first.row(
            "SELECT 1 FROM agent_message WHERE echo = ? AND state = 'delivered'", action["echo"]
        )
        late = {"type": "call", "account": str(account), "echo": action["echo"], "seconds": 5.0}
        late |= {"text": json.dumps(action), "reply_to": await layer.new_channel()}
        await layer.send(mailbox, late)
        assert (await layer.receive(late["reply_to"]))["kind"] == "NotConnected"
        await bot.say_private(user, "again")
        assert spoken(await bot.next_action()) == "afterwards"
    await layer.close_pools()


# --- An account that moves -----------------------------------------------------------


@pytest.fixture
def forgetful(environment) -> Iterator[BriskServer]:
    """A process that reads where the accounts are when it starts, and not again for a minute; not
    started."""
    server = BriskServer(environment)
    server.limits = {**server.limits, "account_refresh": 60.0}
    yield server
    server.remove()


@pytest.mark.parametrize("comes_back", ["before the answer", "after the answer"])
async def test_an_answer_finds_an_account_that_has_moved_while_it_was_made(
    first, second, forgetful, model, comes_back
):
    model.answer_with(lambda request: held(answers(request)))
    account, user = fresh_id(), fresh_id()
    async with client(first, account, role="Api", greet=False):
        await known_to_others(first, account)
        await asyncio.to_thread(forgetful.start)
        event = await client(forgetful, account, role="Event").__aenter__()
        await event.say_private(user, "hi")
        await model.wait_for_requests(1)
    await first.logged(f"Account {account} disconnected")
    if comes_back == "after the answer":
        model.release(100)
        await second.row("SELECT 1 FROM agent_message WHERE text = 're hi' AND state = 'pending'")
    async with client(second, account, role="Api", greet=False) as api:
        await known_to_others(second, account)
        model.release(100)
        action = await api.next_action()
        assert spoken(action) == "re hi"
        await second.row(
            "SELECT 1 FROM agent_message WHERE echo = ? AND state = 'delivered'", action["echo"]
        )
        await event.say_private(user, "again")
        assert await hear(api, 1) == ["re again"]
        await event.__aexit__(None)


async def test_a_socket_left_behind_by_its_client_is_closed_when_the_account_connects_elsewhere(
    first, second, model
):
    model.answer_with(answers)
    account, user = fresh_id(), fresh_id()
    async with client(first, account) as left:
        await known_to_others(first, account)
        async with client(second, account) as bot:
            assert await left.close_code() == 4009
            await bot.say_private(user, "hi")
            assert await hear(bot, 1) == ["re hi"]
            await bot.no_action(user=user)
        assert [action for action in left.actions if action["action"].startswith("send_")] == []


async def test_the_role_of_a_socket_decides_whether_it_was_left_behind(first, second, model):
    model.answer_with(answers)
    account, user = fresh_id(), fresh_id()
    async with (
        client(first, account, role="Api", greet=False) as api,
        client(second, account, role="Event") as event,
    ):
        await known_to_others(first, account)
        await event.say_private(user, "hi")
        assert await hear(api, 1) == ["re hi"]
