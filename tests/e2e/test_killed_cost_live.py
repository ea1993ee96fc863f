"""What a model call cost that a killed server could not put down."""

from collections.abc import Iterator

import pytest

from tests.cast import fresh_id
from tests.conftest import TOKEN, scripted_env
from tests.fake_onebot import FakeOneBot, spoken
from tests.live_server import LiveServer
from tests.scripted_model import ScriptedModel, held, says

SPENT = (
    "SELECT sum(calls) AS calls FROM agent_spendsum WHERE kind = 'account' AND subject = ? "
    "HAVING sum(calls) >"
)


@pytest.fixture
def mortal(model_server: ScriptedModel) -> Iterator[LiveServer]:
    server = LiveServer(scripted_env(model_server)).start()
    yield server
    server.remove()


async def test_a_call_that_was_under_way_counts_as_estimated_after_a_kill(mortal, model):
    account, user = fresh_id(), fresh_id()
    model.answer_with(lambda _: held(says("here")))
    async with FakeOneBot(mortal.ws_url, account, token=TOKEN) as bot:
        await bot.say_private(user, "hello")
        await model.wait_for_requests(1)
        mortal.kill()
    model.release(100)
    model.answer_with(lambda _: says("here"))
    mortal.start()
    async with FakeOneBot(mortal.ws_url, account, token=TOKEN) as bot:
        assert spoken(await bot.next_action()) == "here"
        spent = await mortal.row(f"{SPENT} 1", f"onebot:{account}")
        assert spent["calls"] == 2
        await bot.say_private(user, "again")
        assert spoken(await bot.next_action()) == "here"
        assert (await mortal.row(f"{SPENT} 2", f"onebot:{account}"))["calls"] == 3
