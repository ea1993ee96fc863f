"""Calls of tools by programs outside, with no chat and no model of ours: each decided by the
registry, and on record."""

import asyncio
import json
import time
import uuid
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from django.conf import settings
from django.utils.translation import gettext_noop

from agent.domain.claims import Claim
from agent.domain.states import RunOrigin
from agent.record.record import Record
from agent.record.runs.external_calls import (
    ExternalCallKeys,
    StartExternalCall,
    begin_external_calls,
    end_external_calls,
)
from agent.record.runs.steps import NewCall
from agent.record.runs.subagent_runs import RunBreakOff, break_off_runs
from agent.run.flow import PROVIDER_NAME
from agent.run.model_call import elapsed_ms
from agent.run.tool_results import call_outcome, needs_approval, result_text
from tools.contract import ToolExecutionContext, ToolExecutionResult, ToolInvocation, ToolSpec
from tools.errors import InvalidArguments
from tools.registry import outcomes
from tools.registry.deferred_tools import SEARCH_TOOL
from tools.registry.definitions import sort_for_model
from tools.registry.registry import ToolRegistry
from tools.schemas.coercion import check_size
from tools.text.storable import make_storable

STOPPED = gettext_noop("the caller went away, or the server stopped, before the tool had finished")
NOBODY_APPROVES = "这次调用不来自会话，没有人可以批准，请不要重试。"


class ExternalCalls:
    """Lists and calls the tools that make sense without a chat, for external callers.

    ``origin`` is the origin of their runs on record, and their platform. Callers never have owner
    rights, and count as one person in one chat. Used from one event loop.
    """

    def __init__(self, record: Record, registry: ToolRegistry, origin: RunOrigin) -> None:
        self._record = record
        self._registry = registry.narrowed(_is_for_outside)
        self._origin = origin

    async def list_tools(self) -> list[ToolSpec]:
        """What may be called now, by what the operator has set up by now; a spec is the same object
        while it is unchanged."""
        await self._record.submit_batched(self._record.run_starter.reload_settings, None)
        return sort_for_model(await self._registry.list_tools(self._context().availability()))

    async def call(self, tool_name: str, arguments: Mapping[str, Any]) -> ToolExecutionResult:
        """What came of a call; a refusal or failure of any kind is a failed result.

        When cancelled, the tool was cancelled with it, and the record says that its outcome
        is unknown. Raises what the database raises when the call could not be put on record.
        """
        await self._record.wait_for_room()
        await self._record.submit_batched(self._record.run_starter.reload_settings, None)
        given = _given(arguments)
        new = NewCall(
            f"call_{uuid.uuid4().hex[:24]}", make_storable(tool_name), _recorded(given), ""
        )
        entry = await self._begun(new)
        invocation = ToolInvocation(tool_name, given, new.call_id, call_pk=entry.call_pk)
        started = time.monotonic()
        try:
            result = await self._made(invocation)
        except (
            Exception,
            asyncio.CancelledError,
        ):  # not handled here, but the record must show that it ended
            self._break_off(entry)
            raise
        outcome = call_outcome(
            entry.call_pk,
            result,
            result_text(new.call_id, result, can_see=False),
            elapsed_ms(started),
        )
        await self._record.submit_batched(end_external_calls, (entry, outcome), Claim(entry.run_pk))
        return result

    async def _begun(self, new: NewCall) -> ExternalCallKeys:
        begun = self._record.submit_batched(
            begin_external_calls, StartExternalCall(self._origin, new, self._record.process_id)
        )
        try:
            return await asyncio.shield(begun)
        except asyncio.CancelledError:  # it may be committed all the same
            begun.add_done_callback(self._drop)
            raise

    async def _made(self, invocation: ToolInvocation) -> ToolExecutionResult:
        try:
            async with asyncio.timeout(settings.RUN_TIMEOUT):
                result = await self._registry.invoke(invocation, self._context())
        except TimeoutError:
            return outcomes.timed_out_result(invocation.tool_name, settings.RUN_TIMEOUT)
        if needs_approval(result):
            return replace(result, error_message=f"{result.error_message}{NOBODY_APPROVES}")
        return result

    def _context(self) -> ToolExecutionContext:
        return ToolExecutionContext(platform=self._origin.value, metadata={"state": {}})

    def _drop(self, begun: "asyncio.Future[ExternalCallKeys]") -> None:
        if not begun.cancelled() and begun.exception() is None:
            self._break_off(begun.result())

    def _break_off(self, entry: ExternalCallKeys) -> None:
        """Not awaited: a cancelled caller has no time for it, and a submitted request is carried
        out anyway."""
        self._record.submit(break_off_runs, RunBreakOff(entry.run_pk, STOPPED))


def _is_for_outside(spec: ToolSpec) -> bool:
    """Not the timing gate's tools, and not the tool search: external callers see the whole list."""
    if spec.provider_name != PROVIDER_NAME:
        return True
    return spec.metadata.get("builtin_stage") != "timing" and spec.name != SEARCH_TOOL


def _given(arguments: Mapping[str, Any]) -> Any:
    """``arguments`` for the registry; as text where they hold a number that is not JSON, which it
    then refuses in words."""
    try:
        json.dumps(arguments, allow_nan=False)
    except RecursionError:
        return dict(arguments)
    except ValueError:
        return json.dumps(arguments, ensure_ascii=False)
    return dict(arguments)


def _recorded(given: Any) -> Any:
    """What the registry is given as the record can hold it."""
    try:
        check_size(given)
    except InvalidArguments as refusal:
        return str(refusal.problems[0])
    return make_storable(given)
