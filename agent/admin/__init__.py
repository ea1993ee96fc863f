"""The record as the operator reads it, which nobody can change, and the tools with their use of it."""

from agent.admin.approvals import ApprovalAdmin
from agent.admin.calls import ToolCallAdmin
from agent.admin.messages import MessageAdmin
from agent.admin.runs import RunAdmin
from agent.admin.sessions import ChatSessionAdmin
from agent.admin.steps import StepAdmin
from agent.admin.tools import ToolPageAdmin

__all__ = ["ApprovalAdmin", "ChatSessionAdmin", "MessageAdmin", "RunAdmin", "StepAdmin", "ToolCallAdmin", "ToolPageAdmin"]
