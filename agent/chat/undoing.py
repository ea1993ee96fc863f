"""Carrying out what is to be taken back: one step after the other, each of which is claimed on
record before it is tried."""

import asyncio
import logging
from collections.abc import Sequence
from dataclasses import dataclass, field

from django.utils import translation
from django.utils.translation import gettext_noop as _

from agent.chat.hand_messages import HandJournal
from agent.chat.message_run import build_tool_context
from agent.domain.client_actions import ActionOutcome, ClientActions
from agent.domain.states import Claim
from agent.domain.types import DEFAULT_ACCOUNT, IncomingMessage, Outbox
from agent.domain.undo import UndoOutcome, UndoState
from agent.memory.recall import NoteService
from agent.record.record import Record
from agent.record.waiting.undoing import (
    UndoWork,
    begin_undo_step,
    find_left_undo_steps,
    settle_undo_step,
)
from agent.run.message_sender import MessageSender
from agent.run.services import RunServices
from tools.contract import OutcomeUnknown, RecordedCall, ToolFailed
from tools.error_boundary import KeptTasks, log_errors
from tools.processes import crash_points
from tools.registry.registry import ToolRegistry

logger = logging.getLogger(__name__)

#: Time for a client to take a message back, in seconds.
RECALL_SECONDS = 10.0
#: Steps of unknown outcome after which the others are not tried.
MOST_UNKNOWN = 2
GIVEN_UP = UndoOutcome(UndoState.FAILED, _("not tried: the outcome of others is unknown"))


@dataclass(eq=False, slots=True)
class Undoing:
    """The steps that this process carries out. Used from one event loop."""

    record: Record
    registry: ToolRegistry
    outbox: Outbox
    actions: ClientActions | None
    notes: NoteService | None = None
    _tasks: KeptTasks = field(default_factory=KeptTasks)

    async def carry_out(self, pks: Sequence[int]) -> None:
        """Try the steps that still wait. When cancelled, the one that was being tried stays
        ``running``, and whoever goes on knows that its outcome is unknown."""
        unknown = 0
        for pk in pks:
            work = await self.record.submit(begin_undo_step, pk, self.record.process_id)
            if work is None:
                continue
            crash_points.hit_crash_point("undo_claimed")
            outcome = GIVEN_UP if unknown >= MOST_UNKNOWN else await self._take_back(work)
            unknown += outcome.state == UndoState.UNKNOWN
            await self.record.submit(settle_undo_step, pk, outcome)

    def look(self) -> "asyncio.Task[None]":
        """Take up what operators have ordered. Returns at once; the task ends when that is done."""
        under_way = self._tasks.get("left")
        return under_way or self._tasks.begin(self._carry_out_left(), "undo", "left")

    async def close(self) -> None:
        await self._tasks.close()

    async def _carry_out_left(self) -> None:
        with log_errors(logger, "What operators have taken back could not be carried out"):
            left = self.record.submit(find_left_undo_steps, self.record.process_id)
            await self.carry_out(await left)

    async def _take_back(self, work: UndoWork) -> UndoOutcome:
        if work.call is not None:
            return await self._take_call_back(work, work.call)
        outcome = ActionOutcome(is_unsupported=True)
        if self.actions is not None:
            params = {"message_id": work.message_id}
            outcome = await self.actions.perform(work.chat, "delete_msg", params, RECALL_SECONDS)
        if outcome.is_success:
            return UndoOutcome(UndoState.DONE)
        if outcome.is_unsupported:
            return UndoOutcome(UndoState.FAILED, _("the client cannot do this"))
        words = outcome.words or f"retcode {outcome.retcode}"
        return UndoOutcome(UndoState.UNKNOWN if outcome.is_unknown else UndoState.FAILED, words)

    async def _take_call_back(self, work: UndoWork, call: RecordedCall) -> UndoOutcome:
        journal = HandJournal(self.record, Claim(0))
        sender = MessageSender(journal, self.outbox, work.chat, session_pk=work.session_pk)
        services = RunServices(sender, notes=self.notes, actions=self.actions)
        asked = IncomingMessage(work.chat, work.asked_by, "", "", [])
        context = build_tool_context(asked, DEFAULT_ACCOUNT, services)
        context.metadata["language"] = work.language
        try:
            with translation.override(work.language):
                return UndoOutcome(UndoState.DONE, await self.registry.undo(call, context))
        except ToolFailed as error:
            is_unknown = isinstance(error, OutcomeUnknown)
            return UndoOutcome(UndoState.UNKNOWN if is_unknown else UndoState.FAILED, error.text)
