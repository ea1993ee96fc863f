"""Message segments: the three shapes of ``message`` as one list, and what the agent reads of it.

A segment is ``{"type": str, "data": dict}``; values in ``data`` may be of any JSON
type, for clients send ids as integers, strings and floats alike.

CQ codes: the string form of a message, ``hello [CQ:at,qq=10001]``.

Rules: https://github.com/botuniverse/onebot-11/blob/master/message/string.md.
They are only read. A message is always sent as an array: in a string, words of
the model that look like a code would be carried out by the client.

Whole files inside a frame, as Base64.

Values as OneBot clients send them: ids and numbers kept exact, text that can be stored.

Clients disagree about types: an id is an integer, a digit string or ``3127306807.0``.
Everything here takes ``Decimal`` as well as the ordinary JSON types.
"""

import base64
import html
import json
import os
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, BinaryIO

from agent.domain.types import Mention, MessagePart
from tools.text.fences import neutralize_marks
from tools.text.storable import make_storable

#: Before a file's content, and before the hash of one that came inside a large frame and was kept.
BASE64, KEPT = "base64://", "kept://"
LONGEST_MESSAGE_ID = 128
_ID = re.compile(r"[A-Za-z0-9_-]{1,64}")
_NUMBER = re.compile(r"0|[1-9][0-9]{0,15}")
#: The largest number that every client's JSON reads exactly.
MOST_EXACT = 2**53
# Covers every double; beyond it a number written out is an attack and not a number.
MOST_DIGITS = 400


def parse_id(value: object) -> str:
    """``value`` as the exact text of the id of an account, a person or a group, "" when it cannot
    be one: 64 letters, digits, hyphens and underscores at most."""
    text = parse_handle(value, LONGEST_MESSAGE_ID)
    return text if _ID.fullmatch(text) else ""


def parse_handle(value: object, longest: int) -> str:
    """``value`` as the exact text by which a client knows something, "" when it cannot be that.

    Integers and whole floats become digits, strings are trimmed. Booleans, null,
    fractions, lists, objects and anything over ``longest`` characters are none.
    """
    if isinstance(value, float | Decimal):
        number = plain_number(value)
        value = number if isinstance(number, int) else None
    if isinstance(value, bool) or not isinstance(value, int | str):
        return ""
    text = str(value).strip()
    return text if len(text) <= longest else ""


def id_number(text: str, *, is_message: bool = False) -> int | str:
    """An id as actions take it: as a number, where it is one that clients can read. Those of
    messages are below zero in some clients."""
    digits = text.removeprefix("-") if is_message else text
    is_number = _NUMBER.fullmatch(digits) and int(digits) <= MOST_EXACT
    return int(text) if is_number else text


def parse_message_id(value: object) -> str:
    """A message id that stands for a message: "" for 0 and -1, which clients send when they know
    none."""
    text = parse_handle(value, LONGEST_MESSAGE_ID)
    return "" if text in ("0", "-1") else text


def plain_number(value: float | Decimal) -> int | float | str:
    """An ``int`` where ``value`` is whole, else a ``float``, else text.

    Text is for what a float could only print in scientific notation or not at all.
    """
    exact = value if isinstance(value, Decimal) else Decimal(repr(value))
    if not exact.is_finite() or abs(exact.adjusted()) > MOST_DIGITS:
        return str(exact)
    whole = int(exact)
    if whole == exact:
        return whole
    number = float(exact)
    return format(exact, "f") if "e" in repr(number) else number


def value_text(value: object) -> str:
    """Any JSON value as text: null is "", whole numbers have no point, objects and lists are
    compact JSON."""
    if isinstance(value, str):
        return value
    if value is None:
        return ""
    if isinstance(value, float | Decimal):
        return str(plain_number(value))
    return json_text(value)


def json_text(value: object) -> str:
    """``value`` as compact JSON in which no number is written as ``1.0`` or ``1e5``."""
    return json.dumps(to_plain_json(value), ensure_ascii=False, separators=(",", ":"))


def to_plain_json(value: object) -> object:
    """A copy of ``value`` that ``json.dumps`` takes: every ``Decimal`` and ``float`` through
    :func:`plain_number`."""
    if isinstance(value, dict):
        return {key: to_plain_json(item) for key, item in value.items()}
    if isinstance(value, list):
        return [to_plain_json(item) for item in value]
    if isinstance(value, float | Decimal):
        return plain_number(value)
    return value


#: Bytes that are encoded at a time, a multiple of three: other threads have their turn in between.
_PIECE = 3 * 2**18


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Base64File:
    """The bytes of a file, as pieces of one Base64 text: ``size`` is counted before encoding.

    Stands for the text ``base64://…`` among an action's parameters. It is put into the
    frame behind the JSON encoder's back, which would hold every other thread up for
    three milliseconds a MiB.
    """

    pieces: tuple[str, ...]
    size: int

    @property
    def length(self) -> int:
        """Characters of the Base64 text."""
        return sum(map(len, self.pieces))


def encode_base64(content: bytes) -> Base64File:
    """``content`` as Base64. Takes about two milliseconds a MiB."""
    starts = range(0, len(content), _PIECE)
    return Base64File(
        tuple(_text(content[start : start + _PIECE]) for start in starts), len(content)
    )


def read_base64(file: BinaryIO, room: int) -> Base64File | None:
    """The whole of ``file`` as Base64; None when it has more than ``room`` bytes.

    What is read is counted, whatever size it was said to have: it may grow meanwhile.
    """
    pieces, size = list[str](), 0
    if os.fstat(file.fileno()).st_size > room:
        return None
    while piece := _full_piece(file):
        size += len(piece)
        if size > room:
            return None
        pieces.append(_text(piece))
    return Base64File(tuple(pieces), size)


def _full_piece(file: BinaryIO) -> bytes:
    """The next :data:`_PIECE` bytes; fewer only at the end, for a short one in between would be
    padded."""
    piece = b""
    while len(piece) < _PIECE and (more := file.read(_PIECE - len(piece))):
        piece += more
    return piece


def _text(content: bytes) -> str:
    return base64.b64encode(content).decode("ascii")


Segment = dict[str, Any]
OPENING = "[CQ:"
MAX_SEGMENTS = 10_000
_TYPE = re.compile(r"[A-Za-z0-9_.-]+")


def parse_cq(text: str) -> list[Segment]:
    """``text`` as segments, in linear time whatever it holds.

    An incomplete code (no closing bracket before the next code, no type) is text. Adjacent text is
    one segment, and there are no empty text segments. After ``MAX_SEGMENTS``, more than any real
    message has, the rest is left as text.
    """
    segments: list[Segment] = []
    text_from = 0
    opening = text.find(OPENING)
    while opening >= 0 and len(segments) <= MAX_SEGMENTS:
        following = text.find(OPENING, opening + len(OPENING))
        # The search ends at the next code, so that no text is scanned again for every code before
        # it.
        closing = text.find("]", opening, following if following >= 0 else len(text))
        code = _parse_code(text[opening + len(OPENING) : closing]) if closing >= 0 else None
        if code:
            segments += _text_segment(text[text_from:opening])
            segments.append(code)
            text_from = closing + 1
        opening = following
    return segments + _text_segment(text[text_from:])


def _parse_code(body: str) -> Segment | None:
    name, _, parameters = body.partition(",")
    if not _TYPE.fullmatch(name):
        return None
    pairs = (parameter.partition("=") for parameter in parameters.split(","))
    return {"type": name, "data": {key: _unescape(value) for key, _, value in pairs if key}}


def _text_segment(text: str) -> list[Segment]:
    return [{"type": "text", "data": {"text": _unescape(text)}}] if text else []


def _unescape(text: str) -> str:
    if "&" not in text:
        return text
    text = text.replace("&#91;", "[").replace("&#93;", "]").replace("&#44;", ",")
    return text.replace("&amp;", "&")  # last: "&amp;#91;" is the text "&#91;"


__all__ = [
    "Segment",
    "find_mentions",
    "mentions_account",
    "parse_id",
    "parse_message",
    "parse_told",
    "quoted_id",
    "render_text",
    "segments_from_parts",
    "spoken_text",
]


# Segments in the words that the model and the admin read. Pure.
#
# Where clients disagree about a segment, its words are the same.

# Cards: what clients share with each other as JSON or XML, read as far as a title. Pure.
#
# https://github.com/botuniverse/onebot-11/blob/master/message/segment.md (json, xml); what is in
# them is QQ's own and has no description.

#: Characters of a card that are read for a title, and that are shown of one without a title.
LONGEST_CARD, SHOWN_CARD = 2**18, 2_000
#: Characters of a title, or of other words beside a message's own.
LONGEST_TITLE = 200

_OPENING, _CLOSING = "[［﹇", "]］﹈"
_BRACKET = re.compile(f"[{re.escape(_OPENING + _CLOSING)}]")
_ENCLOSED = str.maketrans(dict.fromkeys(_OPENING, "〔") | dict.fromkeys(_CLOSING, "〕"))
_XML_TITLE = re.compile(r"<title\b[^<>]*>\s*(?:<!\[CDATA\[)?([^<>\]]*)", re.IGNORECASE)
_XML_PROMPT = re.compile(r"""\bbrief=["']([^"'<>]*)""", re.IGNORECASE)
#: Small programs have their own name for a title; what is shared is in the description.
_PROGRAM = "com.tencent.miniapp"


def one_line(value: object, longest: int = LONGEST_TITLE) -> str:
    """A JSON value as words on one line, cut where they are too long, to stand between brackets."""
    words = " ".join(make_storable(value_text(value)[: 2 * longest]).split())
    return keep_enclosed(words if len(words) <= longest else f"{words[:longest]}…")


def keep_enclosed(words: str) -> str:
    """``words`` on one line and, where one of their square brackets has no counterpart, with others
    in place of all: what stands behind ``]`` would be read as said by the one who shares them."""
    words = " ".join(words.splitlines())
    depth = 0
    for sign in _BRACKET.findall(neutralize_marks(words)):
        depth += 1 if sign in _OPENING else -1
        if depth < 0:
            break
    return words.translate(_ENCLOSED) if depth else words


def render_card(kind: str, data: object) -> str:
    """A card by its title or its prompt; by the beginning of its text where it has neither."""
    title = _json_title(data) if kind == "json" else _xml_title(value_text(data))
    if title:
        return f"[卡片:{title}]"
    text = value_text(data)
    shown = f"{text[:SHOWN_CARD]}…" if len(text) > SHOWN_CARD else text
    return f"[{kind}:{keep_enclosed(shown) if ']' in shown else shown}]"


def _json_title(data: object) -> str:
    if isinstance(data, str):
        try:
            data = json.loads(data) if len(data) <= LONGEST_CARD else None
        except (ValueError, RecursionError):
            return ""
    if not isinstance(data, dict):
        return ""
    # What ``meta`` holds stands under names that differ from card to card.
    held = meta.values() if isinstance(meta := data.get("meta"), dict) else ()
    views = [value for value in held if isinstance(value, dict)]
    title = next((found for view in views if (found := _words(view.get("title")))), "")
    if value_text(data.get("app")).startswith(_PROGRAM):
        about = next((found for view in views if (found := _words(view.get("desc")))), "")
        title = f"{title} {about}".strip()
    return title or _words(data.get("title")) or _words(data.get("prompt"))


def _words(value: object) -> str:
    return one_line(value) if isinstance(value, str | int | float) else ""


def _xml_title(text: str) -> str:
    text = text[:LONGEST_CARD]
    for pattern in (_XML_TITLE, _XML_PROMPT):
        for found in pattern.finditer(text):
            if title := one_line(html.unescape(found[1])):
                return title
    return ""


_CONTACTS = {"group": "群名片", "qq": "好友名片", "friend": "好友名片"}


def segment_words(kind: str, data: Segment) -> str:
    """The words of a segment; one of a type without words is shown as its JSON."""
    words = _WORDS.get(kind)
    return words(data) if words else json_text({"type": kind, "data": data})


def _first(data: Segment, *keys: str) -> str:
    """The first of the values under ``keys`` that says anything."""
    return next((word for key in keys if (word := _word(data, key))), "")


def _labelled(label: str, *keys: str) -> Callable[[Segment], str]:
    """``[label:words]``, with the first of the values under ``keys`` that says anything."""

    def words(data: Segment) -> str:
        said = one_line(_first(data, *keys))
        return f"[{label}:{said}]" if said else f"[{label}]"

    return words


def _plain(text: str) -> Callable[[Segment], str]:
    return lambda data: text


def _sticker(data: Segment) -> str:
    summary = one_line(_word(data, "summary")).strip("[]")
    return f"[表情:{summary}]" if summary else "[表情]"


def _file_name(data: Segment) -> str:
    # "name" is FrostAgent's word, "file_name" Lagrange's; NapCat and LLBot put the name into
    # "file".
    file = _word(data, "file")
    name = _first(data, "name", "file_name") or ("" if file.startswith((BASE64, KEPT)) else file)
    return keep_enclosed(name)


def _share(data: Segment) -> str:
    said = f"{one_line(data.get('title'))} {one_line(data.get('url'))}".strip()
    return f"[分享:{said}]"


def _music(data: Segment) -> str:
    said = one_line(data.get("title")) or (
        f"{one_line(data.get('type'))} {one_line(_first(data, 'id', 'url'))}".strip()
    )
    return f"[音乐:{said}]"


_forward = _plain("[聊天记录]")

_WORDS: dict[str, Callable[[Segment], str]] = {
    "text": lambda data: _word(data, "text"),
    "at": lambda data: f"[@{_word(data, 'qq')}]",
    "face": lambda data: f"[表情:{_word(data, 'id')}]",
    # NapCat sends a sticker from the shop as an image that has its number.
    "image": lambda data: (
        _sticker(data) if data.get("emoji_id") and _word(data, "summary") else "[图片]"
    ),
    "record": _plain("[语音]"),
    "video": _plain("[视频]"),
    "file": lambda data: f"[文件:{_file_name(data)}]",
    "reply": lambda data: f"[回复:{_word(data, 'id')}]",
    "location": lambda data: (
        f"[位置:{_word(data, 'lat')},{_word(data, 'lon')} {keep_enclosed(_word(data, 'title'))}]"
    ),
    "json": lambda data: render_card("json", data.get("data")),
    "xml": lambda data: render_card("xml", data.get("data")),
    # Not in the table of the contract.
    "mface": _sticker,
    "marketface": _sticker,
    "dice": _labelled("骰子", "result", "value"),
    "rps": _labelled("猜拳", "result", "value"),
    "markdown": lambda data: _word(data, "content"),
    "contact": lambda data: (
        f"[{_CONTACTS.get(_word(data, 'type'), '名片')}:{one_line(data.get('id'))}]"
    ),
    "share": _share,
    "music": _music,
    "poke": _plain("[戳一戳]"),
    "shake": _plain("[窗口抖动]"),
    "forward": _forward,
    "node": _forward,
    "longmsg": _plain("[长消息]"),
    "anonymous": _plain("[匿名]"),
    "keyboard": _plain("[按钮]"),
    "inline": _plain("[按钮]"),
    "inline_keyboard": _plain("[按钮]"),
    "redbag": _labelled("红包", "title"),
    "gift": _labelled("礼物", "title", "name"),
    "tts": _labelled("朗读", "text"),
    "cardimage": _plain("[图片]"),
    "rich": _labelled("卡片", "title", "prompt", "text"),
    "miniapp": lambda data: render_card("json", data.get("data", data)),
    "flashtransfer": _labelled("闪传文件", "title", "name"),
    "flash_file": _labelled("闪传文件", "title", "name"),
    "onlinefile": _labelled("在线文件", "file_name", "fileName", "name"),
}


#: Characters of a mentioned person's name that are read.
LONGEST_NAME = 200
#: Segments of one message that a client tells of when it is asked; nobody is shown more.
MOST_TOLD = 500


def parse_message(value: object) -> list[Segment]:
    """The ``message`` of an event as segments: an array, a CQ string or one segment object.

    Anything else is an empty message; items that are no segments are left out.
    """
    if isinstance(value, str):
        return parse_cq(value)
    items = value if isinstance(value, list) else [value]
    return [segment for item in items if (segment := _segment(item))]


def parse_told(value: object) -> list[Segment]:
    """The same for a message in the answer to a question: of a very long one, its beginning."""
    return parse_message(value[:MOST_TOLD] if isinstance(value, list) else value)[:MOST_TOLD]


def render_text(segments: Sequence[Segment], self_id: str) -> str:
    """The message as the model reads it, the bot's own mention dropped and the ends trimmed.

    See :mod:`onebot.protocol.segments`.
    """
    return "".join(
        segment_words(segment["type"], segment["data"])
        for segment in segments
        if segment["type"] != "at" or not _is_mention(segment, self_id)
    ).strip()


def spoken_text(segments: Sequence[Segment]) -> str:
    """The joined ``text`` segments alone, untrimmed: what the sender typed."""
    return "".join(
        _word(segment["data"], "text") for segment in segments if segment["type"] == "text"
    )


def mentions_account(segments: Sequence[Segment], self_id: str) -> bool:
    """Whether the message mentions ``self_id`` itself; a mention of all does not count."""
    return any(segment["type"] == "at" and _is_mention(segment, self_id) for segment in segments)


def find_mentions(segments: Sequence[Segment], self_id: str) -> tuple[Mention, ...]:
    """The people that the message mentions, each once, in order; neither ``self_id`` nor everybody.

    NapCat writes "0" where it does not know whom.
    """
    people: dict[str, str] = {}
    for segment in segments:
        if segment["type"] == "at":
            user_id = parse_id(segment["data"].get("qq"))
            if user_id not in ("", "0", "all", self_id):
                people[user_id] = people.get(user_id) or _word(segment["data"], "name")[
                    :LONGEST_NAME
                ].strip().removeprefix("@")
    return tuple(Mention(user_id, name) for user_id, name in people.items())


def quoted_id(segments: Sequence[Segment]) -> str:
    """The id of the message that the first ``reply`` segment quotes.

    "" when nothing is quoted, also for the "0" some clients send when they do not know what.
    """
    ids = (
        parse_handle(segment["data"].get("id"), LONGEST_MESSAGE_ID)
        for segment in segments
        if segment["type"] == "reply"
    )
    found = next(ids, "")
    return "" if found == "0" else found


def segments_from_parts(parts: Sequence[MessagePart]) -> list[Segment]:
    """Parts of a ``send_message`` call as segments to send; every value is a string.

    Strings because some clients (Lagrange) refuse a whole call over one integer.
    """
    return [{"type": kind, "data": data} for kind, data in map(_from_part, parts)]


def _segment(item: object) -> Segment | None:
    if not isinstance(item, dict):
        return None
    kind, data = item.get("type"), item.get("data")
    if not isinstance(kind, str) or not kind:
        return None
    return {"type": kind, "data": data if isinstance(data, dict) else {}}


def _word(data: Segment, key: str) -> str:
    return value_text(data.get(key))


def _is_mention(segment: Segment, self_id: str) -> bool:
    return (
        segment["type"] == "at" and self_id != "" and parse_id(segment["data"].get("qq")) == self_id
    )


def _from_part(part: MessagePart) -> tuple[str, dict[str, str]]:
    match part.type:
        case "plain":
            return "text", {"text": part.text}
        case "mention_user":
            return "at", {"qq": part.mention_user_id}
        case "quote":
            return "reply", {"id": part.message_id}
        case "face" | "music":
            return part.type, dict(part.details)
        case media:
            return media, {"file": part.url or f"file://{part.path}"}
