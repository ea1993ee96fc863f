"""The WebSocket of the admin's pages, ``/ws/admin/live``.

A page sends ``{"watch": ["session:12", "overview"]}``: all that it follows from now on. It is
answered with ``{"watching": [...]}``, what of that it may follow, and then with
``{"changed": "session:12"}`` whenever something has. Frames that are no such thing are answered
with ``{"error": "..."}``.

What a page can follow: a chat, a run, the list of chats, or what stands on the first page.
"""

import asyncio
import io
import json
import logging
import re
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Sized
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Any
from urllib.parse import urlsplit

from channels.db import database_sync_to_async
from django.conf import settings
from django.contrib import admin
from django.contrib.auth import get_user
from django.contrib.sessions.backends.base import SessionBase
from django.core.exceptions import DisallowedHost
from django.core.handlers.asgi import ASGIRequest
from django.db import DatabaseError, InterfaceError
from django.db.models import Q
from django.http import HttpResponse
from django.utils import timezone
from django_otp.middleware import OTPMiddleware

from agent.access import EVERYTHING, ChatAccess, find_access
from agent.models import (
    UNSETTLED,
    Approval,
    BudgetStop,
    ChatEvent,
    ChatSession,
    EndpointStatus,
    Message,
    OperatorAct,
    Run,
    Step,
    ToolCall,
)
from agent.record.ground.commit import GroupCommit
from frostproject.signin.session_store import SessionStore
from onebot.connections.handshake import Handshake
from onebot.models import Bot
from tools.error_boundary import LogLimit
from tools.mcp.models import McpServerStatus

#: Of a chat: the newest messages that are watched for changes.
NEWEST_WATCHED = 60
#: Messages that wait or are worked on: beyond it, more make no difference.
MOST_UNSETTLED = 100
#: Of an overview of own chats: those where something was said last.
NEWEST_CHATS = 200

_TOPIC = re.compile(r"(session|run):([1-9][0-9]{0,17})|(overview|chats)", re.ASCII)


@dataclass(frozen=True, slots=True)
class Topic:
    """``session:<pk>``, ``run:<pk>``; or ``overview`` or ``chats``, of the chats in ``access``;
    equal ones share a watcher."""

    kind: str
    pk: int = 0
    access: ChatAccess = EVERYTHING

    def __str__(self) -> str:
        return f"{self.kind}:{self.pk}" if self.pk else self.kind

    @property
    def seconds(self) -> float:
        """The shortest time between two looks at it."""
        return {"overview": 2.0, "chats": 1.0}.get(self.kind, 0.2)


def parse_topic(text: object) -> Topic | None:
    """The topic that ``text`` names; None where it names none."""
    found = _TOPIC.fullmatch(text) if isinstance(text, str) else None
    if found is None:
        return None
    return Topic(found[3]) if found[3] else Topic(found[1], int(found[2]))


def reach_topic(user: Any, topic: Topic) -> Topic | None:
    """``topic`` as far as ``user``, whom the admin lets in, may see what it is about; None where
    that is nothing. Up to two queries."""
    access = find_access(user)
    if topic.kind == "run":
        rows = Run.objects.filter(access.run_condition(), pk=topic.pk)
        return topic if user.has_perm("agent.view_run") and rows.exists() else None
    if not user.has_perm("agent.view_chatsession"):
        return None
    if not topic.pk:
        return replace(topic, access=access)
    return topic if ChatSession.objects.filter(access.condition(), pk=topic.pk).exists() else None


def digest_topic(topic: Topic) -> object:
    """A value that differs whenever what pages show of ``topic`` does. A few short queries by
    index; blocks."""
    if topic.kind == "chats":
        return _digest_chats(topic.access)
    if not topic.access.is_everything:
        return _digest_own(topic.access)
    return _DIGESTS[topic.kind](topic.pk)


def _digest_session(pk: int) -> object:
    ends = ("paused_until", "taken_over_until")
    chat = ChatSession.objects.filter(pk=pk).values_list(
        *ends, "title", "pause_reason", "taken_over_by", "context_after"
    )
    row, now = chat.first(), timezone.now()
    is_over = tuple(end is not None and end <= now for end in row[: len(ends)]) if row else ()
    columns = ("pk", "state", "run_id", "recalled_at", "settled_at")
    newest = Message.objects.filter(session=pk).order_by("-pk").values_list(*columns)
    acts = OperatorAct.objects.filter(session=pk).order_by("-pk").values_list("pk", flat=True)
    events = ChatEvent.objects.filter(session=pk).order_by("-at").values_list("pk", flat=True)
    return row, is_over, tuple(newest[:NEWEST_WATCHED]), acts.first(), events.first()


def _digest_run(pk: int) -> object:
    run = Run.objects.filter(pk=pk).values_list("state", "model_calls", "output_tokens")
    steps = Step.objects.filter(run=pk).order_by("pk").values_list("pk", "finish_reason")
    columns = ("pk", "state", "duration_ms", "progress", "stopped_by")
    calls = ToolCall.objects.filter(run=pk).order_by("pk").values_list(*columns)
    said = Message.objects.filter(Q(run=pk)).order_by("pk").values_list("pk", "state")
    return run.first(), *(tuple(rows[:500]) for rows in (steps, calls, said))


def _digest_overview(_pk: int) -> object:
    columns = ("pk", "online", "account_online", "nickname", "client_name")
    bots = Bot.objects.order_by("pk").values_list(*columns)
    endpoints = EndpointStatus.objects.order_by("pk").values_list("pk", "error_at", "rests_until")
    approvals = Approval.objects.order_by("-pk").values_list("pk", "state")
    newest = [
        Message.objects.filter(state=state).order_by("-pk").values_list("pk", flat=True).first()
        for state in (Message.State.ANSWERED, Message.State.FAILED, Message.State.UNKNOWN)
    ]
    stops = BudgetStop.objects.order_by("-at").values_list("pk", "at")
    acts = OperatorAct.objects.order_by("-pk").values_list("pk")
    servers = McpServerStatus.objects.order_by("pk").values_list("pk", "state")
    some = (bots, endpoints, servers, approvals[:20], stops[:1], acts[:1])
    return (
        *(tuple(rows[:500]) for rows in some),
        *newest,
        Message.objects.filter(UNSETTLED)[:MOST_UNSETTLED].count(),
    )


def _digest_own(access: ChatAccess) -> object:
    """What an overview of these chats alone shows."""
    accounts = access.accounts | {account for account, _key in access.chats}
    bots = Bot.objects.filter(self_id__in=accounts).order_by("pk")
    return tuple(bots.values_list("pk", "online", "account_online")[:500]), _digest_chats(access)


def _digest_chats(access: ChatAccess) -> object:
    """What a list of these chats shows."""
    chats = access.sessions().order_by("-last_message_at", "-pk")
    of_chats = ("pk", "last_message_at", "pause_reason", "paused_until", "taken_over_by")
    approvals = Approval.objects.filter(access.condition("session__")).order_by("-pk")
    waiting = Message.objects.filter(UNSETTLED, access.condition("session__")).order_by("pk")
    acts = OperatorAct.objects.filter(access.condition("session__")).order_by("-pk")
    return (
        tuple(chats.values_list(*of_chats)[:NEWEST_CHATS]),
        tuple(approvals.values_list("pk", "state")[:20]),
        tuple(waiting.values_list("pk", flat=True)[:MOST_UNSETTLED]),
        acts.values_list("pk", flat=True).first(),
    )


_DIGESTS: dict[str, Callable[[int], object]] = {
    "session": _digest_session,
    "run": _digest_run,
    "overview": _digest_overview,
}


logger = logging.getLogger(__name__)


# Who watches what in one process: for each topic one task, as long as anybody follows it.

#: The longest time between two looks at a topic, in seconds.
LOOK_SECONDS = 1.0
#: A look that takes longer, in seconds, is given up until the next one.
LONGEST_LOOK = 5.0
#: Pauses are at least so many times as long as the look before took.
RESTING_SHARE = 10
#: Looks of one process in a second, at most: where more is followed, each is looked at less often.
MOST_LOOKS = 40

Look = Callable[[Topic], Awaitable[object]]
Follower = Callable[[Topic], None]


class Watchers:
    """Looks at the topics that are followed, and tells their followers what has changed.

    It lives on one event loop. While nobody follows anything it has no task, and ``listen`` was
    last called with False; otherwise :meth:`nudge` is to be called when something may have
    changed. A look that fails is repeated with the next one.
    """

    def __init__(self, look: Look, listen: Callable[[bool], None] = lambda on: None) -> None:
        self._look = look
        self._listen = listen
        self._watchers: dict[Topic, _Watcher] = {}
        self._ending: set[asyncio.Task[None]] = set()

    @property
    def topics(self) -> frozenset[Topic]:
        """What is followed now."""
        return frozenset(self._watchers)

    def follow(self, topic: Topic, follower: Follower) -> None:
        """Have ``follower`` called, on the loop, whenever ``topic`` has changed."""
        if topic not in self._watchers:
            if not self._watchers:
                self._listen(True)
            self._watchers[topic] = _Watcher(topic, self._look, self._watchers)
        self._watchers[topic].followers.add(follower)

    def unfollow(self, topic: Topic, follower: Follower) -> None:
        """The opposite; nothing happens where it did not follow."""
        watcher = self._watchers.get(topic)
        if watcher is None:
            return
        watcher.followers.discard(follower)
        if not watcher.followers:
            del self._watchers[topic]
            watcher.task.cancel()
            self._ending.add(watcher.task)
            watcher.task.add_done_callback(self._ending.discard)
            if not self._watchers:
                self._listen(False)

    def nudge(self) -> None:
        """Something was committed: look soon. Returns at once."""
        for watcher in self._watchers.values():
            watcher.nudged.set()


def shortest_rest(topic: Topic, took: float, watched: int) -> float:
    """Seconds until ``topic`` is looked at again at the earliest, after a look that took so many,
    where so many topics are ``watched``."""
    return max(topic.seconds, RESTING_SHARE * took, watched / MOST_LOOKS)


class _Watcher:
    def __init__(self, topic: Topic, look: Look, all_watched: Sized) -> None:
        self.topic, self._look, self._all_watched = topic, look, all_watched
        self.followers: set[Follower] = set()
        self.nudged = asyncio.Event()
        self.task = asyncio.create_task(self._watch(), name=f"live-{topic}")

    async def _watch(self) -> None:
        seen: object = None
        is_first = True
        while True:
            began = time.monotonic()
            self.nudged.clear()
            try:
                async with asyncio.timeout(LONGEST_LOOK):
                    found = await self._look(self.topic)
            except (DatabaseError, InterfaceError, TimeoutError) as error:
                limit.warn("look", "What pages follow could not be read: %s", error or "time-out")
            else:
                if not is_first and found != seen:
                    for follower in tuple(self.followers):
                        follower(self.topic)
                seen, is_first = found, False
            await self._rest(time.monotonic() - began)

    async def _rest(self, took: float) -> None:
        """Until something may have changed, but not too short."""
        shortest = shortest_rest(self.topic, took, len(self._all_watched))
        await asyncio.sleep(shortest)
        if (rest := LOOK_SECONDS - shortest) > 0:
            try:
                async with asyncio.timeout(rest):
                    await self.nudged.wait()
            except TimeoutError:
                pass


# Who is at a WebSocket of the admin: by the same session, and the same rule, as its pages.


def origin_problem(scope: dict[str, Any]) -> str:
    """Why a handshake is refused before anybody is looked for; "" where it is not. Other sites'
    pages would bring the browser's cookie along, so the page has to be of this one."""
    handshake = Handshake.from_scope(scope)
    if handshake.peer not in settings.ADMIN_NETWORKS:
        return "not in ADMIN_NETWORKS"
    origin = handshake.headers.get("origin", "")
    try:
        is_own = urlsplit(origin).netloc.lower() == handshake.headers.get("host", "").lower() != ""
        _request(scope).get_host()
    except (ValueError, DisallowedHost):
        return "another host"
    return "" if is_own or origin in settings.CSRF_TRUSTED_ORIGINS else "another origin"


def find_viewer(scope: dict[str, Any]) -> Any:
    """The user whose session ``scope`` has the cookie of, if the admin lets them in; None
    otherwise. A fresh object, with fresh permissions, each time. Blocks."""
    request = _request(scope)
    session: SessionBase = SessionStore(request.COOKIES.get(settings.SESSION_COOKIE_NAME))
    request.session = session
    request.user = get_user(request)
    OTPMiddleware(lambda _request: HttpResponse())(request)
    return request.user if admin.site.has_permission(request) else None


def _request(scope: dict[str, Any]) -> ASGIRequest:
    """The request of the handshake as Django would see it."""
    return ASGIRequest({**scope, "type": "http", "method": "GET"}, io.BytesIO())


limit = LogLimit(logger)

#: Topics of one socket; sockets of one user, and of all.
TOPICS, SOCKETS, ALL_SOCKETS = 20, 12, 200
#: Characters of a frame that are read; bad frames of one socket before it is closed.
LONGEST_FRAME, MOST_BAD_FRAMES = 4_096, 50
#: Whether a user may still follow what he follows is asked again after so many seconds.
CHECK_SECONDS = 30.0
#: A query that a socket waits for takes at most so many seconds.
QUERY_SECONDS = 5.0
#: Close codes: the session has ended; something is not to be seen any more; nonsense.
SIGNED_OUT, OUT_OF_REACH, NONSENSE = 4401, 4403, 4400

Receive = Callable[[], Awaitable[dict[str, Any]]]
Send = Callable[[dict[str, Any]], Awaitable[None]]


class LiveFeed:
    """The ASGI application. ``record`` rings after its commits while anybody follows anything."""

    def __init__(self, record: GroupCommit) -> None:
        self._threads = ThreadPoolExecutor(2, thread_name_prefix="live")
        self._record = record
        self.watchers = Watchers(lambda topic: self.ask(digest_topic, topic), self._listen)
        self._sockets: Counter[int] = Counter()

    async def __call__(self, scope: dict[str, Any], receive: Receive, send: Send) -> None:
        await receive()  # websocket.connect
        user = None
        if problem := origin_problem(scope):
            limit.warn("refused", "Refused a page's live connection: %s", problem)
        else:
            user = await self._find_viewer(scope)
        if user is None or not (
            self._sockets[user.pk] < SOCKETS and self._sockets.total() < ALL_SOCKETS
        ):
            await send({"type": "websocket.close"})
            return
        self._sockets[user.pk] += 1
        try:
            await send({"type": "websocket.accept"})
            await LiveSocket(self, scope, receive, send).serve()
        finally:
            self._sockets[user.pk] -= 1
            self._sockets += Counter()  # forgets those that have none

    async def ask(self, question: Callable[..., Any], *values: object) -> Any:
        """What ``question`` answers, asked in a thread of the feed's own. Raises TimeoutError and
        database errors."""
        asked = database_sync_to_async(question, thread_sensitive=False, executor=self._threads)
        async with asyncio.timeout(QUERY_SECONDS):
            return await asked(*values)

    async def _find_viewer(self, scope: dict[str, Any]) -> Any:
        try:
            return await self.ask(find_viewer, scope)
        except (DatabaseError, InterfaceError, TimeoutError):
            return None  # the page tries again

    def _listen(self, is_watching: bool) -> None:
        self._record.on_written = self.watchers.nudge if is_watching else None


class LiveSocket:
    """One page's connection, from its acceptance to its end."""

    def __init__(self, feed: LiveFeed, scope: dict[str, Any], receive: Receive, send: Send) -> None:
        self._feed, self._scope = feed, scope
        self._receive, self._send = receive, send
        self._topics: set[Topic] = set()
        self._changed: dict[Topic, None] = {}
        self._has_changed = asyncio.Event()
        self._bad_frames = 0

    async def serve(self) -> None:
        """Until the socket ends. Cancelled, it follows nothing any more."""
        helpers = [asyncio.create_task(self._tell()), asyncio.create_task(self._check())]
        try:
            while (message := await self._receive())["type"] == "websocket.receive":
                await self._on_frame(message.get("text") or message.get("bytes") or "")
        finally:
            self._follow(set())
            for helper in helpers:
                helper.cancel()
            await asyncio.gather(*helpers, return_exceptions=True)

    async def _on_frame(self, frame: str | bytes) -> None:
        wanted = _parse_frame(frame)
        if wanted is None:
            self._bad_frames += 1
            if self._bad_frames > MOST_BAD_FRAMES:
                await self._close(NONSENSE)
            else:
                await self._say(error="this is no list of topics")
            return
        try:
            allowed = await self._feed.ask(self._allowed, wanted)
        except (DatabaseError, InterfaceError, TimeoutError):
            await self._say(error="the database does not answer; try again")
            return
        if allowed is None:
            await self._close(SIGNED_OUT)
            return
        self._follow(allowed)
        names = set(map(str, allowed))
        await self._say(watching=[name for name in map(str, wanted) if name in names])

    def _allowed(self, wanted: list[Topic]) -> set[Topic] | None:
        """Those of ``wanted`` that may be followed now; None for who is not signed in any
        more."""
        user = find_viewer(self._scope)
        if not user:
            return None
        return {found for topic in wanted if (found := reach_topic(user, topic))}

    async def _tell(self) -> None:
        while True:
            await self._has_changed.wait()
            self._has_changed.clear()
            changed, self._changed = self._changed, {}
            for topic in changed:
                await self._say(changed=str(topic))

    async def _check(self) -> None:
        while True:
            await asyncio.sleep(CHECK_SECONDS)
            topics = set(self._topics)
            try:
                allowed = await self._feed.ask(self._allowed, list(topics))
            except (DatabaseError, InterfaceError, TimeoutError):
                continue  # nothing can be read by anybody
            if allowed is None:
                await self._close(SIGNED_OUT)
            elif topics - allowed:
                await self._close(OUT_OF_REACH)

    def _follow(self, topics: set[Topic]) -> None:
        for topic in self._topics - topics:
            self._feed.watchers.unfollow(topic, self._on_change)
        for topic in topics - self._topics:
            self._feed.watchers.follow(topic, self._on_change)
        self._topics = topics

    def _on_change(self, topic: Topic) -> None:
        self._changed[topic] = None
        self._has_changed.set()

    async def _say(self, **values: object) -> None:
        await self._send({"type": "websocket.send", "text": json.dumps(values)})

    async def _close(self, code: int) -> None:
        self._follow(set())
        await self._send({"type": "websocket.close", "code": code})


def _parse_frame(frame: str | bytes) -> list[Topic] | None:
    """The topics of a frame, each once; None where it is none that a page sends."""
    if len(frame) > LONGEST_FRAME:
        return None
    try:
        content = json.loads(frame)
    except (ValueError, RecursionError):
        return None
    wanted = content.get("watch") if isinstance(content, dict) else None
    if not isinstance(wanted, list) or len(wanted) > TOPICS:
        return None
    topics = [topic for text in wanted if (topic := parse_topic(text)) is not None]
    return list(dict.fromkeys(topics)) if len(topics) == len(wanted) else None
