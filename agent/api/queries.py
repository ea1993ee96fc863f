"""Stateless questions: a run without a chat, on record like any other."""

import asyncio

from agent.domain.errors import AgentError, RunTimeout
from agent.domain.states import RunOrigin, RunState
from agent.llm.requests.messages import ChatMessage, system_message
from agent.llm.spending import spending_for
from agent.record.record import Record
from agent.record.run_journal import RunJournal
from agent.record.runs.replies import RunCompletion
from agent.record.runs.runs import RunPlan, StartRun
from agent.run.engine import PersonaEngines
from agent.run.services import RunServices
from agent.run.system_prompt import prompt_notes, render_chat_prompt
from agent.run.task import RunRequest
from tools.contract import ToolExecutionContext
from tools.text.fences import neutralize_content


class StatelessQueries:
    """Answers lists of messages with all tools that make sense without a chat."""

    def __init__(self, record: Record, engines: PersonaEngines) -> None:
        self._record = record
        self._engines = engines

    async def answer(self, messages: list[ChatMessage]) -> tuple[int, str]:
        """The key of the run and its final text. Raises :class:`agent.domain.errors.AgentError`.

        The persona's prompt goes first unless ``messages`` begin with a system message.
        """
        begun = await self._record.begin_run(
            StartRun(RunPlan(RunOrigin.HTTP, self._engines.default.model.name))
        )
        engine = self._engines.find(begun.persona)
        journal = RunJournal(self._record, begun.claim)
        context = ToolExecutionContext(services=RunServices(persona=begun.persona))
        noted: list[str] = []
        if messages[0]["role"] != "system":
            prompt = await render_chat_prompt(begun.persona, context, engine.registry)
            messages, noted = [system_message(prompt.text), *messages], prompt_notes(prompt)
        messages = [
            one
            if one["role"] == "system"
            else {**one, "content": neutralize_content(one["content"])}
            for one in messages
        ]
        task = RunRequest(begun.run_pk, messages, context, begun.persona.model_calls)
        try:
            with spending_for(persona=begun.persona.name):
                async with asyncio.timeout(begun.persona.run_seconds):
                    result = await engine.run(task, journal)
        except TimeoutError as error:
            failure = RunTimeout(f"the run took longer than {begun.persona.run_seconds:g} s")
            await journal.finish(RunCompletion(begun.run_pk, RunState.FAILED, error=str(failure)))
            raise failure from error
        except AgentError as error:
            await journal.finish(RunCompletion(begun.run_pk, RunState.FAILED, error=str(error)))
            raise
        await journal.finish(
            RunCompletion(
                begun.run_pk,
                RunState.FINISHED,
                final_text=result.text,
                notes=[*noted, *result.notes],
                model_calls=result.calls,
                input_tokens=result.input_tokens,
                output_tokens=result.output_tokens,
                step=result.last_step,
            )
        )
        return begun.run_pk, result.text
