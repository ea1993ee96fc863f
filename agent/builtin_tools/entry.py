"""What a tool of the reasoning engine declares of itself."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from tools.catalogue import DefaultConfig
from tools.contract import (
    JsonSchema,
    ToolAvailabilityContext,
    ToolExecutionContext,
    ToolExecutionResult,
    ToolInvocation,
    ToolSpec,
)

PROVIDER_NAME = "maisaka_builtin"
PROVIDER_TYPE = "builtin"

Handler = Callable[[ToolInvocation, ToolExecutionContext], Awaitable[ToolExecutionResult]]


@dataclass(frozen=True, slots=True)
class BuiltinTool:
    """A tool bound to the run loop. ``needs_chat``: offered only where there is a chat to speak in."""

    name: str
    description: str
    parameters: JsonSchema
    handler: Handler
    needs_chat: bool = False
    timeout_seconds: int = 60
    on_timeout: str = ""
    """What the model is told when the time is up and the effect may be in the world; "" for a plain failure."""

    def spec(self) -> ToolSpec:
        return ToolSpec(
            name=self.name,
            description=self.description,
            parameters_schema=self.parameters,
            provider_name=PROVIDER_NAME,
            provider_type=PROVIDER_TYPE,
            metadata={"default_config": DefaultConfig(timeout_seconds=self.timeout_seconds), "on_timeout": self.on_timeout},
        )

    def is_available(self, context: ToolAvailabilityContext | None) -> bool:
        return context is None or not self.needs_chat or bool(context.session_id)
