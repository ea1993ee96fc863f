"""The provider of function tools."""

from collections.abc import Iterable
from dataclasses import replace

from tools.contract import (
    ToolAvailabilityContext,
    ToolExecutionContext,
    ToolExecutionResult,
    ToolInvocation,
    ToolSpec,
)
from tools.errors import InvalidDeclaration
from tools.functions.function_tool import FunctionTool
from tools.registry import outcomes


class FunctionProvider:
    """A fixed set of function tools under one provider's name.

    Raises :class:`InvalidDeclaration` when two of them have one name.
    """

    def __init__(
        self, provider_name: str, provider_type: str, tools: Iterable[FunctionTool]
    ) -> None:
        self.provider_name = provider_name
        self.provider_type = provider_type
        self._offers: dict[str, tuple[FunctionTool, ToolSpec]] = {}
        for tool in tools:
            spec = replace(tool.spec, provider_name=provider_name, provider_type=provider_type)
            if spec.name in self._offers:
                raise InvalidDeclaration(f"duplicate tool: {spec.name}")
            self._offers[spec.name] = (tool, spec)
        self._conditional = [tool for tool, _ in self._offers.values() if tool.is_conditional]
        self._live = [offer for offer in self._offers.values() if offer[0].is_live]

    @property
    def specs(self) -> list[ToolSpec]:
        """Every tool, wherever it is offered."""
        return [spec for _, spec in self._offers.values()]

    def listing_key(self, context: ToolAvailabilityContext | None) -> tuple[object, ...]:
        has_chat = context is None or bool(context.session_id)
        return (
            has_chat,
            *(tool.is_available(context) for tool in self._conditional),
            *(tool.describe_now(spec) for tool, spec in self._live),
        )

    async def list_tools(self, context: ToolAvailabilityContext | None = None) -> list[ToolSpec]:
        return [
            tool.describe_now(spec)
            for tool, spec in self._offers.values()
            if tool.is_available(context)
        ]

    async def invoke(
        self, invocation: ToolInvocation, context: ToolExecutionContext | None = None
    ) -> ToolExecutionResult:
        """Call the function. Raises :class:`tools.errors.InvalidArguments` as the function tool
        does."""
        offer = self._offers.get(invocation.tool_name)
        if offer is None:
            return outcomes.not_found_result(invocation.tool_name)
        return await offer[0](invocation.arguments, context, invocation)

    async def close(self) -> None:
        """Functions hold nothing."""
