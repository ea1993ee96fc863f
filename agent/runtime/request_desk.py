"""Requests of one process: those that its clients report, the answers to them, and the notes to
owners. There is none until there is a request."""

import asyncio
import contextlib
import logging
from collections.abc import Callable, Collection
from functools import partial

from agent.domain.client_actions import ClientActions
from agent.domain.errors import pick_sentence
from agent.domain.requests import MOST_REASON, IncomingRequest, RequestReply
from agent.domain.types import ChatAddress
from agent.record.record import Record
from agent.record.requests import arriving, deciding, telling
from tools.error_boundary import KeptTasks, log_errors
from tools.processes import crash_points
from tools.tasks import end_tasks

logger = logging.getLogger(__name__)
#: Answers that are on their way at a time.
AT_ONCE = 20
#: Time for a client to answer, in seconds.
ANSWER_SECONDS = 10.0
#: So long requests are gathered for one note, in seconds.
GATHER_SECONDS = 1.5
#: How long somebody waits for what a client says to a decision, in seconds.
WAIT_SECONDS = 12.0
#: How long answers under way are waited for at the end, in seconds.
LAST_SECONDS = 1.0


class RequestDesk:
    """Used from one event loop. ``is_connected`` is asked in the database thread, ``resume`` called
    with each account that has a note to send."""

    def __init__(
        self,
        record: Record,
        actions: ClientActions,
        is_connected: Callable[[str], bool],
        resume: Callable[[str], None],
    ) -> None:
        self._record, self._actions = record, actions
        self._is_connected, self._resume = is_connected, resume
        self._answers, self._tasks = KeptTasks(), KeptTasks()
        self._is_wanted, self._is_open = False, True

    def arrive(self, request: IncomingRequest) -> "asyncio.Future[None]":
        """Put on record what a client reports; returns at once."""
        written = self._record.submit_batched(arriving.take_in, request)
        written.add_done_callback(lambda _done: self.look())
        return written

    def note_join(self, account: str, group_id: str, user_id: str) -> "asyncio.Future[None]":
        """Somebody has become a member; returns at once."""
        return self._record.submit_batched(deciding.note_joins, (account, group_id, user_id))

    def look(self) -> None:
        """There may be something to tell. Returns at once."""
        self._is_wanted = True
        for name, work in (("answers", self._look), ("notes", self._tell)):
            task = self._tasks.get(name)
            if self._is_open and (task is None or task.done()):
                self._tasks.begin(work(), f"requests: {name}", name)

    async def check(self) -> None:
        """To be called now and then: what is over expires, and what was left is taken up."""
        if await self._record.submit(deciding.sweep):
            self.look()

    async def wait_decided(self, pks: Collection[int]) -> None:
        """Return once clients have said what came of decisions that this process tells them, or
        after a while."""
        self.look()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(WAIT_SECONDS):
                while under_way := [
                    *(task for name, task in self._tasks.items() if name == "answers"),
                    *(task for pk, task in self._answers.items() if pk in pks),
                ]:
                    await asyncio.wait(under_way)

    async def obey(self, reply: RequestReply, person: str, language: str) -> str:
        """Carry out what an owner said; what is said of that."""
        if len(reply.reason) > MOST_REASON:
            return pick_sentence(telling.TOO_LONG, "", language) % MOST_REASON
        pks, is_approval = reply.requests, reply.is_approval
        await self._record.submit(
            partial(deciding.decide, is_approval=is_approval, by=person, reason=reply.reason), pks
        )
        await self.wait_decided(pks)
        return await self._record.submit(telling.describe, pks, language)

    async def close(self) -> None:
        """End. What is on its way is of unknown outcome, as is on record."""
        self._is_open = False
        await self._tasks.close()
        await end_tasks(self._answers.values(), LAST_SECONDS)

    async def _look(self) -> None:
        while self._is_wanted and len(self._answers) < AT_ONCE:
            self._is_wanted = False
            with log_errors(logger, "Decisions over requests could not be looked up"):
                under_way = frozenset(self._answers)
                claimed = await self._record.submit(
                    deciding.claim_decided,
                    self._record.process_id,
                    self._is_connected,
                    under_way,
                    AT_ONCE - len(under_way),
                )
                for pk, chat, action, params in claimed:
                    work = self._answer(pk, chat, action, params)
                    task = self._answers.begin(work, "request", pk)
                    task.add_done_callback(lambda _done: self.look())

    async def _answer(
        self, pk: int, chat: ChatAddress, action: str, params: dict[str, object]
    ) -> None:
        with log_errors(logger, "What became of request #%s could not be written", pk):
            crash_points.hit_crash_point("request_claimed")
            outcome = await self._actions.perform(chat, action, params, ANSWER_SECONDS)
            await self._record.submit(deciding.settle, pk, self._record.process_id, outcome)

    async def _tell(self) -> None:
        await asyncio.sleep(GATHER_SECONDS)
        with log_errors(logger, "Owners could not be told of requests"):
            live = self._record.live
            for account in await self._record.submit(
                telling.tell_waiting, lambda account: live.find_account(account).owners
            ):
                self._resume(account)
