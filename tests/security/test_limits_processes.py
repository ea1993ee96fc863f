"""Two processes on one database count together, and obey what one of them was told."""

import asyncio
from collections.abc import Iterator

import pytest

from tests.cast import fresh_id
from tests.conftest import scripted_env
from tests.e2e.brisk import BriskServer
from tests.e2e.chat import client
from tests.fake_onebot import spoken
from tests.scripted_model import ScriptedModel, returns
from tests.security.limits import DEFAULTS, answered, override, reasons, settled

pytestmark = pytest.mark.slow

pytest.importorskip(
    "tests.services", reason="no server wheels for this platform", exc_type=ImportError
)


@pytest.fixture
def both(
    model_server: ScriptedModel, migrated_url: str, redis_url: str
) -> Iterator[tuple[BriskServer, BriskServer]]:
    """Two running processes of one installation."""
    env = (
        scripted_env(model_server)
        | DEFAULTS
        | {"DATABASE_URL": migrated_url, "REDIS_URL": redis_url}
    )
    with BriskServer(env) as one, BriskServer(env) as other:
        yield one, other


async def test_one_person_who_talks_to_two_processes_is_counted_once(both, model):
    model.answer_with(lambda request: "fine")
    one, other = both
    account, person = fresh_id(), fresh_id()
    groups = [fresh_id() for _ in range(20)]
    events = client(one, account, role="Event"), client(other, account, role="Event", greet=False)
    async with (
        events[0] as first,
        events[1] as second,
        client(one, account, role="Api", greet=False),
    ):
        await asyncio.gather(
            *(
                (first, second)[place % 2].say_group(group, person, "hi")
                for place, group in enumerate(groups)
            )
        )
        rows = [row for group in groups for row in await settled(one, group, 1)]
        assert answered(rows) == 12
        assert reasons(rows) == {"person_limit": 8}
        await override(one, first, person_per_minute="13")
        await second.say_group(late := fresh_id(), person, "hi")
        assert answered(await settled(other, late, 1)) == 1
        (day,) = one.rows("SELECT * FROM agent_spendsum WHERE kind = 'total'")
        assert day["input_tokens"] + day["output_tokens"] == 13 * 18


async def test_what_one_process_spent_on_a_person_stops_him_in_another(both, model):
    """The budget of a person's day that every installation begins with."""
    answer = {"role": "assistant", "content": "fine"}
    usage = {"prompt_tokens": 998_000, "completion_tokens": 1_000, "total_tokens": 999_000}
    model.script([returns({"choices": [{"message": answer}], "usage": usage})])
    one, other = both
    account, person, groups = fresh_id(), fresh_id(), (fresh_id(), fresh_id())
    async with (
        client(one, account, role="Event") as first,
        client(other, account, role="Event", greet=False) as second,
        client(one, account, role="Api", greet=False) as ears,
    ):
        await first.say_group(groups[0], person, "hi")
        assert answered(await settled(one, groups[0], 1)) == 1
        await second.say_group(groups[1], person, "hi")
        assert reasons(await settled(one, groups[1], 1)) == {"budget": 1}
        assert spoken(await ears.next_action()).endswith("fine")
        assert "额度" in spoken(await ears.next_action())
