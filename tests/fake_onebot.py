"""A OneBot v11 client as NapCat is one: it dials in, tells events and answers actions.

While it plays, it also judges: every frame it is sent must be a well-formed action
by the rules of the wire, and leaving the ``async with`` block raises what was wrong.
"""

import asyncio
import contextlib
import itertools
import json
import time
from collections.abc import Callable, Mapping
from typing import Any, NoReturn

from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed, InvalidStatus

from tests.cast import BOT, PROBE, PROBE_ANSWER, PROBER, sender
from tests.environment import PATIENCE

Frame = dict[str, Any]
Message = str | list[dict[str, Any]]
Answering = Callable[[Frame], Frame | None]

#: As an override of an event's field: leave the field out.
MISSING: Any = object()

_message_ids = itertools.count(1_287_000_001)
_INFORMATION: dict[str, Any] = {
    "get_version_info": {
        "app_name": "NapCat.Onebot",
        "app_version": "4.8.0",
        "protocol_version": "v11",
    },
    "get_status": {"online": True, "good": True},
}
#: What a client in good health does without an answer to speak of.
ACTS = frozenset(
    [
        *("set_group_ban", "set_group_whole_ban", "set_group_kick", "set_group_card"),
        *("set_group_special_title", "set_essence_msg", "delete_essence_msg"),
        *("_send_group_notice", "delete_msg", "delete_group_file", "group_poke", "friend_poke"),
        *("set_friend_add_request", "set_group_add_request"),
    ]
)
#: What a server may ask once a connection, in the background: who the client and its account are.
INTRODUCTIONS = frozenset({"get_login_info", "get_version_info"})


def text(words: str) -> dict[str, Any]:
    """A text segment."""
    return {"type": "text", "data": {"text": words}}


def at(user_id: int | str) -> dict[str, Any]:
    """A segment that mentions a member, or "all"."""
    return {"type": "at", "data": {"qq": str(user_id)}}


def ok(data: Any = None, **fields: Any) -> Frame:
    """A successful answer, without its echo. Without ``data`` it carries a fresh message id."""
    data = {"message_id": next(_message_ids)} if data is None else data
    return {"status": "ok", "retcode": 0, "data": data, "message": "", "wording": "", **fields}


def failed(retcode: int = 1200, wording: str = "scripted failure", **fields: Any) -> Frame:
    """A failed answer as NapCat words it, without its echo."""
    return {
        "status": "failed",
        "retcode": retcode,
        "data": None,
        "message": wording,
        "wording": wording,
        **fields,
    }


def spoken(action: Frame) -> str:
    """The joined text segments of a sending action."""
    return "".join(
        part["data"]["text"] for part in action["params"]["message"] if part["type"] == "text"
    )


async def handshake_status(url: str, **options: Any) -> int:
    """The HTTP status that a client with these options is answered with; 101 when it is let in."""
    try:
        async with FakeOneBot(url, greet=False, **options):
            return 101
    except InvalidStatus as refusal:
        return refusal.response.status_code


class FakeOneBot:
    """One socket of one account.

    ``token`` is sent as ``Bearer``; ``headers`` are added last and win, a value of None
    removes the header. With ``greet`` the lifecycle event is sent on entry, as clients do.
    Raises ``websockets.exceptions.InvalidStatus`` on entry when the handshake is refused.
    """

    def __init__(
        self,
        url: str,
        self_id: int | str = BOT,
        *,
        token: str | None = None,
        role: str | None = "Universal",
        headers: Mapping[str, str | None] | None = None,
        origin: str | None = None,
        greet: bool = True,
        nickname: str = "bot",
    ) -> None:
        self.self_id = self_id
        self.nickname = nickname
        self.actions: list[Frame] = []
        """All that the server asked for, but for introductions and names: these come when they
        like."""
        self.introductions: list[Frame] = []
        self.introduce: Answering = self.usual_answer
        """Answers introductions, whatever the other actions are answered with."""
        self.questions: list[Frame] = []
        """What the server asked in the background to know names."""
        self.names: dict[str, Frame] = {}
        """The ``data`` with which such questions are answered, by their action; without it the
        client does not know."""
        self.violations: list[str] = []
        self._answering: Answering = self.usual_answer
        self._sends: asyncio.Queue[Frame] = asyncio.Queue()
        self._greet = greet
        bearer = f"Bearer {token}" if token is not None else None
        wanted = {
            "X-Self-ID": str(self_id),
            "X-Client-Role": role,
            "Authorization": bearer,
            "Origin": origin,
            **(headers or {}),
        }
        self._dialling = connect(
            url,
            additional_headers={name: value for name, value in wanted.items() if value is not None},
            user_agent_header=wanted.get("User-Agent", "OneBot/11"),
            compression=None,
            max_size=None,
            ping_interval=None,
            proxy=None,
        )

    async def __aenter__(self) -> "FakeOneBot":
        self._socket: ClientConnection = await self._dialling.__aenter__()
        self._reader = asyncio.create_task(self._read())
        if self._greet:
            await self.lifecycle()
        return self

    async def __aexit__(self, kind: type[BaseException] | None, *exc: Any) -> None:
        await self._socket.close()
        await self._reader
        if self.violations and kind is None:
            raise AssertionError(
                "the server broke the rules of the wire:\n" + "\n".join(self.violations)
            )

    # --- Events -----------------------------------------------------------------

    async def say_private(self, user_id: int | str, message: Message, **overrides: Any) -> Frame:
        """Tell a private message; returns the event. ``overrides`` replace fields, ``MISSING``
        removes one."""
        return await self._say(
            user_id, message, {"message_type": "private", "sub_type": "friend"}, overrides
        )

    async def say_group(
        self,
        group_id: int | str,
        user_id: int | str,
        message: Message,
        *,
        mention: bool = True,
        **overrides: Any,
    ) -> Frame:
        """Tell a group message, the bot mentioned before it unless ``mention`` is false; returns
        the event."""
        parts = (
            [text(f" {message}" if mention else message)] if isinstance(message, str) else message
        )
        fields = {
            "message_type": "group",
            "sub_type": "normal",
            "group_id": group_id,
            "group_name": f"group {group_id}",
        }
        return await self._say(
            user_id, [at(self.self_id), *parts] if mention else parts, fields, overrides
        )

    async def heartbeat(
        self, *, online: bool | None = True, interval: int = 30_000, **overrides: Any
    ) -> Frame:
        """Tell a heartbeat; ``interval`` in milliseconds."""
        status = {"online": online, "good": True}
        return await self.tell(
            "meta_event", meta_event_type="heartbeat", status=status, interval=interval, **overrides
        )

    async def lifecycle(self, sub_type: str = "connect", **overrides: Any) -> Frame:
        return await self.tell(
            "meta_event", meta_event_type="lifecycle", sub_type=sub_type, **overrides
        )

    async def tell(self, post_type: str, **fields: Any) -> Frame:
        """Send any event; ``time`` and ``self_id`` are filled in."""
        event = {
            "time": int(time.time()),
            "self_id": self.self_id,
            "post_type": post_type,
            **fields,
        }
        event = {name: value for name, value in event.items() if value is not MISSING}
        await self.send_raw(json.dumps(event, ensure_ascii=False))
        return event

    async def send_raw(self, frame: str | bytes) -> None:
        """Send a frame as it is: text as a text frame, bytes as a binary one."""
        await self._socket.send(frame)

    async def _say(
        self, user_id: int | str, message: Message, fields: Frame, overrides: Frame
    ) -> Frame:
        message_id = next(_message_ids)
        parts = [text(message)] if isinstance(message, str) else message
        usual = {
            "user_id": user_id,
            "message_id": message_id,
            "message_seq": message_id,
            "real_id": message_id,
            "sender": sender(user_id),
            "font": 14,
            "message": parts,
            "message_format": "array",
            "raw_message": "".join(
                part["data"].get("text", f"[CQ:{part['type']}]") for part in parts
            ),
        }
        return await self.tell("message", **(usual | fields | overrides))

    # --- Answers ----------------------------------------------------------------

    def answer_with(self, answering: Answering) -> None:
        """Answer each action with what ``answering`` returns for it (see ``ok`` and ``failed``),
        None for silence."""
        self._answering = answering

    def stay_silent(self) -> None:
        """Answer nothing from now on; ``answer`` still works by hand."""
        self._answering = lambda _action: None

    def answer_again(self) -> None:
        """Back to answering everything at once."""
        self._answering = self.usual_answer

    async def answer(self, action: Frame, answer: Frame | None = None) -> None:
        """Answer one action by hand, late or on another socket than the one it came on."""
        await self.send_raw(
            json.dumps({**(answer or ok()), "echo": action.get("echo")}, ensure_ascii=False)
        )

    def usual_answer(self, action: Frame) -> Frame:
        """What a client in good health answers to ``action``, without its echo."""
        name = str(action.get("action"))
        if name == "get_login_info":
            return ok({"user_id": self.self_id, "nickname": self.nickname})
        if name in _INFORMATION:
            return ok(_INFORMATION[name])
        if name in ACTS:
            return ok() | {"data": None}
        return ok() if name.startswith("send_") else failed(1404, f"不支持的Api {name}")

    # --- What the server does ---------------------------------------------------

    async def next_action(self, timeout: float = PATIENCE) -> Frame:  # noqa: ASYNC109
        """The next action that asks for more than information (``get_…``); raises when none comes
        in time."""
        try:
            async with asyncio.timeout(timeout):
                return await self._sends.get()
        except TimeoutError:
            raise AssertionError(
                f"no action within {timeout} s; all so far: {self.actions}"
            ) from None

    async def no_action(
        self,
        *,
        group: int | None = None,
        user: int | None = None,
        timeout: float = PATIENCE,  # noqa: ASYNC109
    ) -> None:
        """Prove that nothing was sent since the last ``next_action``, without waiting for time to
        pass.

        A probe message is told, and its answer must be the very next action. One chat's
        messages are answered in order, so that the proof is strict for the chat probed:
        name the ``group`` or the private ``user`` whose silence is meant. Without them
        the probe comes from a person of its own, and shows only that the server has
        dealt with the frames before it. ``ScriptedModel`` answers probes unasked; the
        probe and its answer stay in that chat's history.
        """
        if group is None:
            await self.say_private(PROBER if user is None else user, PROBE)
        else:
            await self.say_group(group, PROBER, PROBE)
        action = await self.next_action(timeout)
        assert PROBE_ANSWER in spoken(action), f"silence was expected, but this was sent: {action}"

    async def close_code(self, timeout: float = PATIENCE) -> int | None:  # noqa: ASYNC109
        """Wait until the server closes the socket; its close code, 1006 when it was cut."""
        async with asyncio.timeout(timeout):
            await self._socket.wait_closed()
        return self._socket.close_code

    def cut(self) -> None:
        """Drop the connection without a closing handshake."""
        self._socket.transport.abort()

    async def _read(self) -> None:
        with contextlib.suppress(ConnectionClosed):
            async for frame in self._socket:
                await self._take(frame)

    async def _take(self, frame: str | bytes) -> None:
        try:
            action = parse_action(frame)
        except ValueError as violation:
            self.violations.append(f"{violation}: {frame[:300]!r}")
            return
        earlier = (*self.actions, *self.introductions, *self.questions)
        if any(action["echo"] == one["echo"] for one in earlier):
            self.violations.append(f"an echo was used twice: {action}")
        if asks_name(action):
            self.questions.append(action)
            known = self.names.get(action["action"])
            await self.answer(action, failed(wording="unknown") if known is None else ok(known))
            return
        is_introduction = action["action"] in INTRODUCTIONS
        (self.introductions if is_introduction else self.actions).append(action)
        if not action["action"].startswith("get_"):
            self._sends.put_nowait(action)
        if answer := (self.introduce if is_introduction else self._answering)(action):
            await self.answer(action, answer)


def asks_name(action: Frame) -> bool:
    """Whether the server asks, beside what the test is about, what a group or a member is called.
    With ``no_cache`` it looks after a mute."""
    names = ("get_group_info", "get_group_member_info")
    return action["action"] in names and "no_cache" not in action["params"]


def parse_action(frame: str | bytes) -> Frame:
    """An action frame. Raises ValueError when it is not what every client understands."""
    if isinstance(frame, bytes):
        raise ValueError("not a text frame")
    action = json.loads(frame, parse_constant=_refuse_constant)
    if (
        not isinstance(action, dict)
        or not isinstance(action.get("action"), str)
        or not isinstance(action.get("params"), dict)
    ):
        raise ValueError("not an action with params")
    if not isinstance(action.get("echo"), str) or not action["echo"]:
        raise ValueError("the echo is not a text")
    _check_params(action["params"])
    return action


def _check_params(params: Frame) -> None:
    for name in ("user_id", "group_id"):
        value = str(params.get(name, ""))
        is_exact = value.isdigit() and value == str(int(value)) and int(value) <= 2**53
        if name in params and is_exact != isinstance(params[name], int):
            raise ValueError(f"{name} is a number that not every client reads, or ought to be one")
    for part in params.get("message", []) if params.get("message") is not None else []:
        if not (
            isinstance(part, dict)
            and isinstance(part.get("type"), str)
            and isinstance(part.get("data"), dict)
        ):
            raise ValueError("the message is not an array of segments")
        if not all(isinstance(value, str) for value in part["data"].values()):
            raise ValueError("a segment's value is not a text")


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")
