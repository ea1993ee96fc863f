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

import copy
import json
import logging
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from functools import lru_cache
from typing import Any, NamedTuple

from agent.domain.types import ChatKind
from tools.contract import TOOL_NAME
from tools.text.fences import neutralize_marks
from tools.text.placeholders import Placeholder, format_value, split_placeholders
from tools.text.storable import make_storable

PREFIXES = ("app", "user", "temp")
TOOL_PREFIX = "tool:"
KIND_WORDS: dict[ChatKind, str] = {"group": "群聊", "private": "私聊"}
WEEKDAYS = "一二三四五六日"


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


def render_known_values(
    template: str, values: Mapping[str, object], tools: Collection[str]
) -> RenderedPrompt:
    """``template`` with its values and the names of the enabled ``tools``.

    Strings stand bare, None is "", and everything else is JSON. What has nothing to stand for and
    is not optional stays as it is written.
    """
    text: list[str] = []
    missing: list[str] = []
    for piece in _pieces(template):
        if isinstance(piece, str):
            text.append(piece)
        elif (known := _value(piece, values, tools)) is not None:
            text.append(known)
        else:
            text.append(piece.written)
            missing.append(piece.written)
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
    placeholder: PromptPlaceholder, values: Mapping[str, object], tools: Collection[str]
) -> str | None:
    """What stands in the place of ``placeholder``; None where there is nothing."""
    name = placeholder.name
    if name in (tools if placeholder.is_tool else values):
        value = name if placeholder.is_tool else values[name]
        return "" if value is None else neutralize_marks(format_value(value))
    return "" if placeholder.is_optional else None


# The state of a chat: named values that its tools keep and the persona's prompt shows. Pure.
#
# A tool finds it as ``context.metadata["state"]``, a dict of its own that it changes in place;
# what it changed is taken over when the call has ended. Names are those of
# :func:`agent.domain.chat_state.is_value_name`, values are JSON. Names that begin with
# ``temp:`` are there for the rest of the run and never stored; the other prefixes are part of a
# name, and nothing is shared between chats.

logger = logging.getLogger(__name__)

#: Bytes of a stored state as JSON in UTF-8.
SIZE_LIMIT = 16 * 1024
TEMPORARY = "temp:"


@dataclass(frozen=True, slots=True)
class StateChange:
    """What became different in the state of one chat, name by name."""

    session_pk: int
    values: dict[str, Any]
    removed: frozenset[str] = frozenset()
    before: dict[str, Any] = field(default_factory=dict, compare=False)
    """What the names that are different stood for, those that there were."""

    def apply_to(self, state: Mapping[str, object]) -> dict[str, Any]:
        return {
            name: value for name, value in state.items() if name not in self.removed
        } | self.values


class OpenedState(NamedTuple):
    """A state as one call was given it, and the copy that is its own to change."""

    before: dict[str, Any]
    given: dict[str, Any]


@dataclass(slots=True)
class ChatState:
    """The state as one run has it. Without ``session_pk`` there is no chat, and nothing is stored.

    ``values`` is replaced and never changed, so that calls may overlap: each takes over
    what it changed itself.
    """

    session_pk: int | None = None
    values: dict[str, Any] = field(default_factory=dict)

    def open_copy(self) -> OpenedState:
        """The state for one call. A cancelled tool may keep running in its thread; then its changes
        have no effect."""
        return OpenedState(self.values, copy.deepcopy(self.values))

    def apply_copy(self, call: OpenedState, tool_name: str) -> StateChange | None:
        """Apply a call's changes to its copy; returns the change to store, None for none.

        A value that cannot be stored stays as it was, and so does everything when the
        state would become too large; the log says so.
        """
        change = diff_states(self.session_pk or 0, call.before, _readable(call, tool_name))
        if not (change.values or change.removed):
            return None
        after = change.apply_to(self.values)
        if stored_state_size(after) > max(SIZE_LIMIT, stored_state_size(self.values)):
            logger.warning(
                "What tool %s put into the chat's state is left out: more than %d bytes",
                tool_name,
                SIZE_LIMIT,
            )
            return None
        self.values = after
        change = StateChange(
            change.session_pk,
            to_stored_state(change.values),
            frozenset(to_stored_state(dict.fromkeys(change.removed))),
            to_stored_state(change.before),
        )
        return change if self.session_pk is not None and (change.values or change.removed) else None


def _readable(call: OpenedState, tool_name: str) -> dict[str, Any]:
    """What can be stored of the copy of a call."""
    values: dict[str, Any] = {}
    for name, value in {**call.given}.items():  # copied in one step, in case a thread still runs
        is_untouched = (
            name in call.before and value is call.before[name]
        )  # texts and numbers are not copied
        try:
            values[name] = value if is_untouched else _plain(name, value)
        except (TypeError, ValueError, RecursionError, RuntimeError) as error:
            logger.warning(
                "The value %r that tool %s put into the chat's state is left out: %s",
                name,
                tool_name,
                error,
            )
            values |= {name: call.before[name]} if name in call.before else {}
    return values


def diff_states(
    session_pk: int, before: Mapping[str, object], after: Mapping[str, object]
) -> StateChange:
    """The change that makes ``before`` into ``after``."""
    values = {
        name: value
        for name, value in after.items()
        if name not in before or not is_same_json(value, before[name])
    }
    removed = frozenset(before.keys() - after.keys())
    was = {name: before[name] for name in (*values, *removed) if name in before}
    return StateChange(session_pk, values, removed, was)


def take_back_change(
    state: Mapping[str, Any], before: Mapping[str, Any], after: Mapping[str, Any]
) -> tuple[dict[str, Any], bool]:
    """``state`` with what a change made different as it was ``before``, and whether that is all of
    it: what something else has changed since stays."""
    gone = object()
    values, is_whole = dict(state), True
    for name in {*before, *after}:
        now, left = values.get(name, gone), after.get(name, gone)
        if (now is gone) != (left is gone) or (now is not gone and not is_same_json(now, left)):
            is_whole = False
        elif name in before:
            values[name] = before[name]
        else:
            values.pop(name, None)
    return values, is_whole


def is_same_json(one: object, other: object) -> bool:
    """Whether two values are the same JSON; Python's 1 equals its True."""
    return one is other or json.dumps(one) == json.dumps(other)


def json_text(value: object) -> str:
    """Raises ValueError for numbers that are none, TypeError for what is no JSON, and
    RecursionError."""
    return json.dumps(value, ensure_ascii=False, allow_nan=False)


def to_stored_state(state: Mapping[str, object]) -> dict[str, Any]:
    """What is stored of ``state``."""
    return {name: value for name, value in state.items() if not name.startswith(TEMPORARY)}


def stored_state_size(state: Mapping[str, object]) -> int:
    """Bytes of what is stored of ``state``."""
    return len(json_text(to_stored_state(state)).encode())


def _plain(name: object, value: object) -> Any:
    """``value`` as it will be read back. Raises what :func:`json_text` raises, and ValueError for a
    bad name."""
    if not (isinstance(name, str) and is_value_name(name)):
        raise ValueError("this is not a name of a value")
    return make_storable(json.loads(json_text(value)))


@dataclass(frozen=True, slots=True)
class ToolDiscovery:
    """Tools that were found in one chat, to be stored."""

    session_pk: int
    names: tuple[str, ...]
