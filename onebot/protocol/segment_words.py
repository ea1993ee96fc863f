"""Segments in the words that the model and the admin read. Pure.

Where clients disagree about a segment, its words are the same.
"""

from collections.abc import Callable
from typing import Any

from onebot.protocol.cards import keep_enclosed, one_line, render_card
from onebot.protocol.values import BASE64, KEPT, json_text, value_text

Data = dict[str, Any]

_CONTACTS = {"group": "群名片", "qq": "好友名片", "friend": "好友名片"}


def segment_words(kind: str, data: Data) -> str:
    """The words of a segment; one of a type without words is shown as its JSON."""
    words = _WORDS.get(kind)
    return words(data) if words else json_text({"type": kind, "data": data})


def _word(data: Data, key: str) -> str:
    return value_text(data.get(key))


def _first(data: Data, *keys: str) -> str:
    """The first of the values under ``keys`` that says anything."""
    return next((word for key in keys if (word := _word(data, key))), "")


def _labelled(label: str, *keys: str) -> Callable[[Data], str]:
    """``[label:words]``, with the first of the values under ``keys`` that says anything."""

    def words(data: Data) -> str:
        said = one_line(_first(data, *keys))
        return f"[{label}:{said}]" if said else f"[{label}]"

    return words


def _plain(text: str) -> Callable[[Data], str]:
    return lambda data: text


def _image(data: Data) -> str:
    # NapCat sends a sticker from the shop as an image that has its number.
    return _sticker(data) if data.get("emoji_id") and _word(data, "summary") else "[图片]"


def _sticker(data: Data) -> str:
    summary = one_line(_word(data, "summary")).strip("[]")
    return f"[表情:{summary}]" if summary else "[表情]"


def _file_name(data: Data) -> str:
    # "name" is FrostAgent's word, "file_name" Lagrange's; NapCat and LLBot put the name into
    # "file".
    file = _word(data, "file")
    name = _first(data, "name", "file_name") or ("" if file.startswith((BASE64, KEPT)) else file)
    return keep_enclosed(name)


def _contact(data: Data) -> str:
    label = _CONTACTS.get(_word(data, "type"), "名片")
    return f"[{label}:{one_line(data.get('id'))}]"


def _share(data: Data) -> str:
    said = f"{one_line(data.get('title'))} {one_line(data.get('url'))}".strip()
    return f"[分享:{said}]"


def _music(data: Data) -> str:
    said = one_line(data.get("title")) or (
        f"{one_line(data.get('type'))} {one_line(_first(data, 'id', 'url'))}".strip()
    )
    return f"[音乐:{said}]"


_forward = _plain("[聊天记录]")

_WORDS: dict[str, Callable[[Data], str]] = {
    "text": lambda data: _word(data, "text"),
    "at": lambda data: f"[@{_word(data, 'qq')}]",
    "face": lambda data: f"[表情:{_word(data, 'id')}]",
    "image": _image,
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
    "contact": _contact,
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
