"""``forget_note``: a note is removed at the wish of somebody who may."""

from agent.builtin_tools.entry import BuiltinTool
from agent.builtin_tools.memory import get_notebook, get_viewer, memory_failure, memory_result
from agent.memory.notes_store import DeleteNote, NoteResult
from tools.contract import ToolExecutionContext, ToolExecutionResult, ToolInvocation
from tools.registry.policy import is_chat_manager

NAME = "forget"
NOT_ALLOWED = "编号 {pk} 的记忆不能由当前发言者删除：只能删除关于自己或自己说过的，本群的由群管理员删除，其余请在后台删除。"


async def forget_note(
    invocation: ToolInvocation, context: ToolExecutionContext
) -> ToolExecutionResult:
    """Remove one note by its number. A note that cannot be seen here is treated as one that does
    not exist."""
    pk = invocation.arguments["note_id"]
    fate = await get_notebook(context).forget(
        DeleteNote(get_viewer(context), pk, is_manager=is_chat_manager(context))
    )
    match fate:
        case NoteResult.DONE:
            return memory_result(NAME, f"已忘记编号 {pk} 的内容。")
        case NoteResult.NOT_ALLOWED:
            return memory_failure(NAME, NOT_ALLOWED.format(pk=pk))
        case _:
            return memory_failure(NAME, f"没有编号为 {pk} 的记忆。请先用 query_memory 查询编号。")


TOOL = BuiltinTool(
    name=NAME,
    description="按编号删除一条记忆，用于用户要求忘记或更正某件事。编号来自 query_memory 的结果。",
    parameters={
        "type": "object",
        "properties": {
            "note_id": {
                "type": "integer",
                "minimum": 1,
                "maximum": 2**53,
                "description": "要删除的记忆的编号",
            },
        },
        "required": ["note_id"],
    },
    handler=forget_note,
    needs_chat=True,
    calls_per_minute=20,
)
