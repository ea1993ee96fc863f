"""The link between the sockets and the agent in one server process."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from django.conf import settings
from django.db import connection
from django.utils import timezone

from agent.domain.event_rules import find_cause
from agent.domain.events import ChatNotice, EventKind
from agent.domain.types import ChatAddress, IncomingMessage, is_playground
from agent.record.chats import early_ids
from agent.record.chats.chat_events import EventArrival
from agent.record.chats.chat_record import MessageRecall
from agent.record.runs.replies import correct_send_result, is_wanted
from agent.runtime.record_retention import RetentionRule
from agent.runtime.runtime import Runtime
from onebot.connections.client import (
    FORBIDDEN,
    REPLACED,
    SILENT,
    AccountLocation,
    Connections,
    OneBotClient,
    PendingActions,
    Relay,
    Socket,
)
from onebot.connections.handshake import (
    AccountTokens,
    ClosedDoor,
    HandshakePolicy,
    PlaygroundDoor,
    account_refusal,
)
from onebot.connections.silence import SilenceWatch
from onebot.gateway import bots
from onebot.gateway.client_actions import OneBotActions
from onebot.gateway.delivery import OneBotDelivery, to_delivery
from onebot.gateway.introductions import GroupNames, Introductions
from onebot.gateway.media import OneBotMedia
from onebot.gateway.pauses import PauseWatch
from onebot.protocol.actions import ActionResponse, NotConnected
from onebot.protocol.events import Event, HeartbeatEvent, MessageEvent, OtherEvent
from onebot.protocol.media_refs import LOST_FILE, parse_media_refs
from onebot.protocol.notices import read_notice
from onebot.protocol.segments import (
    KEPT,
    find_mentions,
    mentions_account,
    quoted_id,
    render_text,
    spoken_text,
)
from tools.error_boundary import LogLimit, capture_error, log_errors

if TYPE_CHECKING:
    from agent.domain.alerts import AlertLook

logger = logging.getLogger(__name__)
LogLimit(logger)


# From a message event to the agent's own message types. Pure.


def to_incoming(event: MessageEvent, self_id: str, *, from_other_bot: bool) -> IncomingMessage:
    """``event``, received by the account ``self_id``, as an :class:`IncomingMessage`."""
    is_plain = all(segment["type"] in ("text", "at") for segment in event.segments)
    return IncomingMessage(
        chat=ChatAddress(self_id, event.kind, event.peer_id),
        sender_id=event.user_id,
        sender_name=event.anonymous_name or event.sender_name,
        text=render_text(event.segments, self_id),
        segments=event.segments,
        sender_role=event.sender_role if event.kind == "group" else "",
        message_id=event.message_id,
        spoken_text=spoken_text(event.segments),
        mentions=find_mentions(event.segments, self_id) if event.kind == "group" else (),
        mentions_bot=mentions_account(event.segments, self_id),
        quoted_id="" if is_plain else quoted_id(event.segments),
        media=() if is_plain else tuple(parse_media_refs(event.segments, event.message_id)),
        is_plain=is_plain,
        from_own_account=event.is_self,
        from_other_bot=from_other_bot,
        is_notice=event.is_notice,
        is_friend=event.kind == "private" and event.sub_type in ("friend", ""),
        temp_group_id=event.temp_group_id,
        chat_title=event.group_name if event.kind == "group" else event.sender_name,
        happened_at=event.time,
        raw=event.raw,
    )


def recalled_chat(event: OtherEvent, notice: ChatNotice, self_id: str) -> ChatAddress | None:
    """Where the message of a recall stood, as far as that is said. Of the account's own words in a
    private chat, where nothing names the peer, only the kind of chat is known."""
    is_private = event.detail_type != "group_recall"
    return notice.chat or (ChatAddress(self_id, "private", "") if is_private else None)


#: Time to look up why a message was refused, in seconds.
EXPLAIN_SECONDS = 5.0
#: A notice without content, sent repeatedly while a person types.
IGNORED_NOTICES = frozenset({"input_status"})


class Gateway:
    """Owns the connections of this process and hands what comes in to the agent.

    Made without a running loop; started by the first thing that needs it.
    """

    def __init__(
        self,
        playground: PlaygroundDoor | None = None,
        find_alerts: "Callable[[], AlertLook] | None" = None,
    ) -> None:
        self.admission = HandshakePolicy(
            settings.ONEBOT_ACCESS_TOKEN,
            tuple(settings.WS_ALLOWED_ORIGINS),
            settings.TRUST_LOOPBACK,
            AccountTokens(),
            playground or ClosedDoor(),
        )
        self.connections = Connections()
        self.followers: set[tuple[str, Callable[[str], Awaitable[bool]]]] = set()
        """What clients called themselves whose sockets no event will come over, and what is told
        the account that they mean."""
        self._pending = PendingActions()
        self._relay = Relay(self._load_channels, self._on_moved)
        self._client = OneBotClient(self.connections, self._pending, self._relay)
        self._delivery = OneBotDelivery(
            self._client,
            lambda *told: self._pauses.refused(*told),
            self._explain,
            lambda *told: self._keep(self.runtime.record.submit(bots.note_voice, *told)),
        )
        events = RetentionRule(
            "client events", bots.erase_client_events, lambda: settings.EVENT_KEEP_DAYS
        )
        self._media = OneBotMedia(self._client)
        self._actions = OneBotActions(self._client)
        self.runtime = Runtime(self._delivery, self._media, [events], find_alerts, self._actions)
        self.runtime.record.live.subscribe(lambda *_: self._reload_tokens(), "accounts")
        self._pauses = PauseWatch(self._client, self.runtime.record, self.runtime.chat_paused)
        self._introductions = Introductions(
            self._client,
            lambda account, nickname, client_name: self._save_bot(
                bots.introduced_change(account, nickname, client_name, self.runtime.process_id)
            ),
        )
        self._names = GroupNames(self._client, self.runtime.record)
        self._silence = SilenceWatch(self._on_silent)
        self._loop: asyncio.AbstractEventLoop | None = None
        self._start: asyncio.Task[None] | None = None
        self._tasks: set[asyncio.Future[Any]] = set()

    def prepare(self) -> None:
        """Read what handshakes are judged by, before the first one comes. Blocks; where it fails
        all of them are refused."""
        with log_errors(
            logger, "The accounts' tokens could not be read; clients are refused until they are"
        ):
            self._reload_tokens()
        connection.close()

    def ensure_started(self) -> None:
        """Start what runs in the background, once, on the running loop."""
        if self._start is None:
            self._loop = loop = asyncio.get_running_loop()
            self.runtime.ensure_started()
            if not self.runtime.shares_database:
                self._keep(self.runtime.record.submit(bots.mark_all_offline))
            self._start = loop.create_task(self._open_relay(), name="relay-open")

    async def attach(self, self_id: str, socket: Socket) -> None:
        """A client has connected for ``self_id``; an older socket of the same role is closed."""
        self.ensure_started()
        replaced = self.connections.attach(self_id, socket)
        if replaced is not None:
            logger.info(
                "Account %s: a newer %s connection replaces the older one", self_id, socket.role
            )
            self._pending.socket_ended(replaced)
            await replaced.close(REPLACED)
        self._record_connection(self_id, socket)
        if socket.takes_actions:
            self.runtime.account_connected(self_id)
            self._pauses.connected(self_id)
            self._actions.connected(self_id)
            self._introductions.connected(self_id)
            self._names.connected(self_id)
        logger.info(
            "Account %s connected (%s, %s)",
            self_id,
            socket.role,
            socket.user_agent or "no User-Agent",
        )

    def detach(self, self_id: str, socket: Socket) -> None:
        """The socket has ended; what was written to it may still be answered on the next one."""
        socket.is_open = False
        self._pending.socket_ended(socket)
        self.leave(self_id, socket)

    def leave(self, self_id: str, socket: Socket) -> None:
        """The socket is not the account's any more."""
        if self.connections.detach(self_id, socket):
            self.runtime.account_disconnected(self_id)
            self._save_bot(bots.disconnected_change(self_id, self.runtime.process_id))
            logger.info("Account %s disconnected", self_id)
        elif account := self.connections.accounts.get(self_id):
            self._save_bot(bots.BotChange(self_id, {"roles": ", ".join(account.sockets)}))

    async def name_account(self, self_id: str, name: str) -> None:
        """The first event of a client that calls itself ``name`` was of ``self_id``."""
        if self.admission.accounts.learn(name, self_id) and name != self_id:
            self._save_bot(bots.named_change(self_id, name))
        for called, follow in list(self.followers):
            if called == name:
                await follow(self_id)

    def keep(self, content: Iterable[bytes]) -> str:
        """Store a file that came inside a frame, given in pieces, and return what replaces it in
        the message. Blocks."""
        try:
            return f"{KEPT}{self.runtime.files.put_pieces(content)}"
        except OSError as error:
            logger.warning(
                "A file that came inside a frame could not be written to the disk: %s", error
            )
            return f"{KEPT}{LOST_FILE}"

    async def on_event(self, self_id: str, event: Event, socket: Socket | None = None) -> None:
        """Handle one event, of ``socket``. Waits only while the record is far behind."""
        match event:
            case MessageEvent():
                await self.runtime.record.wait_for_room()
                is_bot = self._is_other_bot(event.user_id, self_id)
                message = to_incoming(event, self_id, from_other_bot=is_bot)
                self.runtime.inbox.receive_message(self._with_title(message))
            case HeartbeatEvent():
                await self.runtime.record.wait_for_room()
                self._save_bot(bots.heartbeat_change(self_id, account_online=event.online))
                if socket is not None and not is_playground(self_id):  # hidden pages slow down
                    self._silence.hear(self_id, socket, event.interval)
            case OtherEvent() if (
                event.sub_type not in IGNORED_NOTICES and event.detail_type not in IGNORED_NOTICES
            ):
                await self.runtime.record.wait_for_room()
                self._take_in(replace(event, self_id=event.self_id or self_id), self_id)

    async def on_response(self, self_id: str, response: ActionResponse) -> None:
        """Wake the one who waits for it; a late one corrects the record, and waits while that is
        far behind."""
        if response.echo and (message_id := response.message_id):
            early_ids.remember(self_id, message_id, response.echo)
        if self._pending.resolve(self_id, response) or response.echo is None:
            return
        await self.runtime.record.wait_for_room()
        corrected = self.runtime.record.submit(
            correct_send_result, self_id, response.echo, to_delivery(response)
        )
        self._keep(corrected)
        if response.is_success:
            corrected.add_done_callback(partial(self._on_late_success, self_id))

    def _on_late_success(self, self_id: str, corrected: "asyncio.Future[bool]") -> None:
        if not corrected.cancelled() and corrected.exception() is None and corrected.result():
            self._delivery.voice.arrived(self_id)

    @property
    def is_behind(self) -> bool:
        """Whether what clients report cannot be put on record now."""
        return self._start is not None and self.runtime.record.outage is not None

    async def drain(self, seconds: float) -> None:
        """Begin nothing more, and let runs finish within ``seconds``, while the sockets are still
        open."""
        if self._start is not None:
            await self.runtime.drain(seconds)

    async def close(self, seconds: float) -> None:
        """End everything, once the sockets are closed; what is still to be written gets
        ``seconds``."""
        if self._start is None:
            return
        self._silence.close()
        await self._relay.close()
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=seconds)
        await self._pauses.close()
        await self._introductions.close()
        await self._names.close()
        await self.runtime.close()
        await self._media.close()
        await self._delivery.close()

    async def _open_relay(self) -> None:
        with log_errors(
            logger, "The channel layer cannot be used: accounts of other processes are out of reach"
        ):
            await self._relay.open(self._perform)
        for self_id, account in list(self.connections.accounts.items()):  # those that were faster
            if socket := account.action_socket:
                self._record_connection(self_id, socket)

    def _reload_tokens(self) -> None:
        """What accounts' own tokens and names are now. Runs in the thread of the database."""
        self.admission.accounts.replace(bots.load_account_tokens(), bots.load_account_names())
        if self._loop is not None:
            self._loop.call_soon_threadsafe(self._close_unauthorized)

    def _close_unauthorized(self) -> None:
        """Close the sockets that would be refused now, because the token of their account was
        changed."""
        for self_id, account in self.connections.accounts.items():
            for socket in account.sockets.values():
                if socket.is_open and (
                    reason := account_refusal(self_id, socket.keys, self.admission.accounts)
                ):
                    logger.warning("Closed a connection: %s", reason)
                    self._pending.socket_ended(socket)
                    self._keep(asyncio.get_running_loop().create_task(socket.close(FORBIDDEN)))

    def _record_connection(self, self_id: str, socket: Socket) -> None:
        roles = ", ".join(self.connections.accounts[self_id].sockets)
        holder = (
            bots.ProcessMailbox(self.runtime.process_id, self._relay.channel)
            if socket.takes_actions
            else None
        )
        self._save_bot(bots.connected_change(self_id, roles, socket.user_agent, holder))
        if holder is not None:
            self._relay.announce(self_id, socket.role)

    def _on_silent(self, self_id: str, socket: Socket) -> None:
        """Nothing comes any more on a socket whose client has sent heartbeats."""
        logger.warning("Account %s: its %s connection is silent; closed", self_id, socket.role)
        process = self.runtime.process_id
        now = timezone.now()
        self._save_bot(bots.BotChange(self_id, {"silent_at": now}, only_process=process))
        lost = OtherEvent(self_id, "meta_event", "heartbeat_lost", "", {"role": socket.role})
        self._keep(self.runtime.record.submit_batched(bots.save_client_events, (lost, now)))
        self._pending.socket_ended(socket)
        self._keep(asyncio.get_running_loop().create_task(socket.close(SILENT)))

    def _on_moved(self, location: AccountLocation) -> None:
        """A client has connected to another process: a socket of the same role that it left here is
        dead."""
        account = self.connections.accounts.get(location.account)
        socket = (
            next((one for one in account.sockets.values() if one.role == location.role), None)
            if account
            else None
        )
        if socket is not None and socket.connected_at < location.at:
            logger.info(
                "Account %s: a newer %s connection in another process replaces this one",
                location.account,
                location.role,
            )
            self._pending.socket_ended(socket)
            self._keep(asyncio.get_running_loop().create_task(socket.close(REPLACED)))

    def _is_other_bot(self, user_id: str, self_id: str) -> bool:
        """Playgrounds are no bots to others, and the people in them are made up."""
        if user_id == self_id or is_playground(self_id) or is_playground(user_id):
            return False
        return user_id in self.connections.accounts or user_id in self._relay.accounts

    def _with_title(self, message: IncomingMessage) -> IncomingMessage:
        """``message`` with the name of its group where its client left that out and has told it
        since."""
        if message.chat.kind != "group" or message.chat_title:
            return message
        self._names.ask(message.chat)
        title = self._names.find(message.chat)
        return replace(message, chat_title=title) if title else message

    def _take_in(self, event: OtherEvent, self_id: str) -> None:
        """A notice, a request, or what there are no words for. Returns at once."""
        notice = read_notice(event, self_id)
        now = timezone.now()
        self._keep(self.runtime.record.submit_batched(bots.save_client_events, (event, now)))
        if event.post_type == "request":
            from onebot.protocol.requests import read_request

            if request := read_request(event):
                self._keep(self.runtime.requests.arrive(request))
        if notice is None:
            return
        if notice.kind == EventKind.ACCOUNT:
            is_online = notice.change == "online"
            self._save_bot(bots.BotChange(self_id, {"account_online": is_online}))
        elif notice.kind == EventKind.RECALL and notice.message_id:
            recall = MessageRecall(
                self_id, notice.message_id, recalled_chat(event, notice, self_id)
            )
            work = self.runtime.message_recalled(recall)
            self._keep(asyncio.get_running_loop().create_task(work))
        if (chat := notice.chat) is None:
            return
        if self.runtime.record.live.current.event_rules.rows and chat.kind == "group":
            self._names.ask(chat)
        is_of_bot = self._is_other_bot(find_cause(notice), chat.account)
        self.runtime.event_happened(EventArrival(notice, now, self._names.find(chat), is_of_bot))
        self._pauses.follow(notice, chat)
        self._actions.follow(notice, chat)
        if notice.kind == EventKind.JOIN and self.runtime.has_requests:
            requests = self.runtime.requests
            self._keep(requests.note_join(chat.account, chat.peer_id, notice.user_id))

    async def _perform(
        self, account: str, text: str, echo: str, timeout_seconds: float
    ) -> ActionResponse:
        """Carry out another process's action."""
        if self.runtime.record.is_lease_over:  # after a sleep its outcome is unknown here
            raise NotConnected("the account is not connected")
        # The channel layer may have kept it back for seconds.
        is_still_wanted = False
        with capture_error() as asked:
            async with asyncio.timeout(timeout_seconds):
                is_still_wanted = await self.runtime.record.submit(is_wanted, echo)
        if asked.error is not None:
            raise NotConnected("the record could not be asked whether it is still wanted")
        if not is_still_wanted:
            raise NotConnected("the process that asked for it has given it up")
        return await self._client.send_once(account, text, echo, timeout_seconds, only_here=True)

    async def _load_channels(self) -> dict[str, str]:
        channels = await self.runtime.record.submit(bots.load_account_channels)
        for self_id, account in self.connections.accounts.items():
            if account.action_socket and not channels.get(self_id):  # this process was away
                holder = bots.ProcessMailbox(self.runtime.process_id, self._relay.channel)
                self._save_bot(bots.kept_change(self_id, ", ".join(account.sockets), holder))
        return channels

    async def _explain(self, chat: ChatAddress, echo: str, error: str) -> str:
        """Why a client refused a message, as far as the record knows it in time."""
        from onebot.gateway.passive_answers import explain_refusal

        with log_errors(logger, "Why a message was refused could not be looked up"):
            async with asyncio.timeout(EXPLAIN_SECONDS):
                return await self.runtime.record.submit(explain_refusal, chat, echo, error)
        return error

    def _save_bot(self, change: bots.BotChange) -> None:
        self._keep(self.runtime.record.submit_batched(bots.save_bot_changes, change))

    def _keep(self, work: "asyncio.Future[Any]") -> None:
        """Keep a reference to background work, and log its failure."""
        self._tasks.add(work)
        work.add_done_callback(self._done)

    def _done(self, work: "asyncio.Future[Any]") -> None:
        self._tasks.discard(work)
        if not work.cancelled() and (error := work.exception()):
            logger.error("Background work for a client failed: %s", error)
