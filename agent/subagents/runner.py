"""Running an agent for a tool call: a run of its own on record, inside the run that made the
call."""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import replace

from django.utils.translation import gettext_noop

from agent.domain.endpoint import ModelRole
from agent.domain.errors import AgentError, RunTimeout
from agent.domain.states import Claim, RunState
from agent.llm.requests.base import LLMClient
from agent.record.record import Record
from agent.record.run_journal import RunJournal
from agent.record.runs.deferred_calls import CallSuspension
from agent.record.runs.replies import RunCompletion
from agent.record.runs.steps import CallOutcome, NewStep
from agent.record.runs.subagent_runs import (
    begin_subagent_run,
    break_off_run,
)
from agent.run.engine import Engine
from agent.run.services import get_services
from agent.run.system_prompt import prompt_notes, render_prompt
from agent.run.task import RunRequest, RunResult, StepJournal
from agent.subagents.subagent import Subagent
from tools.contract import ToolExecutionContext, ToolFailed, ToolInvocation
from tools.registry.execution import time_limit
from tools.registry.registry import ToolRegistry

#: Agents at work for each other at a time, each for the one before.
MAX_DEPTH = 3
STOPPED = gettext_noop("the tool call was stopped before the agent had finished")


class NullJournal:
    """The journal of a run that is not on record, as an operator's test run is not; its tool calls
    have the key 0."""

    async def record_step(self, step: NewStep) -> list[int]:
        return [0] * len(step.calls)

    async def start_call(self, pk: int) -> None: ...

    async def finish_call(self, outcome: CallOutcome) -> None: ...

    async def suspend(self, suspension: CallSuspension) -> None: ...


def no_model(role: ModelRole, choice: Sequence[int] = ()) -> LLMClient:
    """For a runner that only describes its agents."""
    raise LookupError(f"nobody is asked for {role}")


class SubagentRunner:
    """Has agents work with the tools of ``registry``.

    Every call that an agent makes is decided by the registry as its caller's are: for the
    sender of the same message, in the same chat. Without a ``record``, and for calls that
    are not on record themselves, nothing is put down. ``models`` tells who is asked for a role,
    by the keys of endpoints.
    Used from one event loop.
    """

    def __init__(
        self,
        registry: ToolRegistry,
        record: Record | None = None,
        models: Callable[[ModelRole, Sequence[int]], LLMClient] = no_model,
    ) -> None:
        self._registry = registry
        self._record = record
        self._roles = models
        self._models: dict[Callable[[], LLMClient], LLMClient] = {}

    async def ask(
        self,
        agent: Subagent,
        request: str,
        invocation: ToolInvocation,
        context: ToolExecutionContext,
    ) -> str:
        """The text of the last answer to ``request``; "" where the agent had nothing to say, asked
        once more.

        Raises :class:`tools.contract.ToolFailed`, which names the agent, when it may not
        begin or comes to no end. When cancelled, its run is on record as interrupted.
        """
        inner = build_nested_context(agent, context)
        model, tools = self._model(agent), self._registry.narrowed(agent.may_use)
        prompt = await render_prompt(agent.prompt, inner, tools)
        run_pk = await self._begin(agent, model, invocation)
        opening, spoke = agent.opening(prompt.text, request), _speaking(inner)
        task = RunRequest(
            run_pk, opening, inner, agent.model_calls, has_spoken=spoke, accepts_nothing=True
        )
        try:
            journal = self._journal(run_pk) or NullJournal()
            result = await _run_within(agent.run_seconds, Engine(model, tools), task, journal)
        except AgentError as error:
            await self._end(
                RunCompletion(run_pk, RunState.FAILED, error=str(error), notes=prompt_notes(prompt))
            )
            raise _unfinished(agent, str(error)) from error
        except (
            Exception,
            asyncio.CancelledError,
        ) as error:  # not handled here, but the record must show that it ended
            await self._break_off(run_pk, error)
            raise
        await self._end(
            RunCompletion(
                run_pk,
                RunState.FAILED if result.out_of_calls else RunState.FINISHED,
                final_text=result.text,
                error="out of model calls" if result.out_of_calls else "",
                notes=[*prompt_notes(prompt), *result.notes],
                model_calls=result.calls,
                input_tokens=result.input_tokens,
                output_tokens=result.output_tokens,
                step=result.last_step,
            )
        )
        if result.out_of_calls:
            raise _unfinished(agent, result.text)
        return result.text.strip()

    async def close(self) -> None:
        """Close the models that were made; new ones are made when an agent is called again."""
        while self._models:
            await self._models.popitem()[1].close()

    def _model(self, agent: Subagent) -> LLMClient:
        if isinstance(agent.model, ModelRole):
            return self._roles(agent.model, agent.endpoints)
        if agent.model not in self._models:
            self._models[agent.model] = agent.model()
        return self._models[agent.model]

    async def _begin(self, agent: Subagent, model: LLMClient, invocation: ToolInvocation) -> int:
        """The key of the run; 0 for one that is not on record."""
        if self._record is None or not invocation.call_pk:
            return 0
        begun = self._record.submit(
            begin_subagent_run,
            invocation.call_pk,
            model.name,
            self._record.process_id,
            agent.name,
        )
        try:
            return await asyncio.shield(begun)
        except asyncio.CancelledError as error:  # it may be committed all the same
            await self._break_off(await begun, error)
            raise

    def _journal(self, run_pk: int) -> RunJournal | None:
        return (
            RunJournal(self._record, Claim(run_pk)) if self._record is not None and run_pk else None
        )

    async def _end(self, ending: RunCompletion) -> None:
        if journal := self._journal(ending.run_pk):
            await journal.finish(ending)

    async def _break_off(self, run_pk: int, error: BaseException) -> None:
        if self._record is not None and run_pk:
            reason = (
                STOPPED
                if isinstance(error, asyncio.CancelledError)
                else f"{type(error).__name__}: {error}"
            )
            await self._record.submit(break_off_run, run_pk, reason)


async def _run_within(
    seconds: float | None, engine: Engine, task: RunRequest, journal: StepJournal
) -> RunResult:
    """The result of the loop. Raises :class:`agent.domain.errors.RunTimeout` after ``seconds``."""
    try:
        async with time_limit(seconds) as limit:
            return await engine.run(task, journal)
    except TimeoutError as error:
        if limit.expired():
            raise RunTimeout(f"the run took longer than {seconds:g} s") from error
        raise


def build_nested_context(agent: Subagent, context: ToolExecutionContext) -> ToolExecutionContext:
    """``context`` as the agent's tools see it: the same chat and sender, one agent deeper.

    Raises :class:`tools.contract.ToolFailed` where agents are nested too deep.
    """
    services = get_services(context)
    chain = services.subagents
    if len(chain) >= MAX_DEPTH:
        raise _unfinished(
            agent,
            f"子代理最多嵌套 {MAX_DEPTH} 层（{' → '.join(chain)}），"
            "请不要再派出子代理，直接完成任务",
        )
    return replace(context, services=replace(services, subagents=(*chain, agent.name)))


def _speaking(context: ToolExecutionContext) -> Callable[[], bool]:
    """A function that says whether anything was sent to the chat after this call."""
    sender = get_services(context).sender
    if sender is None:
        return lambda: False
    before = sender.allowance.messages
    return lambda: sender.allowance.messages > before


def _unfinished(agent: Subagent, reason: str) -> ToolFailed:
    return ToolFailed(f"子代理 {agent.name} 没有完成任务: {reason}")
