"""The tool ``wait``: whatever is given for seconds means some, and there are only so many waits in
a row."""

import math
from typing import Any, cast

import pytest

from agent.builtin_tools import course
from agent.builtin_tools.course import MaisakaBuiltinToolProvider
from agent.domain.types import ChatAddress
from agent.run.services import RunServices
from agent.run.tool_results import ChatPauses, RunFlow, get_end_reason
from tests.agent.talk import GROUP, PRIVATE
from tools.contract import ToolExecutionContext, ToolExecutionResult, ToolInvocation
from tools.registry.registry import ToolRegistry


class Clock(ChatPauses):
    """Pauses that take no time, and are remembered."""

    def __init__(self) -> None:
        super().__init__()
        self.waited: list[tuple[float, bool]] = []

    async def pause(self, chat: ChatAddress, seconds: float, *, breakable: bool) -> bool:
        self.waited.append((seconds, breakable))
        return False


class Voice:
    def __init__(self, chat: ChatAddress) -> None:
        self.chat = chat


class Desk:
    """Calls the tool as the run loop does, in one run."""

    def __init__(self, chat: ChatAddress = GROUP) -> None:
        self.clock, self.flow, self.chat = Clock(), RunFlow(), chat
        self.registry = ToolRegistry()
        self.registry.register_provider(MaisakaBuiltinToolProvider([course.wait_for_message]))

    async def wait(self, arguments: Any) -> ToolExecutionResult:
        context = ToolExecutionContext(
            session_id=self.chat.address,
            is_group_chat=self.chat.kind == "group",
            services=RunServices(
                sender=cast("Any", Voice(self.chat)), pauses=cast("Any", self.clock), flow=self.flow
            ),
        )
        return await self.registry.invoke(ToolInvocation("wait", arguments, "c1"), context)


@pytest.mark.parametrize(
    ("written", "seconds"),
    [
        ("7", 7),
        ("2.5", 2.5),
        ('"12"', 12),
        ('" 1e1 "', 10),
        ('"abc"', 30),
        ('"nan"', 30),
        ('"inf"', 600),
        ('"-inf"', None),
        ("-5", None),
        ("0", None),
        ("true", 30),
        ("[1]", 30),
        ('{"s": 1}', 30),
        ('""', 30),
        ("1000000000000000000000000", 600),
        ("1" + "0" * 400, 600),
        ("-1" + "0" * 400, None),
    ],
)
async def test_whatever_is_written_for_seconds_means_some(written: str, seconds: float | None):
    desk = Desk()
    result = await desk.wait(f'{{"seconds": {written}}}')
    assert result.success
    assert desk.clock.waited == ([] if seconds is None else [(seconds, False)])


@pytest.mark.parametrize("arguments", ['{"seconds": NaN}', '{"seconds": 1e999}', "{}"])
async def test_what_is_no_json_or_nothing_is_told(arguments: str):
    desk = Desk()
    result = await desk.wait(arguments)
    assert (result.success, desk.clock.waited, desk.flow.waits) == (False, [], 0)


async def test_only_a_private_chat_can_break_a_wait():
    desk = Desk(PRIVATE)
    await desk.wait({"seconds": math.pi})
    assert desk.clock.waited == [(math.pi, True)]


async def test_after_so_many_waits_in_a_row_there_is_rest_and_another_tool_begins_anew():
    desk = Desk()
    for _ in range(course.IN_A_ROW):
        assert not get_end_reason(await desk.wait({"seconds": 1}))
    rest = await desk.wait({"seconds": 1})
    assert (rest.success, rest.metadata["wait_limit_reached"], get_end_reason(rest)) == (
        True,
        True,
        "no_action",
    )
    desk.flow.count_waits("wait")
    assert get_end_reason(await desk.wait({"seconds": 1}))
    desk.flow.count_waits("get_weather")
    assert not get_end_reason(await desk.wait({"seconds": 1}))
