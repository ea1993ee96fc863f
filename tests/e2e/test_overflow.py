"""More messages than may wait in one chat: the surplus is refused on record, the rest is answered
in order, also later."""

import asyncio
import re

import requests

from tests.cast import fresh_id
from tests.conftest import TOKEN
from tests.environment import PATIENCE
from tests.fake_onebot import FakeOneBot, spoken
from tests.live_server import ADMIN, ADMIN_PASSWORD, LiveServer
from tests.scripted_model import Answer, Request, ScriptedModel, held, says

#: Messages of one chat that may wait behind the one being answered.
LIMIT = 100
SURPLUS = 5
STATES = (
    "SELECT m.state, m.reason, m.text FROM agent_message m JOIN agent_chatsession s ON s.id = "
    "session_id "
    "WHERE peer_id = ? AND direction = 'in' ORDER BY m.id"
)


def echo(request: Request) -> Answer:
    return says(request.last_text.rpartition("\n")[2])


async def flood(server: LiveServer, model: ScriptedModel, bot: FakeOneBot, user: int) -> list[str]:
    """Say more than may wait while the model is busy with the first message; everything that was
    said."""
    said = [f"message {number}" for number in range(1 + LIMIT + SURPLUS)]
    model.answer_with(
        lambda request: (
            held(echo(request)) if request.last_text.endswith("message 0") else echo(request)
        )
    )
    await bot.say_private(user, said[0])
    await model.wait_for_requests(1)
    for words in said[1:]:
        await bot.say_private(user, words)
    refused = (
        "SELECT 1 FROM agent_message WHERE sender_id = ? AND state = 'failed' GROUP BY sender_id "
        "HAVING count(*) = ?"
    )
    await server.row(refused, str(user), SURPLUS)
    return said


async def test_the_surplus_of_one_chat_is_refused_on_record_and_the_rest_answered_in_order(
    live, model
):
    user = fresh_id()
    async with FakeOneBot(live.ws_url, fresh_id(), token=TOKEN) as bot:
        said = await flood(live, model, bot, user)
        model.release()
        assert [spoken(await bot.next_action()) for _ in range(1 + LIMIT)] == said[:-SURPLUS]
        await bot.no_action(user=user)
    rows = live.rows(STATES, str(user))[: len(said)]
    assert [row["text"] for row in rows] == said
    assert [row["state"] for row in rows] == ["answered"] * (1 + LIMIT) + ["failed"] * SURPLUS
    assert {row["reason"] for row in rows[-SURPLUS:]} == {"queue_full"}


async def test_a_full_chat_holds_no_other_up_and_takes_messages_again_once_there_is_room(
    live, model
):
    user, other = fresh_id(), fresh_id()
    async with FakeOneBot(live.ws_url, fresh_id(), token=TOKEN) as bot:
        said = await flood(live, model, bot, user)
        await bot.say_private(other, "anybody there?")
        assert spoken(await bot.next_action()) == "anybody there?"
        model.release()
        assert [spoken(await bot.next_action()) for _ in range(1 + LIMIT)] == said[:-SURPLUS]
        await bot.say_private(user, "and now?")
        assert spoken(await bot.next_action()) == "and now?"


async def test_what_waited_in_a_full_chat_is_not_refused_by_the_next_life(start_server, model):
    server, account, user = await asyncio.to_thread(start_server), fresh_id(), fresh_id()
    async with FakeOneBot(server.ws_url, account, token=TOKEN) as bot:
        said = await flood(server, model, bot, user)
        await asyncio.to_thread(server.kill)
    model.release(2)  # the request of the life before is still held
    await asyncio.to_thread(server.start)
    async with FakeOneBot(server.ws_url, account, token=TOKEN) as bot:
        assert [spoken(await bot.next_action()) for _ in range(1 + LIMIT)] == said[:-SURPLUS]
        await bot.no_action(user=user)
    assert [row["state"] for row in server.rows(STATES, str(user))[-SURPLUS - 1 : -1]] == [
        "failed"
    ] * SURPLUS


async def test_the_operator_finds_what_was_refused_and_why(live, model):
    user = fresh_id()
    async with FakeOneBot(live.ws_url, fresh_id(), token=TOKEN) as bot:
        await flood(live, model, bot, user)
        page = await asyncio.to_thread(
            admin_page, live, f"/admin/agent/message/?state__exact=failed&q={user}"
        )
        model.release()
        while spoken(await bot.next_action()) != f"message {LIMIT}":
            pass
    assert page.count("too many messages were waiting in this chat") >= SURPLUS


def admin_page(server: LiveServer, path: str) -> str:
    """A page of the admin as its English-speaking administrator sees it."""
    with requests.Session() as browser:
        browser.trust_env = False
        browser.headers["Accept-Language"] = "en"
        login = f"{server.url}/admin/login/"
        token = re.search(
            r'name="csrfmiddlewaretoken" value="(\w+)"', browser.get(login, timeout=PATIENCE).text
        )
        assert token
        form = {
            "username": ADMIN,
            "password": ADMIN_PASSWORD,
            "csrfmiddlewaretoken": token[1],
            "next": path,
        }
        answer = browser.post(login, form, timeout=PATIENCE)
        assert answer.url.endswith(path), answer.url
        return answer.text


async def test_a_flood_of_refusals_is_one_line_and_its_end_a_count(start_server, model):
    server = start_server()
    async with FakeOneBot(server.ws_url, fresh_id(), token=TOKEN) as bot:
        await flood(server, model, bot, fresh_id())
        assert server.log.count("is refused: too many are waiting") == 1
        model.release()
        await asyncio.to_thread(server.terminate)
    assert f"is refused: too many are waiting ({SURPLUS - 2} more like it before)" in server.log
