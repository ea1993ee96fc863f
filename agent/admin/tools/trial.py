"""A tool run by hand: the call goes the way of every call, on the operator's own responsibility."""

import time
from collections.abc import Callable, Coroutine, Mapping
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from asgiref.sync import async_to_sync
from django.utils import timezone
from django.utils.translation import gettext

from agent.record.runs import steps, test_runs
from agent.record.settings.endpoints import load_endpoint_table
from agent.record.settings.personas import load_persona_table
from agent.record.settings.snapshot import Settings
from agent.run.tool_results import call_outcome, result_text
from agent.runtime import serving, wiring
from tools.contract import (
    ToolAvailabilityContext,
    ToolExecutionContext,
    ToolExecutionResult,
    ToolInvocation,
)
from tools.models import ToolConfig
from tools.models.tool_config import AllowedCallers, ToolScope, ToolVisibility
from tools.registry.registry import ToolRegistry
from tools.registry.settings import ToolSettings, load_tool_settings
from tools.text.storable import make_storable

CALL_ID = "trial"
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class ToolTrial:
    """What a call by hand came to; ``duration_ms`` is all the time it took."""

    arguments: Any
    result: ToolExecutionResult
    duration_ms: int


def load_unscoped_settings() -> dict[str, ToolSettings]:
    """The rows as they are now, without what they say of chats and senders: an operator is neither.

    Whether a tool is enabled, its mock and its time limit count as for every call.
    """
    everyone = {
        "visibility": ToolVisibility.VISIBLE.value,
        "scope": ToolScope.ALL.value,
        "allowed": AllowedCallers.EVERYONE.value,
    }
    return {name: replace(row, **everyone) for name, row in load_tool_settings().items()}  # type: ignore[arg-type]


def explain_obstacle(config: ToolConfig) -> str:
    """Why the tool cannot be run by hand, as a translated sentence; "" where it can."""
    if not config.enabled:
        return gettext("The tool is disabled: enable it to run it.")
    anywhere, without_chat = _with_registry(lambda registry: _listed(registry, config.name))
    if not anywhere:
        return gettext("Nobody provides this tool at present.")
    return (
        ""
        if without_chat
        else gettext("This tool acts in a chat, and there is none here. Ask the bot to use it.")
    )


def run_trial(config: ToolConfig, arguments: Any, by: str) -> ToolTrial:
    """Call the tool, without a chat, its state and a sender; every error becomes a failed result.

    A user who may change the row may also approve: the call does not wait for an owner. It is on
    record as a test of the user ``by``.
    """
    started_at = timezone.now()
    invocation = ToolInvocation(config.name, arguments, call_id=CALL_ID)
    context = ToolExecutionContext(metadata={"state": {}})
    begin = time.monotonic()
    result = _with_registry(lambda registry: registry.invoke(invocation, context, approved=True))
    trial = ToolTrial(arguments, result, round((time.monotonic() - begin) * 1000))
    call = steps.NewCall(CALL_ID, config.name, make_storable(trial.arguments), "")
    text = result_text(CALL_ID, result, can_see=False)
    decided = replace(result, metadata={**result.metadata, "decided_by": by})
    test_runs.record_test_run(
        [steps.NewStep(0, 1, [], [], None, calls=(call,))],
        [call_outcome(0, decided, text, trial.duration_ms)],
        by=by,
        started_at=started_at,
    )
    return trial


async def _listed(registry: ToolRegistry, name: str) -> tuple[bool, bool]:
    return await registry.has_tool(name), await registry.has_tool(name, ToolAvailabilityContext())


def _with_registry(work: Callable[[ToolRegistry], Coroutine[Any, Any, T]]) -> T:
    """What ``work`` comes to with the registry that serves, on its own loop; where none does, with
    one made for it."""
    rows = load_unscoped_settings()
    if serving_now := serving.get_serving():
        return serving_now.run(lambda registry: work(registry.under(lambda: rows)))
    return run_with_own_registry(rows, work)


def run_with_own_registry(
    rows: Mapping[str, ToolSettings], work: Callable[[ToolRegistry], Coroutine[Any, Any, T]]
) -> T:
    """What ``work`` comes to with a registry that is made for it, of the tools that need no
    server."""
    book = wiring.build_endpoint_book(table=load_endpoint_table())
    settings = Settings(tools=rows, personas=load_persona_table())

    async def worked() -> T:
        registry = wiring.build_tool_registry(lambda: settings, book=book)
        try:
            return await work(registry)
        finally:
            await registry.close()
            await book.close()

    return async_to_sync(worked)()
