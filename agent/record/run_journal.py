"""What one run puts on record: each write happens only while the claim on the run holds."""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from agent.domain.states import Claim
from agent.domain.types import ChatAddress
from agent.record.chats import sessions
from agent.record.ground.commit import I, R, Ts
from agent.record.record import Record
from agent.record.runs import deferred_calls, replies, steps
from agent.record.waiting import approvals


@dataclass(frozen=True, slots=True)
class RunJournal:
    """The :class:`agent.run.task.StepJournal` of a run on record.

    Every method raises :class:`agent.domain.errors.ClaimLost` when another process has taken the
    run over: the run must then stop and send nothing.
    """

    record: Record
    claim: Claim
    is_history: bool = True
    """Whether what is said belongs to the conversation that later model calls are shown. What the
    demo model said does not."""
    merged: tuple[int, ...] = ()
    """The keys of the messages that are answered together with that of the run."""

    async def record_step(self, step: steps.NewStep) -> list[int]:
        return await self._put(steps.record_steps, step)

    async def start_call(self, pk: int) -> None:
        await self._put(steps.start_calls, pk)

    async def finish_call(self, outcome: steps.CallOutcome) -> None:
        await self._put(steps.finish_calls, outcome)

    async def suspend(self, suspension: deferred_calls.CallSuspension) -> None:
        await self._submit(deferred_calls.suspend_calls, suspension)

    async def ask(self, question: approvals.ApprovalRequest) -> approvals.RecordedQuestion | None:
        return await self._submit(approvals.record_questions, question)

    async def open_chat(self, chat: ChatAddress) -> sessions.OpenedChat:
        manners = self.record.live.current.manners.find(chat)
        return await self._submit(sessions.open_chats, chat, manners)

    async def set_continuing(self, session_pk: int, is_continuing: bool) -> None:
        await self._submit(sessions.set_continuing, session_pk, is_continuing)

    def add_reply(self, reply: replies.OutgoingMessage) -> "asyncio.Future[int]":
        return self._put(replies.add_replies, (reply, self.record.process_id))

    def plan_answer(self, plan: replies.AnswerPlan) -> "asyncio.Future[list[int]]":
        return self._submit(replies.plan_answers, plan, self.record.process_id)

    def mark_sent(self, pk: int, echo: str) -> "asyncio.Future[int]":
        sent = (pk, echo, self.record.process_id)
        return self._put(replies.mark_replies_sent, sent)

    def settle(self, outcome: replies.SendResult) -> None:
        """Not awaited: the sender may have been cancelled. If it comes too late, it changes
        nothing."""
        self._put(replies.record_send_results, self._marked(outcome)).add_done_callback(_ignored)

    async def finish(self, ending: replies.RunCompletion) -> None:
        if not self.is_history:
            outcome = self._marked(ending.outcome) if ending.outcome else None
            ending = replace(ending, in_history=False, outcome=outcome)
        if self.merged:
            ending = replace(ending, merged=self.merged)
        await self._put(replies.complete_runs, ending)

    def _marked(self, outcome: replies.SendResult) -> replies.SendResult:
        return outcome if self.is_history else replace(outcome, is_speech=False)

    def _submit(self, function: Callable[[*Ts], R], *args: *Ts) -> "asyncio.Future[R]":
        return self.record.submit(function, *args, claim=self.claim)

    def _put(self, operation: Callable[[Sequence[I]], Sequence[R]], item: I) -> "asyncio.Future[R]":
        return self.record.submit_batched(operation, item, self.claim)


def _ignored(future: "asyncio.Future[None]") -> None:
    if not future.cancelled():
        future.exception()
