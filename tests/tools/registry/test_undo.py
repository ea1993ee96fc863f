"""What tools declare to take their calls back."""

from typing import cast

import pytest

from tests.tools.fakes import Provider
from tools.contract import (
    InvalidDeclaration,
    OutcomeUnknown,
    RecordedCall,
    ToolExecutionContext,
    ToolFailed,
    ToolInvocation,
    ToolSpec,
    Undo,
)
from tools.functions.function_tool import FunctionProvider, tool
from tools.registry.registry import ToolRegistry

HERE = ToolExecutionContext()


async def give_back(call: RecordedCall, context: ToolExecutionContext) -> str:
    match call.arguments["to"]:
        case "closed":
            raise ToolFailed("the bank is closed")
        case "broken":
            raise ConnectionError("gone")
    return f"{call.structured_content['receipt']} for {context.user_id}"


@tool(undo=give_back)
def pay(to: str) -> dict[str, str]:
    """Pay."""
    return {"receipt": to}


def registry() -> ToolRegistry:
    built = ToolRegistry()
    built.register_provider(FunctionProvider("bank", "builtin", [pay]))
    return built


async def test_a_call_is_taken_back_by_what_its_tool_declares() -> None:
    call = RecordedCall("pay", {"to": "Ann"}, structured_content={"receipt": "R1"})
    assert await registry().undo(call, ToolExecutionContext(user_id="7")) == "R1 for 7"


@pytest.mark.parametrize(
    ("name", "to", "error"),
    [
        ("pay", "closed", ToolFailed),
        ("pay", "broken", OutcomeUnknown),
        ("nothing", "Ann", ToolFailed),
    ],
)
async def test_failed_and_unknown_are_told_apart(
    name: str, to: str, error: type[ToolFailed]
) -> None:
    with pytest.raises(ToolFailed) as raised:
        await registry().undo(RecordedCall(name, {"to": to}, structured_content={}), HERE)
    assert type(raised.value) is error
    assert "gone" not in raised.value.text  # what broke is no word for the chat


async def test_a_tool_is_named_that_takes_the_calls_of_another_back() -> None:
    async def answer(invocation: ToolInvocation) -> object:
        return await own.invoke(ToolInvocation("pay", {"to": str(invocation.arguments)}))

    own = FunctionProvider("bank", "builtin", [pay])
    book = ToolSpec(name="book", metadata={"undo": "unbook"}, provider_name="a")
    built, provider = (
        ToolRegistry(),
        Provider("p", book, ToolSpec(name="unbook", provider_name="a"), answer=answer),
    )
    built.register_provider(provider)
    await built.undo(RecordedCall("book", {"seat": 1}, "booked as 9"), HERE)
    assert provider.invocations[0].tool_name == "unbook"
    assert provider.invocations[0].arguments == {"arguments": {"seat": 1}, "result": "booked as 9"}


async def test_a_plugin_names_no_tool_of_others() -> None:
    book = ToolSpec(name="book", metadata={"undo": "wipe"}, provider_name="a")
    built, provider = (
        ToolRegistry(),
        Provider("p", book, ToolSpec(name="wipe", provider_name="another")),
    )
    built.register_provider(provider)
    with pytest.raises(ToolFailed):
        await built.undo(RecordedCall("book", {}), HERE)
    assert provider.invocations == []


def test_an_undo_is_an_async_function() -> None:
    with pytest.raises(InvalidDeclaration):
        tool(undo=cast("Undo", str))(lambda: None)
