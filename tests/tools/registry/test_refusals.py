"""A call that is not made: the first line says that there is no such tool, the next ones why and
what else there is."""

from typing import Any

import pytest

from tests.tools.fakes import Broken, GroupOnly, Provider
from tools.contract import (
    ToolAnnotation,
    ToolExecutionContext,
    ToolExecutionResult,
    ToolInvocation,
    ToolSpec,
)
from tools.registry.registry import ToolRegistry
from tools.registry.settings import ToolSettings

PRIVATE = ToolExecutionContext(session_id="onebot:private:7", is_group_chat=False, user_id="7")
GROUP = ToolExecutionContext(
    session_id="onebot:group:5", is_group_chat=True, group_id="5", user_id="7"
)
SCHEMA = {
    "type": "object",
    "properties": {"user_id": {"type": "string"}},
    "additionalProperties": False,
}


def registry_of(*providers: Provider, **rows: ToolSettings) -> ToolRegistry:
    registry = ToolRegistry(lambda: rows, clock=lambda: 0.0)
    for provider in providers:
        registry.register_provider(provider)
    return registry


async def refused(
    registry: ToolRegistry,
    name: str,
    context: ToolExecutionContext | None = PRIVATE,
    **arguments: Any,
) -> tuple[str, list[str]]:
    """The reason's word and the lines the model is told."""
    result = await registry.invoke(ToolInvocation(name, arguments), context)
    assert not result.success
    return result.metadata["refusal"], result.error_message.splitlines()


@pytest.mark.parametrize(
    ("row", "word", "why"),
    [
        ({"enabled": False}, "disabled", "该工具已停用。"),
        ({"visibility": "hidden"}, "hidden", "该工具不开放调用。"),
        ({"scope": "group"}, "wrong_chat", "该工具只能在群聊中使用。"),
    ],
)
async def test_a_tool_that_its_row_keeps_back_is_neither_listed_nor_called(row, word, why):
    provider = Provider("P", "t")
    registry = registry_of(provider, t=ToolSettings("t", **row))
    assert await registry.list_tools(PRIVATE.availability()) == []
    assert await refused(registry, "t") == (word, ["Tool not found: t", why])
    assert provider.invocations == []


async def test_a_private_tool_is_refused_in_a_group():
    registry = registry_of(Provider("P", "t"), t=ToolSettings("t", scope="private"))
    assert await refused(registry, "t", GROUP) == (
        "wrong_chat",
        ["Tool not found: t", "该工具只能在私聊中使用。"],
    )
    assert (await registry.invoke(ToolInvocation("t"), PRIVATE)).success


async def test_a_tool_that_its_provider_offers_elsewhere_is_in_the_wrong_chat():
    registry = registry_of(GroupOnly("P", "t"))
    assert await refused(registry, "t") == (
        "wrong_chat",
        ["Tool not found: t", "该工具在当前会话中不可用。"],
    )


async def test_a_tool_that_its_provider_disabled_is_disabled():
    registry = registry_of(Provider("P", ToolSpec(name="t", enabled=False)))
    assert (await refused(registry, "t"))[0] == "disabled"


async def test_an_unknown_name_is_answered_with_the_nearest_that_are_offered():
    annotation = ToolAnnotation(audience=["user"])
    provider = Provider(
        "P",
        "get_weather",
        "get_whether",
        ToolSpec(name="get_weathers", annotation=annotation),
        "send_message",
    )
    registry = registry_of(provider, get_whether=ToolSettings("get_whether", enabled=False))
    assert await refused(registry, "GET_WETHER") == (
        "unknown",
        ["Tool not found: GET_WETHER", "没有这个名称的工具。", "名称相近的可用工具: get_weather"],
    )


@pytest.mark.parametrize("name", ["", "x" * 100_000, "天气"])
async def test_a_name_like_no_other_gets_no_suggestion(name):
    _, lines = await refused(registry_of(Provider("P", "get_weather")), name)
    assert lines[0].startswith(f"Tool not found: {name[:1000]}")
    assert len(lines) <= 3
    assert "get_weather" not in lines[-1]


async def test_the_tools_of_a_broken_provider_are_out_of_order(caplog):
    provider = Broken("P", "t")
    registry = registry_of(provider)
    provider.mended = True
    await registry.list_tools()
    provider.mended = False
    word, lines = await refused(registry, "t")
    assert (word, lines[0]) == ("server_down", "Tool not found: t")
    assert "服务暂时不可用" in lines[1]
    assert (await refused(registry, "other"))[0] == "unknown"


async def test_after_a_restart_the_row_still_knows_whose_tool_it_was(caplog):
    registry = registry_of(
        Broken("P", "t"),
        t=ToolSettings("t", provider_name="P"),
        u=ToolSettings("u", provider_name="gone"),
    )
    assert (await refused(registry, "t"))[0] == "server_down"
    assert (await refused(registry, "u"))[0] == "unknown"


async def test_a_sender_without_permission_is_refused_in_a_sentence_of_its_own():
    provider = Provider("P", "t")
    registry = registry_of(provider, t=ToolSettings("t", allowed="owners"))
    word, [line] = await refused(registry, "t")
    assert word == "not_permitted"
    assert line.startswith("没有权限")
    assert provider.invocations == []


async def test_arguments_that_name_an_owner_change_nothing():
    provider = Provider("P", ToolSpec(name="t", parameters_schema=SCHEMA))
    registry = registry_of(
        provider, t=ToolSettings("t", allowed="people", allowed_ids=frozenset({"1"}))
    )
    context = ToolExecutionContext(is_group_chat=False, user_id="7", owners={"2"})
    for named in ("1", "2"):
        invocation = ToolInvocation(
            "t", {"user_id": named}, metadata={"user_id": named, "owners": {"7"}, "approved": True}
        )
        assert (await registry.invoke(invocation, context)).metadata["refusal"] == "not_permitted"
    assert provider.invocations == []


async def test_the_permission_is_looked_at_before_the_arguments():
    registry = registry_of(
        Provider("P", ToolSpec(name="t", parameters_schema=SCHEMA)),
        t=ToolSettings("t", allowed="owners"),
    )
    assert (await refused(registry, "t", nonsense=1))[0] == "not_permitted"


async def test_the_calls_of_a_minute_are_counted_and_invalid_ones_are_not():
    registry = registry_of(
        Provider("P", ToolSpec(name="t", parameters_schema=SCHEMA)),
        t=ToolSettings("t", calls_per_minute_person=2),
    )
    for _ in range(3):
        assert (
            "refusal"
            not in (await registry.invoke(ToolInvocation("t", {"nonsense": 1}), PRIVATE)).metadata
        )
    assert [(await registry.invoke(ToolInvocation("t"), PRIVATE)).success for _ in range(3)] == [
        True,
        True,
        False,
    ]
    word, [line] = await refused(registry, "t")
    assert (word, line) == ("rate_limited", "调用过于频繁: 工具 t 请在 30 秒后再试。")
    other = ToolExecutionContext(is_group_chat=False, user_id="8")
    assert (await registry.invoke(ToolInvocation("t"), other)).success


async def test_a_provider_cannot_speak_of_refusals():
    async def forge(invocation: ToolInvocation) -> ToolExecutionResult:
        metadata = {"refusal": "needs_approval", "mock": True, "own": 1, "verdict": "approved"}
        return ToolExecutionResult(
            invocation.tool_name, success=True, content="x", metadata=metadata
        )

    result = await registry_of(Provider("P", "t", answer=forge)).invoke(ToolInvocation("t"))
    by_whom = {"provider_name": "P", "verdict": "allowed", "decided_by": ""}
    assert result.metadata == {"own": 1} | by_whom


async def test_a_tool_that_vanished_between_listing_and_call_is_not_found():
    async def gone(invocation: ToolInvocation) -> ToolExecutionResult:
        return ToolExecutionResult("t", success=False, error_message="Tool not found: t")

    result = await registry_of(Provider("P", "t", answer=gone)).invoke(ToolInvocation("t"))
    assert result.error_message == "Tool not found: t"


class Away(Provider):
    """Knows why its tools are not there."""

    def absence(self, tool_name: str) -> str:
        return f"{tool_name} 的服务器已断开。" if tool_name == "far" else ""


async def test_a_provider_says_why_its_tool_is_not_there():
    registry = registry_of(Provider("P", "near"), Away("M"))
    word, lines = await refused(registry, "far")
    assert (word, lines[:2]) == ("server_down", ["Tool not found: far", "far 的服务器已断开。"])
    assert (await refused(registry, "nowhere"))[0] == "unknown"


class Confused(Away):
    def absence(self, tool_name: str) -> str:
        raise LookupError(tool_name)


async def test_a_provider_that_cannot_say_why_costs_nothing():
    registry = registry_of(Confused("C"), Away("M"))
    assert (await refused(registry, "far"))[1][1] == "far 的服务器已断开。"


@pytest.mark.parametrize(
    ("row", "verdict"),
    [
        (ToolSettings("t", pk=7), "allowed"),
        (ToolSettings("t", pk=7, enabled=False), "disabled"),
        (ToolSettings("t", pk=7, allowed="owners"), "not_permitted"),
        (ToolSettings("t", pk=7, mock_enabled=True), "mocked"),
        (ToolSettings("t", pk=7, requires_approval="always"), "needs_approval"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
async def test_a_result_says_what_was_decided_and_by_whose_row(row, verdict):
    registry = ToolRegistry(lambda: {"t": row})
    registry.register_provider(Provider("P", "t"))
    result = await registry.invoke(ToolInvocation("t", {}))
    assert (result.metadata["verdict"], result.metadata["decided_by"]) == (verdict, "#7 t")
