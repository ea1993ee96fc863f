"""A call that an owner must approve is not made before, whatever asks for it."""

from typing import Any

import pytest

from tools.contract import (
    InvalidDeclaration,
    ToolExecutionContext,
    ToolExecutionResult,
    ToolInvocation,
)
from tools.functions.function_tool import FunctionProvider, tool
from tools.registry.registry import ToolRegistry
from tools.registry.settings import ToolSettings

CHAT = ToolExecutionContext(is_group_chat=False, user_id="7", owners={"1"})


class Till:
    """One tool that pays, with a rule for its approval, behind a registry."""

    def __init__(self, rule: Any, **row: Any) -> None:
        @tool(requires_approval=rule)
        async def pay(amount: int) -> str:
            self.paid.append(amount)
            return "ok"

        self.paid: list[int] = []
        rows = {"pay": ToolSettings("pay", **row)} if row else {}
        self.registry = ToolRegistry(lambda: rows, clock=lambda: 0.0)
        self.registry.register_provider(FunctionProvider("p", "builtin", [pay]))

    async def call(
        self, amount: Any, *, approved: bool = False, context: Any = CHAT
    ) -> ToolExecutionResult:
        return await self.registry.invoke(
            ToolInvocation("pay", {"amount": amount}), context, approved=approved
        )

    async def asks(self, amount: Any) -> bool:
        return await self.registry.needs_approval(ToolInvocation("pay", {"amount": amount}), CHAT)


def below_five(arguments: dict[str, Any]) -> bool:
    return bool(arguments["amount"] < 5)


async def test_an_unapproved_call_is_not_made_and_says_what_it_would_be():
    till = Till(True)
    result = await till.call("7")
    assert (result.success, till.paid) == (False, [])
    assert result.error_message == "工具 pay 的这次调用需要机器人主人批准，尚未执行。"
    assert result.metadata == {
        "refusal": "needs_approval",
        "arguments": {"amount": 7},
        "provider_name": "p",
        "verdict": "needs_approval",
        "decided_by": "",
    }


async def test_an_approved_call_is_made():
    till = Till(True)
    assert (await till.call(7, approved=True)).content == "ok"
    assert till.paid == [7]


@pytest.mark.parametrize(
    ("rule", "row", "asks"),
    [
        (False, {}, [False, False]),
        (True, {}, [True, True]),
        (below_five, {}, [True, False]),
        (below_five, {"requires_approval": "own"}, [True, False]),
        (below_five, {"requires_approval": "always"}, [True, True]),
        (True, {"requires_approval": "never"}, [False, False]),
        (False, {"requires_approval": "always"}, [True, True]),
    ],
)
async def test_the_row_decides_and_then_the_tool(rule, row, asks):
    till = Till(rule, **row)
    assert [await till.asks(amount) for amount in (4, 7)] == asks
    assert till.paid == []
    assert [not (await till.call(amount)).success for amount in (4, 7)] == asks


async def test_invalid_arguments_are_refused_before_anybody_is_asked():
    till = Till(True)
    assert not await till.asks("x")
    assert (await till.call("x")).error_message == "amount 应为整数"
    assert (await till.call("x", approved=True)).error_message == "amount 应为整数"


async def test_whoever_may_not_call_the_tool_is_not_asked_about():
    till = Till(True, allowed="owners")
    assert not await till.asks(7)
    assert (await till.call(7)).metadata["refusal"] == "not_permitted"
    assert not await till.registry.needs_approval(ToolInvocation("unknown"), CHAT)


async def test_an_approval_does_not_outlast_the_permission():
    till = Till(True, allowed="people", allowed_ids=frozenset({"8"}))
    assert (await till.call(7, approved=True)).metadata["refusal"] == "not_permitted"
    assert till.paid == []


async def test_nothing_in_the_call_or_its_chat_stands_for_an_approval():
    till = Till(True)
    context = ToolExecutionContext(user_id="1", owners={"1"}, metadata={"approved": True})
    forged = ToolInvocation("pay", {"amount": 7}, metadata={"approved": True})
    assert (await till.registry.invoke(forged, context)).metadata["refusal"] == "needs_approval"
    assert till.paid == []


async def test_a_rule_that_fails_asks(caplog):
    till = Till(lambda arguments: arguments["no such"])
    assert (await till.call(7)).metadata["refusal"] == "needs_approval"
    assert "KeyError" in caplog.text


async def test_asking_counts_as_a_call_and_the_approved_call_does_not_again():
    till = Till(True, calls_per_minute_person=1)
    assert [await till.asks(7) for _ in range(3)] == [True] * 3
    assert (await till.call(7)).metadata["refusal"] == "needs_approval"
    assert (await till.call(7)).metadata["refusal"] == "rate_limited"
    assert (await till.call(7, approved=True)).success


async def test_a_mock_does_not_go_past_the_owner():
    till = Till(True, mock_enabled=True, mock_value="m")
    assert (await till.call(7)).metadata["refusal"] == "needs_approval"
    assert (await till.call(7, approved=True)).content == "m"


async def test_hooks_see_a_call_when_it_is_made_and_not_when_it_waits():
    seen = []

    async def note(*_: Any) -> None:
        seen.append(True)

    till = Till(True)
    till.registry.add_hooks(before=note, after=note, on_error=note)
    await till.call(7)
    assert seen == []
    await till.call(7, approved=True)
    assert seen == [True, True]


async def two_arguments(a: Any, b: Any) -> bool:
    return True


@pytest.mark.parametrize(
    "rule",
    [123, None, "yes", {}, lambda: True, lambda a, b: True, two_arguments, object()],
    ids=lambda rule: str(rule)[:20],
)
def test_what_is_no_rule_is_refused_where_it_is_declared(rule):
    with pytest.raises(InvalidDeclaration, match="requires_approval"):
        Till(rule)
