"""A client by script that acts in groups, and a registry of the tools that have it act."""

from collections.abc import Mapping
from functools import partial
from typing import Any

from agent.builtin_tools import acts
from agent.builtin_tools.course import MaisakaBuiltinToolProvider
from agent.domain.client_actions import ACT_SECONDS, ActionOutcome, GroupMember, GroupRole
from agent.domain.types import ChatAddress
from agent.record.record import Record
from agent.record.runs.day_calls import find_day_limit
from tools.registry.registry import ToolRegistry
from tools.registry.settings import ToolSettings

ROLES: dict[str, GroupRole] = {
    "10001": "admin",
    "20004": "owner",
    "20005": "admin",
    "20006": "admin",
}
STRANGER = "20008"


class ScriptedClient:
    """A client that does everything; everybody but ``STRANGER`` and ``left`` is at least a
    member."""

    left = ""
    otherwise = ActionOutcome(is_success=True)
    """The answer to what it was not told to answer."""

    def __init__(self, roles: Mapping[str, GroupRole] = ROLES, /, **answers: object) -> None:
        self.roles, self.answers = roles, answers
        self.acts: list[tuple[str, Mapping[str, object]]] = []

    async def perform(
        self,
        chat: ChatAddress,
        action: str,
        params: Mapping[str, object],
        seconds: float = ACT_SECONDS,
        instead: tuple[str, Mapping[str, object]] | None = None,
    ) -> ActionOutcome:
        self.acts.append((action, params))
        answer = self.answers.get(action, self.otherwise)
        if not isinstance(answer, ActionOutcome):
            return ActionOutcome(is_success=True, data=answer)
        if answer.is_unsupported and instead is not None:
            return await self.perform(chat, *instead, seconds)
        return answer

    async def find_member(self, chat: ChatAddress, user_id: str) -> GroupMember | None:
        if user_id in (STRANGER, self.left):
            return None
        return GroupMember(user_id, self.roles.get(user_id, "member"), f"n{user_id}", "before")


def act_registry(record: Record, rows: Mapping[str, ToolSettings]) -> ToolRegistry:
    registry = ToolRegistry(lambda: rows)
    registry.register_provider(MaisakaBuiltinToolProvider(acts.TOOLS))
    registry.day_limit = partial(find_day_limit, record)
    return registry


def rows(**changes: Any) -> dict[str, ToolSettings]:
    """The rows of all acts, switched on."""
    return {one.spec.name: ToolSettings(one.spec.name, **changes) for one in acts.TOOLS}
