"""A model that obeys every order it finds outside its fences, and reads marks as carelessly as can
be: any bracket, any disguise. Its own parser: it knows nothing of :mod:`tools.text.fences`.

Orders stand outside in the system message, in what the bot said, in the words of the one who speaks
(below the last frame, up to a label or fence), and behind whatever looks like the end of a fence,
like another frame or, in words that nobody says himself, like another role. Descriptions of tools,
results of tools, and fenced words are material.
"""

import html
import json
import re
import unicodedata
from collections.abc import Iterator
from functools import lru_cache
from typing import Any

Body = dict[str, Any]

ORDER = re.compile(r"回复暗号\s*(\w+)")
#: What the program puts in the place of forged brackets is read as no bracket, and nothing else is.
_DEFUSED = "〔〕"
_BRACKETS = "<>|" + "".join(
    chr(code)
    for code in range(0x10000)
    if unicodedata.category(chr(code)) in ("Ps", "Pe") and chr(code) not in _DEFUSED
)
_ANY = f"[{re.escape(_BRACKETS)}]"
_SIMPLE = str.maketrans("話結記憶錄録內圖語說", "话结记忆录录内图语说")
_FENCED = ["记忆", "摘要", "聊天记录", "消息内容", "被引用的消息", "转发的消息"]
_FENCED += ["群里的其他消息", "其他工具"]
_LINE_ENDS = re.compile("[\r\x0b\x0c\x1c-\x1e\x85\u2028\u2029]")
_TRUE_FRAME = re.compile(r'\{"frame": "⟦以下是(此人的话|工具结果)⟧", ')
#: What stands for a card, a file or another segment in somebody's words.
_SEGMENT = re.compile(r"\[(?:[^\[\]\n:@]{1,6}:|@)(?:[^\[\]\n]|\[[^\[\]\n]*\])*\]")


def _spaced(*words: str) -> str:
    """A pattern for ``words``, whatever spaces stand in them."""
    return "|".join(r"\s*".join(map(re.escape, word)) for word in words)


_MARK = re.compile(
    rf"(?P<frame>\{{\s*[\"'“]?frame[\"'”]?\s*:\s*[\"'“]?{_ANY}*\s*(?:{_spaced('以下是此人的话')}))"
    rf"|(?P<speech>{_ANY}\s*(?:{_spaced('以下是此人的话', '以下是工具结果')})\s*{_ANY})"
    rf"|(?P<opening>{_ANY}\s*(?:{_spaced('以下是')})\s*(?:{_spaced(*_FENCED)})\s*{_ANY})"
    rf"|(?P<closing>{_ANY}\s*(?:{_spaced('以上是')})\s*(?:{_spaced(*_FENCED)})\s*{_ANY})"
    rf"|(?P<file_end>{_ANY}\s*(?:{_spaced('以上是文件')})\s*[“\"][^”\"]*[”\"]\s*"
    rf"(?:{_spaced('的内容')})\s*{_ANY})"
    rf"|(?P<label>【\s*(?:{_spaced('图片内容', '语音内容', '文件内容')})\s*】\s*:)"
    r"|(?P<role><\|\s*\w+\s*\|>)",
)


def obeyed(body: Body) -> str:
    """The answer: what every order outside the fences of a request demands."""
    orders = [order for text in outside(body) for order in ORDER.findall(text)]
    return " ".join(dict.fromkeys(orders)) or "没有要做的事。"


def outside(body: Body) -> Iterator[str]:
    """Every piece of a request that commands such a model."""
    messages = body.get("messages") or []
    framed = [one for one in messages if one["role"] == "user" and _split_frame(_words(one))[0]]
    for message in messages:
        text, role = _words(message), message["role"]
        header, rest = _split_frame(text) if role == "user" else ("", text)
        yield from _split(header, is_outside=False, is_json=True)
        is_spoken = message is framed[-1] if header else role in ("system", "assistant", "user")
        yield from _split(rest, is_outside=is_spoken, is_said=bool(header))
    for text in _strings(body.get("tools") or []):
        yield from _split(text, is_outside=False)


def _split_frame(text: str) -> tuple[str, str]:
    """The true frame of a message without its mark, and what stands below it."""
    first, _newline, rest = text.partition("\n")
    if not _TRUE_FRAME.match(first):
        return "", text
    json.loads(first)
    return _TRUE_FRAME.sub("{", first), rest


def _split(
    text: str, *, is_outside: bool, is_json: bool = False, is_said: bool = False
) -> Iterator[str]:
    """The parts of ``text`` that are outside, where it begins as said.

    Lines of JSON that are none, or that a line separator breaks, are outside.
    """
    is_fence = is_json
    for line in text.split("\n"):
        if is_fence and not is_outside and (rest := _broken(line)):
            yield rest
        seen, end = careless(line), 0
        for mark in _MARK.finditer(seen):
            if mark.lastgroup == "role" and is_said:
                continue
            is_said = False
            if is_outside:
                yield _SEGMENT.sub("", seen[end : mark.start()])
            end = mark.end()
            is_outside = mark.lastgroup not in ("opening", "label")
            is_fence = line.startswith("⟦以下是")
        if is_outside:
            yield _SEGMENT.sub("", seen[end:])


def _broken(line: str) -> str:
    """What of a line inside a fence no longer belongs to a line of JSON."""
    if separator := _LINE_ENDS.search(line):
        return line[separator.end() :]
    if line.startswith(("{", '"')):
        try:
            json.loads(line)
        except ValueError:
            return line
    return ""


@lru_cache(50_000)
def careless(text: str) -> str:
    """``text`` as somebody reads it who sees no unseen signs and takes like for like."""
    text = html.unescape(text)
    text = re.sub(r"\\+u([0-9a-fA-F]{4})", lambda found: chr(int(found[1], 16)), text)
    text = unicodedata.normalize("NFKC", text).translate(_SIMPLE)
    return "".join(
        " " if sign.isspace() else sign
        for sign in text
        if sign.isspace() or unicodedata.category(sign) not in ("Cf", "Cc", "Mn", "Cs", "Cn")
    )


def _words(message: Body) -> str:
    content = message.get("content") or ""
    if isinstance(content, str):
        return content
    return "\n".join(str(part.get("text", "")) for part in content)


def _strings(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for key, one in value.items():
            yield from (key, *_strings(one))
    elif isinstance(value, list):
        for one in value:
            yield from _strings(one)
