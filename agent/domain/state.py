"""The state of a chat: named values that its tools keep and the persona's prompt shows. Pure.

A tool finds it as ``context.metadata["state"]``, a dict of its own that it changes in
place; what it changed is taken over when the call has ended. Names are those of
:func:`agent.domain.prompt_template.is_value_name`, values are JSON. Names that begin with ``temp:``
are there for the rest of the run and never stored; the other prefixes are part of a name, and
nothing is shared between chats.
"""

import copy
import json
import logging
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from agent.domain.prompt_template import is_value_name
from tools.text.storable import make_storable

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

    def apply_to(self, state: Mapping[str, Any]) -> dict[str, Any]:
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
    session_pk: int, before: Mapping[str, Any], after: Mapping[str, Any]
) -> StateChange:
    """The change that makes ``before`` into ``after``."""
    values = {
        name: value
        for name, value in after.items()
        if name not in before or not is_same_json(value, before[name])
    }
    return StateChange(session_pk, values, frozenset(before.keys() - after.keys()))


def is_same_json(one: Any, other: Any) -> bool:
    """Whether two values are the same JSON; Python's 1 equals its True."""
    return one is other or json.dumps(one) == json.dumps(other)


def json_text(value: Any) -> str:
    """Raises ValueError for numbers that are none, TypeError for what is no JSON, and
    RecursionError."""
    return json.dumps(value, ensure_ascii=False, allow_nan=False)


def to_stored_state(state: Mapping[str, Any]) -> dict[str, Any]:
    """What is stored of ``state``."""
    return {name: value for name, value in state.items() if not name.startswith(TEMPORARY)}


def stored_state_size(state: Mapping[str, Any]) -> int:
    """Bytes of what is stored of ``state``."""
    return len(json_text(to_stored_state(state)).encode())


def _plain(name: object, value: Any) -> Any:
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
