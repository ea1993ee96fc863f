"""The record as the operator reads it: nothing here can be changed."""

from agent.admin.calls import ToolCallAdmin
from agent.admin.messages import MessageAdmin
from agent.admin.runs import RunAdmin
from agent.admin.sessions import ChatSessionAdmin
from agent.admin.steps import StepAdmin

__all__ = ["ChatSessionAdmin", "MessageAdmin", "RunAdmin", "StepAdmin", "ToolCallAdmin"]
