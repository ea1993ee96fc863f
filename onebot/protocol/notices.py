"""Notices: what clients report besides messages, their dialects made alike; and what keeps an
account from speaking in a group, as they report it."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from time import time as clock
from typing import Literal

from agent.domain.events import WORDS_CHARS, ChatNotice, EventKind
from agent.domain.types import ChatAddress
from onebot.protocol.events import MOST_AHEAD, OtherEvent, clean_name, parse_time
from onebot.protocol.segments import parse_id, parse_message_id

#: The longest mute that is meant, in seconds; a client may write any number.
MOST_SECONDS = 2**31 - 1
#: Ids of emoji that are kept of one reaction.
MOST_EMOJI = 10
#: Ids that are nobody's.
_NOBODY = ("0", "all")
#: Which way, by what clients call it; the first of each is meant where they say nothing known.
_CHANGES = {
    EventKind.JOIN: {"": "", "approve": "approve", "invite": "invite"},
    EventKind.LEAVE: {
        "leave": "leave",
        "kick": "kick",
        "kick_me": "kick",
        "disband": "disband",
        "group_dismiss": "disband",  # LLBot
    },
    EventKind.MUTE: {"ban": "ban", "lift_ban": "lift"},
    EventKind.ADMIN: {"": "", "set": "set", "unset": "unset"},
    EventKind.ESSENCE: {"add": "add", "delete": "remove", "remove": "remove"},
    EventKind.REACTION: {"add": "add", "remove": "remove", "delete": "remove"},
    EventKind.ACCOUNT: {"bot_offline": "offline", "bot_online": "online"},
    EventKind.HONOR: {
        honor: honor
        for honor in (
            *("", "lucky_king", "talkative", "performer", "legend", "strong_newbie", "emotion"),
        )
    },
}
#: Fields in which clients say the new name of a thing, or else words of theirs, by kind.
_WORDS = {
    EventKind.TITLE: ("title", "title_new"),
    EventKind.CARD: ("card_new", "card"),
    EventKind.NAME: ("name_new", "name", "group_name"),
    EventKind.ACCOUNT: ("message",),
}
_KINDS = {
    "poke": EventKind.POKE,
    "group_increase": EventKind.JOIN,
    "group_decrease": EventKind.LEAVE,
    "group_dismiss": EventKind.LEAVE,
    "group_recall": EventKind.RECALL,
    "friend_recall": EventKind.RECALL,
    "group_ban": EventKind.MUTE,
    "group_admin": EventKind.ADMIN,
    "title": EventKind.TITLE,
    "group_title": EventKind.TITLE,
    "group_card": EventKind.CARD,
    "group_upload": EventKind.UPLOAD,
    "offline_file": EventKind.UPLOAD,
    "essence": EventKind.ESSENCE,
    "honor": EventKind.HONOR,
    "lucky_king": EventKind.HONOR,
    "group_msg_emoji_like": EventKind.REACTION,
    "reaction": EventKind.REACTION,
    "group_name": EventKind.NAME,
    "group_name_change": EventKind.NAME,
    "friend_add": EventKind.FRIEND,
    "bot_offline": EventKind.ACCOUNT,
    "bot_online": EventKind.ACCOUNT,
}
_PRIVATE = frozenset({"friend_recall", "friend_add", "offline_file"})
_NOT_OF_GROUPS = _PRIVATE | {"bot_offline", "bot_online"}

Frame = Mapping[str, object]


def read_notice(event: OtherEvent, self_id: str) -> ChatNotice | None:
    """What ``event``, received by the account ``self_id``, says; None for what is no notice, and
    for notices that there are no words for. Never raises."""
    name = event.sub_type if event.detail_type == "notify" else event.detail_type
    kind = _KINDS.get(name)
    if event.post_type != "notice" or kind is None:
        return None
    frame, changes = event.raw, _CHANGES.get(kind, {"": ""})
    said = (name, event.sub_type, _line(frame.get("honor_type")))
    change = next((one for one in said if one and one in changes), next(iter(changes)))
    words = (_line(frame.get(field)) for field in _WORDS.get(kind, ()))
    notice = ChatNotice(
        kind,
        _chat(frame, self_id, name),
        changes[change],
        user_id=_person(frame, "sender_id" if kind == EventKind.ESSENCE else "user_id"),
        operator_id=_person(frame, "operator_id"),
        message_id=parse_message_id(frame.get("message_id")),
        words=next(filter(None, words), ""),
        happened_at=parse_time(frame.get("time"), clock() + MOST_AHEAD),
    )
    reader = _READERS.get(kind)
    return reader(notice, frame, self_id) if reader else notice


def _poke(notice: ChatNotice, frame: Frame, self_id: str) -> ChatNotice:
    user_id, sender_id = notice.user_id, _person(frame, "sender_id")
    if not _is_in_group(notice):  # NapCat: user_id is the peer
        user_id, sender_id = sender_id, user_id
    return replace(notice, user_id=user_id or sender_id, target_id=_person(frame, "target_id"))


def _leave(notice: ChatNotice, frame: Frame, self_id: str) -> ChatNotice:
    if notice.change == "disband":  # LLBot has its owner as the user
        by = notice.operator_id or ("" if notice.user_id == self_id else notice.user_id)
        return replace(notice, user_id=self_id, operator_id=by)
    return replace(notice, user_id=self_id) if frame.get("sub_type") == "kick_me" else notice


def _mute(notice: ChatNotice, frame: Frame, self_id: str) -> ChatNotice:
    """Of the whole group it is one of user 0, for -1 (Lagrange, LLBot) or 0 seconds."""
    duration = parse_id(frame.get("duration")) if notice.user_id else ""
    seconds = min(int(duration), MOST_SECONDS) if duration.isdigit() else None
    if notice.change == "lift" or seconds == 0:
        return replace(notice, change="lift")
    return replace(notice, seconds=seconds)


def _upload(notice: ChatNotice, frame: Frame, self_id: str) -> ChatNotice:
    file = frame.get("file")
    return replace(notice, words=_line(file.get("name")) if isinstance(file, dict) else "")


def _honor(notice: ChatNotice, frame: Frame, self_id: str) -> ChatNotice:
    if notice.change != "lucky_king":
        return notice
    king = _person(frame, "target_id")  # the user gave the red packet
    return replace(notice, user_id=king, operator_id=notice.user_id)


def _reaction(notice: ChatNotice, frame: Frame, self_id: str) -> ChatNotice:
    """NapCat and LLBot have a list and ``is_add``, Lagrange a code, and who did it as operator."""
    likes = frame.get("likes")
    codes = likes[:MOST_EMOJI] if isinstance(likes, list) else [{"emoji_id": frame.get("code")}]
    found = (_line(one.get("emoji_id")) for one in codes if isinstance(one, dict))
    is_removed = notice.change == "remove" or frame.get("is_add") in (False, "false")
    return replace(
        notice,
        change="remove" if is_removed else "add",
        user_id=notice.user_id or notice.operator_id,
        operator_id="",
        words=" ".join(filter(None, found))[:WORDS_CHARS],
    )


_READERS: dict[EventKind, Callable[[ChatNotice, Frame, str], ChatNotice]] = {
    EventKind.POKE: _poke,
    # Bridges of official bots tell of the bot's own joining alone, and without saying who.
    EventKind.JOIN: lambda notice, frame, self_id: (
        replace(notice, user_id=self_id) if frame.get("user_id") in (None, "") else notice
    ),
    EventKind.LEAVE: _leave,
    EventKind.RECALL: lambda notice, *_: (
        notice if _is_in_group(notice) else replace(notice, operator_id=notice.user_id)
    ),
    EventKind.MUTE: _mute,
    EventKind.NAME: lambda notice, *_: replace(
        notice, user_id="", operator_id=notice.operator_id or notice.user_id
    ),
    EventKind.UPLOAD: _upload,
    EventKind.HONOR: _honor,
    EventKind.REACTION: _reaction,
}


def _is_in_group(notice: ChatNotice) -> bool:
    return notice.chat is not None and notice.chat.kind == "group"


def _chat(frame: Frame, self_id: str, name: str) -> ChatAddress | None:
    """A private chat is the one with whoever is not the account itself."""
    group_id = "" if name in _NOT_OF_GROUPS else _person(frame, "group_id")
    if group_id:
        return ChatAddress(self_id, "group", group_id)
    if name != "poke" and name not in _PRIVATE:  # of no chat, or the client does not say of which
        return None
    people = (_person(frame, field) for field in ("user_id", "target_id", "sender_id", "peer_id"))
    peer_id = next((one for one in people if one and one != self_id), "")
    return ChatAddress(self_id, "private", peer_id) if peer_id else None


def _person(frame: Frame, field: str) -> str:
    text = parse_id(frame.get(field))
    return "" if text in _NOBODY else text


def _line(value: object) -> str:
    return clean_name(value[:WORDS_CHARS] if isinstance(value, str) else value)[:WORDS_CHARS]


SpeechChange = Literal["muted", "unmuted", "all_muted", "all_unmuted", "left", "joined", "promoted"]
#: What happened to the account itself, by kind and which way, "" for any other.
_SPEECH: dict[tuple[EventKind, str], SpeechChange] = {
    (EventKind.MUTE, "ban"): "muted",
    (EventKind.MUTE, "lift"): "unmuted",
    (EventKind.LEAVE, ""): "left",
    (EventKind.JOIN, ""): "joined",
    (EventKind.ADMIN, "set"): "promoted",
}


def find_speech_change(notice: ChatNotice, chat: ChatAddress) -> SpeechChange | None:
    """What a notice of ``chat`` says of the account's own speech; None where that is nothing."""
    kind = notice.kind
    if chat.kind != "group":
        return None
    if kind == EventKind.MUTE and not notice.user_id:
        return "all_unmuted" if notice.change == "lift" else "all_muted"
    change = _SPEECH.get((kind, notice.change)) or _SPEECH.get((kind, ""))
    return change if notice.user_id == chat.account else None
