"""Events: what clients report, with their dialects made alike.

Hardly a field's type can be relied on: ids come as integers, strings and floats,
times in seconds and milliseconds, any part of ``sender`` may be missing. Nothing
here raises for an odd shape; what cannot be read is "" or None.

What keeps an account from speaking in a group, as clients say it when they refuse a message. Also
whether a refusal is about the quote.

Only what certainly says so counts: NapCat's 1200 alone also stands for risk control, for a banned
link, and for messages that were delivered.
"""

import re
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal
from time import time as clock
from typing import Any

from agent.domain.states import PauseReason
from agent.domain.types import ChatKind
from onebot.protocol.actions import ActionResponse
from onebot.protocol.segments import Segment, parse_id, parse_message, parse_message_id, value_text

# Seconds since 1970 between which a time can be meant; some clients count from their own start.
EARLIEST = int(datetime(2001, 1, 1, tzinfo=UTC).timestamp())
LATEST = int(datetime(2100, 1, 1, tzinfo=UTC).timestamp())
#: Seconds by which the clock of a client may be ahead of ours; later times are not meant.
MOST_AHEAD = 24 * 3_600
#: Signs that are not seen, but end lines or turn the direction of what follows them.
_CONTROLS = re.compile("[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]")


@dataclass(frozen=True, slots=True)
class MessageEvent:
    """A message in a group or from a person; ids are exact text."""

    self_id: str
    kind: ChatKind
    group_id: str
    """The group, "" for a private message."""
    user_id: str
    sender_name: str
    """The name the sender bears in the group, else the nickname."""
    sender_role: str
    message_id: str
    """"" when the client gave none that stands for a message."""
    time: datetime | None
    """The client's time (UTC), None when it cannot be meant and stands for now."""
    segments: list[Segment]
    sub_type: str
    is_notice: bool
    """Whether it is a system text of the group, without a sender."""
    is_self: bool
    """Whether the bot's own account said it, through this server or by another hand."""
    temp_group_id: str
    """The group a temporary private session goes through, "" when there is none or the client does
    not say."""
    target_id: str
    """The receiver of a private message, as far as the client says."""
    group_name: str
    anonymous_name: str
    raw: dict[str, Any]
    """The frame as it was read."""

    @property
    def peer_id(self) -> str:
        """The other end of the chat: the group, or the person, also where the bot's own account
        spoke."""
        if self.kind == "group":
            return self.group_id
        return (self.target_id if self.is_self else "") or self.user_id


@dataclass(frozen=True, slots=True)
class HeartbeatEvent:
    """A sign of life of the client."""

    self_id: str
    online: bool | None
    """Whether the account behind the client is online, None if the client does not know."""
    interval: float | None = None
    """Seconds until the next one, 0 where there will be none; None where that is not said."""


@dataclass(frozen=True, slots=True)
class LifecycleEvent:
    """The client has connected; ``enable`` and ``disable`` mean nothing on a WebSocket."""

    self_id: str
    sub_type: str


@dataclass(frozen=True, slots=True)
class OtherEvent:
    """A notice, a request, or anything this server has no words for; also a message whose chat is
    unknown."""

    self_id: str
    post_type: str
    detail_type: str
    """``notice_type``, ``request_type``, ``message_type`` and so on."""
    sub_type: str
    raw: dict[str, Any]
    flag: object = None
    """What a request is answered by, also where ``raw`` is cut."""


#: Numbers below it are ids without being looked at any further.
MOST = 10**18
#: Milliseconds between heartbeats that are believed.
MOST_INTERVAL = 86_400_000
_IDS = ("self_id", "user_id", "group_id", "message_id")

Event = MessageEvent | HeartbeatEvent | LifecycleEvent | OtherEvent


def parse_event(frame: dict[str, object]) -> Event:
    """``frame``, a JSON object with a ``post_type``, as the event it reports."""
    post_type, self_id = _text(frame.get("post_type")), parse_id(frame.get("self_id"))
    is_sent = post_type == "message_sent"
    detail_type = _text(frame.get("message_type" if is_sent else f"{post_type}_type"))
    event: Event | None = None
    if post_type == "message" or is_sent:
        event = _message(frame, self_id, detail_type, is_sent=is_sent)
    elif post_type == "meta_event" and detail_type == "heartbeat":
        online = _object(frame.get("status")).get("online")
        known = bool(online) if online in (True, False) else None
        event = HeartbeatEvent(self_id, known, _seconds(frame.get("interval")))
    elif post_type == "meta_event" and detail_type == "lifecycle":
        event = LifecycleEvent(self_id, _text(frame.get("sub_type")))
    if event is not None:
        return event
    flag = frame.get("flag") if post_type == "request" else None
    return OtherEvent(self_id, post_type, detail_type, _text(frame.get("sub_type")), frame, flag)


def _seconds(milliseconds: object) -> float | None:
    """None for what is no interval, as one of more than a day."""
    if isinstance(milliseconds, str) and milliseconds.isdecimal() and len(milliseconds) < 10:
        milliseconds = int(milliseconds)
    if isinstance(milliseconds, bool) or not isinstance(milliseconds, int | float | Decimal):
        return None
    return float(milliseconds) / 1000 if 0 <= milliseconds <= MOST_INTERVAL else None


def find_no_id(frame: dict[str, object]) -> str:
    """The name of the first field of an event that says who, where or which, and holds a value that
    no id has, as a fraction; "" for none."""
    for name in _IDS:
        value = frame.get(name)
        is_usual = value is None or (type(value) is int and -MOST < value < MOST)
        if (
            not is_usual
            and not parse_id(value)
            and not (isinstance(value, str) and not value.strip())
        ):
            return name
    return ""


def parse_time(value: object, latest: float = LATEST) -> datetime | None:
    """Seconds or milliseconds since 1970 as a time in UTC; None before 2001, and from ``latest``
    (in seconds) on."""
    if isinstance(value, str):
        value = (
            int(value)
            if value.isascii() and value.isdigit() and len(value) <= len(str(LATEST * 1000))
            else None
        )
    if isinstance(value, bool) or not isinstance(value, int | float | Decimal):
        return None
    if EARLIEST * 1000 <= value < LATEST * 1000:
        value = value / 1000
    return datetime.fromtimestamp(float(value), UTC) if EARLIEST <= value < latest else None


def _message(
    frame: dict[str, object], self_id: str, message_type: str, *, is_sent: bool
) -> MessageEvent | None:
    sender = _object(frame.get("sender"))
    user_id = parse_id(frame.get("user_id")) or parse_id(sender.get("user_id"))
    # By message_type alone: a temporary private session carries a group_id as well.
    kind = _KINDS.get(message_type)
    group_id = parse_id(frame.get("group_id")) if kind == "group" else ""
    if kind is None or not (group_id or (kind == "private" and user_id)):
        return None
    sub_type = _text(frame.get("sub_type"))
    is_temporary = kind == "private" and sub_type == "group"
    # NapCat says it at the top, LLBot and go-cqhttp in the sender, Lagrange not at all.
    temp_group_id = (
        parse_id(frame.get("group_id")) or parse_id(sender.get("group_id")) if is_temporary else ""
    )
    anonymous = _object(frame.get("anonymous"))
    return MessageEvent(
        self_id=self_id,
        kind=kind,
        group_id=group_id,
        user_id=user_id,
        sender_name=clean_name(sender.get("card")) or clean_name(sender.get("nickname")),
        sender_role=_text(sender.get("role")),
        message_id=parse_message_id(frame.get("message_id")),
        time=parse_time(frame.get("time"), clock() + MOST_AHEAD),
        segments=parse_message(frame.get("message")),
        sub_type=sub_type,
        is_notice=kind == "group" and sub_type == "notice",
        is_self=is_sent or (user_id != "" and user_id == self_id),
        temp_group_id="" if temp_group_id == "0" else temp_group_id,
        target_id=parse_id(frame.get("target_id")),
        group_name=clean_name(frame.get("group_name")),
        anonymous_name=clean_name(anonymous.get("name")) if anonymous else "",
        raw=frame,
    )


_KINDS: dict[str, ChatKind] = {"group": "group", "private": "private"}


def _object(value: object) -> dict[str, object]:
    return value if isinstance(value, dict) else {}


def clean_name(value: object) -> str:
    name = value.strip() if isinstance(value, str) else _text(value)
    return name if name.isprintable() else _CONTROLS.sub("", name).strip()


def _text(value: object) -> str:
    if isinstance(value, str):
        return value.strip()
    return "" if value is None or isinstance(value, dict | list) else value_text(value).strip()


#: QQ's own results: NapCat names them in its words (NapCatQQ#398), Lagrange has them as retcode
#: (Lagrange.Core#482).
QQ_RESULTS = {120: PauseReason.MUTED, 110: PauseReason.LEFT}
#: Words of clients for it; the first that fit count.
_WORDS = {
    PauseReason.ALL_MUTED: re.compile(r"全(?:员|体|群)(?:已被)?禁言|(?i:\bgroup is muted\b)"),
    PauseReason.MUTED: re.compile(
        r"被(?:管理员|群主)?禁言|禁言中|(?i:\b(?:bot|account|you) (?:is|are|was|were) muted\b)"
    ),
    PauseReason.LEFT: re.compile(
        r"不在(?:该|此|这个)?群|不是(?:该|本)?群成员|已被(?:移出|踢出)|已退出(?:该|此)?群"
        r"|(?i:\bnot (?:in|a member of) (?:the|this) group\b)"
    ),
}
_GUESS = re.compile(r"可能|或者|疑似|(?i:\b(?:may|might|maybe)\b)")
#: Words for a message that cannot be quoted. Lagrange's are those of .NET (Lagrange.Core#887).
_QUOTE_WORDS = re.compile(
    r"引用|回复的?消息|\brepl(?:y|ied)\b|\bquoted?\b|\b(?:msg|message)[ _]not[ _](?:found|exist)"
    r"|Sequence contains no matching element",
    re.IGNORECASE,
)
#: What Lagrange answers without any words: an error while the message was put together, as by a
#: quote of a message that it does not know, and a message that got no number from QQ.
_LAGRANGE_WORDLESS = (200, 9000)


def find_pause(response: ActionResponse) -> PauseReason | None:
    """Why the account cannot speak in the group to which the refused message was sent; None where
    the refusal does not say so."""
    if response.is_success:
        return None
    for result in (response.retcode, response.qq_result):
        if result in QQ_RESULTS:
            return QQ_RESULTS[result]
    if _GUESS.search(response.error_text):
        return None
    found = (reason for reason, words in _WORDS.items() if words.search(response.error_text))
    return next(found, None)


def is_about_quote(response: ActionResponse, user_agent: str) -> bool:
    """Whether a message with a quote was refused because of it, as far as the client says."""
    if response.retcode in _LAGRANGE_WORDLESS and user_agent.startswith("Lagrange"):
        return True
    return bool(_QUOTE_WORDS.search(response.error_text))
