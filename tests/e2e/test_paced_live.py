"""Many answers that are ready at once."""

import time

import pytest

from tests.cast import fresh_id
from tests.e2e.chat import client
from tests.fake_onebot import spoken

GROUPS, EACH = 8, 8


@pytest.mark.slow
async def test_answers_that_are_ready_at_once_are_paced_none_lost_and_each_chat_in_order(
    start_server, model
):
    """Checklist 98: 60 go out at once, the others at two a second."""
    model.answer_with(lambda request: request.last_text.split()[-1])
    server = start_server(CHAT_ANSWERS_PER_MINUTE="40", PERSON_ANSWERS_PER_MINUTE="0")
    groups = [fresh_id() for _ in range(GROUPS)]
    async with client(server) as bot:
        begun = time.monotonic()
        for number in range(EACH):
            for group in groups:
                await bot.say_group(group, fresh_id(), f"say {number}")
        heard: dict[int, list[str]] = {}
        for _ in range(GROUPS * EACH):
            action = await bot.next_action()
            heard.setdefault(action["params"]["group_id"], []).append(spoken(action).strip())
        assert time.monotonic() - begun > 1
        await server.row(
            "SELECT count(*) FROM agent_message "
            "WHERE direction = 'out' AND state = 'delivered' HAVING count(*) = ?",
            GROUPS * EACH,
        )
    assert heard == {group: [str(number) for number in range(EACH)] for group in groups}
