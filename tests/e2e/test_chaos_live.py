"""``make chaos`` on a real server: a scenario runs to its end, and what it says of it is right."""

import pytest

pytest.importorskip(
    "tests.services", reason="no server wheels for this platform", exc_type=ImportError
)
from chaos.faults import KILL
from chaos.load import Load
from chaos.play import Options, play
from chaos.scenarios import Scenario

pytestmark = pytest.mark.slow


@pytest.mark.may_block("logs and records are read when everything is over")
async def test_a_server_that_is_killed_under_load_comes_through_and_the_load_was_there():
    scenario = Scenario("one kill", [KILL], count=1, pauses=(0.1, 0.2), load=Load(rate=10))
    outcome = await play("one-kill", scenario, Options(seed=7))
    figures = outcome.line["figures"]
    assert outcome.is_clean, outcome.line
    assert (figures["ends"], outcome.line["rested"]) == (1, True)
    assert figures["answered"] > 10
    assert figures["tool_calls"]
    assert figures["announcements"]
