"""The question to an owner in the chat before a call is made. Pure.

Names and values come from the model, and so from anyone who talks to it: a value is one line of
JSON in which invisible characters are escaped, and nothing in it reads like the word that approves.
"""

import json
import re
from dataclasses import dataclass
from typing import Any

from agent.domain.approval_replies import VERBS
from tools.text.visible import escape_invisible_chars

#: Arguments that are shown; characters of a name, and of a value: of its beginning and its end
#: where it is longer.
ARGUMENTS, NAME_CHARS, VALUE_CHARS, HEAD_CHARS, TAIL_CHARS = 12, 64, 200, 120, 60
_BROKEN_ESCAPE = re.compile(r"\\[A-Za-z0-9]{0,9}\Z")
_PLAIN_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]*")
_IMITATION = re.compile(rf"(?:{'|'.join(VERBS)})(?=[^\d\n]{{0,12}}\d)", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class ArgumentLines:
    """Arguments as lines; ``is_cut``: some of it is not in them."""

    lines: tuple[str, ...]
    is_cut: bool


def format_argument_lines(arguments: dict[str, Any]) -> ArgumentLines:
    """``arguments``, each by its name on a line of its own."""
    lines, is_cut = list[str](), len(arguments) > ARGUMENTS
    for name, value in list(arguments.items())[:ARGUMENTS]:
        title, is_name_cut = _shortened(
            name if _PLAIN_NAME.fullmatch(name) else _json(name), NAME_CHARS
        )
        text, is_value_cut = _shortened(
            _json(value), VALUE_CHARS, len(value) if isinstance(value, str) else None
        )
        is_cut |= is_name_cut or is_value_cut
        lines.append(f"· {title} = {text}")
    if len(arguments) > ARGUMENTS:
        lines.append(f"…（还有 {len(arguments) - ARGUMENTS} 个参数没有显示）")
    return ArgumentLines(tuple(lines), is_cut)


def build_approval_question(
    tool_name: str, arguments: dict[str, Any], code: str, origin: str = ""
) -> str:
    """The question about one call. What was cut is not to be approved where it cannot be read.
    ``origin`` is told where it is asked elsewhere."""
    seen = format_argument_lines(arguments)
    return "\n".join(
        [
            f"需要机器人主人批准（编号 {code}）：调用工具 {tool_name}",
            *([origin] if origin else []),
            f"参数（{len(arguments)} 个）：",
            *seen.lines,
            "参数没有全部显示，不能在会话中批准：请主人在管理后台查看全部参数后处理，"
            f"也可回复「拒绝 {code}」。"
            if seen.is_cut
            else f"主人可回复「批准 {code}」或「拒绝 {code}」，"
            "也可引用这条消息只回复「批准」或「拒绝」，或在管理后台处理。",
        ]
    )


def describe_origin(kind: str, peer: str, title: str, sender: str, sender_name: str) -> str:
    """Where a call was asked for, and by whom. Titles and names are anyone's words."""
    place = f"群聊{_name(title)}（{peer}）" if kind == "group" else "私聊"
    return f"来自{place}，提出者{_name(sender_name)}（{sender}）"


def _name(text: str) -> str:
    return f" {_shortened(_json(text), NAME_CHARS)[0]}" if text else ""


def _json(value: Any) -> str:
    try:
        return json.dumps(value, ensure_ascii=False)
    except RecursionError:
        return "…" * (VALUE_CHARS + 1)  # deeper than can be written: more than can be shown


def _shortened(text: str, limit: int, length: int | None = None) -> tuple[str, bool]:
    """``text`` made visible, on at most about ``limit`` characters, and whether anything is left
    out."""
    seen = _spelled(text[: limit + 1])
    if len(text) <= limit and len(seen) <= limit:
        return seen, False
    head, tail = (
        _BROKEN_ESCAPE.sub("", seen[:HEAD_CHARS]),
        _spelled(text[-TAIL_CHARS:])[-TAIL_CHARS:],
    )
    return f'{head}"…（共 {length or len(text)} 字，中间没有显示）…"{tail}', True


def _spelled(text: str) -> str:
    return _IMITATION.sub(
        lambda verb: "".join(f"\\u{ord(char):04x}" for char in verb[0]),
        escape_invisible_chars(text),
    )
