"""A conversation at a terminal: the server's engine and record, without a OneBot client.

Several terminals and a server may work on one database at the same time. A message that was
interrupted is not answered at the next start, because its sender is gone; it ends as ``failed`` and
its run as ``interrupted``.
"""

import asyncio
import contextlib
import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from typing import Any

from django.utils import timezone

from agent.chat.conversation import ConversationHandler, ToolCallWatcher
from agent.domain.errors import ClaimLost
from agent.domain.manners import ChatManners
from agent.domain.states import FIRST_CLAIM, MessageState, Pause, RunOrigin, RunState, ToolCallState
from agent.domain.types import AccountSettings, ChatAddress, Delivery, IncomingMessage, MessagePart
from agent.record.arrivals.arrivals import MessageArrival
from agent.record.run_journal import RunJournal
from agent.record.runs.merged import HeldMessage
from agent.record.runs.replies import RunCompletion
from agent.record.runs.runs import ActiveRun, StartRun
from agent.record.runs.steps import CallOutcome
from agent.record.waiting.recovery import (
    PendingMessage,
    claim_messages,
    release_messages,
)
from agent.runtime.runtime import HEARTBEAT_SECONDS, Runtime
from tools.error_boundary import log_errors

logger = logging.getLogger(__name__)
State = MessageState

ACCOUNT = "terminal"
CHAT = ChatAddress(ACCOUNT, "private", "local", platform="terminal")
BROKEN_OFF = "the terminal was closed before the answer"

WORDS: dict[str, Callable[[dict[str, str]], str]] = {
    "plain": lambda data: data["text"],
    "mention_user": lambda data: f"@{data['mention_user_id']} ",
    "quote": lambda data: f"[#{data['message_id']}] ",
}


class TerminalOutbox:
    """The :class:`agent.domain.types.Outbox` of a terminal: what is printed is delivered."""

    takes_any_length = True

    def __init__(self, write: Callable[[str], None]) -> None:
        self._write = write

    def compose(self, parts: Sequence[MessagePart]) -> list[dict[str, Any]]:
        return [
            {
                "type": part.type,
                "data": {
                    name: value for name, value in asdict(part).items() if value and name != "type"
                },
            }
            for part in parts
        ]

    def compose_forward(
        self, chat: ChatAddress, messages: Sequence[Sequence[MessagePart]]
    ) -> list[dict[str, Any]]:
        return [segment for parts in messages for segment in self.compose(parts)]

    def load_accounts(self) -> Mapping[str, AccountSettings]:
        """A person who can start this program owns the installation."""
        return {CHAT.account: AccountSettings(owners=frozenset({CHAT.peer_id}))}

    def replace_accounts(self, accounts: Mapping[str, AccountSettings]) -> None:
        """There is one."""

    def replace_pauses(self, pauses: Mapping[ChatAddress, Pause]) -> None:
        """There are none."""

    def is_connected(self, chat: ChatAddress) -> bool:
        return True

    async def wait_connected(self, chat: ChatAddress, seconds: float) -> bool:
        return True

    def show_working(
        self, chat: ChatAddress, message_id: str, manners: ChatManners, *, is_on: bool
    ) -> None:
        """There is nothing to show it with."""

    def next_turn(self, chat: ChatAddress, sends_per_minute: int | None = None) -> float:
        return 0.0

    async def deliver(
        self,
        chat: ChatAddress,
        segments: list[dict[str, Any]],
        *,
        echo: str,
        temp_group_id: str = "",
    ) -> Delivery:
        try:
            self._write("".join(_printed(segment) for segment in segments))
        except OSError as error:  # a pipe without a reader
            return Delivery(State.FAILED, error=f"the output is closed: {error}")
        return Delivery(State.DELIVERED)


def _printed(segment: dict[str, Any]) -> str:
    words = WORDS.get(segment["type"])
    data = segment["data"]
    return words(data) if words else f"[{segment['type']}: {data.get('url') or data.get('path')}]"


class TerminalChat:
    """What one person says at one terminal, message by message, in one chat session for all
    terminals.

    ``write`` is given each message of the agent, ``watch`` each tool call once it is
    done. Everything is used from one event loop.
    """

    def __init__(self, write: Callable[[str], None], watch: ToolCallWatcher) -> None:
        outbox = TerminalOutbox(write)
        self._runtime = Runtime(outbox)
        self._record = self._runtime.record
        self._conversations = ConversationHandler(
            self._record,
            self._runtime.engines,
            outbox,
            self._runtime.jobs,
            RunOrigin.TERMINAL,
            watch,
            memory=self._runtime.memory,
        )
        self._later: list[PendingMessage] = []

    @property
    def model_name(self) -> str:
        return self._runtime.engines.default.model.name

    async def say(self, text: str) -> int:
        """Put ``text`` on record and answer it; the key of its row. When cancelled, it ends as cut
        off."""
        await self._record.renew_lease(alone=False)
        await self._runtime.put_down_tools()
        await self.give_up_leftovers()
        presence = asyncio.create_task(self._stay_present(), name="presence")
        try:
            pk = await self._answer(_incoming(text))
            await self._tell_later()
            return pk
        finally:
            presence.cancel()

    async def give_up_leftovers(self) -> None:
        """Record the end of abandoned messages, without calling the model."""
        for left in await self._claimed():
            plan = self._conversations.build_run_plan(left.message)
            wish = StartRun(
                plan, left.pk, left.session_pk, resumed=True, claim_number=left.claim_number
            )
            begun = await self._record.begin_run(wish)
            journal = RunJournal(self._record, begun.claim)
            for call in (call for step in begun.steps for call in step.calls):
                if call.state == ToolCallState.WAITING:
                    await journal.finish_call(
                        CallOutcome(
                            pk=call.pk,
                            state=ToolCallState.FAILED,
                            provider_name="",
                            mocked=False,
                            result="",
                            structured_content=None,
                            error=BROKEN_OFF,
                            duration_ms=0,
                        )
                    )
            await journal.finish(_broken_off(left, begun))

    async def _claimed(self) -> list[PendingMessage]:
        """Abandoned messages; outcomes of earlier calls are put aside, to be announced."""
        claimed: list[PendingMessage] = []
        while some := await self._record.submit(claim_messages, ACCOUNT, self._record.process_id):
            claimed += some
        self._later += [left for left in claimed if left.is_later_result]
        return [left for left in claimed if not left.is_later_result]

    async def _tell_later(self) -> None:
        """Answer the outcomes that have come of earlier calls, those of this answer included."""
        await self.give_up_leftovers()
        while self._later:
            with contextlib.suppress(
                ClaimLost
            ):  # it is claimed again and announced with the next message
                await self._conversations.answer_message(self._later[0], resumed=True)
            del self._later[0]

    async def close(self) -> None:
        """End everything; no message can be sent afterwards."""
        await self._runtime.close()

    async def _answer(self, message: IncomingMessage) -> int:
        arrival = MessageArrival(message, timezone.now())
        committed = self._record.submit_batched(self._record.arrivals.accept_messages, arrival)
        try:
            accepted = await asyncio.shield(committed)
            await self._conversations.answer_message(accepted.to_pending(message))
        except ClaimLost:  # this terminal was asleep for longer than its lease
            await self.give_up_leftovers()
        except asyncio.CancelledError:
            held = HeldMessage((await committed).pk, FIRST_CLAIM)
            await self._record.submit_batched(release_messages, held)
            await self.give_up_leftovers()
            raise
        return accepted.pk

    async def _stay_present(self) -> None:
        """Renew the lease, so that no server takes this message for one whose process has died."""
        while True:
            await asyncio.sleep(HEARTBEAT_SECONDS)
            with log_errors(logger, "The sign of life of this terminal could not be written"):
                await self._record.renew_lease(alone=False)


def _incoming(text: str) -> IncomingMessage:
    # What no database and no UTF-8 text can hold may still be typed or piped.
    text = text.encode("utf-8", "replace").decode().replace("\0", "\ufffd").strip()
    return IncomingMessage(
        chat=CHAT,
        sender_id=CHAT.peer_id,
        sender_name="",
        text=text,
        segments=[{"type": "text", "data": {"text": text}}],
        spoken_text=text,
        happened_at=timezone.now(),
    )


def _broken_off(left: PendingMessage, begun: ActiveRun) -> RunCompletion:
    """How a message ends that was cut off: answered, if the answer had been printed."""
    answer = begun.answer
    return RunCompletion(
        run_pk=begun.run_pk,
        run_state=RunState.FINISHED if answer else RunState.INTERRUPTED,
        message_pk=left.pk,
        message_state=State.ANSWERED if answer else State.FAILED,
        detail="" if answer else BROKEN_OFF,
        error="" if answer else BROKEN_OFF,
        final_text=answer.text if answer else "",
        in_history=bool(answer) or begun.has_spoken,
    )
