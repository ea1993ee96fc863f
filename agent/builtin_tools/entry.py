"""What a tool of the reasoning engine declares of itself."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from agent.run.flow import PROVIDER_NAME
from tools.contract import (
    JsonSchema,
    ToolAvailabilityContext,
    ToolExecutionContext,
    ToolExecutionResult,
    ToolInvocation,
    ToolSpec,
)
from tools.models.choices import ToolScope, ToolVisibility
from tools.registry.argument_checks import OWN_CHECKS_KEY
from tools.registry.catalogue import DefaultConfig

PROVIDER_TYPE = "builtin"

ToolStage = Literal["timing", "action", "both"]
"""When a tool is offered: to the timing gate, to the planner after it, or to both."""
BuiltinHandler = Callable[[ToolInvocation, ToolExecutionContext], Awaitable[ToolExecutionResult]]


@dataclass(frozen=True, slots=True)
class BuiltinTool:
    """A tool bound to the run loop. ``needs_chat``: offered only where there is a chat to speak in.

    Traits: ``ends_run`` (its success is the end of the run), ``exclusive`` (made only when
    it is the one call of an answer), ``repeatable`` (a call that a crash cut off is made
    again, with ``invocation.metadata["begun_at"]``).
    """

    name: str
    description: str
    parameters: JsonSchema
    handler: BuiltinHandler
    needs_chat: bool = False
    stage: ToolStage = "action"
    traits: frozenset[str] = frozenset()
    visibility: str = ToolVisibility.VISIBLE.value
    """Whether the model is told of it, until the operator says otherwise."""
    chat_scope: str = ToolScope.ALL.value
    """The chats it is for, until the operator says otherwise."""
    is_on: Callable[[], bool] = lambda: True
    """What switches it on: a setting, or whether there is anything for it to work with."""
    timeout_seconds: int = 60
    calls_per_minute: int = 0
    """How often one person may have it called, until the operator says otherwise; 0 for any
    number."""
    on_timeout: str = ""
    """What the model is told when the time is up and the effect may be in the world; "" for a plain
    failure."""
    own_faults: Callable[[dict[str, Any], ToolExecutionContext], Sequence[str]] | None = None
    """The faults that the handler would find, for arguments that do not fit ``parameters`` either
    (:mod:`tools.registry.argument_checks`)."""

    def spec(self) -> ToolSpec:
        return ToolSpec(
            name=self.name,
            description=self.description,
            parameters_schema=self.parameters,
            provider_name=PROVIDER_NAME,
            provider_type=PROVIDER_TYPE,
            metadata={
                "default_config": DefaultConfig(
                    timeout_seconds=self.timeout_seconds,
                    calls_per_minute_person=self.calls_per_minute,
                    visibility=self.visibility,
                    scope=self.chat_scope,
                ),
                "on_timeout": self.on_timeout,
                "builtin_stage": self.stage,
                "traits": self.traits,
                OWN_CHECKS_KEY: self.own_faults,
            },
        )

    def is_available(self, context: ToolAvailabilityContext | None) -> bool:
        """Whether it is switched on and has what it needs; stage, visibility and scope are judged
        after that."""
        return self.is_on() and (context is None or not self.needs_chat or bool(context.session_id))
