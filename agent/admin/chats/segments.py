"""A message as people read it, from its recorded segments. Pure.

Clients write segments as they like, and people send what they like: nothing in them is believed to
be there, or to have a certain type.
"""

import html
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal
from urllib.parse import urlsplit

from agent.admin.chats.faces import face_words
from tools.text.readable import drop_surrogates
from tools.text.visible import escape_direction_chars

PieceKind = Literal["text", "mention", "face", "card", "note", "media", "forward"]

#: Segments of one message that are shown; messages of a forward; how deep forwards stand in each
#: other.
MOST_SEGMENTS, MOST_NODES, DEPTH = 200, 50, 3
#: Characters of a card that are read for its title; of one of its lines.
LONGEST_CARD, LONGEST_LINE = 2**16, 300

MEDIA = frozenset({"image", "record", "video", "file"})
_STICKERS = frozenset({"mface", "marketface"})
#: Segments that are shown as one word, with the first of the named values that says anything.
_LABELS: dict[str, tuple[str, ...]] = {
    "dice": ("result", "value"),
    "rps": ("result", "value"),
    "location": ("title", "content", "address"),
    "contact": ("id",),
    "music": ("title", "type"),
    "redbag": ("title",),
    "gift": ("title", "name"),
    "tts": ("text",),
    "poke": ("name",),
    "shake": (),
    "anonymous": (),
    "keyboard": (),
    "longmsg": (),
}
_XML_TITLE = re.compile(r"<title\b[^<>]*>\s*(?:<!\[CDATA\[)?([^<>\]]*)", re.IGNORECASE)
_XML_BRIEF = re.compile(r"""\bbrief=["']([^"'<>]*)""", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class ForwardLine:
    """One message of a forward: who, and what in one line."""

    name: str
    words: str


@dataclass(frozen=True, slots=True)
class Piece:
    """One part of a message, in its order.

    ``text`` is what it says: the words, the name of who is mentioned, a face, the title of a card,
    the name of a file, what a note such as a dice came to. ``label`` is the type of a segment
    (``image``, ``record``, ``dice`` …), and ``detail`` what a card says below its title, or the
    file of a medium as it is on record.
    """

    kind: PieceKind
    text: str = ""
    label: str = ""
    detail: str = ""
    place: int = 0
    """Of a medium: its position among the segments."""
    lines: tuple[ForwardLine, ...] = ()


def render_segments(segments: object, names: Mapping[str, str]) -> list[Piece]:
    """The pieces of a message; ``names`` of people by their ids. Quotes are left out: they stand
    above a message. Words that follow each other are one piece."""
    pieces: list[Piece] = []
    for place, (kind, data) in enumerate(_read(segments)):
        piece = _piece(kind, data, place, names)
        if piece is None:
            continue
        if piece.kind == "text" and pieces and pieces[-1].kind == "text":
            pieces[-1] = Piece("text", pieces[-1].text + piece.text)
        else:
            pieces.append(piece)
    return pieces


def _read(segments: object) -> Iterator[tuple[str, dict[str, Any]]]:
    for segment in segments[:MOST_SEGMENTS] if isinstance(segments, list) else ():
        if isinstance(segment, dict) and isinstance(kind := segment.get("type"), str):
            yield kind, _dict(segment.get("data"))


def _piece(
    kind: str, data: Mapping[str, Any], place: int, names: Mapping[str, str]
) -> Piece | None:
    if kind in ("text", "markdown"):
        return Piece("text", _text(data.get("text", data.get("content"))))
    if kind == "reply":
        return None
    if kind == "at":
        return Piece("mention", _mention(data, names))
    if kind == "face":
        told = _line(_dict(data.get("raw")).get("faceText"))
        return Piece("face", face_words(_line(data.get("id")), told))
    if kind in MEDIA:
        return _medium(kind, data, place)
    if kind in _STICKERS:
        return Piece("media", _line(data.get("summary")).strip("[]"), "image", place=place)
    if kind in ("forward", "node"):
        content = data if kind == "node" else data.get("content")
        return Piece("forward", label=kind, lines=tuple(_forwarded(content, names, DEPTH)))
    if kind in ("json", "miniapp", "rich", "xml", "share"):
        return _card(kind, data)
    return Piece("note", _first(data, _LABELS.get(kind, ("title", "text", "name"))), kind)


def _mention(data: Mapping[str, Any], names: Mapping[str, str]) -> str:
    who = _line(data.get("qq"))
    if who == "all":
        return "@全体成员"
    return f"@{_line(data.get('name')).removeprefix('@') or names.get(who) or who}"


def _medium(kind: str, data: Mapping[str, Any], place: int) -> Piece:
    file = _line(data.get("file"))
    if kind == "file":
        name = _first(data, ("name", "file_name")) or file.rpartition("/")[2]
        return Piece("media", name, kind, file, place)
    return Piece("media", _line(data.get("summary")).strip("[]"), kind, file, place)


def _forwarded(content: object, names: Mapping[str, str], depth: int) -> Iterator[ForwardLine]:
    """The messages of a forward, in whatever form a client tells it."""
    if isinstance(content, dict):
        content = [content]
    for node in content[:MOST_NODES] if isinstance(content, list) else ():
        if not isinstance(node, dict):
            continue
        data = _dict(node.get("data")) or node
        said = data.get("content", data.get("message"))
        sender = _dict(data.get("sender"))
        name = _first(data, ("nickname", "name")) or _first(sender, ("card", "nickname"))
        yield ForwardLine(name, plain_words(said, names, depth - 1))


def plain_words(segments: object, names: Mapping[str, str], depth: int = DEPTH) -> str:
    """A message as one line of text, such as a list or a quote shows it."""
    if isinstance(segments, str):
        return _line(segments)
    if depth <= 0:
        return "…"
    pieces = render_segments(segments, names)
    return _line("".join(_plain(piece) for piece in pieces))


def _plain(piece: Piece) -> str:
    if piece.kind in ("text", "face"):
        return piece.text
    if piece.kind == "mention":
        return f"{piece.text} "
    return f"[{piece.text or piece.label}]"


# --- Cards ----------------------------------------------------------------------


def _card(kind: str, data: Mapping[str, Any]) -> Piece:
    """A card by its title, what it says below, and the host that it leads to."""
    if kind == "xml":
        return Piece("card", _xml_title(str(data.get("data", ""))[:LONGEST_CARD]), kind)
    if kind == "share":
        about = " ".join(filter(None, (_line(data.get("content")), _host(data.get("url")))))
        return Piece("card", _line(data.get("title")), kind, about)
    content = _parsed(data.get("data", data))
    views = _views(content)
    title = _first_of(views, ("title",)) or _first(content, ("title", "prompt", "desc", "text"))
    hosts = (_host(view.get(key)) for view in views for key in ("jumpUrl", "qqdocurl", "url"))
    host = next(filter(None, hosts), "")
    below = (_first_of(views, ("desc",)), _first_of(views, ("tag", "source_name")), host)
    return Piece("card", title, kind, " · ".join(one for one in below if one and one != title))


def _parsed(content: object) -> Mapping[str, Any]:
    if isinstance(content, str):
        try:
            content = json.loads(content) if len(content) <= LONGEST_CARD else None
        except (ValueError, RecursionError):
            return {}
    return content if isinstance(content, dict) else {}


def _views(card: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    meta = card.get("meta")
    values = meta.values() if isinstance(meta, dict) else ()
    return [value for value in values if isinstance(value, dict)]


def _first_of(views: Sequence[Mapping[str, Any]], keys: tuple[str, ...]) -> str:
    return next((found for view in views if (found := _first(view, keys))), "")


def _xml_title(text: str) -> str:
    found = _XML_TITLE.search(text) or _XML_BRIEF.search(text)
    return _line(html.unescape(found[1])) if found else ""


def _host(address: object) -> str:
    text = _line(address)
    try:
        return urlsplit(text if "//" in text else f"//{text}").hostname or ""
    except ValueError:
        return ""


# --- Values ---------------------------------------------------------------------


def _dict(value: object) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _first(data: Mapping[str, Any], keys: Sequence[str]) -> str:
    return next((word for key in keys if (word := _line(data.get(key)))), "")


def _text(value: object) -> str:
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        return ""
    return escape_direction_chars(drop_surrogates(str(value)))


def _line(value: object) -> str:
    text = " ".join(_text(value)[: 2 * LONGEST_LINE].split())
    return text if len(text) <= LONGEST_LINE else f"{text[:LONGEST_LINE]}…"
