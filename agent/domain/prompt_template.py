"""The persona's prompt as a template: ``{name}`` is a value of the chat, ``{tool:name}`` a tool's
name. Pure.

The rules are those of Google ADK's instruction templates. A placeholder is a name in
braces; spaces around it do not count, and in ``{{name}}`` all the braces do. A name is an
identifier, or one behind ``app:``, ``user:`` or ``temp:``. ``{name?}`` is nothing where
there is no value. Whatever else stands in braces is text and stays as it is written, so
that examples of JSON need no escape. Values are put in once: braces in a value are text,
and so is what looks like a mark of this program's (:mod:`tools.text.fences`).

There are placeholders for what the program itself knows, and none for the names of
people and groups: those are words from outside, which would speak with the authority of
the prompt. The model reads them in the frame of each message, as data
(:mod:`agent.llm.requests.messages`).
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from typing import Any

from agent.domain.types import ChatKind
from tools.contract import TOOL_NAME
from tools.text.fences import neutralize_marks
from tools.text.placeholders import Placeholder, format_value, split_placeholders

PREFIXES = ("app", "user", "temp")
TOOL_PREFIX = "tool:"
KIND_WORDS: dict[ChatKind, str] = {"group": "群聊", "private": "私聊"}
WEEKDAYS = "一二三四五六日"


class PromptTemplateError(ValueError):
    """A template asks for something that is not there; ``written`` is the placeholder as it stands
    in it."""

    def __init__(self, written: str, reason: str) -> None:
        super().__init__(f"{written}: {reason}")
        self.written = written


class MissingValueError(PromptTemplateError):
    """No value has the name that the placeholder gives."""


class MissingToolError(PromptTemplateError):
    """No tool of the name is enabled here."""


@dataclass(frozen=True, slots=True)
class PromptPlaceholder:
    """One place of a template that a value goes to."""

    written: str
    name: str
    """Of the value, with its prefix, or of the tool."""
    is_tool: bool = False
    is_optional: bool = False


@dataclass(frozen=True, slots=True)
class RenderedPrompt:
    """A template with what could be put in; ``missing`` are the placeholders that were left as they
    are written."""

    text: str
    missing: tuple[str, ...] = ()


def is_value_name(name: str) -> bool:
    """Whether a value may have this name."""
    prefix, colon, rest = name.partition(":")
    return rest.isidentifier() and prefix in PREFIXES if colon else name.isidentifier()


@lru_cache(maxsize=64)
def parse_prompt_placeholders(template: str) -> tuple[PromptPlaceholder, ...]:
    """The placeholders of ``template`` in order; none for one that is only text."""
    return tuple(piece for piece in _pieces(template) if isinstance(piece, PromptPlaceholder))


def render_prompt(template: str, values: Mapping[str, Any], tools: Collection[str]) -> str:
    """``template`` with its values and the names of the enabled ``tools``.

    Strings stand bare, None is "", and everything else is JSON. Raises
    :class:`MissingValueError` or :class:`MissingToolError` for the first placeholder
    that has nothing to stand for and is not optional.
    """
    return "".join(
        piece if isinstance(piece, str) else _value(piece, values, tools)
        for piece in _pieces(template)
    )


def render_known_values(
    template: str, values: Mapping[str, Any], tools: Collection[str]
) -> RenderedPrompt:
    """As :func:`render_prompt`, but what has nothing to stand for stays as it is written."""
    text: list[str] = []
    missing: list[str] = []
    for piece in _pieces(template):
        try:
            text.append(piece if isinstance(piece, str) else _value(piece, values, tools))
        except PromptTemplateError as error:
            text.append(error.written)
            missing.append(error.written)
    return RenderedPrompt("".join(text), tuple(dict.fromkeys(missing)))


def program_values(bot_name: str, kind: ChatKind | None, now: datetime) -> dict[str, str]:
    """What the program knows by itself, for placeholders that the chat's state has no value for.

    ``now`` is local time; ``kind`` is None where there is no chat.
    """
    values = {
        "date": f"{now:%Y-%m-%d}",
        "time": f"{now:%H:%M}",
        "weekday": f"星期{WEEKDAYS[now.weekday()]}",
    }
    if bot_name:
        values["bot_name"] = bot_name
    if kind:
        values["chat_kind"] = KIND_WORDS[kind]
    return values


@lru_cache(maxsize=64)
def _pieces(template: str) -> tuple[str | PromptPlaceholder, ...]:
    """``template`` in order: text, and the placeholders between. A brace without its counterpart
    is text: ``{"city": {city}}``."""
    return tuple(
        piece if isinstance(piece, str) else _placeholder(piece) or piece.written
        for piece in split_placeholders(template, has_escapes=False)
    )


def _placeholder(found: Placeholder) -> PromptPlaceholder | None:
    name = found.inside.strip()
    is_optional = name.endswith("?")
    name = name.removesuffix("?")
    is_tool = name.startswith(TOOL_PREFIX)
    name = name.removeprefix(TOOL_PREFIX)
    if not (TOOL_NAME.fullmatch(name) if is_tool else is_value_name(name)):
        return None
    return PromptPlaceholder(found.written, name, is_tool, is_optional)


def _value(
    placeholder: PromptPlaceholder, values: Mapping[str, Any], tools: Collection[str]
) -> str:
    name = placeholder.name
    if name in (tools if placeholder.is_tool else values):
        value = name if placeholder.is_tool else values[name]
        return "" if value is None else neutralize_marks(format_value(value))
    if placeholder.is_optional:
        return ""
    if placeholder.is_tool:
        raise MissingToolError(placeholder.written, "no such tool is enabled here")
    raise MissingValueError(placeholder.written, "there is no value of this name")
