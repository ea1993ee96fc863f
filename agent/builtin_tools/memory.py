"""What the tools of the memory have in common: where they are called, and how they answer."""

from typing import Any, cast

from agent.domain.notes import NoteViewer
from agent.memory.note_service import NoteService
from agent.run.flow import FENCED
from tools.contract import ToolExecutionContext, ToolExecutionResult


def get_notebook(context: ToolExecutionContext) -> NoteService:
    return cast("NoteService", context.metadata["memory"])


def get_viewer(context: ToolExecutionContext) -> NoteViewer:
    """The chat of the run and the real sender, whatever the call's arguments say."""
    chat = context.session_id.removeprefix(f"{context.platform}:")
    return NoteViewer(context.platform, str(context.metadata["account"]), chat, context.user_id)


def memory_result(name: str, content: str, structured: Any = None) -> ToolExecutionResult:
    """``content`` for the model; what is in it of notes is fenced."""
    return ToolExecutionResult(
        name, success=True, content=content, structured_content=structured, metadata={FENCED: True}
    )


def memory_failure(name: str, text: str) -> ToolExecutionResult:
    return ToolExecutionResult(name, success=False, error_message=text)
