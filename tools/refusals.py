"""Why a call is not made: one word for the record, a sentence for the model."""

from collections.abc import Collection
from dataclasses import dataclass
from difflib import get_close_matches
from enum import StrEnum


class RefusalReason(StrEnum):
    """The word in ``result.metadata["refusal"]``."""

    UNKNOWN = "unknown"
    DISABLED = "disabled"
    HIDDEN = "hidden"
    WRONG_CHAT = "wrong_chat"
    SERVER_DOWN = "server_down"
    NOT_PERMITTED = "not_permitted"
    RATE_LIMITED = "rate_limited"
    NEEDS_APPROVAL = "needs_approval"


class CallVerdict(StrEnum):
    """The word in ``result.metadata["verdict"]`` for a call that was not refused for a
    :class:`RefusalReason`."""

    ALLOWED = "allowed"
    APPROVED = "approved"
    MOCKED = "mocked"
    INVALID = "invalid_arguments"
    NOT_MADE = "not_made"
    """The run loop did not make it."""
    STOOD_IN = "stood_in"
    """Answered by a stand-in: the run is a trial that changes nothing."""
    OWNER_REFUSED = "owner_refused"
    EXPIRED = "expired"
    """No owner decided in time."""
    WITHDRAWN = "withdrawn"
    """Its run was taken back before anybody decided."""


@dataclass(frozen=True, slots=True)
class ToolRefusal:
    """A call is not made, for this reason; ``text`` is for the model."""

    reason: RefusalReason
    text: str


UNKNOWN = ToolRefusal(RefusalReason.UNKNOWN, "没有这个名称的工具。")
DISABLED = ToolRefusal(RefusalReason.DISABLED, "该工具已停用。")
HIDDEN = ToolRefusal(RefusalReason.HIDDEN, "该工具不开放调用。")
NOT_HERE = ToolRefusal(RefusalReason.WRONG_CHAT, "该工具在当前会话中不可用。")
GROUPS_ONLY = ToolRefusal(RefusalReason.WRONG_CHAT, "该工具只能在群聊中使用。")
PRIVATE_ONLY = ToolRefusal(RefusalReason.WRONG_CHAT, "该工具只能在私聊中使用。")
SERVER_DOWN = ToolRefusal(
    RefusalReason.SERVER_DOWN, "提供该工具的服务暂时不可用，请稍后再试或改用其他方式。"
)

_NOT_FOUND = {
    RefusalReason.UNKNOWN,
    RefusalReason.DISABLED,
    RefusalReason.HIDDEN,
    RefusalReason.WRONG_CHAT,
    RefusalReason.SERVER_DOWN,
}
_NEAR = 3
_COMPARED = 64
"""Characters of a name that are compared; names of tools are no longer."""


def find_near_names(name: str, offered: Collection[str]) -> list[str]:
    """At most three of the ``offered`` names that ``name`` may have meant, the nearest first."""
    by_lower = {other.lower(): other for other in offered}
    return [
        by_lower[match] for match in get_close_matches(name[:_COMPARED].lower(), by_lower, _NEAR)
    ]


def refusal_message(name: str, refusal: ToolRefusal, near: Collection[str] = ()) -> str:
    """What the model reads. A tool that is not in its view is not found, whatever the reason."""
    if refusal.reason not in _NOT_FOUND:
        return refusal.text
    lines = [not_found_message(name), refusal.text]
    return "\n".join([*lines, f"名称相近的可用工具: {', '.join(near)}"] if near else lines)


def not_found_message(name: str) -> str:
    return f"Tool not found: {name}"
