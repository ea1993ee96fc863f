"""The timing gate: a small model call that decides if and when a message is answered at all.

MaiBot's rules: the gate has only the tools of the stages ``timing`` and ``both``; the
first of them in an answer decides; an answer without one is asked for again, with a
hint, and after three tries nothing is done.
"""

import copy
import time
from collections.abc import Sequence
from typing import Any

from agent.domain.states import StepPhase
from agent.llm.answers.completion import calling_message
from agent.llm.requests.base import LLMClient, ToolCallRequest
from agent.llm.requests.messages import ChatMessage, system_message
from agent.run.model_call import call_model, elapsed_ms
from agent.run.services import get_services
from agent.run.task import PendingCall, RunProgress, RunRequest, StepJournal
from agent.run.tool_results import (
    CONTINUE,
    EndReason,
    build_skipped_result,
    call_outcome,
    get_end_reason,
    result_text,
)
from tools.contract import ToolExecutionResult, ToolInvocation, ToolSpec
from tools.registry.registry import ToolRegistry

TRIES = 3
STAGES = ("timing", "both")
PROMPT = (
    "你现在只判断时机：看完下面的对话，决定是否要在此刻回应最后一条消息。只能调用一个工具："
    "continue 表示现在就思考并回应；wait 表示先等一会儿；no_action 表示这次什么都不做。"
    "不要输出其他内容。"
)
HINT = "没有调用可用的工具。请只调用 continue、wait、no_action 中的一个。"
NOT_CHOSEN = "时机判断只执行一个工具，这次调用没有执行。"


class TimingGate:
    """Asks ``model`` with the timing tools of ``registry``."""

    def __init__(self, model: LLMClient, registry: ToolRegistry) -> None:
        self._model = model
        self._registry = registry.narrowed(is_timing_tool)

    def asking(self, model: LLMClient) -> "TimingGate":
        """This gate with another model."""
        gate = copy.copy(self)
        gate._model = model
        return gate

    async def decide(
        self,
        task: RunRequest,
        journal: StepJournal,
        progress: RunProgress,
        left: Sequence[PendingCall] = (),
    ) -> str:
        """How the run ends; "" once the gate is open. What it cost is added to ``progress``.

        ``left`` are the calls of an answer on record that an earlier process did not
        finish: they are decided first. Raises :class:`agent.domain.errors.LLMError` when the
        model cannot be asked.
        """
        definitions = (await self._registry.offering(task.context.availability())).definitions
        names = {definition["name"] for definition in definitions}
        if (
            CONTINUE not in names
        ):  # the operator took it away: a gate that cannot open would mute the bot
            return ""
        messages, hint, tries, calls = build_gate_messages(progress.messages), "", 0, list(left)
        while tries < TRIES:
            if not calls:
                sent = [*messages, *([{"role": "user", "content": hint}] if hint else [])]
                calls = await self._asked(task, journal, progress, sent, definitions)
            chosen = next((one for one in calls if one.call.name in names), None)
            for one in calls:
                if one is not chosen:
                    await self._settle(
                        journal,
                        one,
                        build_skipped_result(one.call.name, one.call.problem or NOT_CHOSEN),
                        0,
                    )
            calls = []
            if chosen is None:
                tries, hint = tries + 1, HINT
                continue
            result = await self._made(task, journal, chosen)
            if ended_by := get_end_reason(result):
                return ended_by
            if result.metadata.get("timing_action") == "continue":
                return ""
            tries += not result.success
            messages += [calling_message([chosen.call]), _answer(chosen.call, result)]
        return EndReason.NO_ACTION.value

    async def _asked(
        self,
        task: RunRequest,
        journal: StepJournal,
        progress: RunProgress,
        sent: list[ChatMessage],
        definitions: list[dict[str, Any]],
    ) -> list[PendingCall]:
        """The calls of the model's next answer, which is on record."""
        gate = RunProgress(sent, sent, number=progress.number, begin=progress.begin)
        response, step = await call_model(
            self._model, task, journal, gate, definitions, StepPhase.TIMING
        )
        progress.add_gate_step(gate)
        pks = await journal.record_step(step)
        return [PendingCall(pk, call) for pk, call in zip(pks, response.tool_calls, strict=True)]

    async def _made(
        self, task: RunRequest, journal: StepJournal, pending: PendingCall
    ) -> ToolExecutionResult:
        context, started = task.context, time.monotonic()
        pk, call, begun_at = pending
        invocation = ToolInvocation(
            tool_name=call.name,
            arguments=call.arguments,  # type: ignore[arg-type]  # the registry parses and checks the model's text
            call_id=call.call_id,
            session_id=context.session_id,
            stream_id=context.stream_id,
            reasoning=call.reasoning or "",
            call_pk=pk,
            begun_at=begun_at,
        )
        get_services(context).flow.count_waits(call.name)
        await journal.start_call(pk)
        result = await self._registry.invoke(invocation, context)
        await self._settle(journal, pending, result, elapsed_ms(started))
        return result

    async def _settle(
        self, journal: StepJournal, pending: PendingCall, result: ToolExecutionResult, took_ms: int
    ) -> None:
        text = result_text(pending.call.call_id, result, can_see=False)
        await journal.finish_call(call_outcome(pending.pk, result, text, took_ms))


def is_timing_tool(spec: ToolSpec) -> bool:
    return spec.metadata.get("builtin_stage") in STAGES


def build_gate_messages(messages: Sequence[ChatMessage]) -> list[ChatMessage]:
    """The run's first request with the gate's own task behind the persona's prompt."""
    system, *rest = messages
    return [system_message(f"{system['content']}\n\n{PROMPT}"), *rest]


def _answer(call: ToolCallRequest, result: ToolExecutionResult) -> ChatMessage:
    return {
        "role": "tool",
        "tool_call_id": call.call_id,
        "content": result_text(call.call_id, result, can_see=False),
    }
