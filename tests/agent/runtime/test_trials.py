"""What a run that sends nothing may do: look things up, and nothing else."""

from typing import Any

import pytest

from agent.run.tool_results import PROVIDER_NAME
from agent.runtime.trials import READERS, STAND_IN, StandIn, only_reads
from agent.runtime.wiring import declared_tools
from tools.contract import ToolAnnotation, ToolInvocation, ToolSpec
from tools.functions.function_tool import FunctionProvider, tool
from tools.refusals import CallVerdict, RefusalReason
from tools.registry.registry import ToolRegistry
from tools.registry.settings import ToolSettings

done: list[str] = []


@tool
def act(what: str) -> str:
    """Change the world."""
    done.append(what)
    return "done"


@tool(requires_approval=True)
def pay() -> str:
    """Spend money."""
    done.append("paid")
    return "paid"


@tool(annotation=ToolAnnotation(read_only=True))
def look() -> str:
    """Look."""
    return "seen"


async def call(name: str, row: ToolSettings | None = None, **arguments: Any) -> Any:
    done.clear()
    rows = {name: row} if row else {}
    registry = ToolRegistry(lambda: rows)
    registry.register_provider(FunctionProvider("p", "builtin", [act, pay, look]))
    stand_in = StandIn(lambda: rows)
    return await registry.on_trial(stand_in.answer).invoke(ToolInvocation(name, arguments))


async def test_a_tool_that_acts_is_answered_by_a_stand_in():
    result = await call("act", what="x")
    assert (result.success, result.content, done) == (True, STAND_IN, [])
    assert result.metadata["verdict"] == CallVerdict.STOOD_IN


async def test_a_tool_that_only_looks_is_called_and_a_mock_answers_as_ever():
    assert (await call("look")).content == "seen"
    mock = ToolSettings("act", mock_enabled=True, mock_value="mocked")
    assert (await call("act", mock, what="x")).content == "mocked"
    assert not done


@pytest.mark.parametrize(
    ("name", "row", "verdict"),
    [
        ("pay", None, RefusalReason.NEEDS_APPROVAL),
        ("act", None, CallVerdict.INVALID),
        ("look", ToolSettings("look", enabled=False), RefusalReason.DISABLED),
    ],
)
async def test_what_the_policy_refuses_stays_refused(
    name: str, row: ToolSettings | None, verdict: str
):
    result = await call(name, row)
    assert not result.success
    assert result.metadata["verdict"] == verdict
    assert not done


async def test_a_trial_does_not_use_up_the_rate_of_a_tool():
    rows = {"look": ToolSettings("look", calls_per_minute_chat=1)}
    registry = ToolRegistry(lambda: rows)
    registry.register_provider(FunctionProvider("p", "builtin", [look]))
    trial = registry.on_trial(StandIn(lambda: rows).answer)
    for tools in (trial, registry):
        assert (await tools.invoke(ToolInvocation("look"))).success


def test_no_tool_of_the_program_that_speaks_writes_or_asks_others_only_reads():
    specs = {spec.name: spec for spec in declared_tools()}
    reading = {name for name, spec in specs.items() if only_reads(spec)}
    assert reading >= READERS["samples"] | {"query_memory", "tool_search", "finish", "stay_silent"}
    assert not reading & {
        *("send_message", "reply", "send_image", "send_emoji", "remember", "forget", "wait"),
        "use_subagent",
    }
    assert not any("speaks" in specs[name].metadata.get("traits", ()) for name in reading)


def test_a_foreign_tool_that_calls_itself_like_a_reader_is_none():
    assert not only_reads(ToolSpec(name="query_memory", provider_name="mcp"))
    ends = ToolSpec(name="x", provider_name="plugin", metadata={"traits": ("ends_run",)})
    assert not only_reads(ends)
    assert only_reads(ToolSpec(name="query_memory", provider_name=PROVIDER_NAME))
