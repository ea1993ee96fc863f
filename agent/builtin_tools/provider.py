"""The provider of the reasoning engine's own tools."""

from collections.abc import Iterable

from agent.builtin_tools.entry import PROVIDER_TYPE, BuiltinTool
from agent.run.flow import PROVIDER_NAME
from tools.contract import (
    ToolAvailabilityContext,
    ToolExecutionContext,
    ToolExecutionResult,
    ToolInvocation,
    ToolSpec,
)


class MaisakaBuiltinToolProvider:
    """Offers what is declared in one central list, filtered by the chat it is offered in."""

    provider_name = PROVIDER_NAME
    provider_type = PROVIDER_TYPE

    def __init__(self, entries: Iterable[BuiltinTool]) -> None:
        self._entries = {entry.name: (entry, entry.spec()) for entry in entries}

    async def list_tools(self, context: ToolAvailabilityContext | None = None) -> list[ToolSpec]:
        return [spec for entry, spec in self._entries.values() if entry.is_available(context)]

    async def invoke(
        self, invocation: ToolInvocation, context: ToolExecutionContext | None = None
    ) -> ToolExecutionResult:
        entry, _ = self._entries[invocation.tool_name]
        return await entry.handler(invocation, context or ToolExecutionContext())

    async def close(self) -> None:
        """Nothing is held."""
