"""What the page of the system says counts from the next message on, without a restart."""

import re

from tests.cast import fresh_id
from tests.e2e.chat import client
from tests.e2e.cockpit import Cockpit
from tests.fake_onebot import spoken
from tests.scripted_model import fails

PAGE = "/admin/agent/installation/"
HAN = re.compile(r"[\u4e00-\u9fff]")


async def test_the_language_of_the_next_apology_is_the_one_that_was_just_chosen(
    start_server, model
):
    server = start_server(LANGUAGE_CODE="en", MCP_ALLOWED_COMMANDS="npx")
    model.answer_with(lambda _request: fails(402, message="Insufficient Balance"))
    cockpit, said = Cockpit(server), []
    async with client(server) as bot:
        for language in ("", "zh-hans", ""):
            cockpit.fill(PAGE, language_code=language, mcp_allowed_commands="uvx")
            await bot.say_private(fresh_id(), "hello?")
            said.append(bool(HAN.search(spoken(await bot.next_action()))))
    assert said == [False, True, False]
    shown = cockpit.page(PAGE)
    row = shown.partition('<tr id="MCP_ALLOWED_COMMANDS">')[2].partition("</tr>")[0]
    assert ">uvx<" in row
    cockpit.close()
