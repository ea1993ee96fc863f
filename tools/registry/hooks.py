"""What may be done before and after every call, or the calls of one tool, in Google ADK's order.

::

    before    the first that answers wins, and the tool is not run
    (the tool)
    on_error  only after a failure; the first that answers wins, with a success or another failure
    after     always; the first that answers wins

Hooks of the registry come before the tool's own. A hook answers with a result, or with
None to leave things as they are; one that raises has answered with a failure.
"""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from tools.contract import ToolExecutionContext, ToolExecutionResult, ToolInvocation, ToolSpec

HookAnswer = ToolExecutionResult | None
BeforeHook = Callable[
    [ToolSpec, ToolInvocation, ToolExecutionContext | None], Awaitable[HookAnswer]
]
AfterHook = Callable[
    [ToolSpec, ToolInvocation, ToolExecutionContext | None, ToolExecutionResult],
    Awaitable[HookAnswer],
]


@dataclass(frozen=True, slots=True)
class Hooks:
    """Hooks, in the order in which they are called.

    ``before`` gets checked arguments and may change them in place; they are not checked again. A
    call that is refused or has invalid arguments does not start: ``before`` is not called,
    ``on_error`` and ``after`` are.
    """

    before: tuple[BeforeHook, ...] = ()
    after: tuple[AfterHook, ...] = ()
    on_error: tuple[AfterHook, ...] = ()

    def __add__(self, other: "Hooks") -> "Hooks":
        return Hooks(
            self.before + other.before, self.after + other.after, self.on_error + other.on_error
        )


NO_HOOKS = Hooks()


def hooks_of(spec: ToolSpec) -> Hooks:
    """The tool's own hooks."""
    hooks = spec.metadata.get("hooks")
    return hooks if isinstance(hooks, Hooks) else NO_HOOKS
