"""Providers for tests of the registry: the smallest that can list, answer and misbehave."""

from collections.abc import Awaitable, Callable
from typing import Any

from tools.contract import (
    ToolAvailabilityContext,
    ToolExecutionContext,
    ToolExecutionResult,
    ToolInvocation,
    ToolSpec,
)

Answer = Callable[[ToolInvocation], Awaitable[Any]]


async def echo(invocation: ToolInvocation) -> ToolExecutionResult:
    return ToolExecutionResult(
        invocation.tool_name, success=True, content=f"{invocation.arguments}"
    )


class Provider:
    """Offers ``specs`` in every chat and answers each call with ``answer``."""

    provider_type = "builtin"

    def __init__(self, name: str, *specs: ToolSpec | str, answer: Answer = echo) -> None:
        self.provider_name = name
        self.specs = [spec if isinstance(spec, ToolSpec) else ToolSpec(name=spec) for spec in specs]
        self.answer = answer
        self.invocations: list[ToolInvocation] = []
        self.contexts: list[ToolExecutionContext | None] = []
        self.closed = 0

    async def list_tools(self, context: ToolAvailabilityContext | None = None) -> list[ToolSpec]:
        return self.specs

    async def invoke(
        self, invocation: ToolInvocation, context: ToolExecutionContext | None = None
    ) -> Any:
        self.invocations.append(invocation)
        self.contexts.append(context)
        return await self.answer(invocation)

    async def close(self) -> None:
        self.closed += 1


class GroupOnly(Provider):
    """Offers its tools in group chats, and where no chat is named."""

    async def list_tools(self, context: ToolAvailabilityContext | None = None) -> list[ToolSpec]:
        return self.specs if context is None or context.is_group_chat else []


class Broken(Provider):
    """Cannot list its tools until it is mended."""

    mended = False

    async def list_tools(self, context: ToolAvailabilityContext | None = None) -> list[ToolSpec]:
        if not self.mended:
            raise ConnectionError("server gone")
        return self.specs
