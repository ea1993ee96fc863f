"""Where the accounts of this process cannot speak: learnt from notices and refusals, put on record,
and looked up again."""

import asyncio
import logging
from collections.abc import Callable, Collection, Coroutine
from datetime import UTC, datetime, timedelta
from random import sample
from typing import Any

from django.utils import timezone

from agent.domain.events import ChatNotice
from agent.domain.states import Pause, PauseReason
from agent.domain.types import ChatAddress
from agent.record.record import Record
from agent.record.waiting.pauses import (
    find_paused_chats,
    lift_pause,
    pause_chat,
)
from onebot.connections.client import OneBotClient
from onebot.protocol.events import parse_time
from onebot.protocol.notices import SpeechChange, find_speech_change
from onebot.protocol.segments import id_number, parse_id
from tools.error_boundary import KeptTasks, LogLimit, log_errors

logger = logging.getLogger(__name__)
LogLimit(logger)

#: Time for a client to say what it knows of a group, in seconds.
ASK_SECONDS = 2.0
#: How often it is asked whether a chat is still paused, in seconds: QQ tells nobody when a mute has
#: ended by itself.
LOOK_AGAIN_SECONDS = 600.0
#: Chats of one account that are looked up at a time, drawn by lot where there are more.
MOST_LOOKED_UP = 50
#: Chats of which clients may be asked at a time, beside those of :meth:`PauseWatch.connected`.
MOST_TASKS = 200
FAILED_LOOK = "Whether an account may speak could not be looked up"
#: Seconds of the longest mute that QQ knows, and a day; a longer one is cut to it.
LONGEST_MUTE = 31 * 24 * 3_600

Reason = PauseReason
_LIFTS: dict[SpeechChange, tuple[PauseReason, ...]] = {
    "unmuted": (Reason.MUTED,),
    # A mute without a known end may have been that of the whole group.
    "all_unmuted": (Reason.ALL_MUTED, Reason.MUTED),
    "promoted": (Reason.ALL_MUTED,),
    "joined": tuple(Reason),
}
_MANAGERS = ("admin", "owner")


class PauseWatch:
    """Pauses chats and lifts pauses. Nothing of it is waited for by others."""

    def __init__(
        self,
        client: OneBotClient,
        record: Record,
        stop: Callable[[ChatAddress], Coroutine[Any, Any, None]],
    ) -> None:
        """``stop`` ends the answer under way in a chat."""
        self._client = client
        self._record = record
        self._stop = stop
        self._tasks = KeptTasks()
        self._written: set[asyncio.Future[Any]] = set()

    def refused(self, chat: ChatAddress, reason: PauseReason) -> None:
        """A client has refused a message because the account cannot speak in ``chat``."""
        self._pause(chat, Pause(reason))
        if reason == Reason.MUTED:
            self._keep(chat, self._find_end(chat))

    def follow(self, notice: ChatNotice, chat: ChatAddress) -> None:
        """A client reports a notice of ``chat``."""
        if change := find_speech_change(notice, chat):
            if earlier := self._tasks.get(chat):
                earlier.cancel()  # what it asks for is overtaken
            self._obey(chat, change, notice.seconds)

    def connected(self, self_id: str) -> None:
        """A client has connected: what it could not report meanwhile is looked up."""
        if earlier := self._tasks.get(self_id):
            earlier.cancel()
        self._keep(self_id, self._look_again(self_id))

    async def close(self) -> None:
        """End all questions; what was submitted to the record is still written."""
        await self._tasks.close()

    def _obey(self, chat: ChatAddress, change: SpeechChange, seconds: int | None) -> None:
        match change:
            case "muted":
                length = seconds and timedelta(seconds=min(seconds, LONGEST_MUTE))
                self._pause(chat, Pause(Reason.MUTED, timezone.now() + length if length else None))
                self._keep(chat, self._stop(chat))
            case "left":
                self._pause(chat, Pause(Reason.LEFT))
                self._keep(chat, self._stop(chat))
            case "all_muted":
                self._keep(chat, self._pause_member(chat))
            case _:
                self._lift(chat, _LIFTS[change], change != "all_unmuted")

    async def _pause_member(self, chat: ChatAddress) -> None:
        """A group is muted, but for its managers."""
        member = await self._ask_member(chat)
        if member is None or member.get("role") not in _MANAGERS:
            self._pause(chat, Pause(Reason.ALL_MUTED))
            await self._stop(chat)

    async def _find_end(self, chat: ChatAddress) -> None:
        """Put on record when a mute ends, if the client knows."""
        member = await self._ask_member(chat)
        if member is not None and (end := _mute_end(member)) and end > timezone.now():
            self._pause(chat, Pause(Reason.MUTED, end))

    async def _look_again(self, account: str) -> None:
        """Look up the paused chats of ``account`` now, and while it is connected."""
        while self._client.is_connected(account):
            with log_errors(logger, FAILED_LOOK):
                paused = await self._record.submit(find_paused_chats, account)
                for chat in sample(list(paused), min(len(paused), MOST_LOOKED_UP)):
                    await self._look_up(chat, paused[chat])
            await asyncio.sleep(LOOK_AGAIN_SECONDS)

    async def _look_up(self, chat: ChatAddress, pause: Pause) -> None:
        """Lift a pause that is certainly over."""
        member = await self._ask_member(chat)
        if member is None:
            return
        if pause.reason == Reason.LEFT:
            is_over = parse_id(member.get("user_id")) == chat.account
        elif pause.reason == Reason.MUTED:
            end = _mute_end(member)
            if end is None or end > timezone.now():
                is_over = False
            else:
                is_over = not await self._is_all_muted(chat)
        else:
            is_over = member.get("role") in _MANAGERS or not await self._is_all_muted(chat, True)
        if is_over:
            self._lift(chat, (pause.reason,))

    async def _is_all_muted(self, chat: ChatAddress, unknown: bool = False) -> bool:
        """Whether the whole group is muted; ``unknown`` where the client does not say. NapCat: 0
        or -1."""
        group = await self._ask("get_group_info", chat)
        said = None if group is None else group.get("group_all_shut")
        return unknown if said is None else said not in (0, "0", False)

    async def _ask_member(self, chat: ChatAddress) -> dict[str, object] | None:
        """What the client knows of the account itself as a member of the group."""
        return await self._ask("get_group_member_info", chat, user_id=id_number(chat.account))

    async def _ask(
        self, action: str, chat: ChatAddress, **params: object
    ) -> dict[str, object] | None:
        params = {"group_id": id_number(chat.peer_id), **params, "no_cache": True}
        response = await self._client.call_optional(chat.account, action, params, ASK_SECONDS)
        if response is None or not response.is_success:
            return None
        return response.data if isinstance(response.data, dict) else None

    def _pause(self, chat: ChatAddress, pause: Pause) -> None:
        logger.warning("%s cannot speak in %s: %s", chat.account, chat.address, pause.reason.value)
        self._write(self._record.submit(pause_chat, chat, pause, is_in_order=True))

    def _lift(
        self, chat: ChatAddress, reasons: Collection[Reason], lifts_timed: bool = True
    ) -> None:
        lifted = self._record.submit(lift_pause, chat, reasons, lifts_timed, is_in_order=True)
        self._write(lifted)

    def _write(self, written: "asyncio.Future[Any]") -> None:
        self._written.add(written)
        written.add_done_callback(self._log_failure)

    def _log_failure(self, written: "asyncio.Future[Any]") -> None:
        self._written.discard(written)
        if not written.cancelled() and (error := written.exception()):
            logger.error("A chat's pause could not be written: %s", error)

    def _keep(self, key: ChatAddress | str, work: Coroutine[Any, Any, None]) -> None:
        if isinstance(key, ChatAddress) and len(self._tasks) >= MOST_TASKS:
            work.close()
            return
        task = self._tasks.begin(self._guard(work), "pause", key)
        task.add_done_callback(lambda _done: work.close())  # cancelled before it began

    async def _guard(self, work: Coroutine[Any, Any, None]) -> None:
        with log_errors(logger, FAILED_LOOK):
            await work


def _mute_end(member: dict[str, object]) -> datetime | None:
    """When the member's mute ends or ended; None where the client does not say."""
    said = parse_id(member.get("shut_up_timestamp"))
    return datetime.fromtimestamp(0, UTC) if said == "0" else parse_time(said)
