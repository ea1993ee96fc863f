"""What the tools of the memory have in common: where they are called, and how they answer."""

from typing import Any, cast

from agent.memory.audience import Viewer
from agent.memory.notebook import Notebook
from tools.contract import ToolExecutionContext, ToolExecutionResult
from tools.policy import GROUP_ADMIN_ROLES, is_owner


def notebook(context: ToolExecutionContext) -> Notebook:
    return cast("Notebook", context.metadata["memory"])


def viewer(context: ToolExecutionContext) -> Viewer:
    """The chat of the run and the real sender, whatever the call's arguments say."""
    chat = context.session_id.removeprefix(f"{context.platform}:")
    return Viewer(context.platform, str(context.metadata["account"]), chat, context.user_id)


def is_manager(context: ToolExecutionContext) -> bool:
    """Whether the sender decides for the whole chat: as an owner of the bot, or an admin of the group."""
    in_charge = context.is_group_chat is True and context.metadata.get("sender_role") in GROUP_ADMIN_ROLES
    return in_charge or is_owner(context)


def told(name: str, content: str, structured: Any = None) -> ToolExecutionResult:
    return ToolExecutionResult(name, success=True, content=content, structured_content=structured)


def failure(name: str, text: str) -> ToolExecutionResult:
    return ToolExecutionResult(name, success=False, error_message=text)
