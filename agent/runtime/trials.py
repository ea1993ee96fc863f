"""Asking a message again without sending anything: the real loop, with a stand-in for every tool
that acts."""

import asyncio
import copy
import logging
from collections.abc import Callable, Mapping
from contextlib import suppress

from django.utils.translation import gettext_noop

from agent.chat.message_run import build_tool_context
from agent.domain.chat_state import ChatState
from agent.domain.errors import AgentError, ClaimLost
from agent.domain.states import RunState
from agent.domain.types import Delivery, Outbox
from agent.llm.endpoints.endpoint_book import EndpointBook
from agent.llm.requests.messages import system_message
from agent.llm.spending import scope, spending_for
from agent.memory.recall import NoteService
from agent.record.record import Record
from agent.record.run_journal import RunJournal
from agent.record.runs.replies import RunCompletion
from agent.record.runs.subagent_runs import break_off_run
from agent.record.sums.tallies import account_subject
from agent.record.waiting.trials import BegunTrial, TrialRefusal, TrialStarter, TrialWish
from agent.run.engine import Engine, PersonaEngines
from agent.run.message_sender import MessageSender
from agent.run.services import RunDiscoveries, RunServices
from agent.run.system_prompt import prompt_notes, render_chat_prompt
from agent.run.task import RunRequest, RunResult
from agent.run.tool_results import PROVIDER_NAME
from tools.contract import (
    ToolExecutionContext,
    ToolExecutionResult,
    ToolInvocation,
    ToolSpec,
)
from tools.error_boundary import capture_error
from tools.registry.settings import ToolSettings
from tools.tasks import end_tasks

logger = logging.getLogger(__name__)

#: Trials of all operators that one process works on at a time.
MOST = 4
CROWDED = gettext_noop("Others are asking again at this moment: try again in a minute.")
NO_ENDPOINT = gettext_noop("This endpoint is switched off, or gone.")
STOPPED = gettext_noop("the server stopped before the model had answered")
STAND_IN = "（这是不发送的重新提问：这次调用没有执行。请当作它已经成功，照常继续。）"
#: Tools of the program that only look something up, by their providers.
READERS = {
    PROVIDER_NAME: {
        *("fetch_history", "query_memory", "query_person_profile"),
        *("tool_search", "view_complex_message"),
    },
    "samples": {"get_weather", "get_game_version"},
}


class MuteSender(MessageSender):
    """Tells tools which chat they are in, and sends nothing."""

    async def say(self, *_what: object, is_counted: bool = True) -> Delivery:
        raise RuntimeError("a trial sends nothing")

    def elsewhere(self, *_where: object) -> "MuteSender":
        return self


class StandIn:
    """Answers the calls of one trial that would change anything. ``rows`` are those of the tools,
    as they are now."""

    def __init__(self, rows: Callable[[], Mapping[str, ToolSettings]]) -> None:
        self._rows = rows
        self.has_spoken = False
        """Whether a tool that speaks was called: then the final answer may be empty."""

    async def answer(
        self, spec: ToolSpec, invocation: ToolInvocation, context: ToolExecutionContext | None
    ) -> ToolExecutionResult | None:
        """A hook of the registry (:mod:`tools.registry.execution`), asked before each call that its
        policy allows without an owner; None where it may be made."""
        row = self._rows().get(spec.name)
        if (row is not None and row.mock_enabled) or only_reads(spec):
            return None
        self.has_spoken |= "speaks" in spec.metadata.get("traits", ())
        return ToolExecutionResult(
            spec.name, success=True, content=STAND_IN, metadata={"stood_in": True}
        )


def only_reads(spec: ToolSpec) -> bool:
    """Whether calls of a tool leave everything as it is, or end the run and do nothing else."""
    if spec.annotation is not None and spec.annotation.read_only:
        return True
    if spec.provider_name == PROVIDER_NAME and "ends_run" in spec.metadata.get("traits", ()):
        return True
    return spec.name in READERS.get(spec.provider_name, ())


class Trials:
    """The trials of one server process, each a run on record. Used from one event loop."""

    def __init__(
        self,
        record: Record,
        engines: PersonaEngines,
        book: EndpointBook,
        outbox: Outbox,
        notes: NoteService,
    ) -> None:
        self._record = record
        self._engines = engines
        self._book = book
        self._notes = notes.without_marks()
        self._outbox = outbox
        self._starter = TrialStarter(record.process_id, record.run_starter, engines.name_model)
        self._tasks: set[asyncio.Task[None]] = set()

    async def ask(self, wish: TrialWish) -> int | TrialRefusal:
        """Begin; the key of the run, which goes on until it is over or :meth:`stop` is called."""
        if len(self._tasks) >= MOST:
            return TrialRefusal(CROWDED)
        if wish.endpoint_pk is not None and wish.endpoint_pk not in self._book.table.rows:
            return TrialRefusal(NO_ENDPOINT)
        begun = await self._record.submit(self._starter.begin_trial, wish)
        if isinstance(begun, TrialRefusal):
            return begun
        name = f"trial-{begun.claim.run_pk}"
        task = asyncio.get_running_loop().create_task(self._work(begun), name=name)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return begun.claim.run_pk

    async def stop(self) -> None:
        """End all that is under way; the record says that it was broken off."""
        await end_tasks(self._tasks)

    async def _work(self, begun: BegunTrial) -> None:
        """Bring a trial to its recorded end."""
        run_pk, journal = begun.claim.run_pk, RunJournal(self._record, begun.claim)
        chat, persona = begun.message.chat, begun.persona.name
        notes: list[str] = []
        try:
            with (
                capture_error() as attempt,
                spending_for(account=account_subject(chat), chat=chat.place, persona=persona),
            ):
                async with asyncio.timeout(begun.persona.run_seconds):
                    result = await self._run(begun, journal, notes)
            if attempt.error is None:
                ending = _finished(run_pk, result, notes)
            else:
                ending = _failed(run_pk, attempt.error, begun.persona.run_seconds, notes)
            with suppress(ClaimLost):
                await journal.finish(ending)
        except asyncio.CancelledError:
            await self._record.submit(break_off_run, run_pk, STOPPED)
            raise

    async def _run(self, begun: BegunTrial, journal: RunJournal, notes: list[str]) -> RunResult:
        """What the loop comes to; what is remarkable about the prompt is added to ``notes``."""
        stand_in = StandIn(lambda: self._record.live.current.tools)
        engine: Engine = copy.copy(self._engines.find(begun.persona))
        engine.registry = engine.registry.on_trial(stand_in.answer)
        services = RunServices(
            sender=MuteSender(
                journal, self._outbox, begun.message.chat, session_pk=begun.session_pk
            ),
            chat_state=ChatState(None, begun.kept.state),
            notes=self._notes,
            spend_scope=scope.get(),
            persona=begun.persona,
        )
        context = build_tool_context(begun.message, begun.account, services)
        prompt = await render_chat_prompt(begun.persona, context, engine.registry)
        notes += prompt_notes(prompt)
        task = RunRequest(
            begun.claim.run_pk,
            [system_message(prompt.text), *begun.opening],
            context,
            begun.persona.model_calls,
            can_see=begun.persona.vision_mode != "describe",
            discoveries=RunDiscoveries(None, begun.kept.discovered),
            has_spoken=lambda: stand_in.has_spoken,
        )
        return await engine.run(task, journal)


def _finished(run_pk: int, result: RunResult, notes: list[str]) -> RunCompletion:
    return RunCompletion(
        run_pk,
        RunState.FINISHED,
        final_text=result.text.strip(),
        error="out of model calls" if result.out_of_calls else "",
        notes=[*notes, *result.notes],
        model_calls=result.calls,
        input_tokens=result.input_tokens,
        output_tokens=result.output_tokens,
        step=result.last_step,
    )


def _failed(run_pk: int, error: Exception, seconds: float, notes: list[str]) -> RunCompletion:
    if isinstance(error, TimeoutError):
        words = f"the run took longer than {seconds:g} s"
    elif isinstance(error, AgentError):
        words = str(error)
    else:
        logger.error("Trial %s failed", run_pk, exc_info=error)
        words = f"{type(error).__name__}: {error}"
    return RunCompletion(run_pk, RunState.FAILED, error=words, notes=notes)
